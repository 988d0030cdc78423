//! Events of one window that were read together, and wait for their commit.

use bytes::Bytes;

use crate::archive::{ColumnsBuilder, EventColumns, Salts};
use crate::collect::Counted;
use crate::model::{Instant, Stream};
use crate::normalize::with_first_row;

/// Events, and what becomes of them should each be the first of its id and content.
#[derive(Debug)]
pub struct Piece {
    /// While there are columns, those of the events that stand in them have their text there alone.
    events: Vec<Counted>,
    ahead: Option<Ahead>,
}

/// Rows that were made before it is known which are new.
#[derive(Debug)]
struct Ahead {
    columns: EventColumns,
    /// The places of the events in the columns' order.
    places: Vec<usize>,
    /// Those that cannot be rows.
    rejects: Vec<usize>,
}

impl From<Vec<Counted>> for Piece {
    fn from(events: Vec<Counted>) -> Self {
        Self { events, ahead: None }
    }
}

impl Piece {
    /// In the order served. Their text may be elsewhere: see [`Piece::into_events`].
    pub fn events(&self) -> &[Counted] {
        &self.events
    }

    pub fn into_events(mut self) -> Vec<Counted> {
        self.put_back();
        self.events
    }

    /// The events with their texts; columns are given up.
    pub fn put_back(&mut self) -> &[Counted] {
        if let Some(Ahead { columns, places, .. }) = self.ahead.take() {
            for (place, row) in places.into_iter().zip(columns.rows()) {
                self.events[place].event.text = Bytes::copy_from_slice(row.raw.as_bytes());
            }
        }
        &self.events
    }

    /// The rows of the events as columns, where they were made.
    pub fn columns(&self) -> Option<&EventColumns> {
        self.ahead.as_ref().map(|ahead| &ahead.columns)
    }

    /// Takes the columns, and the events that are not among them as they cannot be rows.
    pub fn take_columns(&mut self) -> Option<(EventColumns, Vec<Counted>)> {
        let Ahead { columns, rejects, .. } = self.ahead.take()?;
        Some((columns, rejects.into_iter().map(|place| self.events[place].clone()).collect()))
    }

    /// Makes the columns, where it can be seen that each event would be a row of its own. `first_seen_at` is the moment of the
    /// answer that brought them.
    pub fn make_columns(&mut self, salts: &Salts, stream: Stream, first_seen_at: Instant) {
        if self.ahead.is_some() || self.events.iter().any(|held| held.count != 1) {
            return;
        }
        let mut order: Vec<usize> = (0..self.events.len()).collect();
        order.sort_by_key(|place| {
            let event = &self.events[*place].event;
            (event.at(), &event.id, event.digest)
        });
        let bytes = self.events.iter().map(|held| held.event.text.len()).sum();
        let mut builder = ColumnsBuilder::new(salts, stream, (order.len(), bytes));
        let (mut places, mut rejects) = (Vec::with_capacity(order.len()), Vec::new());
        for place in order {
            match with_first_row(salts.team(), stream, &self.events[place].event, first_seen_at, |row| {
                builder.add(&row)
            }) {
                Some(Ok(())) => places.push(place),
                // Two of one id at one time, or of ids in another order than their contents: what they are is found row by row.
                Some(Err(_)) => return,
                None => rejects.push(place),
            }
        }
        let Ok(Some(columns)) = builder.finish() else { return };
        rejects.sort_unstable();
        places.iter().for_each(|place| self.events[*place].event.text = Bytes::new());
        self.ahead = Some(Ahead { columns, places, rejects });
    }

    /// Events that `is_one` and others, each in the order served.
    pub fn partition(self, is_one: impl Fn(&Counted) -> bool) -> (Self, Self) {
        let is_one = &is_one;
        match (self.events.iter().all(is_one), self.events.iter().any(is_one)) {
            (true, _) => (self, Vec::new().into()),
            (_, false) => (Vec::new().into(), self),
            _ => {
                let (ones, others): (Vec<_>, Vec<_>) = self.into_events().into_iter().partition(is_one);
                (ones.into(), others.into())
            }
        }
    }
}
