//! Every event that ever existed, visible or not. Tests compare a reader's archive with it.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::model::{DeviceId, Instant, Stream};

use super::activity::push_activity;
use super::connections::{ConnectionForm, push_connection};
use super::json::{push_hex, push_int, push_string};
use super::overlay::{TextEvent, Withdrawal};
use super::records::Record;
use super::stream_store::Changes;
use super::team::Team;

/// One event and its lifetime: the sandbox serves it from `visible_from` until before `visible_until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruthEvent {
    pub stream: Stream,
    /// The bytes in `history`, `history/devices` or `billing/events`.
    pub raw: Bytes,
    pub at: Instant,
    /// The computer of a connection event.
    pub device: Option<DeviceId>,
    pub visible_from: Instant,
    /// `None`: it is still visible.
    pub visible_until: Option<Instant>,
}

impl TruthEvent {
    /// Writes one line of JSON. The event's bytes are a string, in hexadecimal if they are not UTF-8.
    pub(super) fn push_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"stream\":");
        push_string(out, self.stream.as_str());
        for (name, at) in [
            ("time_ns", Some(self.at)),
            ("visible_from_ns", Some(self.visible_from)),
            ("visible_until_ns", self.visible_until),
        ] {
            if let Some(at) = at {
                out.push(b',');
                push_string(out, name);
                out.push(b':');
                push_int(out, at.nanos());
            }
        }
        if let Some(device) = &self.device {
            out.extend_from_slice(b",\"device\":");
            push_string(out, device.as_str());
        }
        if let Ok(text) = std::str::from_utf8(&self.raw) {
            out.extend_from_slice(b",\"raw\":");
            push_string(out, text);
        } else {
            out.extend_from_slice(b",\"raw_hex\":\"");
            self.raw.iter().for_each(|&byte| push_hex(out, u64::from(byte), 2));
            out.push(b'"');
        }
        out.extend_from_slice(b"}\n");
    }
}

/// The events of one stream of one team at one moment: generated events in time order, then inserted events.
pub struct Truth {
    team: Arc<Team>,
    stream: Stream,
    now: Instant,
    next: u32,
    removed: HashMap<u32, Instant>,
    withdrawals: Vec<Withdrawal>,
    text_events: std::vec::IntoIter<TextEvent>,
}

impl Truth {
    pub(super) fn new(team: Arc<Team>, stream: Stream, now: Instant) -> Self {
        let Changes { text_events, removed, withdrawals } = match stream {
            Stream::Connections => team.connections.changes(),
            Stream::Activity => team.activity.changes(),
            Stream::Billing => {
                let text_events = team.billing().clone();
                Changes { text_events, removed: HashMap::new(), withdrawals: Vec::new() }
            }
        };
        Self { team, stream, now, next: 0, removed, withdrawals, text_events: text_events.into_iter() }
    }

    /// The next generated record that was ever visible.
    fn next_made(&mut self) -> Option<TruthEvent> {
        match self.stream {
            Stream::Billing => None,
            Stream::Connections => loop {
                let record = *self.team.connections.records.base.get(self.next as usize)?;
                let visible_from = self.team.connections.visible_from(record);
                if let Some(event) = self.life(record.at(), visible_from, |truth, out| {
                    push_connection(&truth.team.roster, record, ConnectionForm::Team, out);
                }) {
                    return Some(event);
                }
            },
            Stream::Activity => loop {
                let record = *self.team.activity.records.base.get(self.next as usize)?;
                let visible_from = self.team.activity.visible_from(record);
                if let Some(event) =
                    self.life(record.at(), visible_from, |truth, out| push_activity(&truth.team.roster, record, out))
                {
                    return Some(event);
                }
            },
        }
    }

    /// Reads one record; `None` if it was never visible. With a clock that stands still, a record can appear and
    /// disappear at the same moment.
    fn life(&mut self, at: Instant, visible_from: Instant, render: impl Fn(&Self, &mut Vec<u8>)) -> Option<TruthEvent> {
        let position = self.next;
        self.next += 1;
        let place = match self.stream {
            Stream::Connections => self.team.connections.records.by_computer.computer_at(position),
            _ => None,
        };
        let removed = place.and_then(|place| self.removed.get(&place)).copied();
        let covering = self.withdrawals.iter().filter(|withdrawal| withdrawal.positions.contains(&position));
        let until = covering.map(|withdrawal| withdrawal.at).chain(removed).min();
        if visible_from > self.now || until.is_some_and(|until| until < visible_from) {
            return None;
        }
        let mut raw = Vec::with_capacity(512);
        render(self, &mut raw);
        let device = place.map(|place| self.team.roster.computers[place as usize].id.clone());
        let stream = self.stream;
        Some(TruthEvent { stream, raw: raw.into(), at, device, visible_from, visible_until: until })
    }

    fn next_extra(&mut self) -> Option<TruthEvent> {
        let now = self.now;
        let existed = |extra: &TextEvent| {
            extra.visible_from <= now && extra.visible_until.is_none_or(|until| extra.visible_from <= until)
        };
        let extra = self.text_events.find(existed)?;
        Some(TruthEvent {
            stream: self.stream,
            raw: extra.raw,
            at: extra.at,
            device: extra.device,
            visible_from: extra.visible_from,
            visible_until: extra.visible_until,
        })
    }
}

impl Iterator for Truth {
    type Item = TruthEvent;

    fn next(&mut self) -> Option<TruthEvent> {
        self.next_made().or_else(|| self.next_extra())
    }
}
