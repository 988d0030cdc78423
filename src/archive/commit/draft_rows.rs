//! The new rows of a draft, by window: checked, sorted, and as columns; and the digest of the draft. A writer recognises a
//! repeated draft by it.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use rayon::prelude::*;
use serde::Serialize;

use crate::model::{Digest, EventRow, Instant, Range, Stream, TeamId};

use crate::archive::ledger::rows_sum::RowsSum;
use crate::archive::salts::{Salt, Salts};
use crate::archive::table::event_batches;
use crate::archive::{Draft, SessionsDraft, WindowRows};

/// Fewer rows do not justify a thread.
const ROWS_A_THREAD_MIN: usize = 4_000;

/// All new rows of one window of a draft, in sorted batches.
pub struct WindowBatches {
    pub window: Range,
    pub compact: bool,
    pub batches: Vec<RecordBatch>,
    pub sum: RowsSum,
}

/// New rows, by stream and start of their window.
pub type NewWindows = BTreeMap<(Stream, Instant), WindowBatches>;

/// Joins the new rows of each window, and converts them to columns.
///
/// # Errors
/// When a row belongs to another team or window, is there twice, or has no column for a value; when a salt is lost.
pub fn new_windows(team: &TeamId, drafts: Vec<WindowRows>, salts: &Salts) -> Result<NewWindows, String> {
    let mut windows: BTreeMap<(Stream, Instant), WindowRows> = BTreeMap::new();
    for new in drafts {
        check_place(team, &new)?;
        let (stream, window) = (new.stream, new.window);
        match windows.get_mut(&(stream, window.start)) {
            None => drop(windows.insert((stream, window.start), new)),
            Some(held) if held.window == window => {
                held.rows.extend(new.rows);
                held.compact |= new.compact;
            }
            Some(held) => {
                let held = held.window;
                return Err(format!(
                    "the draft holds different windows {stream}{held} and {stream}{window} with the same start"
                ));
            }
        }
    }
    let columns = |(place, new): ((Stream, Instant), WindowRows)| {
        let WindowRows { stream, window, rows, compact } = new;
        let (batches, sum) = event_batches(stream, &sorted(rows)?, salts)?;
        Ok((place, WindowBatches { window, compact, batches, sum }))
    };
    let rows: usize = windows.values().map(|new| new.rows.len()).sum();
    match rows < ROWS_A_THREAD_MIN {
        true => windows.into_iter().map(columns).collect(),
        false => windows.into_par_iter().map(columns).collect(),
    }
}

fn check_place(team: &TeamId, new: &WindowRows) -> Result<(), String> {
    let WindowRows { stream, window, rows, .. } = new;
    if let Some(row) = rows.iter().find(|row| !window.owns(row.time)) {
        return Err(format!("event {} of {} lies outside window {stream}{window}", row.event_id, row.time));
    }
    if let Some(row) = rows.iter().find(|row| row.team_id != *team) {
        return Err(format!("event {} belongs to team {}", row.event_id, row.team_id));
    }
    Ok(())
}

/// Sorts by time, event id and revision.
fn sorted(mut rows: Vec<EventRow>) -> Result<Vec<EventRow>, String> {
    fn key(row: &EventRow) -> (Instant, &str, u32) {
        (row.time, row.event_id.as_str(), row.revision)
    }
    rows.sort_by(|a, b| key(a).cmp(&key(b)));
    match rows.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
        Some(pair) => Err(format!("event {} revision {} is in the draft twice", pair[0].event_id, pair[0].revision)),
        None => Ok(rows),
    }
}

/// The digest of a draft's content. The order of the rows does not matter; each of their values does. `windows` are the rows of
/// the draft. `key` must be secret: a draft contains personal data, and the digest must confirm no guess.
pub fn draft_digest(draft: &Draft, windows: &NewWindows, key: Salt) -> Digest {
    let mut parts: Vec<Vec<u8>> = vec![key.0.to_vec()];
    for ((stream, _), WindowBatches { window, compact, sum: RowsSum { rows, digest }, .. }) in windows {
        parts.push(format!("{stream}{window} {compact} {rows} {digest}\n").into_bytes());
    }
    for row in &draft.rejects {
        let head = format!("{} {} {} {}\n", row.stream, row.event_id, row.reason, row.first_seen_at);
        parts.push([head.as_bytes(), &row.raw, b"\n"].concat());
    }
    for release in &draft.releases {
        let mut part = format!("released of {} {}\n", release.path, release.kept.len()).into_bytes();
        for row in &release.released {
            part.extend_from_slice(format!("{} {} ", row.stream, Digest::of(&row.raw)).as_bytes());
        }
        parts.push(part);
    }
    if let Some(SessionsDraft { mark, is_anew, .. }) = &draft.sessions {
        parts.push(json(&(mark, is_anew)));
    }
    let Draft { body, join_windows, join_years, inventory, expired_sessions, .. } = draft;
    parts.push(json(&(body, join_windows, join_years, inventory, expired_sessions)));
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    Digest::with_domain("annals draft v7\n", &parts)
}

fn json(records: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(records).expect("BUG: records have no map with odd keys")
}
