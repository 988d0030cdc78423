#!/usr/bin/env bash
# Plants bugs where the promise rests (collect, archive, correlate), one at a time, and runs the tests that must notice.
#
#   scripts/mutants.sh                              every mutant that cargo-mutants knows; days
#   SAMPLE=20 SEED=5 scripts/mutants.sh             so many of each room, drawn by the seed
#   ONLY=src/correlate/session.rs scripts/mutants.sh   those whose names, as `cargo mutants --list` tells them, have this
#
# The three rooms use few others and not each other (tests/tidy.rs holds them to it), so they are built as a crate of these
# alone, a third of the work, and a mutant meets the tests of its own room. First the quick ones; what none of these notices then
# meets, built with optimisation, those that take long: every fault of every step, torn disks, kills, exhaustive paging.
# Missed by both: target/mutants/ROOM-slow/mutants.out/missed.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly rooms=(archive collect correlate)
readonly used=(api clock.rs model planted.rs)
# Parts of the names of tests that take more than seconds without optimisation.
readonly slow=(any_flipped_bit every_damage exhaustive tests::faults tests::flips tests::kills tests::torn any_way_of_committing
  the_digest_of_rows_forgets what_could_not_be_synced)
readonly quick_seconds_max=120 slow_seconds_max=900

target=${CARGO_TARGET_DIR:-$PWD/target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
readonly out=$target/mutants
readonly tree=$out/tree
export CARGO_TARGET_DIR=$target CARGO_INCREMENTAL=1

# What did not change keeps its time, so that cargo builds only what did.
place() { cmp -s "$1" "$2" || { mkdir -p "${2%/*}" && cp "$1" "$2"; }; }

make_tree() {
  local file
  mkdir -p "$tree"
  while read -r file; do place "$file" "$tree/$file"; done < <(
    printf '%s\n' Cargo.lock .cargo/mutants.toml
    find "${rooms[@]/#/src/}" "${used[@]/#/src/}" -name '*.rs'
  )
  # Without the benchmarks, and without the one test of `planted` that needs the simulation.
  sed '/^\[\[bench\]\]/,/^$/d' Cargo.toml >"$out/manifest"
  place "$out/manifest" "$tree/Cargo.toml"
  mkdir -p "$tree/src/planted" && : >"$out/empty" && place "$out/empty" "$tree/src/planted/tests.rs"
  echo '#![allow(dead_code)]' >"$out/rooms"
  grep -E '^(pub )?mod (archive|collect|correlate|api|clock|model|planted);' src/lib.rs >>"$out/rooms"
  place "$out/rooms" "$tree/src/lib.rs"
}

# mutants LANE OPT_LEVEL SECONDS_MAX FILE [TEST ARGUMENT...]: plants the mutants named in FILE. The others are told to have been
# caught before: `--re` lets the deletions of fields through. Tests stop at the first failure, which stable Rust has to be asked for.
mutants() {
  local lane=$1 level=$2 seconds=$3 chosen=$4
  rm -rf "${out:?}/$lane"
  mkdir -p "$out/$lane/mutants.out"
  grep -vFx -f "$chosen" "$out/all.txt" >"$out/$lane/mutants.out/caught.txt" || true
  cargo mutants -d "$tree" --in-place --iterate -o "$out/$lane" --no-times --baseline=skip \
    --timeout "$seconds" --build-timeout 1800 \
    -C=--config -C="profile.release.package.annals.opt-level=$level" \
    -C=--config -C="target.'cfg(all())'.runner=['env','RUSTC_BOOTSTRAP=1']" \
    -- --lib -- -Zunstable-options --fail-fast "${@:5}" || case $? in
    2 | 3) ;; # some were missed, or took too long
    *) exit 1 ;;
  esac
}

# As many mutants of a room as SAMPLE says, of those that ONLY names, in an order that the seed alone decides; all without it.
draw() {
  { grep "^src/$1/" | grep -F -- "${ONLY:-}" || true; } |
    shuf --random-source=<(openssl enc -aes-128-ctr -pass "pass:${SEED:-0}" -nosalt -pbkdf2 </dev/zero 2>/dev/null) |
    awk -v most="${SAMPLE:-1000000}" 'NR <= most'
}

count() { { cat "$@" 2>/dev/null || true; } | grep -c . || true; }

report() {
  local room q s
  for room in "${rooms[@]}"; do
    q=$out/$room-quick/mutants.out s=$out/$room-slow/mutants.out
    printf '%-10s drawn %s: caught %s (%s by slow tests alone), timeouts %s, unviable %s, missed %s\n' "$room" \
      "$(count "$out/$room.txt")" "$(count "$q/caught.txt" "$s/caught.txt")" "$(count "$s/caught.txt")" \
      "$(count "$q/timeout.txt" "$s/timeout.txt")" "$(count "$q/unviable.txt")" "$(count "$s/missed.txt")"
  done
}

# The slow tests of a room.
slow_of() {
  case $1 in
    archive) printf 'archive::%s\n' tests store table ;;
    collect) echo collect::exhaustive ;;
    correlate) echo correlate:: ;;
  esac
}

make_tree
cargo mutants -d "$tree" --list >"$out/all.txt"
for room in "${rooms[@]}"; do
  rm -rf "${out:?}/$room"-*
  draw "$room" <"$out/all.txt" >"$out/$room.txt"
  [ -s "$out/$room.txt" ] || continue
  mutants "$room-quick" 0 "$quick_seconds_max" "$out/$room.txt" "$room::" "${slow[@]/#/--skip=}"
  missed=$out/$room-quick/mutants.out/missed.txt
  if [ ! -s "$missed" ]; then continue; fi
  mapfile -t tests < <(slow_of "$room")
  mutants "$room-slow" 2 "$slow_seconds_max" "$missed" "${tests[@]}"
done
report
[ -z "$(cat "$out"/*-slow/mutants.out/missed.txt 2>/dev/null)" ]
