//! Policies and holds in some worlds: rows expire after a class of some days, and a hold keeps them for a while. The laws: S6 (a
//! line names the expired rows, they are older than their class, and they are gone), S7 (no row under a hold expired).

use std::sync::Arc;
use std::time::Duration;

use annals::archive::{Archive, Body, Draft as Commit, HoldAdded, HoldRecord, HoldReleased, HoldScope, TeamState};
use annals::clock::Clock;
use annals::model::path::month_of;
use annals::model::{Dataset, Instant, LedgerSeq, Retained, Retention, Stream, TeamId, TeamRetention};

use super::plan::{DAY, End, HOUR, Plan, ProcessPlan};
use super::random::Draw;
use super::run::Run;

/// 2026-10-01T00:00:00Z: the months before it expire during the world's life.
const OCTOBER: i64 = 1_790_812_800;
/// The retention classes of connections, activity, billing and the inventory, in days.
const CLASSES: [(Retained, u64); 4] =
    [(Retained::Connections, 1), (Retained::Activity, 6), (Retained::Billing, 1), (Retained::Inventory, 1)];

/// A hold on one team, from the end of one process to the end of another.
#[derive(Debug, Clone, Copy)]
pub struct PlannedHold {
    pub team: usize,
    pub added: i64,
    pub released: i64,
    pub from: Option<i64>,
    pub to: Option<i64>,
}

/// The lines that added and released it.
#[derive(Debug, Clone, Copy, Default)]
pub struct HoldLines {
    pub added: Option<LedgerSeq>,
    pub released: Option<LedgerSeq>,
}

/// One world in four has a policy.
pub fn has_policy(seed: u64) -> bool {
    seed % 4 == 2
}

/// Such a world begins just before a month's end.
pub fn start(seed: u64) -> i64 {
    OCTOBER - Draw::of(seed, "retention").between(HOUR, 36 * HOUR)
}

pub fn classes(plan: &Plan) -> TeamRetention {
    let of = |(of, days): (Retained, u64)| (of, format!("{days}d").parse().unwrap());
    let all = Retention(CLASSES.into_iter().filter(|_| has_policy(plan.seed)).map(of).collect());
    TeamRetention { all, ..TeamRetention::default() }
}

/// Plans a hold, and the ends of two processes: the hold is added after the first and released after the second.
pub fn plan_hold(plan: &mut Plan) {
    if !has_policy(plan.seed) {
        return;
    }
    let mut draw = Draw::of(plan.seed, "holds");
    let added = plan.start + draw.between(DAY, 3 * DAY);
    let released = added + draw.between(2 * DAY, 8 * DAY);
    let (from, to) = draw.pick(&[
        (None, None),
        (None, Some(OCTOBER)),
        (Some(OCTOBER - 2 * DAY), Some(OCTOBER + DAY)),
        (Some(OCTOBER), None),
    ]);
    plan.hold = Some(PlannedHold { team: draw.count(0, plan.teams), added, released, from, to });
    for until in [added, released] {
        plan.lives.push(ProcessPlan { until, end: End::Stopped, fault: None, down: 60 });
    }
}

/// Adds or releases the hold at its planned time, while no process runs.
pub fn act(run: &mut Run) {
    let Some(hold) = run.plan.hold else { return };
    let now = run.clock.truth().seconds();
    let is_due = |at: i64, done: Option<LedgerSeq>| at <= now && done.is_none();
    let (adds, releases) = (is_due(hold.added, run.held.added), is_due(hold.released, run.held.released));
    if !(adds || releases && run.held.added.is_some()) {
        return;
    }
    let Ok(archive) = Archive::open(Arc::new(run.files.clone())) else { return };
    let (id, clock, at) = (TeamId::new(format!("team-{}", hold.team)), run.clock.clone(), run.clock.now());
    let archive = archive.with_random(Arc::new(move || clock.random())).snapshots_every(run.plan.snapshot_lines);
    let Ok(mut writer) = archive.writer(&id) else { return };
    if writer.state().seq == LedgerSeq(0) {
        return;
    }
    let (name, reason) = ("CASE-7".to_owned(), "a claim".to_owned());
    let record = match adds {
        true => {
            let moment = |at: Option<i64>| at.map(Instant::from_seconds);
            let (from, to, scope) = (moment(hold.from), moment(hold.to), HoldScope::Team);
            HoldRecord::Add(HoldAdded { id: name, reason, by: None, at, from, to, scope, subject: None })
        }
        false => HoldRecord::Release(HoldReleased { id: name, reason, by: None, at }),
    };
    let _ = writer.commit(Commit::from(Body { holds: vec![record], ..Body::default() }), at).unwrap();
    let seq = Some(writer.state().seq);
    if adds {
        run.held.added = seq;
    } else {
        run.held.released = seq;
    }
}

/// Checks S6 and S7 by the plan, not by the program's own rules.
pub fn check(run: &Run, number: usize, state: &TeamState, broken: &mut Vec<String>) {
    let team = &state.team_id;
    for ((dataset, month), (seq, record)) in &state.expired {
        let range = month_of(*month);
        let of = |retained: Retained| CLASSES.iter().find(|(of, _)| *of == retained).map(|(_, days)| *days);
        let days = match dataset {
            Dataset::Activity => of(Retained::Activity),
            Dataset::Connections | Dataset::Sessions => of(Retained::Connections),
            Dataset::Billing => of(Retained::Billing),
            Dataset::Inventory(_) => of(Retained::Inventory),
            Dataset::Quarantine => None,
        };
        let is_old = days.is_some_and(|days| range.end.plus(Duration::from_secs(days * 86_400)) <= record.at);
        if !has_policy(run.plan.seed) || !is_old {
            broken.push(format!("S6: {team}: {dataset} of {} went at {}", month.month(), record.at));
        }
        let is_there = state
            .files_of(*dataset)
            .any(|file| *dataset != Dataset::Sessions && file.first.is_some_and(|first| range.owns(first)));
        if is_there {
            broken.push(format!("S6: {team}: {dataset} of {} expired, but its rows exist", month.month()));
        }
        let Some(hold) = run.plan.hold.filter(|hold| hold.team == number) else { continue };
        let stood = run.held.added.is_some_and(|added| added < *seq)
            && run.held.released.is_none_or(|released| *seq < released);
        let covers = hold.from.is_none_or(|from| Instant::from_seconds(from) < range.end)
            && hold.to.is_none_or(|to| range.start < Instant::from_seconds(to));
        if stood && covers {
            broken.push(format!("S7: {team}: {dataset} of {} expired in line {seq} under a hold", month.month()));
        }
    }
}

/// Whether a line records that the event's rows expired.
pub fn has_gone(state: &TeamState, stream: Stream, at: i64) -> bool {
    state.expired.contains_key(&(stream.into(), month_of(Instant::from_nanos(at)).start))
}
