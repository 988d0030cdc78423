//! The generated records of one stream in time order, and which of them a listing asks for.

use bytes::Bytes;

use crate::model::{DeviceId, Instant};

use super::seed::short;

/// A compact record. `Ord` gives the order of the stream.
pub(super) trait Record: Copy + Ord + Send + Sync {
    fn at(self) -> Instant;
    /// A number that identifies the record; twins have the same number.
    fn name(self) -> u64;
}

/// The positions of each computer's records: one list, divided by computer.
#[derive(Default)]
pub(super) struct ByComputer {
    places: Vec<u16>,
    starts: Vec<u32>,
    positions: Vec<u32>,
}

impl ByComputer {
    /// `places` holds the computer of each record in the stream's order; `computers` is the number of computers.
    pub(super) fn new(places: Vec<u16>, computers: usize) -> Self {
        let mut starts = vec![0u32; computers + 1];
        for &place in &places {
            starts[usize::from(place) + 1] += 1;
        }
        for place in 0..computers {
            starts[place + 1] += starts[place];
        }
        let mut next = starts.clone();
        let mut positions = vec![0u32; places.len()];
        for (position, &place) in (0u32..).zip(&places) {
            let slot = &mut next[usize::from(place)];
            positions[*slot as usize] = position;
            *slot += 1;
        }
        Self { places, starts, positions }
    }

    pub(super) fn of(&self, computer: u32) -> &[u32] {
        let place = computer as usize;
        match (self.starts.get(place), self.starts.get(place + 1)) {
            (Some(&start), Some(&end)) => &self.positions[start as usize..end as usize],
            _ => &[],
        }
    }

    pub(super) fn computer_at(&self, position: u32) -> Option<u32> {
        self.places.get(position as usize).map(|&place| u32::from(place))
    }
}

/// Generated records, sorted, with their computers.
pub(super) struct Records<R> {
    pub base: Vec<R>,
    pub by_computer: ByComputer,
}

impl<R: Record> Records<R> {
    /// The first position at or after a time.
    pub(super) fn position_of(&self, at: Instant) -> u32 {
        short(self.base.partition_point(|record| record.at() < at))
    }
}

/// The filter of a listing, before paging.
pub(super) struct Listing {
    /// Half-open, to the nanosecond.
    pub from: Instant,
    pub end: Instant,
    /// Only events of these computers: positions for records, ids for inserted events.
    pub computers: Option<Vec<(Option<u32>, DeviceId)>>,
}

/// The page of a listing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub offset: u64,
    pub limit: usize,
    pub newest_first: bool,
    pub neighbours_swapped: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Item<R> {
    Record(R),
    Text(Bytes),
}
