#!/usr/bin/env bash
# Third-party engines, for the tests of open tables: PyIceberg, Polars, ClickHouse (chdb), DuckDB with its Iceberg
# extension, and Sail. Installs them from PyPI, pinned by hash, into a virtual environment in the cache (1.6 GB).
#
#   scripts/lake-readers.sh install            installs missing packages
#   python=$(scripts/lake-readers.sh python)   prints the path of a Python that imports them
#
# Exits with 3 and the reason if they are not installed or cannot be installed.
set -euo pipefail

here=$(cd "$(dirname "$0")/../tests/lake" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/annals
if command -v sha256sum >/dev/null; then sums=sha256sum; else sums='shasum -a 256'; fi
python=${PYTHON:-python3}

say() { printf 'lake-readers: %s\n' "$*" >&2; }
absent() { say "$*"; exit 3; }

command -v "$python" >/dev/null || absent "there is no $python"
tag=$("$python" -c 'import sys, sysconfig; print("cp%d%d-%s" % (*sys.version_info[:2], sysconfig.get_platform()))')
place=$cache/lake-readers-$($sums "$here/requirements.txt" | cut -c1-12)-$tag

install() {
  mkdir -p "$cache"
  # A virtual environment cannot be moved, so one run at a time makes it in place.
  exec 9>"$place.lock"
  if command -v flock >/dev/null; then flock 9; fi
  [ -f "$place/done" ] && return 0
  rm -rf "$place"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  "$python" -m venv "$place" >"$log" 2>&1 || absent "$python cannot make a virtual environment: $(tail -n 1 "$log")"
  # PyPI has pyspark-client only as source.
  "$place/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --only-binary :all: --no-binary pyspark-client \
    --require-hashes -r "$here/requirements.txt" >"$log" 2>&1 ||
    absent "pip cannot install the readers: $(grep -m 1 ERROR "$log" || tail -n 1 "$log")"
  touch "$place/done"
  say "installed the readers into $place"
}

case ${1:-} in
  install) install ;;
  python)
    [ -f "$place/done" ] || absent "the readers are not here: scripts/lake-readers.sh install gets them"
    printf '%s\n' "$place/bin/python"
    ;;
  *) absent "usage: $0 install | python" ;;
esac
