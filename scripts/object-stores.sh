#!/usr/bin/env bash
# Servers of objects that nobody here wrote, for the tests of archives in buckets: MiniStack for S3, Azurite for Azure.
#
#   scripts/object-stores.sh install           gets what is missing into the cache, every package pinned by hash: MiniStack
#                                              from PyPI (80 MB), Azurite by npm (370 MB)
#   scripts/object-stores.sh ministack PORT    runs MiniStack on that port of 127.0.0.1 until it is killed
#   scripts/object-stores.sh azurite PORT      runs Azurite in the same way
#
# Everything is kept in memory, and nothing is written into the checkout. Exits with 3, and says why, where a server is not
# here.
set -euo pipefail

here=$(cd "$(dirname "$0")/../tests/object_stores" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/annals
if command -v sha256sum >/dev/null; then sums=sha256sum; else sums='shasum -a 256'; fi
python=${PYTHON:-python3}

say() { printf 'object-stores: %s\n' "$*" >&2; }
absent() { say "$*"; exit 3; }
pin() { $sums "$here/$1" | cut -c1-12; }

ministack_place() {
  command -v "$python" >/dev/null || { say "there is no $python"; return 1; }
  local tag
  tag=$("$python" -c 'import sys, sysconfig; print("cp%d%d-%s" % (*sys.version_info[:2], sysconfig.get_platform()))')
  printf '%s\n' "$cache/ministack-$(pin requirements.txt)-$tag"
}

install_ministack() {
  local place log
  place=$(ministack_place) || return 1
  # A virtual environment cannot be moved: it is made in place, by one run at a time.
  exec 9>"$place.lock"
  if command -v flock >/dev/null; then flock 9; fi
  [ -f "$place/done" ] && return 0
  rm -rf "$place"
  log=$(mktemp)
  if ! "$python" -m venv "$place" >"$log" 2>&1 ||
    ! "$place/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
      --require-hashes -r "$here/requirements.txt" >"$log" 2>&1; then
    say "MiniStack cannot be installed: $(grep -m 1 ERROR "$log" || tail -n 1 "$log")"
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
  touch "$place/done"
  say "MiniStack is in $place"
}

azurite_place() { printf '%s\n' "$cache/azurite-$(pin package-lock.json)"; }

install_azurite() {
  local place work
  place=$(azurite_place)
  [ -f "$place/node_modules/azurite/package.json" ] && return 0
  command -v node >/dev/null && command -v npm >/dev/null || { say 'node and npm are not here'; return 1; }
  work=$(mktemp -d "$cache/.azurite.XXXXXX")
  cp "$here/package.json" "$here/package-lock.json" "$work/"
  if (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --silent >npm.log 2>&1); then
    # Another run may have been faster.
    mv -T "$work" "$place" 2>/dev/null || mv "$work" "$place" 2>/dev/null || rm -rf "$work"
    say "Azurite is in $place"
  else
    say "npm could not fetch Azurite: $(tail -n 1 "$work/npm.log")"
    rm -rf "$work"
    return 1
  fi
}

case ${1:-}:${2:-} in
  install:)
    mkdir -p "$cache"
    # A machine without them still builds and tests the rest, and says so.
    install_ministack || say 'the tests of archives on S3 run against our own server alone'
    install_azurite || say 'the tests of archives on Azure will be skipped'
    ;;
  ministack:[0-9]*)
    place=$(ministack_place) && [ -f "$place/done" ] || absent 'MiniStack is not here: run scripts/object-stores.sh install'
    export BIND_HOST=127.0.0.1 GATEWAY_PORT=$2 SERVICES=s3 LOG_LEVEL=WARNING
    exec "$place/bin/ministack"
    ;;
  azurite:[0-9]*)
    place=$(azurite_place)
    command -v node >/dev/null && [ -f "$place/node_modules/azurite/package.json" ] ||
      absent 'Azurite is not here: run scripts/object-stores.sh install'
    exec node "$place/node_modules/.bin/azurite-blob" --blobHost 127.0.0.1 --blobPort "$2" --inMemoryPersistence \
      --skipApiVersionCheck --disableTelemetry --silent
    ;;
  *)
    say 'usage: scripts/object-stores.sh install | ministack PORT | azurite PORT'
    exit 2
    ;;
esac
