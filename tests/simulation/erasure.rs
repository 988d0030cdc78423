//! Orders of erasure in some worlds: an order is given between two processes, can lose power at any operation, and is given again
//! later. The laws: S8 (afterwards no file holds a value of the subject), S7 (a hold stops the order), and all others: a second
//! reading adds no row, and each erased event still counts as archived.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use annals::archive::{Archive, ArchiveError, Subject, TeamReader, TeamState};
use annals::clock::Clock;
use annals::model::{Digest, Instant, Range, Stream, TeamId};
use annals::store::{MemoryStore, Store};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::laws::content;
use super::plan::{DAY, Deadly, End, HOUR, Plan, ProcessPlan};
use super::random::Draw;
use super::run::Run;
use super::store::SimStore;
use super::world::Team;

/// A peer of each seventh connection event, and a user of each fifth event of activity.
pub const EMAIL: &str = "p3@example.com";
const USER: &str = "u2";
const ORDER: &str = "DPO-1";

/// Seconds since the epoch.
#[derive(Debug, Clone, Copy)]
pub struct PlannedOrder {
    pub given: i64,
    pub again: i64,
    /// Power is lost during the first attempt.
    pub crash: Option<(Deadly, u64, bool)>,
}

/// One of eight worlds has an order, and one of sixteen has an order, a policy and a hold.
fn has_order(seed: u64) -> bool {
    seed % 8 == 5 || seed % 16 == 10
}

/// Plans an order, and ends two processes for it.
pub fn plan_order(plan: &mut Plan) {
    if !has_order(plan.seed) {
        return;
    }
    let mut draw = Draw::of(plan.seed, "orders");
    let given = plan.start + draw.between(DAY, 4 * DAY);
    let again = (given + draw.between(HOUR, 2 * DAY)).max(plan.hold.map_or(0, |hold| hold.released + HOUR));
    let verb = draw.pick(&[Deadly::Any, Deadly::Any, Deadly::Append, Deadly::Remove]);
    let after = draw.below(if verb == Deadly::Any { 80 } else { 3 });
    let crash = draw.is(70).then_some((verb, after, draw.is(50)));
    plan.order = Some(PlannedOrder { given, again, crash });
    for until in [given, again] {
        plan.lives.push(ProcessPlan { until, end: End::Stopped, fault: None, down: 60 });
    }
}

/// Gives the order when its time has come: no process runs.
pub fn act(run: &mut Run) {
    let Some(order) = run.plan.order else { return };
    let is_last = run.orders_given > 0;
    let due = if is_last { order.again } else { order.given };
    if run.orders_given > 1 || run.clock.truth().seconds() < due || run.files.list("ledger").unwrap().is_empty() {
        return;
    }
    run.orders_given += 1;
    let store: Arc<dyn Store> = match is_last {
        false => Arc::new(SimStore { disk: run.disk.clone(), files: run.files.clone() }),
        true => Arc::new(run.files.clone()),
    };
    {
        let mut disk = run.disk.inner();
        disk.laws.is_erasing = true;
        disk.deadly = order.crash.filter(|_| !is_last);
    }
    let done = give(run, store);
    run.disk.trace.note(run.clock.truth(), || format!("the order was given: {:?}", done.as_ref().err()));
    run.files = run.files.snapshot();
    {
        let mut disk = run.disk.inner();
        disk.laws.is_erasing = false;
        (disk.deadly, disk.is_dead) = (None, false);
    }
    run.disk.follow(&run.files);
    match done {
        Ok(()) => holds_none(&run.files, &mut run.broken),
        // The hold was not released in time: the order stops.
        Err(error) if error.to_string().contains("CASE-7") => {}
        Err(error) if is_last => run.broken.push(format!("S8: the order cannot be completed: {error}")),
        Err(_) => {}
    }
}

fn give(run: &Run, store: Arc<dyn Store>) -> Result<(), ArchiveError> {
    let clock = run.clock.clone();
    let archive = Archive::open(store)?.with_random(Arc::new(move || clock.random()));
    let archive = archive.snapshots_every(run.plan.snapshot_lines);
    let subject = Subject::new([EMAIL, USER]).expect("both are values");
    let teams: BTreeSet<TeamId> = archive.teams()?.into_iter().collect();
    let (order, pending) = match archive.pending_orders()?.pop() {
        Some(pending) => (pending.resumed(&subject).expect("it is the only order"), pending),
        None => archive.new_order(ORDER, &subject, teams.clone()),
    };
    for team in &teams {
        let _ = archive.writer(team)?.erase(&order, &pending, run.clock.now())?;
    }
    let _ = pending.destroy(archive.store().as_ref())?;
    Ok(())
}

/// S8: the bytes of a value are in no file, and in no column of a table.
fn holds_none(files: &MemoryStore, broken: &mut Vec<String>) {
    for listed in files.list("").expect("memory can be listed") {
        let bytes = content(files, &listed.path).unwrap_or_default();
        let is_in = |text: &[u8]| text.windows(EMAIL.len()).any(|part| part.eq_ignore_ascii_case(EMAIL.as_bytes()));
        if is_in(&bytes) {
            broken.push(format!("S8: {} holds the subject's address", listed.path));
        }
        if !listed.path.ends_with(".parquet") {
            continue;
        }
        // An interrupted commit can leave a torn file.
        let Ok(reader) = SerializedFileReader::new(bytes) else { continue };
        for row in reader.get_row_iter(None).expect("a table has rows") {
            for (name, field) in row.expect("a row").get_column_iter() {
                let text = match field {
                    Field::Str(text) => text.as_bytes(),
                    Field::Bytes(bytes) => bytes.data(),
                    _ => continue,
                };
                let is_user = text == USER.as_bytes() || text.windows(4).any(|part| part == b"\"u2\"");
                if is_in(text) || is_user {
                    let text = String::from_utf8_lossy(text);
                    broken.push(format!("S8: {name} in {} holds the subject: {text}", listed.path));
                }
            }
        }
    }
}

/// The digests that name an event in the archive, if its served text is not there, with the digests of the served texts.
pub fn served(run: &Run, team: &Team, stream: Stream, reader: &TeamReader) -> HashMap<Digest, Digest> {
    if run.plan.order.is_none() && !run.plan.drops_texts_of(stream) {
        return HashMap::new();
    }
    let archive = Archive::open(Arc::new(run.files.snapshot())).expect("it was opened before");
    // A damaged ledger breaks other laws.
    let Ok(writer) = archive.writer(&team.id) else { return HashMap::new() };
    let known_as = writer.salts().originals().expect("no salt is lost");
    let texts = team.lists[stream as usize].iter().map(|event| event.digest);
    let texts: HashMap<Digest, Digest> = texts.map(|digest| (known_as(&digest), digest)).collect();
    let all = Range::new(Instant::from_nanos(i64::MIN), Instant::from_nanos(i64::MAX));
    let events = reader.rows().events_in(stream, all).unwrap_or_default();
    let rejects = reader.rows().rejects(stream).unwrap_or_default();
    let rewritten = events.into_iter().map(|event| (event.digest, event.original));
    let rewritten = rewritten.chain(rejects.into_iter().map(|reject| (reject.digest, reject.original)));
    let rewritten = rewritten.filter_map(|(now, original)| Some((now, *texts.get(&original?)?)));
    rewritten.chain(texts.clone()).collect()
}

/// S7: no line erased rows during the planned hold.
pub fn check(run: &Run, number: usize, state: &TeamState, broken: &mut Vec<String>) {
    let Some(hold) = run.plan.hold.filter(|hold| hold.team == number) else { return };
    let moment = |at: Option<i64>, open: Instant| at.map_or(open, Instant::from_seconds);
    let (from, to) = (moment(hold.from, Instant::EARLIEST), moment(hold.to, Instant::LATEST));
    for (seq, record) in &state.erased {
        let stood = run.held.added.is_some_and(|added| added < *seq)
            && run.held.released.is_none_or(|released| *seq < released);
        let covers = record.parts.iter().any(|part| match part.first.zip(part.last) {
            Some((first, last)) => from <= last && first < to,
            None => true,
        });
        if stood && covers {
            broken.push(format!("S7: {}: rows were erased in line {seq}, under a hold", state.team_id));
        }
    }
}
