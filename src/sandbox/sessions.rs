//! Plans one connection from its request to its close: which events happen, and when. Another file writes the JSON.
//!
//! The day and a number in the day identify a connection. So a day's events do not depend on where the history begins or
//! ends: two sandboxes with one seed agree where they overlap.

use crate::model::Instant;

use super::records::Record;
use super::roster::Roster;
use super::seed::{SeededRandom, index, mix, mix2};

pub(super) const DAY_MS: i64 = 86_400_000;
/// Numbers from this one on belong to a dense second.
const DENSE_FROM: u64 = 1 << 30;
const ATTEMPTS_MAX: u64 = 5;

/// Identifies a connection within its team: the day since the epoch, and the number in the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SessionKey(u64);

impl SessionKey {
    fn new(day: i64, number: u64) -> Self {
        let day = u64::try_from(day).expect("BUG: the sandbox's days lie after 1970");
        Self(day << 32 | number)
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }

    fn is_dense(self) -> bool {
        self.0 & DENSE_FROM != 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionKind {
    Requested = 0,
    Established = 1,
    AuthFailed = 2,
    AuthSucceeded = 3,
    /// An undocumented type.
    Unknown = 4,
    Closed = 5,
}

/// One connection event in sixteen bytes: time, kind and attempt, and the connection. Sorted by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionRecord {
    when: u64,
    pub session: SessionKey,
}

impl ConnectionRecord {
    fn new(at_ms: i64, kind: ConnectionKind, attempt: u64, session: SessionKey) -> Self {
        let at = u64::try_from(at_ms).expect("BUG: the sandbox's days lie after 1970");
        Self { when: at << 8 | (kind as u64) << 4 | attempt, session }
    }

    pub(super) fn at_ms(self) -> i64 {
        i64::try_from(self.when >> 8).expect("BUG: 56 bits fit 63")
    }

    pub(super) fn kind(self) -> ConnectionKind {
        match (self.when >> 4) & 0xf {
            0 => ConnectionKind::Requested,
            1 => ConnectionKind::Established,
            2 => ConnectionKind::AuthFailed,
            3 => ConnectionKind::AuthSucceeded,
            4 => ConnectionKind::Unknown,
            _ => ConnectionKind::Closed,
        }
    }

    /// Tells this event from the others of its connection.
    pub(super) fn step(self) -> u64 {
        self.when & 0xff
    }
}

impl Record for ConnectionRecord {
    fn at(self) -> Instant {
        Instant::from_nanos(self.at_ms() * 1_000_000)
    }

    fn name(self) -> u64 {
        mix2(self.session.number(), self.step())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tunnel {
    Fluid,
    Rdp,
    Vnc,
    Unknown,
}

impl Tunnel {
    pub(super) fn name(self) -> &'static str {
        match self {
            Tunnel::Fluid => "fluid",
            Tunnel::Rdp => "rdp",
            Tunnel::Vnc => "vnc",
            Tunnel::Unknown => "unknown",
        }
    }
}

/// The properties that all events of a connection share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traits {
    /// The seed of all other properties of the connection.
    pub seed: u64,
    pub computer: u16,
    pub person: u16,
    pub tunnel: Tunnel,
}

pub(super) fn traits(roster: &Roster, key: SessionKey) -> Traits {
    let seed = mix2(roster.seed, key.0);
    let computers = roster.computers.len();
    if key.is_dense() {
        let day = mix2(roster.seed, key.0 >> 32);
        let person = narrow(index(mix(day), roster.people.len()));
        // Skip the last computer: its host name is very long, and a dense second would repeat it a thousand times.
        let computer = narrow(index(day, computers.saturating_sub(1)));
        return Traits { seed, computer, person, tunnel: Tunnel::Fluid };
    }
    let mut random = SeededRandom::new(seed);
    // The lower of two random numbers: some computers are far busier than others.
    let computer = random.place(computers).min(random.place(computers));
    let users = &roster.computers[computer].users;
    let person = if random.per_mille(850) { *random.pick(users) } else { random.place(roster.people.len()) };
    let tunnel = match random.below(100) {
        0..66 => Tunnel::Fluid,
        66..84 => Tunnel::Rdp,
        84..96 => Tunnel::Vnc,
        _ => Tunnel::Unknown,
    };
    Traits { seed, computer: narrow(computer), person: narrow(person), tunnel }
}

/// A position among a team's people or computers. The start checks that it fits into 16 bits.
fn narrow(place: usize) -> u16 {
    u16::try_from(place).expect("BUG: a team has fewer than 2^16 people and computers")
}

/// How many connections begin on a day: fewer at weekends, and `mean` on average over a week.
fn sessions_on(day: i64, mean: u32) -> u64 {
    let weekday = (day + 4).rem_euclid(7);
    let eighths = if weekday == 0 || weekday == 6 { 3 } else { 10 };
    let exact = u64::from(mean) * eighths;
    // Five days of 10/8 and two of 3/8 make seven days.
    exact.div_ceil(8)
}

/// All events of the connections that begin on `day`, unsorted.
pub(super) fn plan_day(roster: &Roster, day: i64, mean: u32, dense_every_days: u32, out: &mut Vec<ConnectionRecord>) {
    for number in 0..sessions_on(day, mean) {
        plan_session(roster, SessionKey::new(day, number), day, out);
    }
    if dense_every_days > 0
        && mean > 0
        && mix2(roster.seed, day.unsigned_abs()).is_multiple_of(u64::from(dense_every_days))
    {
        plan_dense_second(roster, day, out);
    }
}

/// A machine guesses passwords: one request and two failures for each connection, all within one second.
fn plan_dense_second(roster: &Roster, day: i64, out: &mut Vec<ConnectionRecord>) {
    let mut random = SeededRandom::new(mix2(mix2(roster.seed, 0xde5e), day.unsigned_abs()));
    let second = day * DAY_MS + random.span(0, 86_400) * 1000;
    for number in 0..random.between(380, 560) {
        let key = SessionKey::new(day, DENSE_FROM + number);
        let at = second + random.span(0, 1000);
        out.push(ConnectionRecord::new(at, ConnectionKind::Requested, 0, key));
        for attempt in 0..2 {
            let later = (at + random.span(0, 20)).min(second + 999);
            out.push(ConnectionRecord::new(later, ConnectionKind::AuthFailed, attempt, key));
        }
    }
}

fn plan_session(roster: &Roster, key: SessionKey, day: i64, out: &mut Vec<ConnectionRecord>) {
    use ConnectionKind::{AuthFailed, AuthSucceeded, Closed, Established, Requested, Unknown};
    let who = traits(roster, key);
    let mut random = SeededRandom::new(mix2(who.seed, 0x91a4));
    let mut at = day * DAY_MS + start_of_day_ms(roster.people[usize::from(who.person)].zone_minutes, &mut random);
    let mut push = |at: i64, kind, attempt| out.push(ConnectionRecord::new(at, kind, attempt, key));
    if !random.per_mille(40) {
        push(at, Requested, 0);
    }
    if random.per_mille(55) {
        return; // never answered
    }
    at += random.span(80, 6_000);
    push(at, Established, 0);
    let refused = who.tunnel == Tunnel::Fluid && random.per_mille(45);
    if who.tunnel == Tunnel::Fluid {
        let failures = if refused { random.between(1, ATTEMPTS_MAX + 1) } else { random.below(12).saturating_sub(9) };
        for attempt in 0..failures {
            at += random.span(900, 20_000);
            push(at, AuthFailed, attempt);
        }
        at += random.span(300, 9_000);
        if !refused {
            push(at, AuthSucceeded, 0);
        }
    }
    let length = if refused { random.span(1, 900) } else { length_ms(&mut random) };
    if random.per_mille(2) {
        push(at + length / 2, Unknown, 0);
    }
    if !random.per_mille(30) {
        push(at + length, Closed, 0);
    }
}

/// Mostly in the person's working hours, moved into the UTC day.
fn start_of_day_ms(zone_minutes: i64, random: &mut SeededRandom) -> i64 {
    if random.per_mille(120) {
        return random.span(0, DAY_MS);
    }
    let local = 8 * 3_600_000 + random.span(0, 5 * 3_600_000) + random.span(0, 5 * 3_600_000);
    (local - zone_minutes * 60_000).rem_euclid(DAY_MS)
}

/// A duration from seconds to three weeks.
fn length_ms(random: &mut SeededRandom) -> i64 {
    let (low, high) = match random.below(100) {
        0..10 => (800, 40_000),
        10..66 => (60_000, 45 * 60_000),
        66..94 => (45 * 60_000, 9 * 3_600_000),
        94..99 => (9 * 3_600_000, 3 * 86_400_000),
        _ => (3 * 86_400_000, 21 * 86_400_000),
    };
    random.span(low, high)
}
