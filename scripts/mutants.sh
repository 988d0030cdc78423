#!/usr/bin/env bash
# Plants bugs in the rooms on which the promise rests (collect, archive, store, correlate), one at a time, and runs the tests
# that must notice.
#
#   scripts/mutants.sh                              every mutant that cargo-mutants knows; hours or more
#   SAMPLE=60 SEED=9 scripts/mutants.sh             this many of each room, which the seed selects; 21 minutes, beside other builds
#   ONLY=src/correlate/session.rs scripts/mutants.sh   only mutants whose name in `cargo mutants --list` contains this text
#
# One program holds all mutants with a switch (scripts/mutants/main.rs); it builds in minutes. These rooms use few others
# (tests/tidy.rs checks this), so the program holds few rooms, and a mutant runs the tests of its own room.
# First, every quick test runs once to record which mutants it reaches. Then each mutant runs the quick tests that reach it, the
# shortest first, until one fails. A mutant that no quick test notices runs the slow tests that reach it (every fault of every
# step, torn disks, kills, exhaustive paging), the shortest first, up to SLOW_SECONDS (60) in all. The script names and skips a
# test that takes longer. target/mutants/results.txt holds each mutant's result. Seconds are processor seconds, so other load on
# the machine changes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

for tool in mapfile openssl shuf timeout; do
  type "$tool" >/dev/null 2>&1 || { printf 'mutants: there is no %s here: run this on Linux, with bash 4 or newer\n' "$tool" >&2; exit 2; }
done

readonly rooms=(archive collect correlate store)
readonly used=(api clock.rs files.rs model planted.rs threads.rs)
# Parts of the names of tests that take long.
readonly slow='any_flipped_bit|every_damage|exhaustive|tests::faults|tests::flips|tests::kills|tests::torn|any_way_of_committing|the_digest_of_rows_forgets|an_unsynced_file'
# Quick tests of up to this many milliseconds run first.
readonly short_ms_max=100
# How long the slow tests of one mutant may take, by their time without a mutant.
readonly slow_seconds=${SLOW_SECONDS:-60}
# The time limit of tests with a mutant: a longer test counts as one that never ends.
readonly quick_seconds_max=60 slow_seconds_max=$((3 * slow_seconds))
# The limit of wall time as a multiple of it, because tests also wait, for other programs too.
readonly waiting=5
readonly memory_kib_max=$((8 << 20))

target=${CARGO_TARGET_DIR:-$PWD/target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
readonly out=$target/mutants
readonly tree=$out/tree
export CARGO_TARGET_DIR=$target CARGO_INCREMENTAL=1
# Tests write and sync many small files, which is fast in memory.
scratch=$(mktemp -d "$(if [ -w /dev/shm ]; then echo /dev/shm; else echo "${TMPDIR:-/tmp}"; fi)/mutants-XXXXXX")
readonly scratch
trap 'rm -rf "$scratch"' EXIT

# Unchanged files keep their time, so cargo builds only the changed ones.
place() { cmp -s "$1" "$2" || { mkdir -p "${2%/*}" && cp "$1" "$2"; }; }

# All files except those with mutants.
make_tree() {
  local file
  mkdir -p "$tree"
  while read -r file; do
    grep -q "^$file:" "$out/drawn.txt" || place "$file" "$tree/$file"
  done < <(printf '%s\n' Cargo.lock docs/format.md && find "${rooms[@]/#/src/}" "${used[@]/#/src/}" tests/common/{third_party,faulty_store}.rs -name '*.rs')
  # Without the benchmarks, and without the one test of `planted` that needs the simulation.
  sed '/^\[\[bench\]\]/,/^$/d' Cargo.toml >"$out/manifest"
  place "$out/manifest" "$tree/Cargo.toml"
  mkdir -p "$tree/src/planted" && : >"$out/empty" && place "$out/empty" "$tree/src/planted/tests.rs"
  { printf '%s\n' '#![allow(warnings)]' 'extern crate self as annals;' && cat scripts/mutants/switch.rs; } >"$out/rooms"
  grep -E '^(pub )?mod (archive|collect|correlate|store|api|clock|files|model|planted|threads);' src/lib.rs >>"$out/rooms"
  place "$out/rooms" "$tree/src/lib.rs"
}

build() {
  cargo build --release --manifest-path scripts/mutants/Cargo.toml --target-dir "$out/tool"
  "$out/tool/release/mutants-switch" . "$tree" "$out/list.json" "$out/drawn.txt" "$out/states.txt" -- \
    cargo test --release --lib --no-run --message-format=json --config profile.release.package.annals.opt-level=1
}

# run MUTANT SECONDS [ARGUMENT...]: runs tests with a mutant on, up to the first failure. Sets `took` to their time in
# milliseconds.
run() {
  local mutant=$1 seconds=$2 code=0 TIMEFORMAT='%U %S'
  {
    time (
      cd "$tree"
      ulimit -c 0 -v "$memory_kib_max" 2>/dev/null || true
      ulimit -t "$seconds"
      export TMPDIR=$scratch/files RUSTC_BOOTSTRAP=1 RUST_BACKTRACE=0 MUTANT=$mutant MUTANTS_SEEN=$scratch/seen
      mkdir "$TMPDIR"
      exec timeout -k 5 "$((waiting * seconds))" "$program" -Zunstable-options --fail-fast --exact "${@:3}"
    ) >"$scratch/said" 2>&1 </dev/null || code=$?
  } 2>"$scratch/time"
  took=$(awk 'END { printf "%d", 1000 * ($1 + $2) }' "$scratch/time")
  rm -rf "$scratch/files"
  return "$code"
}

# Whether an exit code means that a run exceeded its limit.
is_endless() { [ "$1" -eq 124 ] || [ "$1" -eq 137 ] || [ "$1" -eq 152 ]; }

# The tests of a room go to quick.txt and slow.txt.
sort_tests() {
  "$program" --list 2>/dev/null | sed -n "s/^\($1::.*\): test\$/\1/p" >"$out/tests.txt"
  grep -E "$slow" "$out/tests.txt" >"$out/slow.txt" || true
  grep -vE "$slow" "$out/tests.txt" >"$out/quick.txt" || true
}

# observe KIND SECONDS: writes the mutants that each quick or slow test reaches, and its time, to met-KIND.txt (MUTANT
# MILLISECONDS TEST), the shortest first.
observe() {
  local test code
  : >"$scratch/met"
  while read -r test; do
    : >"$scratch/seen"
    code=0
    run seen "$2" "$test" || code=$?
    if is_endless "$code"; then
      echo "skipped, because it takes more than $2 seconds: $test" >&2
    elif [ "$code" -ne 0 ]; then
      cat "$scratch/said" >&2 && echo "$test fails without any mutant" >&2 && exit 1
    else
      sort -u "$scratch/seen" | sed "s|\$| $took $test|" >>"$scratch/met"
    fi
  done <"$out/$1.txt"
  sort -s -n -k 2,2 "$scratch/met" >"$out/met-$1.txt"
}

# Selects SAMPLE mutants of a room among those that ONLY names, in an order that only the seed decides; without SAMPLE
# all.
draw() {
  { grep "^src/$1/" "$out/names.txt" | grep -F -- "${ONLY:-}" || true; } |
    shuf --random-source=<(openssl enc -aes-128-ctr -pass "pass:${SEED:-0}" -nosalt -pbkdf2 </dev/zero 2>/dev/null) |
    awk -v most="${SAMPLE:-1000000}" 'NR <= most'
}

# meet KIND MUTANT SECONDS [TEST...]: succeeds and prints the result if a test noticed the mutant or never ended.
meet() {
  local code=0
  [ $# -gt 3 ] || return 1
  run "${@:2}" || code=$?
  if [ "$code" -eq 0 ]; then return 1; fi
  if is_endless "$code"; then echo "never ended" && return; fi
  echo "noticed by $1 tests"$'\t'"$(sed -nE 's/^test (.*) \.\.\. FAILED$/\1/p' "$scratch/said" | head -n 1)"
}

meet_quick() {
  local short others
  mapfile -t short < <(awk -v id="$1" -v most="$short_ms_max" '$1 == id && $2 <= most { print $3 }' "$out/met-quick.txt")
  mapfile -t others < <(awk -v id="$1" -v most="$short_ms_max" '$1 == id && $2 > most { print $3 }' "$out/met-quick.txt")
  meet quick "$1" "$quick_seconds_max" "${short[@]}" || meet quick "$1" "$quick_seconds_max" "${others[@]}"
}

meet_slow() {
  local long
  mapfile -t long < <(awk -v id="$1" -v most="$((1000 * slow_seconds))" '$1 == id && (all += $2) <= most { print $3 }' "$out/met-slow.txt")
  meet slow "$1" "$slow_seconds_max" "${long[@]}"
}

# Runs the mutants of a room. Observes the slow tests only if a mutant needs them.
judge() {
  local mutant name state missed=()
  sort_tests "$1"
  observe quick 3600
  while IFS=$'\t' read -r mutant name state; do
    if [ "$state" != built ]; then
      state=${state/: /$'\t'}
    elif ! state=$(meet_quick "$mutant"); then
      missed+=("$mutant"$'\t'"$name")
      continue
    fi
    printf '%s\t%s\t%s\n' "$1" "$name" "$state" >>"$out/results.txt"
  done < <(awk -F '\t' -v under="src/$1/" 'index($2, under) == 1' "$out/states.txt")
  if [ ${#missed[@]} -eq 0 ]; then return; fi
  observe slow "$slow_seconds"
  for name in "${missed[@]}"; do
    state=$(meet_slow "${name%%$'\t'*}") || state=missed
    printf '%s\t%s\t%s\n' "$1" "${name#*$'\t'}" "$state" >>"$out/results.txt"
  done
}

mkdir -p "$out"
cargo mutants --list >"$out/names.txt"
cargo mutants --list --json >"$out/list.json"
for room in "${rooms[@]}"; do draw "$room"; done >"$out/drawn.txt"
make_tree
program=$(build)
: >"$out/results.txt"
for room in "${rooms[@]}"; do
  if grep -q "^src/$room/" "$out/drawn.txt"; then judge "$room"; fi
done
cut -f 1,3 "$out/results.txt" | sort | uniq -c
! grep -q $'\tmissed' "$out/results.txt"
