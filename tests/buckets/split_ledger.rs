//! The ledger lies elsewhere than the archive (`[store] ledger`), in another place of the bucket, under an object lock.

use std::fs;

use crate::bucket_scene::{FIRST, LEDGER, Scene};
use crate::faulty_service;

use faulty_service::subject_search::years;
use faulty_service::{DAY, HOUR, Program, Run, SINCE, laws, scene};
use object_server::{BUCKET, Effect, Rule};

/// The keys below each place of a divided archive.
fn keys(scene: &Scene) -> (Vec<String>, Vec<String>) {
    scene.server.keys().into_iter().partition(|key| key.starts_with("some/archive/"))
}

fn ledger() -> String {
    format!("s3://{BUCKET}/{LEDGER}")
}

#[test]
fn every_verb_finds_the_ledger_elsewhere() {
    let scene = Scene::with_ledger_elsewhere("");
    scene.service.world().fill(DAY, 0..3);
    scene.run(&["doctor"]).says(&["no archive yet"]);
    scene.sync().ended(0).says(&[&format!("the archive is at {} with the ledger at {}", scene.location, ledger())]);
    scene.holds_and_rests();
    scene.is_signed();
    let proved = scene.run(&["doctor"]).stdout.matches("exactly one won").count();
    assert_eq!(proved, 2, "doctor tries both places");
    scene.run(&["status"]).ended(0).says(&["team-one"]);
    scene.run(&["publish"]).ended(0);
    scene.run(&["publish", "--check"]).ended(0);
    scene.run(&["files", "connections"]).ended(0).says(&[&format!("{}/tables/connections/", scene.location)]);
    scene.run(&["connect"]).ended(0).says(&[&format!("{}/tables/connections/", scene.location)]);
    scene.run(&["report", "run", "R01", "--from", "2026-11-10", "--to", "2026-11-14"]).ended(0);
    let pack = scene.program.home().join("pack.zip");
    let pack = pack.to_str().unwrap();
    scene.run(&["report", "pack", "--from", "2026-11-10", "--to", "2026-11-14", "-o", pack]).ended(0);
    scene.run(&["review", "sign", "--pack", pack, "--reviewer", "R", "--outcome", "accepted"]).ended(0);
    scene.run(&["hold", "add", "--id", "CASE-7", "--reason", "a claim"]).ended(0);
    scene.run(&["hold", "release", "CASE-7", "--reason", "settled"]).ended(0);
    scene.run(&["quarantine", "retry"]).ended(0);
    scene.run(&["anchor"]).ended(0).says(&["annals/"]);
    scene.run(&["retention", "plan"]).ended(0);
    scene.run(&["cache", "status"]).ended(0);
    scene.run(&[&["plan"], &SINCE[..]].concat()).ended(0).says(&[" LIST a day"]);
    assert!(scene.sql("select count(*)::int as n from ledger")[0]["n"].as_i64() > Some(2));
    scene.server.set_clock_ahead(9 * 86_400);
    scene.run(&["vacuum"]).ended(0).says(&["team-one"]);
    scene.holds();
    let (data, ledger) = keys(&scene);
    assert!(data.iter().all(|key| !key.contains("/ledger/")) && data.len() > 10, "{data:?}");
    let below = format!("{LEDGER}/ledger/");
    assert!(ledger.iter().all(|key| key.starts_with(&below)) && ledger.len() > 4, "{ledger:?}");
    // Nothing of the ledger was ever deleted or overwritten.
    assert_eq!(scene.server.versions(&below), ledger.len());
}

#[test]
fn retention_removes_data_beside_a_locked_ledger() {
    let policy = "[retention]\nconnections = \"1y\"\nactivity = \"1y\"\nbilling = \"1y\"\nquarantine = \"1y\"\n";
    let scene = Scene::with_ledger_elsewhere(policy);
    years(&mut scene.service.world());
    scene.program.sync(&["--since", "2024-10-01"]).ended(0);
    let count = || scene.sql("select count(*)::int as n from connections")[0]["n"].as_i64().unwrap();
    let before = count();
    scene.run(&["retention", "apply", "--trust-clock"]).ended(0);
    let after = count();
    assert!(0 < after && after < before, "{after} of {before}");
    let files = |scene: &Scene| keys(scene).0.len();
    let kept = files(&scene);
    scene.server.set_clock_ahead(9 * 86_400);
    scene.run(&["vacuum"]).ended(0);
    assert!(files(&scene) < kept);
    scene.run(&["verify", "--key", &scene.public_key]).ended(0);
    scene.is_signed();
}

/// A rewritten line is noticed in the ledger's own place.
#[test]
fn a_rewritten_line_is_named_where_the_ledger_lies() {
    let scene = Scene::with_ledger_elsewhere("");
    scene.service.world().fill(DAY, 0..2);
    scene.sync().ended(0);
    let line = scene.ledger_lines().into_iter().next().unwrap();
    let same = scene.server.object(&line).unwrap();
    scene.server.tamper(&line, None);
    scene.server.tamper(&line, Some(same.clone()));
    scene.run(&["verify"]).ended(1).says(&["REWRITTEN", "line/000000000001.jsonl", "was deleted at"]);
    let stray = format!("some/archive/{}", line.strip_prefix(&format!("{LEDGER}/")).unwrap());
    scene.server.tamper(&stray, Some(same));
    scene.run(&["verify"]).ended(1).says(&["lies beside the data"]);
}

#[track_caller]
fn refused(run: &Run, words: &[&str]) {
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert!(run.code == Some(2) && lines.len() == 1 && run.stdout.is_empty(), "{run:?}");
    assert!(words.iter().all(|word| lines[0].contains(word)), "{run:?}");
}

#[test]
fn a_wrong_place_of_the_ledger_is_refused_in_one_line() {
    let scene = Scene::with_ledger_elsewhere("");
    scene.service.world().fill(DAY, 0..2);
    scene.sync().ended(0);
    let whole = format!("s3://{BUCKET}/whole");
    let divided = scene.location.clone();
    let configured = fs::read_to_string(scene.program.home().join("annals.toml")).unwrap();
    scene.program.configure("[cache]\ndirectory = \"cache\"\n");
    scene.program.sync(&[&SINCE[..], &["--archive", &whole]].concat()).ended(0);
    let (ours, before) = (ledger(), scene.server.keys());
    let empty = format!("s3://{BUCKET}/empty");
    let nothing = format!("s3://{BUCKET}/new");
    let (inside, around) = (format!("{divided}/ledgers"), format!("s3://{BUCKET}/some"));
    let cases: [(&str, Option<&str>, &[&str]); 7] = [
        (&divided, None, &["is [store] ledger missing?"]),
        (&divided, Some(&empty), &["ledger/archive.json: missing"]),
        (&divided, Some(&divided), &["--ledger", "are one place"]),
        (&divided, Some(&inside), &["--ledger", "one is inside the other"]),
        (&divided, Some(&around), &["--ledger", "one is inside the other"]),
        (&whole, Some(&ours), &["lies inside it, but [store] ledger names another place"]),
        (&whole, Some(&empty), &["lies inside it, but [store] ledger names another place"]),
    ];
    for (archive, ledger, words) in cases {
        let place = [&["--archive", archive][..], &ledger.map_or(vec![], |place| vec!["--ledger", place])].concat();
        for verb in [&["status"][..], &["verify"], &["sql", "select 1"], &["vacuum"], &["plan"], &["sync"]] {
            refused(&scene.run(&[verb, &place].concat()), words);
        }
        let shown = scene.run(&[&["doctor"][..], &place].concat());
        assert!(shown.code != Some(0) || shown.stdout.contains("failed"), "{shown:?}");
    }
    let whole_ledger = ["--archive", &divided, "--ledger", &whole];
    refused(&scene.run(&[&["status"], &whole_ledger[..]].concat()), &["ledger/archive.json: missing"]);
    refused(&scene.run(&[&["sync"], &whole_ledger[..]].concat()), &["an archive lies here"]);
    // A new archive begins in no used place.
    for (ledger, words) in [(&ours, "the place of the ledger of another archive"), (&whole, "an archive lies here")] {
        let run = scene.program.sync(&[&SINCE[..], &["--archive", &nothing, "--ledger", ledger]].concat());
        assert!(run.code != Some(0) && run.stderr.contains(words), "{run:?}");
    }
    let run = scene.program.sync(&[&SINCE[..], &["--archive", &ours]].concat());
    assert_eq!(run.code, Some(1), "{run:?}");
    refused(&scene.run(&["status", "--archive", &ours]), &["no archive exists here"]);
    // A copy from an archive whose ledger is unknown.
    let run = scene.run(&["copy", &divided, &nothing]);
    assert!(run.code == Some(2) && run.stderr.contains("is [store] ledger missing?"), "{run:?}");
    assert_eq!(scene.server.keys(), before, "something was written");
    // Another archive than the file's is opened without the file's ledger.
    scene.program.configure(&format!("archive = \"{divided}\"\n{configured}"));
    let run = scene.run(&["status", "--archive", &whole]).ended(0);
    assert!(run.stderr.contains("belongs to the archive of that file"), "{run:?}");
    scene.run(&["status", "--archive", &divided]).ended(0);
}

#[test]
fn a_bucket_that_lets_two_writers_win_holds_no_ledger() {
    let scene = Scene::with_ledger_elsewhere("");
    scene.service.world().fill(DAY, 0..1);
    scene.server.fail(Rule::new(Effect::ConditionIgnored).on(object_server::Kind::Put).key(LEDGER));
    let run = scene.sync().ended(1);
    assert!(run.stderr.contains("but only one may win") && run.stderr.contains(LEDGER), "{run:?}");
    assert_eq!(scene.server.keys(), Vec::<String>::new());
}

#[test]
fn a_copy_is_whole_and_a_copy_into_the_configured_archive_is_divided() {
    let scene = Scene::with_ledger_elsewhere("");
    scene.service.world().fill(DAY, 0..3);
    scene.sync().ended(0);
    let back = scene.program.home().join("back");
    let back = back.to_str().unwrap();
    scene.run(&["copy", &scene.location, back]).ended(0).says(&["SELF-CONSISTENT"]);
    assert!(fs::read_dir(format!("{back}/ledger/team=team-one")).unwrap().count() > 0);
    // The back-up is restored into new places.
    let (archive, ledger) = (format!("s3://{BUCKET}/restored"), format!("s3://{BUCKET}/locked/restored"));
    let program = [("ANNALS_ARCHIVE", &archive), ("ANNALS_LEDGER", &ledger)];
    let run = |arguments: &[&str]| {
        let mut command = scene.program.command(arguments);
        command.envs(program);
        scene.program.finish(command)
    };
    scene.program.configure("[cache]\ndirectory = \"cache\"\n");
    run(&["copy", back, &archive]).ended(0).says(&["SELF-CONSISTENT"]);
    let restored = scene.server.keys();
    assert!(restored.iter().any(|key| key.starts_with("locked/restored/ledger/team=team-one/line/")));
    assert!(!restored.iter().any(|key| key.starts_with("restored/ledger/")));
    run(&["verify"]).ended(0);
    scene.service.world().connection(FIRST + 60, 1);
    scene.service.set_clock(FIRST + HOUR);
    run(&[&["sync"], &SINCE[..]].concat()).ended(0);
    run(&["verify"]).ended(0);
}

/// Reads, reads again and asks, with one place or both on a disk.
fn works(program: &Program, service: &faulty_service::Service) {
    service.world().fill(DAY, 0..3);
    program.sync(&SINCE).ended(0);
    laws::archive_holds(service, program, &[]);
    let checked = program.run(&["doctor"]);
    assert!(!checked.stdout.contains("failed"), "{checked:?}");
    program.run(&["status"]).ended(0).says(&["team-one"]);
    program.run(&["vacuum"]).ended(0);
    let syncs: Vec<_> = (0..3).map(|_| program.start_sync(&[&SINCE[..], &["--rescan"]].concat())).collect();
    let codes: Vec<Option<i32>> = syncs.into_iter().map(|running| running.wait().code).collect();
    assert!(codes.iter().all(|code| matches!(code, Some(0 | 1))), "{codes:?}");
    program.sync(&SINCE).ended(0);
    laws::archive_holds(service, program, &[]);
}

#[test]
fn one_place_may_be_a_bucket_and_the_other_a_disk() {
    let bucket = Scene::new();
    bucket.program.configure("[store]\nledger = \"ledger of it\"\n[cache]\ndirectory = \"cache\"\n");
    works(&bucket.program, &bucket.service);
    assert!(bucket.program.home().join("ledger of it/ledger/team=team-one").is_dir());
    let disk = Scene::new();
    let program = disk.program.archive();
    let Scene { service, program: with_keys, server, .. } = disk;
    let with_keys = with_keys.with_variable("ANNALS_ARCHIVE", program);
    let with_keys = with_keys.with_variable("ANNALS_LEDGER", ledger().into());
    works(&with_keys, &service);
    assert!(server.keys().iter().all(|key| key.starts_with(LEDGER)), "{:?}", server.keys());
    assert!(!with_keys.archive().join("ledger").try_exists().unwrap());
}

#[test]
fn both_places_may_be_directories() {
    let (service, program) = scene();
    let home = program.home().to_owned();
    fs::create_dir(home.join("etc")).unwrap();
    // A path of the file is relative to the file.
    faulty_service::program::put(&home.join("etc/annals.toml"), b"[store]\nledger = \"../ledgers\"\n");
    let program = program.with_variable("ANNALS_CONFIG", home.join("etc/annals.toml"));
    works(&program, &service);
    assert!(home.join("ledgers/ledger/team=team-one").is_dir());
    for inside in ["ledgers/x.csv", "ledgers/ledger/team=team-one/x.csv", "archive/x.csv"] {
        let run = program.run(&["sql", "select 1", "-o", inside]).ended(2);
        assert!(run.stderr.contains("this place is inside the archive at "), "{run:?}");
    }
    refused(&program.run(&["anchor", "--keygen", "ledgers/key"]), &["this place is inside the archive"]);
    for wrong in ["archive", "archive/ledger", "."] {
        refused(&program.run(&["status", "--ledger", wrong]), &["--ledger or ANNALS_LEDGER"]);
    }
    let other = ["--archive", "new", "--ledger", "ledgers"];
    let run = program.sync(&[&SINCE[..], &other].concat());
    assert!(run.code != Some(0) && run.stderr.contains("the place of the ledger of another archive"), "{run:?}");
    let manifest = home.join("archive/archive.json");
    fs::rename(&manifest, home.join("kept.json")).unwrap();
    let run = program.sync(&SINCE);
    assert!(run.code != Some(0) && run.stderr.contains("archive.json: missing, but tables/"), "{run:?}");
    fs::rename(home.join("kept.json"), &manifest).unwrap();
    fs::create_dir(home.join("foreign")).unwrap();
    fs::create_dir(home.join("foreign/docs")).unwrap();
    let new = ["--archive", "new", "--ledger", "foreign"];
    refused(&program.sync(&[&SINCE[..], &new].concat()), &["this directory holds \"docs\""]);
}
