//! The digest of a draft. A writer recognises a repeated draft by it.

use serde::Serialize;

use crate::model::Digest;

use super::draft_rows::{NewWindows, WindowBatches};
use super::salts::Salt;
use super::table::rows_of;
use super::{Draft, SessionsDraft};

/// The digest of a draft's content. The order of the rows does not matter; each of their values does. `windows` are the rows of
/// the draft. `key` must be secret: a draft contains personal data, and the digest must confirm no guess.
pub fn draft_digest(draft: &Draft, windows: &NewWindows, key: Salt) -> Digest {
    let mut parts: Vec<Vec<u8>> = vec![key.0.to_vec()];
    for ((stream, _), WindowBatches { window, compact, batches, digest }) in windows {
        let (rows, digest) = (rows_of(batches), Digest::from(*digest));
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
    let Draft { windows: records, streams, read_points, devices, findings, seal_months, seal_days, .. } = draft;
    parts.push(json(&(records, streams, read_points, devices, findings, seal_months, seal_days)));
    let Draft {
        join_windows, join_years, inventory, inventory_reads, reviews, expire, expired_sessions, holds, ..
    } = draft;
    parts.push(json(&(join_windows, join_years, inventory, inventory_reads, reviews, expire, expired_sessions, holds)));
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    Digest::with_domain("annals draft v6\n", &parts)
}

fn json(records: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(records).expect("BUG: records have no map with odd keys")
}
