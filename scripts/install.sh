#!/usr/bin/env bash
# Copies the built program to PREFIX/bin, and its linked library, if there is one, to PREFIX/lib/annals, where the
# program looks first. `make install` runs this script.
set -euo pipefail

install -d "$PREFIX/bin"
install -m 755 "$TARGET_DIR/release/annals" "$PREFIX/bin/annals"
for library in "${DUCKDB_LIB_DIR:-$TARGET_DIR/release/deps}"/libduckdb.{so,dylib}; do
  if [ -f "$library" ]; then
    install -d "$PREFIX/lib/annals"
    install -m 755 "$library" "$PREFIX/lib/annals/"
  fi
done
"$PREFIX/bin/annals" --version
