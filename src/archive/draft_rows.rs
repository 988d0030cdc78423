//! The new rows of a draft, by window, checked and sorted.

use std::collections::BTreeMap;

use crate::model::{EventRow, Instant, Stream, TeamId};

use super::WindowRows;
use super::table::RowsDigest;

/// All new rows of one window of a draft, sorted.
pub struct DraftRows {
    pub new: WindowRows,
    pub digest: RowsDigest,
}

/// Joins the new rows of each window. `digests` belong to `drafts`, in the same order.
pub fn merge_windows(
    team: &TeamId,
    drafts: Vec<WindowRows>,
    digests: &[RowsDigest],
) -> Result<BTreeMap<(Stream, Instant), DraftRows>, String> {
    let mut windows: BTreeMap<(Stream, Instant), DraftRows> = BTreeMap::new();
    for (new, digest) in drafts.into_iter().zip(digests) {
        let (stream, window) = (new.stream, new.window);
        check_place(team, &new)?;
        let Some(held) = windows.get_mut(&(stream, window.start)) else {
            windows.insert((stream, window.start), DraftRows { new, digest: *digest });
            continue;
        };
        if held.new.window != window {
            return Err(format!(
                "the draft holds different windows {stream}{} and {stream}{window} with the same start",
                held.new.window
            ));
        }
        held.new.rows.extend(new.rows);
        held.new.compact |= new.compact;
        held.digest = held.digest.plus(*digest);
    }
    for DraftRows { new, .. } in windows.values_mut() {
        new.rows = sorted(std::mem::take(&mut new.rows))?;
    }
    Ok(windows)
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
pub fn sorted(mut rows: Vec<EventRow>) -> Result<Vec<EventRow>, String> {
    fn key(row: &EventRow) -> (Instant, &str, u32) {
        (row.time, row.event_id.as_str(), row.revision)
    }
    rows.sort_by(|a, b| key(a).cmp(&key(b)));
    match rows.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
        Some(pair) => Err(format!("event {} revision {} is in the draft twice", pair[0].event_id, pair[0].revision)),
        None => Ok(rows),
    }
}
