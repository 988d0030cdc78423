//! The published table of damage, through the command line. Each case damages a real archive, and checks the codes, the exit code
//! and the verdict of `annals verify --json`.

use crate::damage;

use std::fs;

use damage::forge;
use damage::tampering::{
    change, copy_tree, elsewhere, encode_anew, file_with, files, lines, put, rechain, rename, sealed,
};
use damage::world::{ArchiveVariant, HONEST, World, key, make};

/// The things that the verifier keeps outside the archive.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    Nothing,
    Key,
    KeyAndHead,
}

struct Case {
    name: &'static str,
    life: ArchiveVariant,
    damage: fn(&World),
    has: Kept,
    /// The expected codes of faults, or of notices if there is no fault, each as often as it stands here.
    codes: &'static [&'static str],
    exit: i32,
    verdict: &'static str,
}

const fn case(name: &'static str, damage: fn(&World), codes: &'static [&'static str]) -> Case {
    Case { name, life: HONEST, damage, has: Kept::Key, codes, exit: 1, verdict: "BROKEN" }
}

const fn with_head(name: &'static str, damage: fn(&World), codes: &'static [&'static str]) -> Case {
    Case { has: Kept::KeyAndHead, ..case(name, damage, codes) }
}

/// Damage that the archive alone cannot show: verify finds nothing, and the verdict is not anchored.
const fn unseen(name: &'static str, damage: fn(&World), has: Kept, codes: &'static [&'static str]) -> Case {
    Case { has, exit: 0, verdict: "SELF_CONSISTENT", ..case(name, damage, codes) }
}

const CHANGED: &[&str] = &["POLICY_CHANGED"];
const CASES: &[Case] = &[
    unseen("0 nothing", |_| {}, Kept::Key, &[]),
    Case { verdict: "ANCHORED", ..unseen("0 nothing, and a head", |_| {}, Kept::KeyAndHead, &[]) },
    case("1 a bit in a data page", |w| flip(w, 3, 0), &["FILE_HASH"]),
    case("2 a bit in the footer", |w| flip(w, 1, 40), &["FILE_HASH"]),
    case("3 a file deleted", |w| fs::remove_file(sealed(&w.archive())).unwrap(), &["FILE_MISSING"]),
    case("4 two files swapped", swap, &["FILE_HASH", "FILE_HASH"]),
    case(
        "5 a file moved to another partition",
        |w| move_sealed(w, &[("month=2026-10", "month=2026-09"), ("20261001t", "20260901t")]),
        &["FILE_MISSING", "ORPHAN_FILE"],
    ),
    case(
        "6 only the partition's key changed",
        |w| move_sealed(w, &[("month=2026-10", "month=2026-09")]),
        &["PATH_MISMATCH"],
    ),
    case("7 a file copied under a new name", copied, &["ORPHAN_FILE", "DUP_FILE"]),
    case("8 a foreign file", |w| put(&w.archive().join("tables/connections/x.parquet"), b"PAR1"), &["ORPHAN_FILE"]),
    case("9 a row removed, the file rewritten", |w| encode_anew(&sealed(&w.archive()), 1), &["FILE_HASH", "ROW_ROOT"]),
    case(
        "10 a row edited, its line made to fit",
        |w| lines(&w.archive(), |l| edit_second(l)),
        &["CHAIN_BREAK", "BAD_SIG"],
    ),
    case("10b a row edited, and all that follows made to fit, not signed again", history_edited, &["BAD_SIG"]),
    case("11 the same rows encoded again", |w| encode_anew(&sealed(&w.archive()), 0), &["FILE_HASH"]),
    case("12 a line deleted", |w| lines(&w.archive(), |l| drop(l.remove(2))), &["SEQ_GAP", "CHAIN_BREAK"]),
    case("13 two lines reordered", |w| lines(&w.archive(), |l| l.swap(1, 2)), &["CHAIN_BREAK"]),
    case("14 a line repeated", |w| lines(&w.archive(), |l| l.insert(2, l[1].clone())), &["SEQ_GAP", "CHAIN_BREAK"]),
    case("15 a line inserted, and what follows made to fit", |w| lines(&w.archive(), insert_line), &["BAD_SIG"]),
    case("16 the tail cut off, its files left", |w| cut_tail(w, false), &["ORPHAN_FILE", "HEAD_ROLLBACK"]),
    case("16b a ledger that ends before its newest snapshot", snapshot_ahead, &["HEAD_ROLLBACK"]),
    with_head("17 the tail cut off with its files and signatures", |w| cut_tail(w, true), &["HEAD_ROLLBACK"]),
    unseen("17b the same, and no head was kept", |w| cut_tail(w, true), Kept::Key, &[]),
    with_head(
        "18 the whole restored from an old copy",
        |w| replace(w, ArchiveVariant { commits: 4, ..HONEST }),
        &["HEAD_ROLLBACK"],
    ),
    with_head(
        "19 the archive made again",
        |w| replace(w, ArchiveVariant { id: "archive-2", ..HONEST }),
        &["ARCHIVE_ID"],
    ),
    case(
        "19b made again without the key",
        |w| replace(w, ArchiveVariant { id: "archive-2", key: None, ..HONEST }),
        &["BAD_SIG"],
    ),
    case(
        "20 history rewritten, signed by another key",
        |w| replace(w, ArchiveVariant { key: Some(2), ..EDITED }),
        &["KEY_MISMATCH"],
    ),
    with_head("21 history rewritten, signed by the stolen key", |w| replace(w, EDITED), &["FORK"]),
    unseen("21b the same, and no head was kept", |w| replace(w, EDITED), Kept::Key, &[]),
    with_head(
        "22 a fork shown to somebody else",
        |w| replace(w, ArchiveVariant { last_at: "2026-11-03T00:06:00Z", ..HONEST }),
        &["FORK"],
    ),
    case(
        "23 the public key in the archive replaced",
        |w| replace(w, ArchiveVariant { key: Some(3), ..HONEST }),
        &["KEY_MISMATCH"],
    ),
    unseen(
        "23b the same, and no key is known",
        |w| replace(w, ArchiveVariant { key: Some(3), ..HONEST }),
        Kept::Nothing,
        &[],
    ),
    case("24 a signature stripped", |w| heads(w, without_third), &["BAD_SIG"]),
    case("24a the first signature stripped", first_stripped, &["BAD_SIG"]),
    Case { exit: 3, ..unseen("24b the last signature stripped", last_stripped, Kept::Key, &["BAD_SIG"]) },
    case("24c all signatures stripped", strip, &["BAD_SIG"]),
    case("24d a key's id changed", |w| heads(w, |text| text.replacen("+", "+0", 1)), &["BAD_SIG"]),
    case("24e another type of key", |w| heads(w, |text| text.replacen("+A", "+B", 1)), &["BAD_SIG"]),
    case("25 lines of another team", transplant, &["ARCHIVE_ID"]),
    Case {
        life: ArchiveVariant { last_at: "2026-11-01T00:00:00Z", ..HONEST },
        ..unseen("26 the clock set back between commits", |_| {}, Kept::Key, &["TIME_REGRESSION"])
    },
    Case {
        life: ArchiveVariant { last_at: "2099-01-01T00:00:00Z", ..HONEST },
        ..unseen("27 the clock set forward", |_| {}, Kept::Key, &["TIME_FUTURE"])
    },
    with_head("30 the remembered head altered", |w| change(&w.path("head"), alter_head), &["BAD_SIG"]),
    with_head("30b the head of another signer", foreign_head, &["UNKNOWN_KEY"]),
    case("31 an expire record forged for a missing file", forge::young, &["POLICY_VIOLATION"]),
    case("31b the same with a fitting policy, in unsigned lines", forge::unsigned, &["BAD_SIG"]),
    case("31c an expire record with wrong counts", forge::other_rows, &["STATE"]),
    case("32 an erasure that changed more rows than it declares", World::take_more, &["STATE"]),
    case("33 a month expired under a hold", forge::under_hold, &["POLICY_VIOLATION"]),
    Case { exit: 3, ..unseen("34 the policy edited outside the ledger", forge::policy_edited, Kept::Key, CHANGED) },
    case("35 a link in place of a file", |w| link(w, false), &["UNREADABLE"]),
    case("35b a second name of a file", |w| link(w, true), &["UNREADABLE"]),
    case("35c a file cut short", |w| change(&sealed(&w.archive()), |b| b.truncate(100)), &["FILE_SIZE", "FILE_HASH"]),
    Case {
        life: ArchiveVariant { has_gap: true, ..HONEST },
        ..unseen("36 a stop of a week", |_| {}, Kept::Key, &["COVERAGE_GAP"])
    },
];

/// The rows of the published table without a case, and why.
const NOT_APPLICABLE: &[(u32, &str)] = &[
    (28, "the archive keeps no time stamps of third parties: only heads posted before and after limit a commit's time"),
    (29, "the archive keeps no anchors: users keep them elsewhere and give them to verify"),
    (37, "no archive can show events that the key's holder never recorded; a re-scan can, while the service has them"),
    (38, "an archive cannot show an event that the service never sent as it happened"),
    (39, "`annals review sign` checks packs: tests/reports/pack_review.rs"),
    (40, "a verifier cannot check itself: tests/second_verifier.py is another one"),
];

const EDITED: ArchiveVariant = ArchiveVariant { is_edited: true, ..HONEST };

fn flip(world: &World, part: usize, from_end: usize) {
    change(&sealed(&world.archive()), |bytes| {
        let at = (bytes.len() / part - from_end).min(bytes.len() - 1);
        bytes[at] ^= 0x10;
    });
}

fn swap(world: &World) {
    let (first, second) = (sealed(&world.archive()), file_with(&world.archive(), "-amendment-"));
    let (a, b) = (fs::read(&first).unwrap(), fs::read(&second).unwrap());
    put(&first, &b);
    put(&second, &a);
}

fn move_sealed(world: &World, parts: &[(&str, &str)]) {
    let from = sealed(&world.archive());
    rename(&from, &parts.iter().fold(from.clone(), |path, (part, other)| elsewhere(&path, part, other)));
}

fn copied(world: &World) {
    let from = sealed(&world.archive());
    put(&elsewhere(&from, "20261001t000000z", "20261001t000001z"), &fs::read(&from).unwrap());
}

fn edit_second(lines: &mut [String]) {
    lines[1] = lines[1].replacen("\"reads\":2", "\"reads\":3", 1);
    let mut all = lines.to_vec();
    rechain(&mut all);
    lines[1].clone_from(&all[1]);
}

/// The inserted line has no content.
fn insert_line(lines: &mut Vec<String>) {
    let (head, rest) = lines[1].split_once("\"body\":{").unwrap();
    let hash = &rest[rest.rfind(",\"sha256\"").unwrap()..];
    lines.insert(2, format!("{head}\"body\":{{}}{hash}"));
    rechain(lines);
}

/// An attacker makes everything again with one changed row, and puts the original signatures beside it.
fn history_edited(world: &World) {
    copy_tree(&world.archive(), &world.path("honest"));
    replace(world, ArchiveVariant { key: None, ..EDITED });
    for from in files(&world.path("honest")).iter().filter(|path| path.extension().is_some_and(|e| e == "heads")) {
        fs::copy(from, elsewhere(from, "/honest/", "/archive/")).unwrap();
    }
}

/// Removes the last line, either with everything that belongs to it, or alone.
fn cut_tail(world: &World, is_thorough: bool) {
    let root = world.archive();
    let more = ["2026-11-03.heads", "20261101t000000z-window-", "salts/team=acme/2026-11-"];
    let parts = ["2026-11-03.jsonl"].into_iter().chain(more.into_iter().filter(|_| is_thorough));
    parts.for_each(|part| fs::remove_file(file_with(&root, part)).unwrap());
}

fn snapshot_ahead(world: &World) {
    put(&world.archive().join("snapshots/team=acme/101.json"), b"the state after line 101");
}

fn replace(world: &World, life: ArchiveVariant) {
    fs::remove_dir_all(world.archive()).unwrap();
    make(&world.archive(), &life);
}

fn heads(world: &World, edit: impl Fn(&str) -> String) {
    change(&world.archive().join("ledger/team=acme/2026-11-02.heads"), |bytes| {
        *bytes = edit(std::str::from_utf8(bytes).unwrap()).into_bytes();
    });
}

fn without_third(text: &str) -> String {
    text.lines().enumerate().filter(|(at, _)| *at != 2).map(|(_, line)| format!("{line}\n")).collect()
}

fn first_stripped(world: &World) {
    heads(world, |text| text.lines().skip(1).map(|line| format!("{line}\n")).collect());
}

/// A writer may be writing the last line at this moment, so this is a weaker check and no fault.
fn last_stripped(world: &World) {
    fs::remove_file(world.archive().join("ledger/team=acme/2026-11-03.heads")).unwrap();
}

fn strip(world: &World) {
    let all = files(&world.archive());
    all.iter()
        .filter(|path| path.extension().is_some_and(|e| e == "heads"))
        .for_each(|path| fs::remove_file(path).unwrap());
}

fn transplant(world: &World) {
    let ledger = world.archive().join("ledger");
    for name in ["2026-11-02.jsonl", "2026-11-03.jsonl"] {
        fs::copy(ledger.join("team=other").join(name), ledger.join("team=acme").join(name)).unwrap();
    }
}

fn alter_head(text: &mut Vec<u8>) {
    let altered = String::from_utf8(text.clone()).unwrap().replacen("\n6\n", "\n5\n", 1);
    assert_ne!(altered.as_bytes(), text);
    *text = altered.into_bytes();
}

/// The same head, signed by an unknown key.
fn foreign_head(world: &World) {
    put(&world.path("signing.key"), key(5).to_file().as_bytes());
    world.take_head();
}

fn link(world: &World, is_hard: bool) {
    let (path, aside) = (sealed(&world.archive()), world.path("aside"));
    if is_hard {
        return fs::hard_link(path, aside).unwrap();
    }
    rename(&path, &aside);
    std::os::unix::fs::symlink(aside, path).unwrap();
}

fn try_case(case: &Case) {
    let Case { name, codes, .. } = case;
    let world = World::new(&case.life);
    put(&world.path("signing.key"), key(1).to_file().as_bytes());
    world.take_head();
    (case.damage)(&world);
    let (public, before) = (key(1).public().to_string(), world.contents());
    let arguments: &[&str] = match case.has {
        Kept::Nothing => &[],
        Kept::Key => &["--key", &public],
        Kept::KeyAndHead => &["--key", &public, "--head", "head"],
    };
    let said = world.verify(arguments);
    assert_eq!(world.contents(), before, "{name}: verify changed something");
    assert_eq!((said.exit, said.verdict.as_str()), (case.exit, case.verdict), "{name}: {:#?}", said.faults);
    let mut found: Vec<String> = match case.exit {
        0 | 3 => said.notices.clone(),
        _ => said.faults.iter().map(|(code, _, _)| code.clone()).collect(),
    };
    for code in *codes {
        let at = found.iter().position(|found| found == code);
        found.swap_remove(at.unwrap_or_else(|| panic!("{name}: {code} is not named: {:#?}", said.faults)));
    }
    assert_eq!(said.exit != 1, said.faults.is_empty(), "{name}: {:#?}", said.faults);
}

#[test]
fn every_case_of_the_damage_table_is_named_with_its_code_exit_and_verdict() {
    for case in CASES {
        try_case(case);
    }
}

/// All cases except those with another history, which seals months.
#[test]
fn damage_of_sealed_days_is_named_like_damage_of_months() {
    for case in CASES.iter().filter(|case| matches!(number(case), 0..=16 | 32 | 35) && !case.name.starts_with("10b")) {
        try_case(&Case { life: ArchiveVariant { is_by_days: true, ..case.life }, ..*case });
    }
}

fn number(case: &Case) -> u32 {
    case.name.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn every_row_of_the_damage_table_has_a_case_or_a_reason() {
    let tried = CASES.iter().map(number);
    let rows: std::collections::BTreeSet<u32> = tried.chain(NOT_APPLICABLE.iter().map(|(row, _)| *row)).collect();
    assert!(rows.into_iter().eq(0..=40));
    assert!(NOT_APPLICABLE.iter().all(|(row, why)| !why.is_empty() && !CASES.iter().any(|case| number(case) == *row)));
}

#[test]
fn verify_distinguishes_rewritten_from_lost_rows_and_names_the_reach() {
    let world = World::new(&HONEST);
    encode_anew(&sealed(&world.archive()), 0);
    let said = world.verify(&[]);
    assert!(said.faults.iter().any(|(code, _, detail)| code == "FILE_HASH" && detail.ends_with("rows are intact")));
    assert!(!said.faults.iter().any(|(code, _, _)| code == "ROW_ROOT"), "{:#?}", said.faults);
    let team = &said.report["teams"][0];
    assert_eq!((&team["damage"]["first_seq"], &team["damage"]["last_seq"]), (&4.into(), &4.into()), "{team:#}");
    assert_eq!(
        (said.report["asked"].as_str(), said.report["found_from"].as_str()),
        (Some("whole_archive"), Some("2026-11-02T00:05:00Z"))
    );
    let (_, text, _) = world.run(&["verify", "--archive", "archive"]);
    for part in [": BROKEN\n", "checked the whole archive: commits from", "files 5/6", "damage from seq 4 to seq 4"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_key_beside_the_data_is_self_asserted_and_a_key_is_kept_elsewhere() {
    let world = World::new(&HONEST);
    let (exit, text, _) = world.run(&["verify"]);
    assert!(exit == 0 && text.contains("self-asserted"), "{text}");
    let (exit, public, stderr) = world.run(&["anchor", "--keygen", "new.key", "--name", "example.com/annals"]);
    assert!(exit == 0 && public.starts_with("example.com/annals+"), "{stderr}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(world.path("new.key")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let secret = fs::read_to_string(world.path("new.key")).unwrap();
    assert!(!stderr.contains(secret.trim()) && !public.contains(secret.trim()));
    for arguments in [
        &["anchor", "--keygen", "new.key"][..],
        &["anchor", "--keygen", "archive/new.key"],
        &["anchor", "-o", "archive/head"],
        &["anchor", "--team", "nobody"],
        &["anchor", "--sign"],
        &["anchor", "--post", "ftp://example.com"],
        &["verify", "--key", "nonsense"],
        &["verify", "--head", "nothing-there"],
    ] {
        let (exit, _, stderr) = world.run(arguments);
        assert_eq!(exit, 2, "{arguments:?}: {stderr}");
    }
    put(&world.path("annals.toml"), b"archive = \"archive\"\n[signing]\nkey_file = \"archive/k\"\n");
    let (exit, _, stderr) = world.run(&["anchor"]);
    assert!(exit == 2 && stderr.contains("inside the archive"), "{stderr}");
}
