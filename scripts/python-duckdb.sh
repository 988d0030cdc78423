#!/usr/bin/env bash
# Prints the path of a Python with the standard `duckdb` package of the engine's version, for the test that compares
# both. Installs the package from PyPI, pinned by hash, into a virtual environment in the cache.
#
#   python=$(scripts/python-duckdb.sh)
#
# Exits with 3 and the reason if there is no suitable Python, or PyPI cannot be reached.
set -euo pipefail

readonly version=1.5.6

say() { printf 'python-duckdb: %s\n' "$*" >&2; }
skip() { say "$*"; exit 3; }

# The wheels for Python 3.10 to 3.14 on Linux and macOS.
requirements() {
  cat <<'HASHES'
duckdb==1.5.6 \
  --hash=sha256:dbd348e9ebdc8b28f1f9930efb5a74a382063c35d9c43901075566fbae50ab5c \
  --hash=sha256:95a6b91bb9149950baeb5d02466c006550d0ea98b9d10f15f7d614a8eb32e174 \
  --hash=sha256:56355a543a79c7f4d8576d27edcbd9aaed19a562a0901188b021c10f4c818800 \
  --hash=sha256:d6d1eac4de11779bb249b89b0544916ad65751da031df5c5f6d779c85b753109 \
  --hash=sha256:73b108c04c932b36c2fa4e41110cc1c3c8cd510eb49f065f92d050be8e6929fd \
  --hash=sha256:56c0f71c6bee982e9c30568bb12371bf66b26bf129c75d8d7f60bc69d6590a2c \
  --hash=sha256:34623eaabd2c66ba5c20f1a39486321c3b7d32e4e0e001ced95f81e3372dd361 \
  --hash=sha256:03e4f1b10a8b8ff476eb2b73955590fadbcef978da1167c593114c5edf763960 \
  --hash=sha256:bc9619ed7d4ffa117b5155d84b44794366bb6635178d78ed5e13a6024845c757 \
  --hash=sha256:ce89a1025a5317ebe9c520876c48032b5247ac574865486648b1a004f6009875 \
  --hash=sha256:dcccce20965e6986cd083fdf192c461685ad0b93cd1ccd0b2a8207f1185f078b \
  --hash=sha256:79de3dfa8705b1ba0d59e7e3252e40ff399e0afd12f485502a6c7bf7c2fd809a \
  --hash=sha256:644f54ce99b3b61844bc9a3fe80e0aecb1ea4084b1fffc4396d1569db6111679 \
  --hash=sha256:364992ba1089a2b327391cfcb68fd0bd0ce9090cf293baef861a0ba6847abfee \
  --hash=sha256:97dd7a555b8f5298b76bc7d48a11cb2c64336e8de9bfde783cffb86ea9f54807 \
  --hash=sha256:5a1261e90785e9d29953293e44f60fa073bd1137098924e8de21a037a861b051 \
  --hash=sha256:19c5e485e59613b8878d1670bcaa7a010f53c5a4da5ae8e08863e5e529ca6182 \
  --hash=sha256:1052b8050ef5696e2c0d8c836949c72f3dd11f0690466acbea739613e8e2750b \
  --hash=sha256:c79c6d222b1d015cde73b5139087186b00db65357fb4e2c94c2308fbbf465a72 \
  --hash=sha256:8a1b2ad27d414068cbca06c55cfa802eece10f86ea4812ff082f8ab4cb25fc85
HASHES
}

python=${PYTHON:-python3}
command -v "$python" >/dev/null || skip "there is no $python"
tag=$("$python" -c 'import sys, sysconfig; print("cp%d%d-%s" % (*sys.version_info[:2], sysconfig.get_platform()))')
cache=${XDG_CACHE_HOME:-$HOME/.cache}/annals
place=$cache/python-duckdb-$version-$tag

works() { [ -x "$1/bin/python" ] && [ "$("$1/bin/python" -c 'import duckdb; print(duckdb.__version__)' 2>/dev/null)" = "$version" ]; }

if ! works "$place"; then
  mkdir -p "$cache"
  # A virtual environment cannot be moved, so one run at a time makes it in place.
  exec 9>"$place.lock"
  if command -v flock >/dev/null; then flock 9; fi
  if ! works "$place"; then
    rm -rf "$place"
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    "$python" -m venv "$place" >"$log" 2>&1 || skip "$python cannot make a virtual environment: $(tail -n 1 "$log")"
    requirements >"$place/requirements.txt"
    "$place/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
      --require-hashes -r "$place/requirements.txt" >"$log" 2>&1 ||
      skip "pip cannot install duckdb $version: $(grep -m 1 ERROR "$log" || tail -n 1 "$log")"
    works "$place" || skip "duckdb $version was installed, and cannot be imported"
    say "installed duckdb $version into $place"
  fi
fi
printf '%s\n' "$place/bin/python"
