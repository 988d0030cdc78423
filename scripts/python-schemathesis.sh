#!/usr/bin/env bash
# Prints the path of schemathesis, which tests the sandbox against its OpenAPI description. Installs it from PyPI,
# every package pinned by hash, into a virtual environment in the cache.
#
#   schemathesis=$(scripts/python-schemathesis.sh)
#
# Exits with 3 and the reason if there is no suitable Python, or PyPI cannot be reached.
set -euo pipefail

requirements=$(cd "$(dirname "$0")/../tests/sandbox/openapi" && pwd)/requirements.txt
readonly requirements

say() { printf 'python-schemathesis: %s\n' "$*" >&2; }
skip() { say "$*"; exit 3; }

python=${PYTHON:-python3}
command -v "$python" >/dev/null || skip "there is no $python"
if command -v sha256sum >/dev/null; then sums=sha256sum; else sums='shasum -a 256'; fi
pin=$($sums "$requirements" | cut -c1-12)
tag=$("$python" -c 'import sys, sysconfig; print("cp%d%d-%s" % (*sys.version_info[:2], sysconfig.get_platform()))')
cache=${XDG_CACHE_HOME:-$HOME/.cache}/annals
place=$cache/python-schemathesis-$pin-$tag

works() { [ -x "$1/bin/schemathesis" ] && "$1/bin/schemathesis" --version >/dev/null 2>&1; }

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
    "$place/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
      --require-hashes -r "$requirements" >"$log" 2>&1 ||
      skip "pip cannot install schemathesis: $(grep -m 1 ERROR "$log" || tail -n 1 "$log")"
    works "$place" || skip "schemathesis was installed, and does not run"
    say "installed schemathesis into $place"
  fi
fi
printf '%s\n' "$place/bin/schemathesis"
