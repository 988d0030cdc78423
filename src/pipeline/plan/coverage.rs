//! The coverage of a stream by its readings. Pure.

use crate::archive::{ReadPoint, StreamRecord, TeamState, WindowRecord, WindowState};
use crate::model::ranges::missing;
use crate::model::{Instant, Stream};
use crate::pipeline::plan::stream_windows::windows_from;

/// The end of the part of a stream that was read at least once. `None` before the backfill. `known`: an uncommitted read point.
pub fn reached(state: &TeamState, stream: Stream, known: Option<ReadPoint>, now: Instant) -> Option<Instant> {
    let record = state.streams.get(&stream)?;
    let begins = record.begins?;
    Some(read_to(record, known).unwrap_or(begins).max(confirmed_edge(state, stream, begins, now)))
}

/// The newest end of a reading of a stream. `known`: an uncommitted read point.
pub fn read_to(record: &StreamRecord, known: Option<ReadPoint>) -> Option<Instant> {
    record.read_points.iter().copied().chain(known).map(|point| point.read_to).max()
}

/// The consecutive windows from `begins` on.
pub fn windows_in_a_row(state: &TeamState, stream: Stream, begins: Instant) -> impl Iterator<Item = &WindowRecord> {
    windows_from(state, stream, begins).scan(begins, |edge, window| {
        let is_next = window.range.start == *edge;
        *edge = window.range.end;
        is_next.then_some(window)
    })
}

/// The end of the consecutive windows from `begins` on that all `hold`.
pub fn edge(state: &TeamState, stream: Stream, begins: Instant, hold: impl Fn(&WindowRecord) -> bool) -> Instant {
    let windows = windows_in_a_row(state, stream, begins).take_while(|window| hold(window));
    windows.last().map_or(begins, |window| window.range.end)
}

/// The end of the consecutive settled windows from `begins` on.
pub fn settled_edge(state: &TeamState, stream: Stream, begins: Instant) -> Instant {
    edge(state, stream, begins, |window| window.state != WindowState::Provisional)
}

/// The end of the confirmed part that begins at `begins`.
fn confirmed_edge(state: &TeamState, stream: Stream, begins: Instant, now: Instant) -> Instant {
    let edge = settled_edge(state, stream, begins);
    let next = state.windows.get(&(stream, edge)).map(|window| missing(window.range, &window.confirmed));
    next.and_then(|open| Some(open.first()?.start)).unwrap_or(edge).min(now)
}
