#!/usr/bin/env bash
# Checks the licences, duplicates and sources of all dependencies by deny.toml if cargo-deny is installed, and
# advisories if the database is installed. Prints the skipped checks. `make lint` runs this script.
#
#   cargo install cargo-deny && cargo deny fetch db      installs both
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
say() { printf 'deny: %s\n' "$*" >&2; }

if ! "$cargo" deny --version >/dev/null 2>&1; then
  say 'cargo-deny is not installed: licences, duplicates, sources and advisories of dependencies are not checked'
  exit 0
fi
"$cargo" deny --log-level error check --hide-inclusion-graph licenses bans sources
databases=("${CARGO_HOME:-$HOME/.cargo}"/advisory-dbs/*/crates)
if [ -d "${databases[0]}" ]; then
  "$cargo" deny --log-level error check --hide-inclusion-graph --disable-fetch advisories
else
  say 'no database of advisories is at hand (cargo deny fetch db): advisories are not checked'
fi
