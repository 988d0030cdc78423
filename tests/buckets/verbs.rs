//! An archive in a bucket, through the program: every verb, kills, lost answers, two writers, a copy to a disk and
//! back.

use crate::bucket_scene;
use crate::faulty_service;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bucket_scene::{FIRST, Scene};
use faulty_service::chance::Chance;
use faulty_service::{Action, DAY, HOUR, SINCE, busy};
use object_server::{ACCESS_KEY, BUCKET, Effect, Kind, Rule, SECRET_KEY};
use serde_json::Value;

#[test]
fn every_verb_takes_an_archive_in_a_bucket() {
    let scene = Scene::new();
    scene.service.world().fill(DAY, 0..3);
    scene.sync().ended(0).says(&[&format!("the archive is at {}", scene.location)]);
    scene.holds();
    scene.run(&["status"]).ended(0).says(&["team-one"]);
    scene.run(&["report", "run", "R01", "--from", "2026-11-10", "--to", "2026-11-14"]).ended(0);
    scene.run(&["files", "connections"]).ended(0).says(&[&format!("{}/tables/connections/", scene.location)]);
    scene.run(&["connect"]).ended(0).says(&[&format!("{}/tables/connections/", scene.location)]);
    scene.run(&["quarantine", "list"]).ended(0);
    scene.run(&["anchor"]).ended(0).says(&["annals/"]);
    scene.run(&["vacuum"]).ended(0).says(&["team-one"]);
    scene.run(&["doctor"]).says(&["of 24 concurrent creates of one key, exactly one won"]);
    scene.run(&["sql", "select count(*) from ledger"]).ended(0);
    scene.run(&[&["plan"], &SINCE[..]].concat()).ended(0).says(&["team-one", " PUT, ", " LIST a day"]);
    let pack = scene.program.home().join("pack.zip");
    let pack = pack.to_str().unwrap();
    scene.run(&["report", "pack", "--from", "2026-11-10", "--to", "2026-11-14", "-o", pack]).ended(0);
    scene.run(&["review", "sign", "--pack", pack, "--reviewer", "R", "--outcome", "accepted"]).ended(0);
    assert_eq!(scene.sql("select count(*)::int as n from reviews")[0]["n"], 1);
    scene.run(&["hold", "add", "--id", "CASE-7", "--reason", "a claim"]).ended(0);
    scene.run(&["retention", "plan"]).ended(0).says(&["nothing ever expires"]);
    scene.run(&["retention", "apply"]).ended(0);
    scene.run(&["hold", "release", "CASE-7", "--reason", "settled"]).ended(0);
    scene.run(&["quarantine", "retry"]).ended(0);
    let cached = scene.run(&["cache", "status", "--format", "json"]).ended(0);
    let cached: Value = serde_json::from_str(&cached.stdout).unwrap();
    assert!(cached[0]["files"].as_u64() > Some(0) && cached[0]["bytes"].as_u64() > Some(1_000), "{cached}");
    scene.run(&["cache", "clear"]).ended(0).says(&["removed "]);
    for text in [SECRET_KEY, ACCESS_KEY] {
        assert!(!scene.program.printed().contains(text), "a credential is shown");
    }
}

/// Only a round that commits looks for files to vacuum.
#[test]
fn a_sync_without_news_does_not_list_the_tables() {
    let scene = Scene::new();
    scene.service.world().fill(DAY, 0..3);
    let lists = || {
        scene.server.forget_requests();
        scene.sync().ended(0);
        let asked = scene.server.requests();
        asked.iter().filter(|line| line.starts_with("List ") && line.contains("/tables/")).count()
    };
    assert!(lists() > 0, "the first sync commits");
    assert_eq!(lists(), 0, "nothing is new");
    scene.service.world().activity(FIRST - HOUR / 60, 9);
    scene.service.set_clock(FIRST + HOUR);
    assert!(lists() > 0, "an event is new");
}

/// A question fetches each file that it needs once.
#[test]
fn a_question_fetches_what_it_needs_once() {
    let scene = Scene::new();
    scene.service.world().fill(DAY, 0..3);
    scene.sync().ended(0);
    let fetched = || {
        let asked = scene.server.requests();
        scene.server.forget_requests();
        asked.iter().filter(|line| line.starts_with("Get ") && line.contains("/tables/")).cloned().collect::<Vec<_>>()
    };
    let _ = fetched();
    let query = "select count(*)::int as n from activity";
    let first = scene.sql(query);
    let gets = fetched();
    assert!(!gets.is_empty() && gets.iter().all(|line| line.contains("/activity/")), "{gets:?}");
    assert_eq!(scene.sql(query), first);
    let asked = scene.server.requests();
    let gets: Vec<&String> = asked.iter().filter(|line| line.starts_with("Get ")).collect();
    assert!(gets.len() == 1 && gets[0].ends_with("/archive.json"), "{gets:?}");
    assert_eq!(fetched(), Vec::<String>::new(), "asked again it fetches nothing");
    // A report for people also reads the teams' names.
    let report = ["report", "run", "R01", "--from", "2026-11-10", "--to", "2026-11-14", "--format", "table"];
    scene.run(&report).ended(0);
    assert!(!fetched().is_empty());
    scene.run(&report).ended(0);
    assert_eq!(fetched(), Vec::<String>::new(), "asked again it fetches nothing");
    scene.program.configure("[cache]\ndirectory = \"cache\"\nsize = \"1 MB\"\n");
    assert_eq!(scene.sql(query), first);
    // The cache refuses a file that was changed in the bucket.
    scene.run(&["cache", "clear"]).ended(0);
    let live = scene.run(&["files", "activity"]).ended(0);
    let key = live.stdout.lines().next().and_then(|line| line.strip_prefix(&format!("s3://{BUCKET}/"))).unwrap();
    let mut bytes = scene.server.object(key).unwrap().to_vec();
    bytes[100] ^= 1;
    scene.server.tamper(key, Some(bytes.into()));
    let refused = scene.run(&["sql", query]).ended(1);
    assert!(refused.stderr.contains("the ledger says"), "{refused:?}");
    scene.run(&["verify"]).ended(1).says(&["FILE_HASH"]);
}

/// The verdict in a pack is about the bucket's files, so the rows must come from the same files.
#[test]
fn a_pack_contains_no_row_of_an_altered_cached_file() {
    let scene = Scene::new();
    scene.service.world().fill(DAY, 0..3);
    scene.sync().ended(0);
    let made_at =
        ["--made-at", "2026-12-01T00:00:00Z", "--from", "2026-11-10", "--to", "2026-11-14", "--reports", "R01"];
    let home = scene.program.home();
    let pack = |name: &str| {
        let place = home.join(name);
        let words = ["report", "pack", "-o", place.to_str().unwrap()];
        scene.run(&[&words[..], &made_at].concat()).ended(0);
        std::fs::read(place.join("SHA256SUMS")).unwrap()
    };
    let honest = pack("honest");
    let cached = std::fs::read_dir(home.join("cache/files")).unwrap().map(|entry| entry.unwrap().path());
    let cached: Vec<_> = cached.filter(|path| path.extension().is_some_and(|ending| ending == "parquet")).collect();
    assert!(!cached.is_empty());
    for path in &cached {
        let mut altered = std::fs::read(path).unwrap();
        let middle = altered.len() / 3;
        altered[4..middle].iter_mut().for_each(|byte| *byte ^= 1);
        std::io::Write::write_all(&mut std::fs::File::create(path).unwrap(), &altered).unwrap();
    }
    assert!(pack("again") == honest, "the pack has other rows");
}

/// A bucket with versions shows who rewrote or deleted ledger lines.
#[test]
fn a_rewritten_ledger_line_is_named_if_the_bucket_keeps_versions() {
    let scene = Scene::new();
    scene.server.keep_versions();
    scene.service.world().fill(DAY, 0..2);
    scene.sync().ended(0);
    scene.run(&["vacuum"]).ended(0);
    scene.holds();
    let line = scene.server.keys().into_iter().find(|key| key.contains("/line/")).unwrap();
    let same = scene.server.object(&line).unwrap();
    scene.server.tamper(&line, None);
    scene.server.tamper(&line, Some(same));
    scene.run(&["verify"]).ended(1).says(&["REWRITTEN", "line/000000000001.jsonl", "was deleted at"]);
    // Without the list of versions, the check is weaker, and says so.
    scene.server.fail(Rule::new(Effect::Refused(403, None)).on(Kind::List).with("versions"));
    let words = ["SELF-CONSISTENT", "notice: REWRITTEN ledger: older versions were not checked: ", "403"];
    scene.run(&["verify"]).ended(3).says(&words);
}

/// F63.
#[test]
fn parts_of_a_killed_upload_are_named_and_removed() {
    let scene = Scene::new();
    scene.service.world().fill(DAY, 0..1);
    scene.sync().ended(0);
    let path = "tables/connections/team=team-one/month=2026-11/left.parquet";
    scene.server.leave_upload(&format!("some/archive/{path}"));
    let vacuum = |more: &[&str]| scene.run(&[&["vacuum"], more].concat()).ended(0).stderr;
    assert!(!vacuum(&[]).contains("unfinished upload"), "it is younger than the grace");
    scene.run(&["doctor"]).says(&["no upload is older than the grace"]);
    scene.server.set_clock_ahead(8 * 86_400);
    scene.run(&["doctor"]).says(&[path, "`annals vacuum` aborts them"]);
    let said = vacuum(&["--dry-run"]);
    assert!(said.contains(&format!("unfinished upload of {path}")) && said.contains("would be aborted"), "{said}");
    assert_eq!(scene.server.open_uploads(), 1);
    assert!(vacuum(&[]).contains(": aborted"));
    assert_eq!(scene.server.open_uploads(), 0);
    scene.run(&["doctor"]).says(&["no upload is older than the grace"]);
}

/// With kills at any place, and with answers that are lost after the write, no event is lost or doubled.
#[test]
fn kills_and_lost_answers_lose_and_double_nothing() {
    let scene = Scene::new();
    let mut chance = Chance::of(41);
    busy(&mut scene.service.world());
    let mut clock = FIRST;
    let mut killed = 0;
    for round in 0..10 {
        scene.server.heal();
        match round % 3 {
            0 => scene.server.fail(Rule::new(Effect::AnswerLost).on(Kind::Put).chance(20, round)),
            1 => scene.server.fail(Rule::new(Effect::Refused(503, None)).chance(10, round)),
            _ => {}
        }
        let running = scene.program.start_sync(&SINCE);
        let run = running.kill_after(Duration::from_millis(50 + chance.below(900)));
        killed += usize::from(run.code.is_none());
        for n in 0..10 {
            scene.service.world().connection(clock + n * 60, n);
            scene.service.world().activity(clock + n * 60, n);
        }
        clock += HOUR;
        scene.service.set_clock(clock);
    }
    assert!(killed >= 3, "only {killed} kills fell within a run");
    scene.server.heal();
    scene.sync().ended(0);
    scene.holds();
}

/// S2: two programs write one team at the same time, and the bucket has no lock.
#[test]
fn two_writers_at_once_write_each_line_once() {
    let scene = Scene::new();
    busy(&mut scene.service.world());
    scene.service.on_request(|_, _, _| Action::Slow(Duration::from_millis(5)));
    for _ in 0..3 {
        let all: Vec<_> = (0..3).map(|_| scene.program.start_sync(&SINCE)).collect();
        let codes: Vec<Option<i32>> = all.into_iter().map(|running| running.wait().code).collect();
        assert!(codes.iter().all(|code| matches!(code, Some(0 | 1))), "{codes:?}");
    }
    scene.service.calm();
    scene.sync().ended(0);
    scene.holds();
}

fn contents(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = faulty_service::program::files_below(root).into_iter();
    let named = files.map(|path| (path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(), path));
    let kept = named
        .filter(|(name, _)| ["archive.json", "ledger/", "salts/", "tables/"].iter().any(|of| name.starts_with(of)));
    kept.map(|(name, path)| (name, std::fs::read(path).unwrap())).collect()
}

#[test]
fn a_copy_to_a_bucket_and_back_is_the_same_archive() {
    let scene = Scene::new();
    busy(&mut scene.service.world());
    let local = scene.program.archive();
    let local = local.to_str().unwrap();
    let sync_local = || scene.program.sync(&[&SINCE[..], &["--archive", local]].concat()).ended(0);
    sync_local();
    // An interrupted copy continues.
    let arguments = ["copy", local, &scene.location];
    let running = scene.program.start(&arguments);
    running.kill_after(Duration::from_millis(150));
    scene.program.run(&arguments).ended(0).says(&["SELF-CONSISTENT"]);
    let again = scene.program.run(&arguments).ended(0);
    assert!(again.stderr.contains("copied 0 files of 0 bytes and 0 ledger lines"), "{again:?}");
    let back = scene.program.home().join("back");
    scene.program.run(&["copy", &scene.location, back.to_str().unwrap()]).ended(0).says(&["SELF-CONSISTENT"]);
    let (here, there) = (contents(&scene.program.archive()), contents(&back));
    let live: Vec<&String> = there.keys().collect();
    assert!(live.len() > 5, "{live:?}");
    for (name, bytes) in &there {
        assert!(here.get(name) == Some(bytes), "{name} is another file");
    }
    let left_out: Vec<&String> = here.keys().filter(|name| !there.contains_key(*name)).collect();
    assert!(
        left_out.iter().all(|name| name.starts_with("tables/")),
        "the copy leaves out only files that no ledger line names: {left_out:?}"
    );
    // The copy becomes the archive and grows.
    scene.service.world().connection(FIRST + 60, 1);
    scene.service.set_clock(FIRST + HOUR);
    scene.sync().ended(0);
    scene.holds();
    scene.program.run(&["copy", local, &format!("s3://{BUCKET}/another")]).ended(0);
    // The copy refuses a target with another history.
    sync_local();
    scene.program.run(&arguments).ended(1).says(&["the target's ledger differs from the source's"]);
}

/// Each of the two would find the other's files as foreign ones.
#[test]
fn no_archive_lies_inside_another() {
    let scene = Scene::new();
    scene.service.world().fill(DAY, 0..2);
    scene.sync().ended(0);
    let (before, local) = (scene.server.keys(), scene.program.archive());
    let local = local.to_str().unwrap();
    scene.program.sync(&[&SINCE[..], &["--archive", local]].concat()).ended(0);
    let inside = format!("{}/tables/y", scene.location);
    for target in [scene.location.as_str(), &inside, &format!("s3://{BUCKET}/some"), &format!("s3://{BUCKET}")] {
        scene.run(&["copy", &scene.location, target]).ended(2).says(&["are one place, or one is inside the other"]);
    }
    let words = format!("this place is inside the archive at {}", scene.location);
    scene.run(&["copy", local, &inside]).ended(2).says(&[&words]);
    scene.program.sync(&[&SINCE[..], &["--archive", &inside]].concat()).ended(2).says(&[&words]);
    let words = "this place holds \"some\": a new archive needs an empty place of its own";
    let around = format!("s3://{BUCKET}");
    scene.program.sync(&[&SINCE[..], &["--archive", &around]].concat()).ended(2).says(&[words]);
    scene.run(&["copy", local, &around]).ended(2).says(&[words]);
    scene.run(&["status", "--archive", &around]).ended(2).says(&[words]);
    assert_eq!(scene.server.keys(), before, "something was written");
}

#[test]
fn a_fault_of_a_bucket_is_reported_in_one_line() {
    let scene = Scene::new();
    scene.service.world().fill(DAY, 0..1);
    let said = |location: &str, code: i32, words: &[&str]| {
        let run = scene.program.run(&["status", "--archive", location]).ended(code);
        let lines: Vec<&str> = run.stderr.lines().collect();
        assert!(lines.len() == 1 && words.iter().all(|word| lines[0].contains(word)), "{location}: {run:?}");
    };
    said(&format!("s3://{BUCKET}/nothing"), 2, &["no archive exists here"]);
    said("s3://another-bucket/x", 1, &["another-bucket"]);
    said("s3:/bucket/x", 2, &["looks like an address"]);
    said("ftp://bucket/x", 2, &["ftp://"]);
    said("s3://key:secret@bucket/x", 2, &["credentials"]);
    // The program refuses a bucket that lets two writers win, and writes nothing to it.
    scene.server.fail(Rule::new(Effect::ConditionIgnored).on(Kind::Put));
    let run = scene.sync().ended(1);
    assert!(run.stderr.contains("but only one may win"), "{run:?}");
    assert_eq!(scene.server.keys(), Vec::<String>::new());
}
