#!/usr/bin/env bash
# Plants bugs where the promise rests (collect, archive, correlate), one at a time, and runs the tests that must notice.
#
#   scripts/mutants.sh                              every mutant that cargo-mutants knows; hours
#   SAMPLE=300 SEED=5 scripts/mutants.sh            so many of each room, drawn by the seed
#   ONLY=src/correlate/session.rs scripts/mutants.sh   those whose names, as `cargo mutants --list` tells them, have this
#
# All of them are built into one program with a switch (scripts/mutants/main.rs), in minutes. The three rooms use few others and
# not each other (tests/tidy.rs holds them to it), so the program is of these alone, and a mutant meets the tests of its own room.
# Every quick test runs once to see which mutants it comes by; then each mutant meets those that come by it, the short ones
# first, until one fails. What none of these notices meets those that take long: every fault of every step, torn disks, kills,
# exhaustive paging. What becomes of each: target/mutants/results.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly rooms=(archive collect correlate)
readonly used=(api clock.rs model planted.rs)
# Parts of the names of tests that take long.
readonly slow='any_flipped_bit|every_damage|exhaustive|tests::faults|tests::flips|tests::kills|tests::torn|any_way_of_committing|the_digest_of_rows_forgets|what_could_not_be_synced'
# Quick tests of up to so many milliseconds run before the others.
readonly short_ms_max=100
# How long tests may take: a mutant that takes longer counts as one that never ends.
readonly quick_seconds_max=60 slow_seconds_max=3600
readonly memory_kib_max=$((8 << 20))

target=${CARGO_TARGET_DIR:-$PWD/target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
readonly out=$target/mutants
readonly tree=$out/tree
export CARGO_TARGET_DIR=$target CARGO_INCREMENTAL=1
# Tests write small files and make them durable; in memory that costs nothing.
scratch=$(mktemp -d "$(if [ -w /dev/shm ]; then echo /dev/shm; else echo "${TMPDIR:-/tmp}"; fi)/mutants-XXXXXX")
readonly scratch
trap 'rm -rf "$scratch"' EXIT

# What did not change keeps its time, so that cargo builds only what did.
place() { cmp -s "$1" "$2" || { mkdir -p "${2%/*}" && cp "$1" "$2"; }; }

# Everything but the files that have mutants.
make_tree() {
  local file
  mkdir -p "$tree"
  while read -r file; do
    grep -q "^$file:" "$out/drawn.txt" || place "$file" "$tree/$file"
  done < <(echo Cargo.lock && find "${rooms[@]/#/src/}" "${used[@]/#/src/}" -name '*.rs')
  # Without the benchmarks, and without the one test of `planted` that needs the simulation.
  sed '/^\[\[bench\]\]/,/^$/d' Cargo.toml >"$out/manifest"
  place "$out/manifest" "$tree/Cargo.toml"
  mkdir -p "$tree/src/planted" && : >"$out/empty" && place "$out/empty" "$tree/src/planted/tests.rs"
  { echo '#![allow(warnings)]' && cat scripts/mutants/switch.rs; } >"$out/rooms"
  grep -E '^(pub )?mod (archive|collect|correlate|api|clock|model|planted);' src/lib.rs >>"$out/rooms"
  place "$out/rooms" "$tree/src/lib.rs"
}

build() {
  cargo build --release --manifest-path scripts/mutants/Cargo.toml --target-dir "$out/tool"
  "$out/tool/release/mutants-switch" . "$tree" "$out/list.json" "$out/drawn.txt" "$out/states.txt" -- \
    cargo test --release --lib --no-run --message-format=json --config profile.release.package.annals.opt-level=1
}

# run MUTANT SECONDS [ARGUMENT...]: tests with a mutant on. They stop at the first failure, which stable Rust has to be asked for.
run() {
  local mutant=$1 seconds=$2 code=0
  (
    cd "$tree"
    ulimit -c 0 -v "$memory_kib_max" 2>/dev/null || true
    export TMPDIR=$scratch/files RUSTC_BOOTSTRAP=1 RUST_BACKTRACE=0 MUTANT=$mutant MUTANTS_SEEN=$scratch/seen
    mkdir "$TMPDIR"
    exec timeout -k 5 "$seconds" "$program" -Zunstable-options --fail-fast --exact "${@:3}"
  ) >"$scratch/said" 2>&1 </dev/null || code=$?
  rm -rf "$scratch/files"
  return "$code"
}

# The tests of a room go to quick.txt and slow.txt; what each of the quick ones comes by, and its milliseconds, to met.txt
# (MUTANT MILLISECONDS TEST).
observe() {
  local test begin ms
  : >"$out/met.txt"
  "$program" --list 2>/dev/null | sed -n "s/^\($1::.*\): test\$/\1/p" >"$out/tests.txt"
  grep -E "$slow" "$out/tests.txt" >"$out/slow.txt" || true
  grep -vE "$slow" "$out/tests.txt" >"$out/quick.txt" || true
  while read -r test; do
    : >"$scratch/seen"
    begin=$(date +%s%N)
    run seen "$slow_seconds_max" "$test" || { cat "$scratch/said" >&2 && echo "$test fails without any mutant" >&2 && exit 1; }
    ms=$((($(date +%s%N) - begin) / 1000000))
    sed "s|\$| $ms $test|" "$scratch/seen" >>"$out/met.txt"
  done <"$out/quick.txt"
}

# As many mutants of a room as SAMPLE says, of those that ONLY names, in an order that the seed alone decides; all without it.
draw() {
  { grep "^src/$1/" "$out/names.txt" | grep -F -- "${ONLY:-}" || true; } |
    shuf --random-source=<(openssl enc -aes-128-ctr -pass "pass:${SEED:-0}" -nosalt -pbkdf2 </dev/zero 2>/dev/null) |
    awk -v most="${SAMPLE:-1000000}" 'NR <= most'
}

# meet KIND MUTANT SECONDS [TEST...]: succeeds, and says what became of the mutant, where a test noticed or nothing ended.
meet() {
  local code=0
  [ $# -gt 3 ] || return 1
  run "${@:2}" || code=$?
  case $code in
    0) return 1 ;;
    124 | 137) echo "never ended" ;;
    *) echo "noticed by $1 tests"$'\t'"$(sed -nE 's/^test (.*) \.\.\. FAILED$/\1/p' "$scratch/said" | head -n 1)" ;;
  esac
}

# What becomes of a mutant.
fate() {
  local short others long
  mapfile -t short < <(awk -v id="$1" -v most="$short_ms_max" '$1 == id && $2 <= most { print $3 }' "$out/met.txt")
  mapfile -t others < <(awk -v id="$1" -v most="$short_ms_max" '$1 == id && $2 > most { print $3 }' "$out/met.txt")
  mapfile -t long <"$out/slow.txt"
  meet quick "$1" "$quick_seconds_max" "${short[@]}" || meet quick "$1" "$quick_seconds_max" "${others[@]}" ||
    meet slow "$1" "$slow_seconds_max" "${long[@]}" || echo missed
}

mkdir -p "$out"
cargo mutants --list >"$out/names.txt"
cargo mutants --list --json >"$out/list.json"
for room in "${rooms[@]}"; do draw "$room"; done >"$out/drawn.txt"
make_tree
program=$(build)
: >"$out/results.txt"
for room in "${rooms[@]}"; do
  if grep -q "^src/$room/" "$out/drawn.txt"; then observe "$room"; fi
  while IFS=$'\t' read -r mutant name state; do
    if [ "$state" = built ]; then state=$(fate "$mutant"); else state=${state/: /$'\t'}; fi
    printf '%s\t%s\t%s\n' "$room" "$name" "$state" >>"$out/results.txt"
  done < <(awk -F '\t' -v under="src/$room/" 'index($2, under) == 1' "$out/states.txt")
done
cut -f 1,3 "$out/results.txt" | sort | uniq -c
! grep -q $'\tmissed' "$out/results.txt"
