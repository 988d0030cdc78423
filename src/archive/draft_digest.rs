//! The digest of a draft. A writer recognises a repeated draft by it.

use crate::model::Digest;

use super::salts::{Salt, Salts};
use super::table::{RowsDigest, digest_events};
use super::{Draft, WindowRows};

/// The digest of the rows of each window of a draft.
///
/// # Errors
/// A sentence that names the lost salt.
pub fn row_digests(draft: &Draft, salts: &Salts) -> Result<Vec<RowsDigest>, String> {
    let of = |window: &WindowRows| digest_events(&window.rows, salts).map_err(|lost| lost.to_string());
    draft.rows.iter().map(of).collect()
}

/// The digest of a draft's content. The order of the rows does not matter; each of their values does. `digests` come from
/// [`row_digests`]. `key` must be secret: a draft contains personal data, and the digest must confirm no guess.
pub fn draft_digest(draft: &Draft, digests: &[RowsDigest], key: Salt) -> Digest {
    let mut parts: Vec<Vec<u8>> = vec![key.0.to_vec()];
    for (new, digest) in draft.rows.iter().zip(digests) {
        let WindowRows { stream, window, rows, compact } = new;
        parts.push(format!("{stream}{window} {compact} {} {}\n", rows.len(), Digest::from(*digest)).into_bytes());
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
    if !draft.inventory.is_empty() || !draft.inventory_reads.is_empty() {
        let scans = (&draft.inventory, &draft.inventory_reads);
        parts.push(serde_json::to_vec(&scans).expect("BUG: rows have no map with odd keys"));
    }
    if !draft.seal_days.is_empty() {
        parts.push(serde_json::to_vec(&("days", &draft.seal_days)).expect("BUG: ranges have no map"));
    }
    if !draft.join_windows.is_empty() {
        parts.push(serde_json::to_vec(&("windows", &draft.join_windows)).expect("BUG: paths have no map"));
    }
    if !draft.join_years.is_empty() {
        parts.push(serde_json::to_vec(&("years", &draft.join_years)).expect("BUG: ranges have no map"));
    }
    let records = (&draft.windows, &draft.streams, &draft.devices, &draft.findings, &draft.seal_months);
    if let Some(sessions) = &draft.sessions {
        let mark = sessions.mark;
        let until = mark.until.map(|until| format!(" until {until}")).unwrap_or_default();
        parts.push(format!("sessions {} {:?} {}{until}\n", mark.rules, mark.through, sessions.is_anew).into_bytes());
    }
    parts.push(serde_json::to_vec(&records).expect("BUG: records have no map with odd keys"));
    if !draft.reviews.is_empty() {
        parts.push(serde_json::to_vec(&draft.reviews).expect("BUG: records have no map with odd keys"));
    }
    if !draft.expire.is_empty() || !draft.gone_sessions.is_empty() {
        let gone = (&draft.expire, &draft.gone_sessions);
        parts.push(serde_json::to_vec(&gone).expect("BUG: records have no map with odd keys"));
    }
    if !draft.holds.is_empty() {
        parts.push(serde_json::to_vec(&draft.holds).expect("BUG: records have no map with odd keys"));
    }
    if !draft.read_points.is_empty() {
        parts.push(serde_json::to_vec(&draft.read_points).expect("BUG: points have no map with odd keys"));
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    Digest::with_domain("annals draft v5\n", &parts)
}
