#!/usr/bin/env bash
# Third-party object servers, for the tests of archives in buckets: MiniStack for S3, Azurite for Azure, and in the long run
# Ceph's gateway for S3.
#
#   scripts/object-stores.sh install           installs missing servers into the cache, every package pinned by hash: MiniStack
#                                              from PyPI (80 MB), Azurite by npm (370 MB)
#   scripts/object-stores.sh find ministack    fails if MiniStack is not installed; likewise for azurite
#   scripts/object-stores.sh ministack PORT    runs MiniStack on that port of 127.0.0.1 until it is killed
#   scripts/object-stores.sh azurite PORT      runs Azurite in the same way
#   scripts/object-stores.sh install-ceph      installs Ceph's packages of Debian 12 by apt-get, as root (73 MB, signed by Debian)
#   scripts/object-stores.sh ceph PORT         runs a cluster of one monitor, one store in memory (1 GB) and the gateway
#
# The servers keep everything in memory, and the script writes nothing into the checkout. Exits with 3 and the reason if a server
# is not installed.
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
  # A virtual environment cannot be moved, so one run at a time makes it in place.
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

install_ceph() {
  command -v radosgw >/dev/null && return 0
  command -v apt-get >/dev/null || { say "there is no apt-get: Ceph's packages are to be had elsewhere"; return 1; }
  apt-get update -q && apt-get install -q -y --no-install-recommends ceph-mon ceph-osd ceph-mgr radosgw
}

# Tries a command for up to half a minute.
patiently() {
  local tries
  for ((tries = 0; tries < 30; tries++)); do
    "$@" >/dev/null 2>&1 && return 0
    sleep 1
  done
  absent "Ceph does not start: $*"
}

# The server ends with this process, even after a kill.
beside() { setpriv --pdeathsig KILL "$@" >/dev/null 2>&1 & }

ceph_configuration() {
  cat <<CONFIGURATION
[global]
fsid = $2
mon host = 127.0.0.1:6789
mon initial members = a
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
osd pool default pg num = 8
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon max pg per osd = 1000
run dir = $1/run
admin socket = $1/run/\$name.asok
log file = $1/log/\$name.log
ms bind msgr2 = false
[mon.a]
mon data = $1/mon.a
mon addr = 127.0.0.1:6789
public addr = 127.0.0.1
[mgr.x]
mgr data = $1/mgr.x
[osd.0]
osd data = $1/osd.0
osd objectstore = memstore
memstore device bytes = 1073741824
public addr = 127.0.0.1
cluster addr = 127.0.0.1
[client.rgw.a]
rgw frontends = beast endpoint=127.0.0.1:$3
rgw thread pool size = 64
CONFIGURATION
}

run_ceph() {
  local place id
  place=$(mktemp -d)
  id=$(cat /proc/sys/kernel/random/uuid)
  cd "$place"
  mkdir -p run log mon.a mgr.x osd.0
  ceph_configuration "$place" "$id" "$1" >ceph.conf
  export CEPH_ARGS="-c $place/ceph.conf"
  monmaptool --create --clobber --fsid "$id" --addv a '[v1:127.0.0.1:6789]' monmap >/dev/null
  ceph-mon --mkfs -i a --monmap monmap
  beside ceph-mon -i a -f
  # The monitor answers after some seconds.
  patiently ceph osd create
  ceph-osd -i 0 --mkfs --osd-uuid "$(ceph osd dump -f json | sed -E 's/.*"osds":\[\{"osd":0,"uuid":"([^"]*)".*/\1/')" >/dev/null 2>&1
  beside ceph-osd -i 0 -f
  beside ceph-mgr -i x -f
  # The key of its one user is as public as MiniStack's.
  patiently radosgw-admin user create --uid=test --display-name=test --access-key=test --secret-key=test
  exec radosgw -f -n client.rgw.a
}

has_ministack() { place=$(ministack_place) && [ -f "$place/done" ]; }
has_azurite() { place=$(azurite_place) && command -v node >/dev/null && [ -f "$place/node_modules/azurite/package.json" ]; }

case ${1:-}:${2:-} in
  install:)
    mkdir -p "$cache"
    # A machine without them still builds, and tests everything else.
    install_ministack || say 'MiniStack cannot be installed here'
    install_azurite || say 'Azurite cannot be installed here'
    ;;
  find:ministack) has_ministack ;;
  find:azurite) has_azurite ;;
  ministack:[0-9]*)
    has_ministack || absent 'MiniStack is not here: run scripts/object-stores.sh install'
    export BIND_HOST=127.0.0.1 GATEWAY_PORT=$2 SERVICES=s3 LOG_LEVEL=WARNING
    exec "$place/bin/ministack"
    ;;
  install-ceph:) install_ceph || absent "Ceph's gateway cannot be installed" ;;
  ceph:[0-9]*)
    command -v radosgw >/dev/null && command -v setpriv >/dev/null ||
      absent "Ceph's gateway is not here: run scripts/object-stores.sh install-ceph"
    run_ceph "$2"
    ;;
  azurite:[0-9]*)
    has_azurite || absent 'Azurite is not here: run scripts/object-stores.sh install'
    exec node "$place/node_modules/.bin/azurite-blob" --blobHost 127.0.0.1 --blobPort "$2" --inMemoryPersistence \
      --skipApiVersionCheck --disableTelemetry --silent
    ;;
  *)
    say 'usage: scripts/object-stores.sh install | find SERVER | ministack PORT | azurite PORT | install-ceph | ceph PORT'
    exit 2
    ;;
esac
