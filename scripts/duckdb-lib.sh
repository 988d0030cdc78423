#!/usr/bin/env bash
# Finds the SQL engine's prebuilt library, then runs a command with it.
#
#   scripts/duckdb-lib.sh cargo build --release    runs cargo so that it finds the library
#   eval "$(scripts/duckdb-lib.sh)"                the same for the cargo commands of this shell
#
# CARGO_BUILD_TARGET names another platform than this machine's, as for cargo. The script uses the first of these that exists,
# and names it on standard error:
#   1. DUCKDB_LIB_DIR, if it is set
#   2. a copy in the cache, ${XDG_CACHE_HOME:-$HOME/.cache}/annals
#   3. the npm package for this platform, pinned and checked by hash, which then fills the cache
#   4. the engine's source (--features bundled), which Cargo.lock pins: half an hour, and a C++ compiler
# A downloaded package with another hash ends the script: it uses nothing else instead.
set -euo pipefail

readonly version=1.5.6
readonly package_version=1.5.6-r.1

say() { printf 'duckdb-lib: %s\n' "$*" >&2; }

# The platform names are those of the npm packages. A platform without a known hash has no entry here.
host=${CARGO_BUILD_TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
library=libduckdb.so
package_sha512=
library_sha256=
case $host in
  x86_64-unknown-linux-gnu)
    platform=linux-x64
    package_sha512=21772b64913a904a8cd19e30c1d5671811d7fdface4b7dd53cd0300d743f43e16cf386f4e7c41ef78721ac208870d2651bc6375072145387817824315b998dd5
    library_sha256=3f4962cdd266eab2b479a5b5a4a6d063d279b2954ae814ed00385d553b747633
    ;;
  aarch64-unknown-linux-gnu)
    platform=linux-arm64
    package_sha512=de39d46838a5d41ac5ffabc067055a227275c6805a5861c1e0f0e2527cc958a0a8f1af132f1f63eff80fc8f97f5064417edad822e4e28516527c5e2658c82d58
    library_sha256=23686593dba4ec22c6e581bb1c843b3964e84c4bc4d0063d8b4daddd2e20e30a
    ;;
  x86_64-apple-darwin)
    platform=darwin-x64 library=libduckdb.dylib
    package_sha512=b55c1464dbdd42868f261ae1dead9eea3c66d4c85a84d1c940afe9bc2c9ca38e8d5f4984b86ce5c3d8b49f6300ae0b32cdc71d0b049c38af5cb5bcabfb7a0c6d
    library_sha256=75a519cb914ae36ca22cff0995a8a2e8c9a46990b8c0a479514f741a0d93f344
    ;;
  aarch64-apple-darwin)
    # The library is a universal one, the same as for darwin-x64.
    platform=darwin-arm64 library=libduckdb.dylib
    package_sha512=2854ff27fa72a2eb800f58dfb4021f716551768ae0f9cff2551fc124bf0b24aad24fe9980b877b412b90fa25d261b1691c435401e6546a05eb30fb594fc5f3b2
    library_sha256=75a519cb914ae36ca22cff0995a8a2e8c9a46990b8c0a479514f741a0d93f344
    ;;
  *) platform=$host ;;
esac
cache_root=${XDG_CACHE_HOME:-$HOME/.cache}/annals
cache=$cache_root/duckdb-$version-$platform

# has_hash BITS HASH FILE
has_hash() {
  local actual
  if command -v "sha$1sum" >/dev/null; then actual=$("sha$1sum" "$3"); else actual=$(shasum -a "$1" "$3"); fi
  [ "${actual%% *}" = "$2" ]
}

cached() {
  [ -n "$library_sha256" ] && [ -f "$cache/$library" ] || return 1
  has_hash 256 "$library_sha256" "$cache/$library" && return 0
  say "the cached $cache/$library is damaged, and is fetched again"
  return 1
}

# Leaves the package's archive in the directory $1.
fetch_package() {
  local name=node-bindings-$platform
  if command -v npm >/dev/null; then
    (cd "$1" && npm pack --silent "@duckdb/$name@$package_version" >/dev/null 2>npm.log) && return 0
    say "npm could not fetch @duckdb/$name@$package_version: $(grep -m1 -i error "$1/npm.log" || echo 'no reason given')"
  fi
  command -v curl >/dev/null || return 1
  curl -fsSL --retry 2 --connect-timeout 15 -o "$1/package.tgz" \
    "https://registry.npmjs.org/@duckdb/$name/-/$name-$package_version.tgz"
}

# Ends the script: the download is not the pinned one, and the script builds with nothing unchecked.
refuse() {
  say "$1 does not have the pinned hash: stopped, and nothing of it is used"
  say "fetch it from another network or mirror, set DUCKDB_LIB_DIR to a library you trust, or build with --features bundled"
  exit 1
}

# Fills the cache from the npm package. Every run works in its own directory and renames the checked library into
# place, so parallel or killed runs leave a whole file or none.
from_package() {
  if [ -z "$package_sha512" ]; then
    say "no hash of a prebuilt package is known for $platform: trying the next way"
    return 1
  fi
  mkdir -p "$cache" || return 1
  find "$cache" -maxdepth 1 -name '.fetch.*' -mmin +120 -exec rm -rf {} +
  work=$(mktemp -d "$cache/.fetch.XXXXXX") || return 1
  trap 'rm -rf "$work"' EXIT
  fetch_package "$work" || return 1
  local archive
  archive=$(find "$work" -name '*.tgz' | head -n 1)
  [ -n "$archive" ] || { say "npm brought no package"; return 1; }
  has_hash 512 "$package_sha512" "$archive" || refuse "the fetched package @duckdb/node-bindings-$platform@$package_version"
  tar -xzf "$archive" -C "$work" "package/$library" || return 1
  has_hash 256 "$library_sha256" "$work/package/$library" || refuse "$library of the fetched package"
  mv -f "$work/package/$library" "$cache/$library"
  rm -rf "$work"
}

choose() {
  features=()
  export DUCKDB_DOWNLOAD_LIB=0
  if [ -n "${DUCKDB_LIB_DIR:-}" ]; then
    DUCKDB_LIB_DIR=$(cd "$DUCKDB_LIB_DIR" && pwd) || { say "DUCKDB_LIB_DIR is not a directory"; exit 2; }
    export DUCKDB_LIB_DIR
    say "using DUCKDB_LIB_DIR=$DUCKDB_LIB_DIR"
  elif cached; then
    export DUCKDB_LIB_DIR=$cache
    say "using the cached library in $cache"
  elif from_package; then
    export DUCKDB_LIB_DIR=$cache
    say "fetched @duckdb/node-bindings-$platform $package_version into $cache"
  else
    features=(--features bundled)
    unset DUCKDB_LIB_DIR
    say "no prebuilt library can be had: the engine is built from its source, in about half an hour"
  fi
}

choose
if [ $# -eq 0 ]; then
  printf 'export DUCKDB_DOWNLOAD_LIB=%s\n' "$DUCKDB_DOWNLOAD_LIB"
  if [ -n "${DUCKDB_LIB_DIR:-}" ]; then printf 'export DUCKDB_LIB_DIR=%q\n' "$DUCKDB_LIB_DIR"; fi
  if [ ${#features[@]} -gt 0 ]; then say "give cargo ${features[*]}"; fi
elif [ ${#features[@]} -gt 0 ] && [ "$1" = cargo ] && [ $# -ge 2 ]; then
  exec cargo "$2" "${features[@]}" "${@:3}"
else
  exec "$@"
fi
