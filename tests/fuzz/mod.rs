//! Tests every parser of external input with nearly valid inputs.
//!
//! The inputs are the corpus in `tests/corpus/<parser>`, the project's own files, and mutations of both. An input
//! with a new outcome is mutated further. The mutator is our own and runs in this process: a fuzzer that watches
//! branches (cargo-fuzz) needs another compiler, and properties that draw from a grammar rarely make inputs with one
//! wrong byte.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod mutate;
mod targets;

use std::cell::Cell;
use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use annals::clock::{Clock, SystemClock};
use mutate::{Chance, mutated};
use targets::{TARGETS, Target};

const SEED: u64 = 20_261_122;
/// The number of inputs of each parser in every run, and the time of each parser in the long run.
const CASES: usize = 3_000;
const SECONDS_LONG: u64 = 60;
/// The longest mutated input in bytes; the corpus may have longer ones.
const INPUT_BYTES_MAX: usize = 8 * 1024;
const POOL_MAX: usize = 4_000;
/// How many attempts to make a failing input smaller.
const SHRINKS_MAX: usize = 4_000;
/// The depth of nesting that overflows the stack of a recursive parser.
const DEPTH: usize = 200_000;

pub fn names() -> [&'static str; TARGETS.len()] {
    TARGETS.map(|target| target.name)
}

/// Tries the corpus and its mutations. A panic names the input, and the file for it.
pub fn hold(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a parser of the table");
    let mut pool: Vec<Vec<u8>> = corpus(name);
    let mut met = HashSet::new();
    for input in pool.iter().chain(&deep()) {
        met.insert(outcome(target, input));
    }
    let seed = number("ANNALS_FUZZ_SEED").unwrap_or(SEED);
    let seconds = number("ANNALS_FUZZ_SECONDS").or(std::env::var_os("ANNALS_LONG").map(|_| SECONDS_LONG));
    let mut chance = Chance::of(seed);
    let (clock, mut slowest, mut cases) = (SystemClock::new(), (Duration::ZERO, Vec::new()), 0);
    let is_over = |cases: usize| match seconds {
        Some(seconds) => clock.monotonic() >= Duration::from_secs(seconds),
        None => cases >= CASES,
    };
    while !is_over(cases) {
        let (one, other) = (chance.below(pool.len()), chance.below(pool.len()));
        let input = mutated(&pool[one], &pool[other], &mut chance, INPUT_BYTES_MAX);
        let began = clock.monotonic();
        let is_new = met.insert(outcome(target, &input));
        let took = clock.monotonic().saturating_sub(began);
        if took > slowest.0 {
            slowest = (took, input.clone());
        }
        if is_new && pool.len() < POOL_MAX {
            pool.push(input);
        }
        cases += 1;
    }
    let (took, input) = (slowest.0, shown(&slowest.1));
    println!("{name}: {cases} cases of seed {seed}, {} outcomes; the slowest took {took:?}: {input}", met.len());
}

/// The outcome of an input, without the input's own words. Makes a panicking input as small as possible, and reports
/// it.
fn outcome(target: &Target, input: &[u8]) -> String {
    let run = |input: &[u8]| catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let found = quietly(|| run(input)).unwrap_or_else(|panic| {
        let small = quietly(|| smallest(input, |input| run(input).is_err()));
        let why = panic.downcast_ref::<String>().cloned().or(panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        let place = format!("tests/corpus/{}/", target.name);
        panic!("{}: {}\non {}\nkeep it under {place}", target.name, why.unwrap_or_default(), shown(&small));
    });
    let brought = |word: &str| input.windows(word.len().max(1)).any(|part| part == word.as_bytes());
    found.split(' ').filter(|word| word.len() < 4 || !brought(word)).collect::<Vec<_>>().join(" ")
}

/// Removes parts while the input still fails.
fn smallest(input: &[u8], fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let (mut small, mut size, mut tries) = (input.to_vec(), input.len() / 2, 0);
    while size > 0 {
        let mut at = 0;
        while at < small.len() && tries < SHRINKS_MAX {
            let less = [&small[..at], &small[(at + size).min(small.len())..]].concat();
            tries += 1;
            if fails(&less) { small = less } else { at += size }
        }
        size /= 2;
    }
    small
}

fn shown(input: &[u8]) -> String {
    format!("b\"{}\" ({} bytes)", input.escape_ascii().to_string().chars().take(2_000).collect::<String>(), input.len())
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs without the panic messages of this thread.
fn quietly<T>(act: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                loud(panic);
            }
        }));
    });
    let before = QUIET.replace(true);
    let done = act();
    QUIET.set(before);
    done
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The corpus of a parser, and the project's files that it reads.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let mut paths = files(&root().join("tests/corpus").join(name));
    assert!(paths.len() >= 3, "{name}: the corpus is thin");
    match name {
        "report" | "sql" => paths.extend(files(&root().join("queries"))),
        "config" => paths.push(root().join("deploy/annals.toml")),
        _ => {}
    }
    let mut inputs: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    if matches!(name, "cron" | "date" | "ledger" | "path") {
        // One input a line.
        inputs = inputs.iter().flat_map(|text| text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec)).collect();
    }
    inputs
}

/// The files directly in `folder`, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}

/// Inputs that overflow the stack of a recursive parser.
fn deep() -> Vec<Vec<u8>> {
    ["[", "{\"a\":", "a = [", "(", "/*", "a.", "[["].map(|part| part.repeat(DEPTH / part.len()).into_bytes()).to_vec()
}

/// A parser that panics if its input contains two given bytes.
fn falls_over(input: &[u8]) -> String {
    assert!(!input.windows(2).any(|two| two == b"\xffb"), "fell over");
    String::new()
}

#[test]
fn a_panic_is_reported_with_the_smallest_input() {
    let target = Target { name: "planted", run: falls_over };
    let panic = catch_unwind(|| quietly(|| outcome(&target, b"much before \xffb and behind"))).unwrap_err();
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(
        said.starts_with("planted: fell over\non b\"\\xffb\" (2 bytes)\nkeep it under tests/corpus/planted/"),
        "{said}"
    );
}
