//! The archive in a bucket: interrupted at each of its requests, and written by two competing writers.

use std::thread::scope;

use object_server::{Effect, ObjectServer, Rule};

use super::super::{FaultCode, Signer, VerifyOptions, verify};
use super::*;
use crate::archive::deletion::vacuum::removed_with_versions;
use crate::store::s3;

/// One in this many requests is interrupted; in the long run, every request is.
const REQUESTS_EVERY: usize = 3;

fn signer() -> Arc<Signer> {
    Arc::new(signing::signer(4))
}

fn hand(server: &ObjectServer) -> Arc<dyn Store> {
    Arc::new(s3(server))
}

/// The work of a process from its start: commits the rest of the history.
fn live(server: &ObjectServer) -> Result<(), ArchiveError> {
    let archive = Archive::open_or_create(hand(server), || "archive-1".to_owned())?.with_signer(Some(signer()));
    let mut writer = archive.writer(&team())?;
    for step in usize::try_from(writer.state().seq.0).unwrap()..history().len() {
        let draft = with_sessions(&mut writer, history().swap_remove(step))?;
        let _ = commit(&mut writer, draft)?;
    }
    Ok(())
}

fn check(server: &ObjectServer, commits: usize, case: &str) {
    let store = hand(server);
    let archive = open(&store);
    assert_eq!((ids_in(&archive), sessions_in(&archive)), (ids_after(commits), ids_after(commits)), "{case}");
    let options = VerifyOptions { keys: vec![signer().key.public().clone()], ..VerifyOptions::default() };
    let report = verify(store.as_ref(), &options).unwrap();
    assert!(report.is_clean(), "{case}: {:?}", report.faults);
}

/// Ends a process at a request: the store refuses all later ones. `is_done` tells whether this one still takes effect.
fn die(server: &ObjectServer, at: u64, is_done: bool) {
    server.heal();
    if is_done {
        server.fail(Rule::new(Effect::AppliedThenRefused(403)).nth(at));
    }
    server.fail(Rule::new(Effect::Refused(403, None)).from(at + u64::from(is_done)));
}

#[test]
fn an_interruption_at_any_request_loses_and_doubles_nothing() {
    let whole = ObjectServer::start();
    live(&whole).unwrap();
    check(&whole, history().len(), "undisturbed");
    whole.forget_requests();
    let server = ObjectServer::start();
    live(&server).unwrap();
    let requests = server.requests().len();
    assert!(requests > 60, "{requests} requests: the cuts have become few");
    let every = if std::env::var_os("ANNALS_LONG").is_some() { 1 } else { REQUESTS_EVERY };
    let cases: Vec<(u64, bool)> =
        (1..=requests as u64).step_by(every).flat_map(|at| [(at, false), (at, true)]).collect();
    let run = |part: usize| {
        for (at, is_done) in cases.iter().copied().skip(part).step_by(2) {
            let case = format!("cut at request {at} of {requests}, carried out: {is_done}");
            let server = ObjectServer::start();
            die(&server, at, is_done);
            let first = live(&server);
            assert!(first.is_err() || at + 3 > requests as u64, "{case}: the process continued after the cut");
            // The second hit: during recovery or soon after.
            die(&server, 1 + at % 23, !is_done);
            let _ = live(&server);
            server.heal();
            live(&server).unwrap_or_else(|e| panic!("{case}: {e}"));
            check(&server, history().len(), &case);
        }
    };
    scope(|threads| {
        threads.spawn(|| run(1));
        run(0);
    });
}

/// S2: of two writers of one team, one appends each line; the other reads the ledger again and continues.
#[test]
fn two_writers_of_a_team_keep_one_ledger() {
    const COMMITS: usize = 12;
    let server = ObjectServer::start();
    for (seed, effect) in (1..).zip([Effect::AnswerLost, Effect::Refused(503, None), Effect::AppliedThenRefused(500)]) {
        server.fail(Rule::new(effect).chance(3, seed));
    }
    let _ = open(&hand(&server));
    let fight = |name: &str| {
        let store = hand(&server);
        for number in 0..COMMITS {
            let draft =
                Draft::from(Body { reviews: vec![records::review(&format!("{name} {number}"))], ..Body::default() });
            let day = now().plus(Duration::from_secs(86_400) * u32::try_from(number / 4).unwrap());
            // A ledger never goes back: a line belongs to the day of the line before if that day is later.
            while let Err(error) =
                open(&store).writer(&team()).and_then(|mut it| it.commit(draft.clone(), day).map(drop))
            {
                assert!(error.is_transient(), "{error}");
            }
        }
    };
    scope(|threads| {
        threads.spawn(|| fight("one"));
        fight("two");
    });
    server.heal();
    let store = hand(&server);
    let lines = open(&store).lines(&team(), open(&store).read(&team()).unwrap().state().seq).unwrap().lines;
    assert_eq!(lines.len(), 2 * COMMITS);
    let report = verify(store.as_ref(), &VerifyOptions::default()).unwrap();
    assert!(report.is_clean(), "{:?}", report.faults);
}

/// Each past day is one object, and a bucket answers several of these requests at once.
#[test]
fn a_new_writer_reads_each_past_day_once() {
    const DAYS: u32 = 40;
    let server = ObjectServer::start();
    let archive = open(&hand(&server)).snapshots_every(5);
    let mut first = writer(&archive);
    for number in 0..DAYS {
        let review = records::review(&number.to_string());
        let draft = Draft::from(Body { reviews: vec![review], ..Body::default() });
        let _ = first.commit(draft, now().plus(Duration::from_secs(86_400) * number)).unwrap();
    }
    let state = first.state().clone();
    drop(first);
    server.forget_requests();
    let second = writer(&open(&hand(&server)));
    assert_eq!(second.state(), &state);
    let asked = server.requests();
    let mut days: Vec<&String> =
        asked.iter().filter(|line| line.starts_with("Get ") && line.contains("/ledger/team=acme/20")).collect();
    let requests = days.len();
    days.sort_unstable();
    days.dedup();
    // Those after the newest snapshot are read twice.
    assert!(days.len() == DAYS as usize - 1 && requests <= days.len() + 5, "{asked:#?}");
}

/// Readers take past days from copies, so only a comparison shows the altered object.
#[test]
fn an_altered_ledger_object_of_a_past_day_is_a_fault() {
    let server = ObjectServer::start();
    let archive = open(&hand(&server)).with_signer(Some(signer()));
    let mut writer = writer(&archive);
    for (draft, day) in history().into_iter().take(3).zip(0..) {
        let draft = with_sessions(&mut writer, draft).unwrap();
        let _ = writer.commit(draft, now().plus(Duration::from_secs(86_400) * day)).unwrap();
    }
    let faults = || -> Vec<(FaultCode, String)> {
        let report = verify(hand(&server).as_ref(), &VerifyOptions::default()).unwrap();
        report.faults.into_iter().map(|fault| (fault.code, fault.object)).collect()
    };
    assert_eq!(faults(), []);
    for part in ["line/000000000001.jsonl", "head/2026-11-20/000001"] {
        let path = format!("ledger/team=acme/{part}");
        let key = format!("an/archive/{path}");
        let whole = server.object(&key).unwrap();
        let mut flipped = whole.to_vec();
        flipped[40] ^= 1;
        for other in [None, Some(Bytes::from(flipped))] {
            server.tamper(&key, other);
            assert_eq!(faults(), [(FaultCode::Rewritten, path.clone())]);
        }
        server.tamper(&key, Some(whole));
    }
}

#[test]
fn one_of_several_concurrent_creators_decides_the_archive_id() {
    let server = ObjectServer::start();
    server.fail(Rule::new(Effect::Slow(Duration::from_millis(20))));
    let begin =
        |number: u32| Archive::open_or_create(hand(&server), || format!("archive-{number}")).unwrap().id().to_owned();
    let begin = &begin;
    let ids: Vec<String> = scope(|threads| {
        let begun: Vec<_> = (0..8).map(|number| threads.spawn(move || begin(number))).collect();
        begun.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(open(&hand(&server)).id(), ids[0]);
}

/// A `vacuum`, or an order that was interrupted, removed these files, and the bucket keeps their versions.
#[test]
fn an_order_erases_the_versions_of_files_that_were_removed_before() {
    let server = ObjectServer::start();
    server.keep_versions();
    let store = hand(&server);
    let archive = erasure::built(&store);
    let files = || archive.read(&team()).unwrap().state().files.clone();
    let live = files();
    let removed: Vec<String> =
        files_under(&store, "tables").into_iter().filter(|path| !live.contains_key(path)).collect();
    let versions = |path: &String| server.versions(&format!("an/archive/{path}"));
    removed.iter().for_each(|path| store.remove(&[path]).unwrap());
    assert!(removed.len() > 2 && removed.iter().all(|path| versions(path) > 1), "{removed:?}");
    let erasure = erasure::erase(&archive).unwrap();
    assert_eq!(erasure.unerased, []);
    let kept: Vec<&String> = removed.iter().chain(live.keys()).filter(|path| versions(path) > 0).collect();
    assert!(kept.iter().all(|path| files().contains_key(*path)), "{kept:?}");
    // The older version of a file that is missing is its only copy.
    let missing = files().into_keys().next().unwrap();
    store.remove(&[&missing]).unwrap();
    let reader = archive.read(&team()).unwrap();
    assert_eq!(removed_with_versions(store.as_ref(), reader.state()).unwrap(), Vec::<String>::new());
    assert!(versions(&missing) > 0);
}
