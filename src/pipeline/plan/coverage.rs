//! How far a stream is read. Pure.

use crate::archive::{ReadPoint, TeamState, WindowRecord, WindowState};
use crate::model::{Instant, Stream};

use super::ranges::missing;

/// The end of the part of a stream that was read at least once. `None` before the first reading. `known`: an uncommitted read
/// point.
pub fn reached(state: &TeamState, stream: Stream, known: Option<ReadPoint>, now: Instant) -> Option<Instant> {
    let record = state.streams.get(&stream)?;
    let begins = record.begins?;
    let points = record.read_points.iter().copied().chain(known);
    Some(points.map(|point| point.read_to).max().unwrap_or(begins).max(confirmed_edge(state, stream, begins, now)))
}

/// The windows from `begins` on that follow one another without a break.
pub fn windows_in_a_row(state: &TeamState, stream: Stream, begins: Instant) -> impl Iterator<Item = &WindowRecord> {
    let windows =
        state.windows.range((stream, begins)..).map_while(move |((of, _), window)| (*of == stream).then_some(window));
    windows.scan(begins, |edge, window| {
        let is_next = window.range.start == *edge;
        *edge = window.range.end;
        is_next.then_some(window)
    })
}

/// The end of the part since `begins` that is confirmed without a break.
fn confirmed_edge(state: &TeamState, stream: Stream, begins: Instant, now: Instant) -> Instant {
    let mut edge = begins;
    for window in windows_in_a_row(state, stream, begins) {
        if window.state == WindowState::Provisional {
            let open = missing(window.range, &window.confirmed);
            return open.first().map_or(edge, |open| open.start).min(now);
        }
        edge = window.range.end;
    }
    edge.min(now)
}

/// The newest end of a reading among `points`.
pub fn read_to(points: &[ReadPoint]) -> Option<Instant> {
    points.iter().map(|point| point.read_to).max()
}
