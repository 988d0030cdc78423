#!/usr/bin/env bash
# Packs target/stage into target/dist: a tarball, and checksums of all files there. `make dist` runs this script.
#
# With GNU tar, equal files make equal bytes: the times are SOURCE_DATE_EPOCH, or the time of the last commit.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
name=annals-$version-$(rustc -vV | sed -n 's/^host: //p')
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
dist=target/dist
mkdir -p "$dist"
cp target/stage/share/doc/annals/sbom.cdx.json "$dist/$name.cdx.json"
if tar --version 2>/dev/null | grep -q GNU; then
  tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw --exclude=./debian --transform "s#^\.#$name#" -C target/stage -cf - . | gzip -9n >"$dist/$name.tar.gz"
else
  tar --exclude ./debian -s "#^\.#$name#" -C target/stage -czf "$dist/$name.tar.gz" .
fi
cd "$dist"
rm -f SHA256SUMS
if command -v sha256sum >/dev/null; then sha256sum -- *.* >.sums; else shasum -a 256 -- *.* >.sums; fi
mv .sums SHA256SUMS
cat SHA256SUMS
