//! Checks the laws against the truth after 144 quiet hours.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{
    Archive, FileEntry, Finding, FindingKind, TeamReader, TeamState, VerifyOptions, WindowState, verify,
};
use annals::clock::Clock;
use annals::model::path::month_of;
use annals::model::{Dataset, Digest, EventRow, FileRole, Instant, Range, Stream, TeamId};
use annals::pipeline::Settings;
use annals::store::MemoryStore;

use super::allowed_losses::{Excuses, UNKNOWN_COMPUTER};
use super::erasure;
use super::faults::{Fault, Rare};
use super::plan::{DAY, HOUR};
use super::privacy::RowLaw;
use super::retention;
use super::run::Run;
use super::sessions;
use super::texts::SECRET;
use super::world::{Device, Event, NANO, Team};

/// Every broken law, in words.
pub fn check(run: &mut Run) -> Vec<String> {
    let mut broken = std::mem::take(&mut run.broken);
    broken.extend(std::mem::take(&mut run.service.inner().seen.broken));
    broken.extend(std::mem::take(&mut run.disk.inner().broken));
    let clock = run.clock.clone();
    let archive = match Archive::open(Arc::new(run.files.clone())) {
        Ok(archive) => archive.with_random(Arc::new(move || clock.random())),
        Err(error) => return [broken, vec![format!("I9: the archive cannot be opened: {error}")]].concat(),
    };
    let report = verify(archive.store().as_ref(), &VerifyOptions::default()).expect("memory can be read");
    broken.extend(report.faults.iter().take(3).map(|fault| format!("verify: {fault:?}")));
    let ids: Vec<TeamId> = run.service.inner().teams.iter().map(|team| team.id.clone()).collect();
    for (number, id) in ids.iter().enumerate() {
        match archive.read(id) {
            Ok(reader) => check_team(run, number, &reader, &mut broken),
            Err(error) => broken.push(format!("I9: {id} cannot be read: {error}")),
        }
    }
    no_secret(&run.files, &mut broken);
    replay(run, &archive, &mut broken);
    broken
}

fn check_team(run: &Run, number: usize, reader: &TeamReader, broken: &mut Vec<String>) {
    let inner = run.service.inner();
    let (team, state) = (&inner.teams[number], reader.state());
    let mut rows: Vec<EventRow> = Vec::new();
    let mut met = Vec::new();
    for stream in Stream::ALL {
        let mut held: HashMap<Digest, i64> = HashMap::new();
        let served = erasure::served(run, team, stream, reader);
        let served = |digest: Digest| served.get(&digest).copied().unwrap_or(digest);
        let all = Range::new(Instant::from_nanos(i64::MIN), Instant::from_nanos(i64::MAX));
        let mut law = RowLaw::new(run, team, stream);
        let mut take = |mut row: EventRow| {
            let digest = served(row.served_digest.unwrap_or_else(|| Digest::of(&row.raw)));
            *held.entry(digest).or_default() += 1;
            law.see(&mut row, digest, broken);
            if row.raw.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()) {
                broken.push(format!("I12: a secret in {} of {}", row.event_id, team.id));
            }
            rows.extend((stream == Stream::Connections).then_some(row));
            Ok(())
        };
        if let Err(error) = reader.rows().rows_in(stream, all, &mut take) {
            broken.push(format!("I9: {} {stream} cannot be read: {error}", team.id));
            continue;
        }
        met.extend(law.finish(state, broken));
        for reject in reader.rows().rejects(stream).unwrap_or_default() {
            *held.entry(served(reject.digest)).or_default() += 1;
        }
        let excuses = Excuses::new(run, &inner, number, state);
        compare(team, stream, &held, &excuses, broken);
    }
    settled(run, team, state, broken);
    retention::check(run, number, state, broken);
    erasure::check(run, number, state, broken);
    gaps(run, &inner, number, state, broken);
    if !run.plan.is_old {
        sessions::compare(run, team, rows, broken);
    }
    drop(inner);
    met.into_iter().for_each(|met| run.service.rare(met));
    note_rare(run, state);
}

/// I1 to I4: no event is lost outside a gap, invented or doubled.
fn compare(team: &Team, stream: Stream, held: &HashMap<Digest, i64>, excuses: &Excuses<'_>, broken: &mut Vec<String>) {
    let mut truth: BTreeMap<Digest, Vec<&Event>> = BTreeMap::new();
    for event in team.lists[stream as usize].iter().filter(|event| event.from < event.until) {
        truth.entry(event.digest).or_default().push(event);
    }
    for (digest, count) in held {
        let events = truth.get(digest).map_or(&[][..], Vec::as_slice);
        let name = events.first().map_or("bytes that never were", |event| event.text.as_str());
        if !events.iter().any(|event| event.served.is_some()) {
            broken.push(format!("I3: {} {stream} holds what was never served: {name}", team.id));
        } else if *count > most_at_once(events) {
            broken.push(format!("I4: {} {stream} holds {count} times: {name}", team.id));
        }
    }
    for (digest, events) in &truth {
        let found = held.get(digest).copied().unwrap_or(0);
        let must: Vec<&&Event> = events.iter().filter(|event| excuses.of(event).is_none()).collect();
        let must_be = if events[0].has_id { must.len().min(1) } else { must.len() } as i64;
        // The archive keeps only as many equal billing entries without ids as one answer shows: a gap records the
        // others.
        let is_excused = stream == Stream::Billing && !events[0].has_id && excuses.is_in_gap(events[0]);
        let must_be = if is_excused { must_be.min(1) } else { must_be };
        if found < must_be {
            let event = must[0];
            let (at, from) = (Instant::from_nanos(event.at), Instant::from_nanos(event.from));
            let law = if event.served.is_some() { "I2" } else { "I1" };
            broken.push(format!(
                "{law}: {} {stream} lost {} of {must_be} outside every gap: at {at}, seen from {from} until {} ({:?}), \
                 served {:?}, {:?}: {}",
                team.id,
                must_be - found,
                Instant::from_nanos(event.until),
                event.gone,
                event.served.map(Instant::from_nanos),
                event.fault,
                event.text
            ));
        }
    }
}

/// How many events had the same bytes at one time.
fn most_at_once(events: &[&Event]) -> i64 {
    if events[0].has_id {
        return 1;
    }
    let at = |time: i64| events.iter().filter(|event| event.from <= time && time < event.until).count();
    let most = events.iter().map(|event| at(event.from)).max().unwrap_or(0);
    i64::try_from(most).unwrap()
}

/// I9: every window that should be settled or final is.
fn settled(run: &Run, team: &Team, state: &TeamState, broken: &mut Vec<String>) {
    let now = run.clock.truth();
    for ((stream, _), window) in &state.windows {
        let is_early = window.settled_at.is_some_and(|at| at < window.range.end.plus(run.plan.settings.lag));
        if is_early && *stream != Stream::Billing && window.reads > 0 {
            broken.push(format!("I9: {} {stream} was settled before its lag had passed: {window:?}", team.id));
        }
        let age = now.since(window.range.end);
        let must = match age.as_secs() {
            0..43_200 => continue,
            43_200..273_600 => WindowState::Settled,
            _ => WindowState::Sealed,
        };
        if window.state < must {
            broken.push(format!("I9: {} {stream} {} is {:?}: {window:?}", team.id, window.range, window.state));
            return;
        }
    }
    for stream in super::WINDOWED {
        let windows = state.windows.range((stream, Instant::from_nanos(i64::MIN))..);
        let windows = windows.take_while(|((of, _), _)| *of == stream);
        let edge = windows.fold(None, |edge: Option<Instant>, ((_, start), window)| match edge {
            Some(edge) if edge < *start => Some(edge),
            _ if window.state == WindowState::Provisional => edge,
            _ => Some(window.range.end),
        });
        if edge.is_none_or(|edge| now.since(edge) > Duration::from_secs(36 * 3600)) {
            broken.push(format!("I9: {} {stream} is settled up to {edge:?} alone", team.id));
        }
    }
}

/// I5: a calm run records no gap; a gap of a removed computer is at most the outage before it and two polls.
fn gaps(run: &Run, inner: &super::service::Inner, number: usize, state: &TeamState, broken: &mut Vec<String>) {
    let (plan, team) = (&run.plan, &inner.teams[number]);
    let of_removed = |gap: &Finding| team.device(&gap.subject).map(|n| team.devices[n].removed);
    if plan.is_calm() || plan.faults.iter().all(|fault| *fault == Fault::LateWithinLag) {
        let odd = [FindingKind::Gap, FindingKind::Late, FindingKind::Silence, FindingKind::PagingAnomaly];
        let odd = state.findings.iter().find(|(_, finding)| odd.contains(&finding.kind));
        broken.extend(odd.map(|(_, finding)| format!("I5: nothing went wrong, and yet: {finding:?}")));
    }
    let learned = state.streams.get(&Stream::Connections).map_or(0, |held| held.learned_lag_seconds);
    let lag = plan.settings.lag.max(Duration::from_secs(learned));
    for gap in state.gaps() {
        let (Some(from), Some(to)) = (gap.from, gap.to) else {
            broken.push(format!("I5: a gap without an end: {gap:?}"));
            continue;
        };
        if gap.subject == UNKNOWN_COMPUTER {
            let is_shown = |device: &&Device| device.is_shown && (device.removed - to.nanos()).abs() <= NANO;
            let mut removed = team.devices.iter().filter(is_shown);
            // Without the texts of activity, an older removal cannot name its computer.
            if !removed.any(|device| !device.is_named || plan.drops_texts_of(Stream::Activity)) {
                broken.push(format!("I5: no computer without a name was removed then: {gap:?}"));
            }
            continue;
        }
        let Some(removed) = of_removed(gap) else { continue };
        if removed == super::world::NEVER {
            broken.push(format!("I5: {} was never removed: {gap:?}", gap.subject));
            continue;
        }
        // During a backfill, no reading vouches for a computer that no activity names.
        let is_silent = team.device(&gap.subject).is_some_and(|n| !team.devices[n].is_shown);
        let is_of_backfill = is_silent && gap.found_at.nanos() < (plan.start + 2 * plan.poll) * NANO;
        if is_doubtful(state, gap) || is_of_backfill {
            continue;
        }
        // The last reading before the removal that the program recorded before it ended.
        let polls = 2 * plan.poll * NANO;
        let readings = &inner.seen.readings[number];
        let last = readings[..readings.partition_point(|read| *read < removed.min(to.nanos()))].last().copied();
        let since = last.unwrap_or(plan.start * NANO - 30 * DAY * NANO);
        let troubles = &inner.seen.troubles[number];
        let in_trouble = troubles.iter().any(|at| (since - 3 * HOUR * NANO..to.nanos() + 3 * HOUR * NANO).contains(at));
        let slack = polls + if in_trouble { 4 * HOUR * NANO } else { 5 * 60 * NANO };
        // The part for late events reaches back by the lag.
        let certain = certain_from(gap).unwrap_or(from);
        if gap.reason.contains("of this time are missing only") {
            continue;
        }
        if certain.since(from) > lag + Duration::from_secs(1) {
            broken.push(format!("I5: more is possible than may be late: {gap:?}, lag {lag:?}"));
        }
        if last.is_some() && certain.nanos() < since - slack {
            let read = Instant::from_nanos(since);
            broken.push(format!("I5: a gap of more than the outage: {gap:?}, last read {read}"));
        }
    }
}

/// Whether the gap lies in a range of connections that changed at each read, or was read empty.
fn is_doubtful(state: &TeamState, gap: &Finding) -> bool {
    let found = state.findings.iter().map(|(_, finding)| finding);
    let of_connections = found.filter(|finding| finding.stream == Some(Stream::Connections));
    let mut doubtful = of_connections.filter(|f| matches!(f.kind, FindingKind::UnstableWindow | FindingKind::Silence));
    doubtful.any(|range| range.from <= gap.from && gap.to <= range.to)
}

/// The beginning of a gap's unread part.
fn certain_from(gap: &Finding) -> Option<Instant> {
    gap.reason.split_once(" from ")?.1.split_once(" on ")?.0.parse().ok()
}

/// I12, for every stored byte.
fn no_secret(files: &MemoryStore, broken: &mut Vec<String>) {
    use annals::store::Store;
    for listed in files.list("").expect("memory can be listed") {
        let content = files.read(&listed.path).ok().and_then(|blob| blob.to_bytes().ok()).unwrap_or_default();
        if content.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()) {
            broken.push(format!("I12: a secret in {}", listed.path));
        }
    }
}

/// I10: a second reading of everything adds no row.
fn replay(run: &Run, archive: &Archive, broken: &mut Vec<String>) {
    let settings = Settings { rescan_now: true, ..run.plan.settings_at(run.plan.end) };
    let edges = run.edges(Arc::new(archive.clone()), Arc::new(settings));
    let round = run.clock.base.run(edges.read_once()).expect("the service is well");
    for (team, round) in round.teams {
        match round {
            Ok(round) if round.is_done() && round.committed.rows + round.committed.rejects == 0 => {}
            Ok(round) => broken.push(format!("I10: {team} read again: {:?} {:?}", round.committed, round.failures)),
            Err(error) => broken.push(format!("I10: {team} read again: {error}")),
        }
    }
    let _ = run.clock.now();
}

fn note_rare(run: &Run, state: &TeamState) {
    for (_, finding) in &state.findings {
        let is_billing = finding.stream == Some(Stream::Billing);
        let met = match finding.kind {
            FindingKind::Gap if finding.subject == "plan_span" => Rare::SpanGap,
            FindingKind::Gap if is_billing => Rare::BillingGap,
            FindingKind::Gap if finding.subject == "unstable" => Rare::Unstable,
            FindingKind::Gap => Rare::DeviceGap,
            FindingKind::GapClosed => Rare::GapClosed,
            FindingKind::RemovedBefore => Rare::RemovedBefore,
            FindingKind::Late => Rare::Late,
            FindingKind::ChangedUpstream => Rare::Revision,
            FindingKind::NoLongerServed => Rare::NoLongerServed,
            FindingKind::UnstableWindow => Rare::Unstable,
            FindingKind::AmbiguousOverlap => Rare::Ambiguous,
            FindingKind::PagingAnomaly => Rare::Anomaly,
            FindingKind::Quarantined => Rare::Quarantine,
            FindingKind::Redacted => Rare::Redacted,
            FindingKind::ClockRegression => Rare::ClockBack,
            FindingKind::Silence => Rare::Silence,
            FindingKind::NewEventType => Rare::NewType,
            FindingKind::NoConnectionId => Rare::NoConnection,
            FindingKind::DeprecatedHistory => Rare::Deprecated,
            FindingKind::ArchiveBegins
            | FindingKind::QuarantineExpired
            | FindingKind::Released
            | FindingKind::UnknownField => continue,
        };
        run.service.rare(met);
    }
    if !state.sealed_months.is_empty() {
        run.service.rare(Rare::SealedMonth);
    }
    let months = |role: FileRole| -> BTreeSet<&str> {
        let files = state.files.values().filter(|file| file.role == role && file.dataset != Dataset::Sessions);
        files.filter_map(|file| file.path.rsplit_once('/')).map(|(month, _)| month).collect()
    };
    let of_days = months(FileRole::Day);
    if !of_days.is_empty() {
        run.service.rare(Rare::SealedDay);
    }
    if !of_days.is_disjoint(&months(FileRole::Month)) {
        run.service.rare(Rare::MixedMonth);
    }
    let is_of_months =
        |file: &FileEntry| file.first.zip(file.last).is_some_and(|(first, last)| month_of(first) != month_of(last));
    if state.files_of(Dataset::Sessions).any(|file| file.role == FileRole::Month && is_of_months(file)) {
        run.service.rare(Rare::JoinedYear);
    }
}
