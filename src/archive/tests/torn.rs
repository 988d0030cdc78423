//! The torn-store model: a loss of power after every step that changes the disk, with every unsynced write kept, dropped,
//! cut, zero-filled or torn and every unsynced change of names kept or lost; then a reader, recovery, and the laws.

use std::collections::BTreeMap;

use super::super::{FaultCode, Signer, VerifyOptions, verify};
use super::torn_disk::{Lie, TornDisk, distinct_states, store_of};
use super::*;

type State = (usize, BTreeMap<String, Bytes>);

/// Recovery is torn as well, from every state of so many.
const RECOVERIES_EVERY: usize = 40;
/// The rest of the history is committed behind every state of so many.
const FINISHES_EVERY: usize = 8;
const STATES_MIN: usize = 300;

fn signer() -> Arc<Signer> {
    Arc::new(signing::signer(7))
}

/// The whole history, signed, on a disk that is photographed at every step.
fn history_on(disk: &TornDisk) {
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let archive = open(&store).signed_by(Some(signer()));
    let mut writer = writer(&archive);
    for draft in history() {
        let draft = with_sessions(&writer, draft).unwrap();
        let _ = commit(&mut writer, draft).unwrap();
        disk.acknowledge();
    }
}

/// What must hold however the power went; the sentence says what does not.
fn check_state((acknowledged, files): &State, finishes: bool) -> Result<(), String> {
    let store: Arc<dyn Store> = Arc::new(store_of(files));
    let fail =
        |what: &str, why: &dyn std::fmt::Display| Err(format!("{acknowledged} commits answered for: {what}: {why}"));
    let archive = match Archive::open_or_create(Arc::clone(&store), || "archive-1".to_owned()) {
        Ok(archive) => archive.signed_by(Some(signer())),
        Err(e) => return fail("opening", &e),
    };
    let before = verify(store.as_ref(), &VerifyOptions::default()).unwrap();
    if let Some(fault) = before.faults.iter().find(|fault| fault.code != FaultCode::TornTail) {
        return fail("verify before recovery", &format!("{fault:?}"));
    }
    match archive.read(&team()) {
        Ok(reader) if reader.state().seq.0 + 1 < *acknowledged as u64 => {
            return fail("a reader", &format!("sees {} commits", reader.state().seq));
        }
        Ok(_) => {}
        Err(e) => return fail("a reader", &e),
    }
    let mut writer = match archive.writer(&team(), now()) {
        Ok(writer) => writer,
        Err(e) => return fail("recovery", &e),
    };
    let done = usize::try_from(writer.state().seq.0).unwrap();
    if done != *acknowledged && done != acknowledged + 1 {
        return fail("recovery", &format!("{done} commits stand"));
    }
    if ids_in(&archive) != ids_after(done) || sessions_in(&archive) != ids_after(done) {
        return fail("recovery", &"rows are lost or doubled");
    }
    check_clean(&archive)?;
    if finishes {
        for step in done..history().len() {
            let draft = with_sessions(&writer, history().swap_remove(step)).map_err(|e| e.to_string())?;
            let _ = commit(&mut writer, draft).map_err(|e| format!("going on: {e}"))?;
        }
        if ids_in(&archive) != ids_after(history().len()) {
            return fail("going on", &"rows are lost or doubled");
        }
        check_clean(&archive)?;
    }
    Ok(())
}

/// Nothing is wrong, nothing is left over, and every line is signed.
fn check_clean(archive: &Archive) -> Result<(), String> {
    let options = VerifyOptions { keys: vec![signer().key.public().clone()], ..VerifyOptions::default() };
    let report = verify(archive.store().as_ref(), &options).unwrap();
    let is_signed = |team: &super::super::TeamReport| team.signed.as_ref().is_some_and(|s| s.seq == team.last_seq);
    let unsigned = report.teams.iter().find(|team| team.last_seq.0 > 0 && !is_signed(team));
    match (report.faults.first(), report.pending, unsigned) {
        (None, 0, None) => Ok(()),
        (fault, pending, unsigned) => Err(format!("after recovery: {fault:?}, {pending} pending, {unsigned:?}")),
    }
}

/// The first state that breaks a law, if one does; states are shared out among two threads.
fn first_broken(states: &[State]) -> Option<String> {
    let check = |part: usize| {
        let mine = states.iter().enumerate().filter(move |(at, _)| at % 2 == part);
        mine.map(|(at, state)| check_state(state, at % FINISHES_EVERY == 0).map_err(|e| format!("state {at}: {e}")))
            .find_map(Result::err)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| check(1));
        check(0).or(other.join().unwrap())
    })
}

/// The states that tearing the recovery from a state leads to.
fn recoveries(states: &[State]) -> Vec<State> {
    let mut photos = Vec::new();
    for (acknowledged, files) in states.iter().step_by(RECOVERIES_EVERY) {
        let disk = TornDisk::new(files, *acknowledged, Lie::None);
        let archive = open(&(Arc::new(disk.clone()) as Arc<dyn Store>)).signed_by(Some(signer()));
        drop(writer(&archive));
        photos.extend(disk.photos());
    }
    distinct_states(&photos)
}

#[test]
#[expect(clippy::print_stdout, reason = "how many states there were is worth reading")]
fn no_loss_of_power_loses_or_doubles_a_row() {
    let disk = TornDisk::new(&BTreeMap::new(), 0, Lie::None);
    history_on(&disk);
    let states = distinct_states(&disk.photos());
    println!("{} states", states.len());
    assert!(states.len() >= STATES_MIN, "{} states: too few", states.len());
    assert_eq!(first_broken(&states), None);
}

/// In one of its states `verify` calls the torn end of a file of signatures BAD_SIG, not TORN_TAIL.
#[test]
#[ignore = "shows a known fault: signatures that recovery had begun to write are called bad, not torn"]
fn no_loss_of_power_during_recovery_loses_or_doubles_a_row() {
    let disk = TornDisk::new(&BTreeMap::new(), 0, Lie::None);
    history_on(&disk);
    assert_eq!(first_broken(&recoveries(&distinct_states(&disk.photos()))), None);
}

#[test]
#[ignore = "not bounded yet: what such a disk owes piles up, and its states are more than memory holds"]
fn a_disk_that_lies_about_a_sync_is_caught() {
    for lie in [Lie::FileSync, Lie::DirectorySync, Lie::LedgerSync] {
        let disk = TornDisk::new(&BTreeMap::new(), 0, lie);
        history_on(&disk);
        let states = distinct_states(&disk.photos());
        // The changes that such a disk owes pile up: the latest photos show it best.
        let broken = first_broken(&states[states.len().saturating_sub(400)..]);
        assert!(broken.is_some(), "{lie:?}: no law was broken");
    }
}
