#!/usr/bin/env bash
# Prints the third-party programs and other parts that this machine does not have, as a list with commas, and names each on standard
# error.
# `make test` installs the programs, and passes what is still missing as ANNALS_WITHOUT. The tests of these programs then print MISSING.
set -uo pipefail
cd "$(dirname "$0")"

missing=
needs() {
  local part=$1
  shift
  "$@" >/dev/null 2>&1 && return
  printf 'missing here, so its tests say MISSING: %s\n' "$part" >&2
  missing+=${missing:+,}$part
}

# The mount ends with its namespace.
may_mount() {
  [ "$(id -u)" = 0 ] && setpriv --inh-caps=-all --bounding-set=-all true &&
    unshare -m mount -t tmpfs -o size=64m annals-test /mnt
}

has_python() { ./python-duckdb.sh && ./python-schemathesis.sh; }

needs azurite ./object-stores.sh find azurite
needs browser ./browser.sh find
needs engines ./engines.sh python
needs linux [ "$(uname)" = Linux ]
needs ministack ./object-stores.sh find ministack
needs mounts may_mount
needs promtool ./promtool.sh find
needs python has_python
needs readers ./lake-readers.sh python
needs spark java -version
needs systemd systemd-analyze --version
printf '%s\n' "$missing"
