#!/usr/bin/env bash
# Makes target/stage with all files of a release: bin, lib/annals, manual pages, completions, notices, the list of
# parts, and deploy/. `make dist` and `make deb` run this script within scripts/duckdb-lib.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

program=${TARGET_DIR:-target}/release/annals
stage=target/stage
triple=$(rustc -vV | sed -n 's/^host: //p')
library=-
rm -rf "$stage"
install -d "$stage"/bin "$stage"/lib/annals "$stage"/share/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d,doc/annals}
install -m 755 "$program" "$stage/bin/annals"
for name in libduckdb.so libduckdb.dylib; do
  if [ -f "${DUCKDB_LIB_DIR:-}/$name" ]; then
    library=$DUCKDB_LIB_DIR/$name
    install -m 644 "$library" "$stage/lib/annals/$name"
  fi
done
"$stage/bin/annals" man -o "$stage/share/man/man1"
gzip -9n "$stage"/share/man/man1/*.1
"$stage/bin/annals" completions bash >"$stage/share/bash-completion/completions/annals"
"$stage/bin/annals" completions zsh >"$stage/share/zsh/site-functions/_annals"
"$stage/bin/annals" completions fish >"$stage/share/fish/vendor_completions.d/annals.fish"
scripts/third-parties.py "$triple" "$library" "$stage/share/doc/annals"
install -m 644 README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md CODE_OF_CONDUCT.md LICENSE "$stage/share/doc/annals/"
cp -R docs deploy "$stage/share/doc/annals/"
rm -r "$stage/share/doc/annals/deploy/packaging"

# Use a distribution's paths: the program in /usr/bin, and one place for the units.
mkdir -p "$stage/debian"
for unit in annals.service annals-sync.service annals-sync.timer; do
  sed -e 's#/usr/local/bin#/usr/bin#' \
    -e 's#install -m 644 annals.service /etc/systemd/system/ && systemctl daemon-reload && ##' "deploy/systemd/$unit" >"$stage/debian/$unit"
done
sed -e 's#^archive = "archive"$#archive = "/var/lib/annals/archive"#' -e 's#^\#token_file = "token"$#token_file = "/etc/annals/token"#' deploy/annals.toml >"$stage/debian/annals.toml"
# Fail if a change of deploy/ needs other edits than the lines above.
grep -q '^ExecStart=/usr/bin/annals run$' "$stage/debian/annals.service"
grep -q '^ExecStart=/usr/bin/annals sync$' "$stage/debian/annals-sync.service"
grep -q '^archive = "/var/lib/annals/archive"$' "$stage/debian/annals.toml"
grep -q '^token_file = "/etc/annals/token"$' "$stage/debian/annals.toml"
