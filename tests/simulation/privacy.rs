//! Streams that keep columns only, in some worlds, for the whole life or for one half of it. The law S9: a process with this policy
//! archives no text and no payload, the keyed digest names an event that was served, and the ledger counts these rows.

use std::collections::HashMap;

use annals::archive::TeamState;
use annals::model::path::month_of;
use annals::model::{Detail, Digest, EventRow, Instant, Privacy, RawPolicy, Stream};

use super::erasure::EMAIL;
use super::faults::Rare;
use super::plan::Plan;
use super::random::Draw;
use super::run::Run;
use super::texts::kept;
use super::world::{Event, Team};

/// The policies of both halves of a world's life. A third of the worlds keep columns only, in some streams.
pub fn policies(seed: u64) -> [Privacy; 2] {
    let mut draw = Draw::of(seed, "privacy");
    if !draw.is(35) {
        return [Privacy::default(); 2];
    }
    let mut policy = || draw.pick(&[RawPolicy::Keep, RawPolicy::ColumnsOnly, RawPolicy::ColumnsOnly]);
    let one = Privacy { activity: policy(), connections: policy(), billing: policy() };
    draw.pick(&[[one; 2], [one; 2], [one, Privacy::default()], [Privacy::default(), one]])
}

/// Since when the processes keep no texts, by stream. `None`: the last process keeps texts.
#[derive(Debug, Clone, Copy, Default)]
pub struct ColumnsOnly([Option<Instant>; 3]);

impl ColumnsOnly {
    /// A process begins.
    pub fn begin(&mut self, privacy: Privacy, now: Instant) {
        for stream in Stream::ALL {
            let since = &mut self.0[stream as usize];
            *since = match privacy.of(stream) {
                RawPolicy::Keep => None,
                RawPolicy::ColumnsOnly => since.or(Some(now)),
            };
        }
    }
}

/// The rows of a stream, checked one by one.
pub struct RowLaw<'a> {
    stream: Stream,
    /// The served events by their digest.
    truth: HashMap<Digest, &'a Event>,
    since: Option<Instant>,
    /// Some process may keep columns only.
    may_lack: bool,
    with_text: u64,
    /// The times of the rows without text.
    without_text: Vec<Instant>,
}

impl<'a> RowLaw<'a> {
    pub fn new(run: &Run, team: &'a Team, stream: Stream) -> Self {
        let list = team.lists[stream as usize].iter();
        Self {
            stream,
            truth: list.map(|event| (event.digest, event)).collect(),
            since: run.columns_only.0[stream as usize],
            may_lack: run.plan.drops_texts_of(stream),
            with_text: 0,
            without_text: Vec::new(),
        }
    }

    /// Checks a row, and gives a row without text the text that was served, for the laws that read it. `digest` is that of the
    /// served text.
    pub fn see(&mut self, row: &mut EventRow, digest: Digest, broken: &mut Vec<String>) {
        let event = self.truth.get(&digest);
        let (id, stream) = (row.event_id.clone(), self.stream);
        if row.served_digest.is_none() {
            self.with_text += 1;
            let served = event.and_then(|event| event.served).map(Instant::from_nanos);
            if self.since.is_some_and(|since| served.is_some_and(|at| at >= since)) {
                broken.push(format!(
                    "S9: {stream} {id}, first served at {served:?}, has its text: columns only since {:?}",
                    self.since
                ));
            }
            return;
        }
        self.without_text.push(row.time);
        if !self.may_lack {
            broken.push(format!("S9: {stream} {id} has no text, and the stream keeps texts"));
        }
        let payload = match &row.detail {
            Detail::Activity { payload, .. } | Detail::Billing { payload } => payload.is_some(),
            Detail::Connections(_) => false,
        };
        if payload || !row.raw.is_empty() {
            broken.push(format!("S9: {stream} {id} keeps a part of its text"));
        }
        if let Some(event) = event {
            row.raw = as_archived(event, row).into();
        }
    }

    /// Compares the counts of the ledger, after all rows. Returns a rare state that was met.
    pub fn finish(self, state: &TeamState, broken: &mut Vec<String>) -> Option<Rare> {
        let Self { stream, with_text, without_text, .. } = self;
        for ((of, _), window) in state.windows.iter().filter(|((of, _), _)| *of == stream) {
            let has_expired = state.expired.contains_key(&((*of).into(), month_of(window.range.start).start));
            let found = without_text.iter().filter(|at| window.range.owns(**at)).count() as u64;
            if !has_expired && window.without_text != found {
                let counted = window.without_text;
                broken
                    .push(format!("S9: {of} {}: {found} rows have no text, the ledger counts {counted}", window.range));
            }
        }
        let met = if with_text > 0 { Rare::SomeTexts } else { Rare::NoTexts };
        (!without_text.is_empty()).then_some(met)
    }
}

/// The text of an event without text, with the pseudonym that an order wrote into its columns.
fn as_archived(event: &Event, row: &EventRow) -> String {
    let text = kept(&event.text);
    match &row.detail {
        Detail::Connections(texts) => match texts.detail().peer_email {
            Some(email) => text.replace(EMAIL, &email),
            None => text,
        },
        Detail::Activity { .. } | Detail::Billing { .. } => text,
    }
}

impl Plan {
    /// Whether a process may keep no texts of a stream.
    pub fn drops_texts_of(&self, stream: Stream) -> bool {
        self.policies.iter().any(|privacy| privacy.of(stream) == RawPolicy::ColumnsOnly)
    }
}
