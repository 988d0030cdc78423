//! Random histories of an archive: polls, settled windows, late events, sealed days and months, replaced sessions,
//! quarantine, scans of computers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{
    Archive, Body, Draft, SessionsDraft, SessionsMark, TeamWriter, WindowRecord, WindowRows, WindowState,
};
use annals::model::path::month_of;
use annals::model::{
    ConnectionDetail, Detail, EventRow, Instant, InventoryKind, InventoryPart, InventoryRow, InventoryValue, Range,
    RejectRow, SessionOutcome, SessionRow, SessionTexts, Stream, TeamId, WindowGrid,
};
use annals::store::Store;
use fastrand::Rng;

pub const TEAMS: [&str; 2] = ["acme", "Zürich & sons"];
const DAY: Duration = Duration::from_secs(86_400);
const STREAMS: [Stream; 3] = [Stream::Connections, Stream::Activity, Stream::Billing];

/// An archive, its writers, and the position in its history.
pub struct History {
    pub archive: Archive,
    writers: Vec<TeamWriter>,
    rng: Rng,
    /// The currently polled day.
    today: Instant,
    /// Settled days by team and stream; true: also sealed.
    days: BTreeMap<(usize, Stream, Instant), bool>,
    events: u64,
}

impl History {
    pub fn new(store: Arc<dyn Store>, seed: u64) -> Self {
        let archive = Archive::open_or_create(store, || format!("archive-{seed}")).unwrap();
        let writers = TEAMS.iter().map(|team| archive.writer(&TeamId::from(*team)).unwrap()).collect();
        let today = "2026-10-29T00:00:00Z".parse().unwrap();
        Self { archive, writers, rng: Rng::with_seed(seed), today, days: BTreeMap::new(), events: 0 }
    }

    /// One random commit of one team.
    pub fn step(&mut self) {
        let team = self.rng.usize(..TEAMS.len());
        let stream = STREAMS[self.rng.usize(..STREAMS.len())];
        let draft = match self.rng.u8(..14) {
            0..4 => self.poll(team, stream),
            4..6 => self.settle(team, stream),
            6..8 => self.late(team, stream),
            8 => self.seal_day(team, stream),
            9 => self.seal_month(team, stream),
            10 => self.sessions(team),
            11 => self.quarantine(team, stream),
            _ => self.inventory(),
        };
        if !draft.is_empty() {
            let draft = self.with_sessions_behind(team, draft);
            let _ = self.writers[team].commit(draft, self.today).unwrap();
        }
    }

    /// Removes files that no line names.
    pub fn vacuum(&mut self) {
        self.writers.iter_mut().for_each(|writer| drop(writer.vacuum(self.today).unwrap()));
    }

    fn poll(&mut self, team: usize, stream: Stream) -> Draft {
        let count = self.rng.u64(1..40);
        let (window, rows) = (window(self.today), self.events_of(team, stream, self.today, count));
        match self.days.contains_key(&(team, stream, window.start)) {
            true => self.settle(team, stream),
            false => Draft { rows: vec![WindowRows::new(stream, window, rows, false)], ..Draft::default() },
        }
    }

    fn settle(&mut self, team: usize, stream: Stream) -> Draft {
        let start = self.today;
        self.today = start.plus(DAY);
        if self.days.insert((team, stream, start), false).is_some() {
            return Draft::default();
        }
        let count = self.rng.u64(1..20);
        let rows = vec![WindowRows::new(stream, window(start), self.events_of(team, stream, start, count), true)];
        Draft { body: Body { windows: vec![sealed(stream, start)], ..Body::default() }, rows, ..Draft::default() }
    }

    /// Adds late events to a day that is settled, sealed, or in a sealed month.
    fn late(&mut self, team: usize, stream: Stream) -> Draft {
        let days: Vec<Instant> =
            self.days.keys().filter(|key| (key.0, key.1) == (team, stream)).map(|key| key.2).collect();
        let Some(day) = self.rng.choice(&days).copied() else { return Draft::default() };
        let count = self.rng.u64(1..4);
        let rows = self.events_of(team, stream, day, count);
        Draft { rows: vec![WindowRows::new(stream, window(day), rows, false)], ..Draft::default() }
    }

    fn seal_day(&mut self, team: usize, stream: Stream) -> Draft {
        let is_open = |month: Instant| !self.writers[team].state().sealed_months.contains(&(stream, month));
        let found = self.days.iter().find(|((of, in_stream, day), is_sealed)| {
            !**is_sealed && (*of, *in_stream) == (team, stream) && is_open(day.first_of_month())
        });
        let Some(key) = found.map(|(key, _)| *key) else { return Draft::default() };
        self.days.insert(key, true);
        Draft::from(Body { sealed_days: vec![(stream, window(key.2))], ..Body::default() })
    }

    fn seal_month(&mut self, team: usize, stream: Stream) -> Draft {
        let month = month_of(self.today.minus(Duration::from_secs(31 * 86_400)));
        let state = self.writers[team].state();
        let has_days = self.days.keys().any(|key| (key.0, key.1) == (team, stream) && month.owns(key.2));
        match has_days && !state.sealed_months.contains(&(stream, month.start)) {
            true => Draft::from(Body { sealed_months: vec![(stream, month)], ..Body::default() }),
            false => Draft::default(),
        }
    }

    /// Makes all sessions again from the current events.
    fn sessions(&mut self, team: usize) -> Draft {
        let count = self.rng.u64(1..60);
        let rows = self.events_of(team, Stream::Connections, self.today, count);
        let mut sessions = rows.iter().map(session);
        let open = sessions.by_ref().take(self.rng.usize(..10)).collect();
        let draft = SessionsDraft {
            mark: SessionsMark { rules: 1, through: None, until: None },
            is_anew: true,
            open,
            finished: sessions.collect(),
            replaced: BTreeMap::new(),
        };
        Draft { sessions: Some(draft), ..Draft::default() }
    }

    /// Marks the sessions of new connections as not derived yet.
    fn with_sessions_behind(&self, team: usize, mut draft: Draft) -> Draft {
        let of_connections = draft.rows.iter().filter(|window| window.stream == Stream::Connections);
        let first = of_connections.flat_map(|window| &window.rows).map(|row| row.time).min();
        if let Some(first) = first {
            let through =
                self.writers[team].state().sessions.and_then(|mark| mark.through).map_or(first, |at| at.min(first));
            draft.sessions = Some(SessionsDraft {
                mark: SessionsMark { rules: 1, through: Some(through), until: None },
                is_anew: false,
                open: Vec::new(),
                finished: Vec::new(),
                replaced: BTreeMap::new(),
            });
        }
        draft
    }

    fn quarantine(&mut self, team: usize, stream: Stream) -> Draft {
        let rejects = self.events_of(team, stream, self.today, 2).into_iter().map(|row| RejectRow {
            team_id: row.team_id,
            stream,
            event_id: row.event_id,
            time: self.rng.bool().then_some(row.time),
            reason: "time_out_of_range".to_owned(),
            detail: "an impossible time".to_owned(),
            first_seen_at: row.first_seen_at,
            redacted: false,
            raw: vec![0xff, 0x00, b'{'].into(),
            erased: None,
        });
        Draft { rejects: rejects.collect(), ..Draft::default() }
    }

    /// Computers as a later scan shows them.
    fn inventory(&mut self) -> Draft {
        self.events += 1;
        let seen_at = self.today.nanos() / 1_000 + i64::try_from(self.events).unwrap();
        let computer = |number: u64| InventoryRow {
            key: vec![format!("computer-{number}")],
            seen_at,
            present: number != 1,
            repeats: false,
            values: InventoryPart::Computers.columns().iter().map(|column| value(column.kind, number)).collect(),
        };
        let rows = (0..self.rng.u64(1..20)).map(computer).collect();
        Draft { inventory: vec![(InventoryPart::Computers, rows)], ..Draft::default() }
    }

    fn events_of(&mut self, team: usize, stream: Stream, day: Instant, count: u64) -> Vec<EventRow> {
        (0..count).map(|_| self.event(team, stream, day)).collect()
    }

    fn event(&mut self, team: usize, stream: Stream, day: Instant) -> EventRow {
        self.events += 1;
        let number = self.events;
        let detail = ConnectionDetail {
            connection_id: Some(format!("connection-{}", number / 3).as_str().into()),
            peer_email: number.is_multiple_of(2).then(|| "Ünïcode@example.com".into()),
            ..ConnectionDetail::default()
        };
        let detail = match stream {
            Stream::Connections => Detail::Connections(detail.into()),
            Stream::Activity => Detail::Activity { token_info: None, payload: Some("{\"a\": 1}".into()) },
            Stream::Billing => Detail::Billing { payload: Some("{\"price\": 1}".into()) },
        };
        EventRow {
            team_id: TeamId::from(TEAMS[team]),
            event_id: format!("event-{number:06}").as_str().into(),
            // A bound must not round these nanoseconds up.
            time: day.plus(Duration::from_nanos(self.rng.u64(..86_400_000_000_000))),
            event_type: "connectionClosedEvent".into(),
            revision: 1,
            first_seen_at: day,
            redacted: false,
            raw: format!("{{\"id\":\"event-{number:06}\",\"ü\":\"\u{1F980}\"}}").into(),
            detail,
            served_digest: None,
        }
    }
}

fn value(kind: InventoryKind, number: u64) -> InventoryValue {
    let number = i64::try_from(number).unwrap();
    match kind {
        _ if number == 2 => InventoryValue::Unknown,
        InventoryKind::Text => InventoryValue::Text(format!("text {number}")),
        InventoryKind::Int => InventoryValue::Int(number),
        InventoryKind::Flag => InventoryValue::Flag(number % 2 == 0),
        InventoryKind::Time => InventoryValue::Time(number),
    }
}

fn window(day: Instant) -> Range {
    WindowGrid::new(DAY).window_of(day)
}

fn sealed(stream: Stream, start: Instant) -> WindowRecord {
    WindowRecord {
        state: WindowState::Sealed,
        reads: 2,
        requests: 4,
        events: 0,
        settled_at: Some(start),
        confirmed_at: Some(start),
        rescans: 3,
        ..WindowRecord::new(stream, window(start))
    }
}

/// A session with the times of one event.
fn session(row: &EventRow) -> SessionRow {
    SessionRow {
        team_id: row.team_id.clone(),
        connection_id: row.event_id.as_str().into(),
        requested_at: Some(row.time),
        established_at: None,
        authenticated_at: None,
        closed_at: None,
        first_event_at: row.time,
        last_event_at: row.time,
        duration_ms: None,
        outcome: SessionOutcome::RequestedOnly,
        failed_attempts: 0,
        failure_reasons: None,
        details: SessionTexts::new(std::array::from_fn(|_| None)),
        event_count: 1,
        conflicts: None,
    }
}
