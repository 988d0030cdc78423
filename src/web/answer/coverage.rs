//! The coverage of a stream, as ranges of time and as days of a calendar.

use std::time::Duration;

use serde::Serialize;

use crate::model::{Instant, Range, Stream, TeamId};
use crate::report::{CoverageRow, ViewData};

pub const PARAMETERS: [&str; 4] = ["team", "stream", "from", "to"];
pub const DAY: Duration = Duration::from_secs(86_400);

/// The coverage of a range of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CoverageState {
    /// Settled or sealed.
    Complete,
    /// The rows expired under a retention class.
    Expired,
    /// Out of reach of the backfill.
    BeforeArchive,
    /// Read, but not yet confirmed by another read.
    Provisional,
    /// Not read, or not yet.
    NotFetched,
    /// Events were, or may have been, lost.
    Gap,
}

/// A range of time in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StateRange {
    pub from: Instant,
    pub to: Instant,
    pub state: CoverageState,
}

/// A recorded gap; `from` or `to` is missing if unknown.
#[derive(Debug, Clone, Serialize)]
pub struct GapView {
    pub from: Option<Instant>,
    pub to: Option<Instant>,
    pub subject: String,
    pub reason: String,
    pub found_at: Instant,
    /// The ledger line that records the gap.
    pub ledger_seq: u64,
}

/// One stream of one team.
#[derive(Debug, Clone, Serialize)]
pub struct CoverageRanges {
    pub team: String,
    pub stream: Stream,
    /// The start of the archive; `None` before the backfill.
    pub begins: Option<Instant>,
    /// From the start until now, without holes: complete, provisional, not fetched or expired.
    pub stretches: Vec<StateRange>,
    /// The gaps that no later line withdrew, sorted by time.
    pub gaps: Vec<GapView>,
}

impl CoverageRanges {
    pub fn of(data: &ViewData, team: &TeamId, stream: Stream, now: Instant) -> Self {
        let rows = data.coverage.iter().filter(|row| row.team_id == *team && row.window.stream == stream);
        let mut windows: Vec<(Range, CoverageState)> = rows.map(|row| (row.window.range, state_of(row))).collect();
        windows.sort_unstable();
        let length = windows.last().map_or(DAY, |(last, _)| last.end.since(last.start));
        let head = data.teams.iter().find(|head| head.team_id == *team);
        let begins = head.and_then(|head| head.begins.get(&stream).copied());
        let begins = begins.or(windows.first().map(|(range, _)| range.start));
        let mut stretches = Vec::new();
        if let Some(mut edge) = begins {
            for (range, state) in windows {
                push(&mut stretches, edge, range.start, CoverageState::NotFetched);
                push(&mut stretches, range.start.max(edge), range.end, state);
                edge = edge.max(range.end);
            }
            // An open window has no row before its first event.
            let read_to = head.and_then(|head| head.read_to.get(&stream).copied()).unwrap_or(edge);
            let open = window_end(edge, length, read_to).min(now.max(edge));
            push(&mut stretches, edge, open, CoverageState::Provisional);
            push(&mut stretches, open, now, CoverageState::NotFetched);
            // An open window ends in the future, and so does a settled one if the service's clock is ahead of this machine's.
            cut(&mut stretches, Range { start: Instant::EARLIEST, end: now });
        }
        Self { team: team.to_string(), stream, begins, stretches, gaps: gaps(data, team, stream) }
    }

    /// The worst state in `day`; `None` in the future, or before the backfill.
    pub fn state_of(&self, day: Range, now: Instant) -> Option<CoverageState> {
        let begins = self.begins?;
        if day.start >= now {
            return None;
        }
        if self.gaps.iter().any(|gap| gap.touches(day, begins)) {
            return Some(CoverageState::Gap);
        }
        let first = self.stretches.partition_point(|stretch| stretch.to <= day.start);
        let here = self.stretches[first..].iter().take_while(|stretch| stretch.from < day.end);
        let before = (day.start < begins).then_some(CoverageState::BeforeArchive);
        here.map(|stretch| stretch.state).chain(before).max().or(Some(CoverageState::NotFetched))
    }

    /// Only the parts inside `period`.
    pub fn within(mut self, period: Range) -> Self {
        let begins = self.begins.unwrap_or(period.start);
        self.gaps.retain(|gap| gap.touches(period, begins));
        cut(&mut self.stretches, period);
        self
    }
}

/// The end of the window of this length that holds the moment before `read_to`. A window ends at `edge`.
fn window_end(edge: Instant, length: Duration, read_to: Instant) -> Instant {
    let windows = read_to.since(edge).as_nanos().div_ceil(length.as_nanos().max(1));
    edge.plus(length.saturating_mul(u32::try_from(windows).unwrap_or(u32::MAX)))
}

fn state_of(row: &CoverageRow) -> CoverageState {
    match (row.has_expired, row.window.state.into_str()) {
        (true, _) => CoverageState::Expired,
        (false, "provisional") => CoverageState::Provisional,
        (false, _) => CoverageState::Complete,
    }
}

impl GapView {
    /// Whether the gap overlaps `range`, or may. A gap without a start begins with the archive; a gap without an end ends when
    /// it was found.
    pub fn touches(&self, range: Range, begins: Instant) -> bool {
        let (from, to) = (self.from.unwrap_or(begins), self.to.unwrap_or(self.found_at));
        from < range.end && range.start < to || from == to && range.owns(from)
    }
}

fn push(stretches: &mut Vec<StateRange>, from: Instant, to: Instant, state: CoverageState) {
    if from >= to {
        return;
    }
    match stretches.last_mut() {
        Some(last) if last.state == state && last.to == from => last.to = to,
        _ => stretches.push(StateRange { from, to, state }),
    }
}

/// Keeps the parts inside `period`.
fn cut(stretches: &mut Vec<StateRange>, period: Range) {
    stretches.retain_mut(|stretch| {
        (stretch.from, stretch.to) = (stretch.from.max(period.start), stretch.to.min(period.end));
        stretch.from < stretch.to
    });
}

fn gaps(data: &ViewData, team: &TeamId, stream: Stream) -> Vec<GapView> {
    let open_gaps_of = data.open_gaps(team).filter(|row| row.record.stream == Some(stream));
    let mut found: Vec<GapView> = open_gaps_of
        .map(|row| GapView {
            from: row.record.from,
            to: row.record.to,
            subject: row.record.subject.clone(),
            reason: row.record.reason.clone(),
            found_at: row.record.found_at,
            ledger_seq: row.ledger_seq.0,
        })
        .collect();
    found.sort_by_key(|gap| (gap.from, gap.to, gap.ledger_seq));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Digest, LedgerSeq};
    use crate::report::TeamSnapshot;

    fn at(text: &str) -> Instant {
        text.parse().unwrap()
    }

    fn day(text: &str) -> Range {
        let start = at(&format!("{text}T00:00:00Z"));
        Range { start, end: start.plus(DAY) }
    }

    #[test]
    fn a_day_shows_its_worst_state() {
        let mut stretches = Vec::new();
        push(&mut stretches, at("2026-11-02T00:00:00Z"), at("2026-11-03T00:00:00Z"), CoverageState::Complete);
        push(&mut stretches, at("2026-11-03T00:00:00Z"), at("2026-11-05T00:00:00Z"), CoverageState::Complete);
        push(&mut stretches, at("2026-11-05T00:00:00Z"), at("2026-11-05T06:00:00Z"), CoverageState::Provisional);
        push(&mut stretches, at("2026-11-05T06:00:00Z"), at("2026-11-06T08:00:00Z"), CoverageState::NotFetched);
        assert_eq!(stretches.len(), 3, "equal neighbours are one");
        let gap = |from: Option<&str>, to: Option<&str>| GapView {
            from: from.map(at),
            to: to.map(at),
            subject: String::new(),
            reason: String::new(),
            found_at: at("2026-11-04T10:00:00Z"),
            ledger_seq: 1,
        };
        let (team, now) = ("t".to_owned(), at("2026-11-06T08:00:00Z"));
        let begins = Some(at("2026-11-02T00:00:00Z"));
        let mut cover = CoverageRanges { team, stream: Stream::Activity, begins, stretches, gaps: Vec::new() };
        let states = |cover: &CoverageRanges| {
            ["2026-11-01", "2026-11-02", "2026-11-04", "2026-11-05", "2026-11-06", "2026-11-07"]
                .map(|text| cover.state_of(day(text), now))
        };
        let expected = [
            Some(CoverageState::BeforeArchive),
            Some(CoverageState::Complete),
            Some(CoverageState::Complete),
            Some(CoverageState::NotFetched),
            Some(CoverageState::NotFetched),
            None,
        ];
        assert_eq!(states(&cover), expected);
        cover.begins = Some(at("2026-11-02T12:00:00Z"));
        let before = Some(CoverageState::BeforeArchive);
        assert_eq!(states(&cover)[..3], [before, before, Some(CoverageState::Complete)], "the archive begins at noon");
        cover.begins = begins;
        cover.gaps = vec![gap(Some("2026-11-04T09:00:00Z"), None)];
        assert_eq!(states(&cover)[2], Some(CoverageState::Gap), "until it was found");
        assert_eq!(states(&cover)[1], Some(CoverageState::Complete));
        cover.gaps = vec![gap(None, Some("2026-11-02T09:00:00Z"))];
        assert_eq!(
            states(&cover)[..3],
            [Some(CoverageState::BeforeArchive), Some(CoverageState::Gap), Some(CoverageState::Complete)]
        );
        let moment = Some("2026-11-03T00:00:00Z");
        cover.gaps = vec![gap(moment, moment)];
        assert_eq!(cover.state_of(day("2026-11-03"), now), Some(CoverageState::Gap), "a gap of one moment");
        assert_eq!(cover.state_of(day("2026-11-02"), now), Some(CoverageState::Complete));
    }

    /// A stream without events has no row of its open window.
    #[test]
    fn an_open_window_without_events_is_provisional() {
        let (begins, read_to) = (at("2026-11-06T00:00:00Z"), at("2026-11-06T07:00:00Z"));
        let team = TeamSnapshot {
            team_id: "t".into(),
            seq: LedgerSeq(1),
            head: Digest::default(),
            begins: [(Stream::Billing, begins)].into(),
            read_to: [(Stream::Billing, read_to)].into(),
            sessions_lack: None,
        };
        let data = ViewData { teams: vec![team], ..ViewData::default() };
        let until = |now| CoverageRanges::of(&data, &"t".into(), Stream::Billing, now).stretches;
        let range = |from, to, state| StateRange { from, to, state };
        let (soon, later, midnight) =
            (at("2026-11-06T08:00:00Z"), at("2026-11-08T08:00:00Z"), at("2026-11-07T00:00:00Z"));
        assert_eq!(until(soon), [range(begins, soon, CoverageState::Provisional)]);
        let unread = range(midnight, later, CoverageState::NotFetched);
        assert_eq!(until(later), [range(begins, midnight, CoverageState::Provisional), unread]);
    }

    /// The service's clock, which settles windows, can be ahead of this machine's.
    #[test]
    fn no_part_of_the_future_is_covered() {
        let row = |start: &str, state| {
            let (start, end) = (at(start), at(start).plus(DAY));
            let window = serde_json::json!({"stream": "activity", "start": start, "end": end, "state": state,
                "reads": 2, "requests": 4, "events": 0, "late": 0, "rescans": 0});
            let row = serde_json::json!({"team_id": "t", "gaps": 0, "window": window});
            serde_json::from_value::<CoverageRow>(row).unwrap()
        };
        let coverage = vec![row("2026-11-05T00:00:00Z", "settled"), row("2026-11-06T00:00:00Z", "provisional")];
        let data = ViewData { coverage, ..ViewData::default() };
        for (now, last) in
            [("2026-11-05T23:50:00Z", CoverageState::Complete), ("2026-11-06T07:00:00Z", CoverageState::Provisional)]
        {
            let stretches = CoverageRanges::of(&data, &"t".into(), Stream::Activity, at(now)).stretches;
            assert_eq!(stretches.last().map(|stretch| (stretch.to, stretch.state)), Some((at(now), last)));
        }
    }

    #[test]
    fn an_open_window_ends_with_its_length() {
        let edge = at("2026-11-05T00:00:00Z");
        for (hours, read_to, end) in [
            (24, "2026-11-04T23:00:00Z", "2026-11-05T00:00:00Z"),
            (24, "2026-11-05T00:00:00Z", "2026-11-05T00:00:00Z"),
            (24, "2026-11-05T00:00:01Z", "2026-11-06T00:00:00Z"),
            (24, "2026-11-07T00:00:00Z", "2026-11-07T00:00:00Z"),
            (1, "2026-11-05T02:30:00Z", "2026-11-05T03:00:00Z"),
        ] {
            let length = Duration::from_secs(hours * 3_600);
            assert_eq!(window_end(edge, length, at(read_to)), at(end), "{hours} hours, {read_to}");
        }
    }

    #[test]
    fn stretches_are_limited_to_a_period() {
        let mut stretches = Vec::new();
        push(&mut stretches, at("2026-11-02T00:00:00Z"), at("2026-11-05T00:00:00Z"), CoverageState::Complete);
        push(&mut stretches, at("2026-11-05T00:00:00Z"), at("2026-11-06T00:00:00Z"), CoverageState::Provisional);
        let cover =
            CoverageRanges { team: "t".into(), stream: Stream::Activity, begins: None, stretches, gaps: Vec::new() };
        let cut = cover.within(Range { start: at("2026-11-03T00:00:00Z"), end: at("2026-11-04T00:00:00Z") });
        let expected = StateRange {
            from: at("2026-11-03T00:00:00Z"),
            to: at("2026-11-04T00:00:00Z"),
            state: CoverageState::Complete,
        };
        assert_eq!(cut.stretches, [expected]);
    }
}
