#!/usr/bin/env bash
# The browser for tests of the pages, and the library that controls it.
#
#   scripts/browser.sh install    installs missing parts: playwright-core by npm, each package pinned by hash, into the cache;
#                                 as root also chromium from the system's packages, which apt checks
#   scripts/browser.sh find       prints two lines, the folder of modules and the browser, or fails with the reason
#
# The script writes nothing into the checkout. ANNALS_CHROMIUM names your own browser. The script does not use Playwright's own
# download of a browser, because no hash of it is published.
set -euo pipefail

here=$(cd "$(dirname "$0")/../tests/browser" && pwd)
cache_root=${XDG_CACHE_HOME:-$HOME/.cache}/annals
if command -v sha256sum >/dev/null; then sums=sha256sum; else sums='shasum -a 256'; fi
pin=$($sums "$here/package-lock.json" | cut -c1-12)
cache=$cache_root/browser-$pin
modules=$cache/node_modules

say() { printf 'browser: %s\n' "$*" >&2; }

browser_path() {
  local found name
  if [ -n "${ANNALS_CHROMIUM:-}" ]; then
    [ -x "$ANNALS_CHROMIUM" ] && printf '%s\n' "$ANNALS_CHROMIUM" && return 0
    return 1
  fi
  for name in chromium chromium-browser google-chrome google-chrome-stable \
    '/Applications/Chromium.app/Contents/MacOS/Chromium' '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'; do
    found=$(command -v "$name") && printf '%s\n' "$found" && return 0
  done
  return 1
}

install_modules() {
  [ -f "$modules/playwright-core/index.mjs" ] && return 0
  command -v npm >/dev/null || { say 'npm is not here: playwright-core cannot be had'; return 1; }
  mkdir -p "$cache_root"
  local work
  work=$(mktemp -d "$cache_root/.browser.XXXXXX")
  cp "$here/package.json" "$here/package-lock.json" "$work/"
  if (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --silent >npm.log 2>&1); then
    # Another run may have been faster.
    mv -T "$work" "$cache" 2>/dev/null || mv "$work" "$cache" 2>/dev/null || rm -rf "$work"
    say "playwright-core is in $cache"
  else
    say "npm could not fetch playwright-core: $(tail -n 1 "$work/npm.log")"
    rm -rf "$work"
    return 1
  fi
}

# apt-get accepts only packages with a signature of a system key, whatever the system's settings allow.
signed=(-o APT::Get::AllowUnauthenticated=false -o Acquire::AllowInsecureRepositories=false)

install_chromium() {
  browser_path >/dev/null && return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say 'installing chromium with apt-get'
    local install=(apt-get "${signed[@]}" install -y --no-install-recommends chromium)
    if "${install[@]}" >/dev/null 2>&1 || { apt-get "${signed[@]}" update >/dev/null 2>&1 && "${install[@]}" >/dev/null 2>&1; }; then
      browser_path >/dev/null && return 0
    fi
    say 'apt-get could not install chromium'
  fi
  say 'install chromium from the packages of your system (apt-get install chromium, dnf install chromium, brew install --cask'
  say 'chromium), or set ANNALS_CHROMIUM to a browser that you trust'
  return 1
}

case ${1:-} in
  install)
    # A machine without a browser still builds, and tests everything else.
    if ! { command -v node >/dev/null && install_modules && install_chromium; }; then
      say 'no browser can be installed here'
    fi
    ;;
  find)
    command -v node >/dev/null || { say 'node is not here'; exit 1; }
    [ -f "$modules/playwright-core/index.mjs" ] || { say 'playwright-core is not here: run scripts/browser.sh install'; exit 1; }
    browser=$(browser_path) || { say 'no chromium is here: run scripts/browser.sh install'; exit 1; }
    printf '%s\n%s\n' "$modules" "$browser"
    ;;
  *)
    say 'usage: scripts/browser.sh install|find'
    exit 2
    ;;
esac
