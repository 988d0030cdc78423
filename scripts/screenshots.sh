#!/usr/bin/env bash
# Takes the pictures of docs/images: the daemon's page and an evidence pack, light and dark, of a sandbox's two teams.
#
#   scripts/screenshots.sh [PROGRAM]     PROGRAM is target/release/annals unless given
#
# The script needs the browser of scripts/browser.sh. It works in a temporary folder and removes it.
set -euo pipefail
cd "$(dirname "$0")/.."

program=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/release/annals}")
out=$PWD/docs/images
{ read -r modules; read -r chromium; } < <(scripts/browser.sh find)
work=$(mktemp -d)
sandbox= daemon=
finish() {
  [ -z "$daemon" ] || kill "$daemon" || true
  [ -z "$sandbox" ] || kill "$sandbox" || true
  wait
  rm -rf "$work"
}
trap finish EXIT

wait_for() {
  for _ in $(seq 600); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.2
  done
  printf 'screenshots: gave up on: %s\n' "$*" >&2
  exit 1
}

shoot() { # ADDRESS NAME HEIGHT
  node scripts/screenshots.mjs "$modules" "$chromium" "$1" "$2" "$out" "$3"
}

"$program" sandbox --json --live --days 90 --sessions-per-day 60 >"$work/ready.json" &
sandbox=$!
wait_for grep -q base_url "$work/ready.json"
member() { node -p "JSON.parse(require('fs').readFileSync(process.argv[1])).$1" "$work/ready.json"; }
port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })')
(umask 077 && member tokens.read_only >"$work/token")
cat >"$work/annals.toml" <<TOML
archive = "archive"
[api]
base_url = "$(member base_url)"
token_file = "token"
requests_per_second = 0
[schedule]
connections = "*/5 * * * * *"
activity = "*/5 * * * * *"
billing = "*/5 * * * * *"
verify = "*/5 * * * * *"
reports = "*/30 * * * * *"
[http]
listen = "127.0.0.1:$port"
TOML
export ANNALS_CONFIG=$work/annals.toml
"$program" run >"$work/log" 2>&1 &
daemon=$!
wait_for curl -fsS "http://127.0.0.1:$port/readyz"
wait_for sh -c "curl -fsS http://127.0.0.1:$port/api/status | grep -q '\"faults\":0'"

mkdir -p "$out"
shoot "http://127.0.0.1:$port/" page 700
# Whole days that all three streams cover and that have no re-scan left.
day() { node -p "new Date(Date.now() - $1 * 86400000).toISOString().slice(0, 10)"; }
"$program" report pack --from "$(day 10)" --to "$(day 4)" -o "$work/pack" >"$work/pack.log" 2>&1
shoot "file://$work/pack/index.html" pack 900
ls -l "$out"
