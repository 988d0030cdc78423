#!/usr/bin/env bash
# promtool, which checks deploy/prometheus.
#
#   scripts/promtool.sh install    copies it from Debian's package prometheus, which apt checks, into the cache; installs
#                                  nothing else
#   scripts/promtool.sh find       prints its path, or fails
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/annals/promtool

find_tool() {
  if command -v promtool; then return 0; fi
  [ -x "$cache/promtool" ] && printf '%s\n' "$cache/promtool"
}

install_tool() {
  find_tool >/dev/null && return 0
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # Accept only a package with a signature of a system key, whatever the system's settings allow.
  (cd "$work" && apt-get -o APT::Get::AllowUnauthenticated=false -o Acquire::AllowInsecureRepositories=false \
    download prometheus >/dev/null 2>&1) || return 1
  # Do not trust the mirror: compare with the hash in the signed list.
  local listed
  listed=$(apt-cache show "$(dpkg-deb -f "$work"/prometheus_*.deb Package Version | awk '{ print $2 }' | paste -sd=)" |
    sed -n 's/^SHA256: //p' | head -n 1)
  if [ -z "$listed" ] || ! printf '%s  %s\n' "$listed" "$(echo "$work"/prometheus_*.deb)" | sha256sum -c --status; then
    echo 'promtool: the fetched package does not have the hash of the signed list: stopped' >&2
    exit 1
  fi
  dpkg-deb -x "$work"/prometheus_*.deb "$work/tree"
  mkdir -p "$cache"
  mv -f "$work/tree/usr/bin/promtool" "$cache/promtool"
}

case ${1:-} in
  install) install_tool || echo 'promtool: cannot install it here' >&2 ;;
  find) find_tool ;;
  *) sed -n '2,6p' "$0" >&2; exit 2 ;;
esac
