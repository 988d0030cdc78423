#!/usr/bin/env bash
# Tries a Debian package of `make deb` in a new, minimal Debian: installs it with its dependencies, runs the demo, a sync and
# the daemon as the user `annals`, and upgrades, removes and purges it.
#
#   scripts/check-deb.sh [PACKAGE]   PACKAGE is by default the newest one in target/debian; SUITE names a Debian (bookworm)
#
# Needs root, Linux, the network and debootstrap; takes three minutes and 400 MB. Exits with 3 and MISSING if it cannot run here.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'check-deb: %s\n' "$*" >&2; }
missing() { say "MISSING $*"; exit 3; }

package=${1:-$(find target/debian -name '*.deb' -printf '%T@ %p\n' 2>/dev/null | sort -n | tail -n 1 | cut -d ' ' -f 2- || true)}
[ -f "$package" ] || { say "there is no package ${package:-in target/debian}: run make deb, or name another one"; exit 2; }
[ "$(id -u)" = 0 ] || missing 'root, which makes and enters a new system'
command -v unshare >/dev/null || missing 'unshare (the package util-linux)'
command -v debootstrap >/dev/null || missing 'debootstrap: run apt-get install debootstrap'

root=$(mktemp -d)
# The user `annals` enters it, too.
chmod 755 "$root"
trap 'rm -rf --one-file-system "$root"' EXIT
say "a new ${SUITE:-bookworm} in $root"
debootstrap --variant=minbase "${SUITE:-bookworm}" "$root" >"$root.log" 2>&1 || { cat "$root.log" >&2; exit 1; }
rm "$root.log"
install -m 644 "$package" "$root/annals.deb"

cat >"$root/check" <<'CHECK'
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
say() { printf 'check-deb: %s\n' "$*" >&2; }
trap '[ $? = 0 ] || say "this failed"' EXIT
# As the unit runs it.
as_annals() { su annals -s /bin/sh -c "cd && ANNALS_CONFIG=/etc/annals/annals.toml ANNALS_TOKEN=${token:-none} $*"; }

say 'install'
apt-get -qq update
apt-get -qq -y --no-install-recommends install /annals.deb >/dev/null
[ "$(stat -c '%a %U:%G' /var/lib/annals)" = '700 annals:annals' ]
[ "$(stat -c '%a %U:%G' /etc/annals/annals.toml)" = '640 root:annals' ]

say 'the demo'
as_annals annals demo --archive demo >/dev/null
as_annals annals verify --archive demo

say 'a sync and the daemon, by the packaged configuration'
annals sandbox --json --teams 1 --days 2 >/ready &
while ! [ -s /ready ]; do sleep 0.2; done
token=$(sed 's/.*"read_only":"\([^"]*\)".*/\1/' /ready)
service=$(sed 's/.*"base_url":"\([^"]*\)".*/\1/' /ready)
sed -i "s#^base_url = .*#base_url = \"$service\"#" /etc/annals/annals.toml
as_annals annals sync
as_annals annals doctor
as_annals timeout --preserve-status 10 annals run
as_annals annals verify

say 'an upgrade'
dpkg -i /annals.deb >/dev/null
grep -q "$service" /etc/annals/annals.toml
as_annals annals verify >/dev/null

say 'a removal and a purge'
apt-get -qq -y remove annals >/dev/null
[ ! -e /usr/bin/annals ]
[ -f /etc/annals/annals.toml ]
apt-get -qq -y purge annals >/dev/null
[ ! -e /etc/annals ]
[ -f /var/lib/annals/archive/archive.json ]
getent passwd annals >/dev/null
CHECK

# In namespaces of their own: the mounts and all processes end with the check.
unshare --mount --pid --fork --kill-child sh -c \
  "mount -t proc proc '$root/proc' && mount -t devpts devpts '$root/dev/pts' && exec chroot '$root' sh /check"
say "$package installs, works and leaves as it should"
