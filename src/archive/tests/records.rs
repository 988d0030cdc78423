//! Equality of drafts, the memory of records, and the gaps that a finding withdraws.

use std::collections::BTreeSet;

use super::super::{
    DeviceDelta, Finding, FindingKind, HoldAdded, HoldRecord, HoldScope, ReviewOutcome, ReviewRecord, SessionsDraft,
};
use super::*;
use crate::archive::commit::draft_rows::{draft_digest, new_windows};
use crate::archive::ledger::record::{READ_POINTS_MAX, ReadPoint, SessionsMark, StreamRecord};
use crate::model::Digest;

fn digest(draft: &Draft) -> Digest {
    let windows = new_windows(&team(), draft.rows.clone(), &salts()).unwrap();
    draft_digest(draft, &windows, salts().key().unwrap())
}

fn finding(kind: FindingKind) -> Finding {
    Finding {
        stream: Some(Stream::Connections),
        kind,
        subject: "device-1".to_owned(),
        from: Some(at("2026-11-02T00:00:00Z")),
        to: Some(at("2026-11-03T00:00:00Z")),
        reason: "why".to_owned(),
        count: 1,
        found_at: now(),
    }
}

pub fn point(minutes: u64) -> ReadPoint {
    ReadPoint { at: now().plus(Duration::from_secs(60 * minutes)), read_to: now(), listed_at: None }
}

fn release(path: &str, raw: &[u8], kept: usize) -> Release {
    Release { path: path.to_owned(), released: vec![reject("r", raw)], kept: vec![reject("k", b"kept"); kept] }
}

fn devices(added: &[&str], removed: &[&str]) -> DeviceDelta {
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).into()).collect();
    DeviceDelta { added: ids(added), removed: ids(removed), ..DeviceDelta::default() }
}

pub fn review(reviewer: &str) -> ReviewRecord {
    ReviewRecord {
        reviewed_at: now(),
        reviewer: reviewer.to_owned(),
        pack_sha256: Digest::of(b"pack"),
        period_from: november().start,
        period_to: november().end,
        reports: Vec::new(),
        findings: 0,
        outcome: ReviewOutcome::Accepted,
        ticket: None,
    }
}

pub fn hold(id: &str) -> HoldRecord {
    HoldRecord::Add(HoldAdded {
        id: id.to_owned(),
        reason: "a case".to_owned(),
        by: None,
        at: now(),
        from: None,
        to: None,
        scope: HoldScope::Team,
        subject: None,
    })
}

/// Each part of a draft changes its digest: otherwise the archive would take a new draft for a repeated one.
#[test]
fn every_part_of_a_draft_changes_its_digest() {
    let events = events("2026-11-02", 0, 2);
    let whole = |compact| vec![rows("2026-11-02", events.clone(), compact)];
    let sessions = |is_anew, until: Option<&str>| SessionsDraft {
        mark: SessionsMark { rules: 1, through: Some(now()), until: until.map(at) },
        is_anew,
        open: Vec::new(),
        finished: Vec::new(),
        replaced: BTreeMap::new(),
    };
    let drafts = [
        Draft::default(),
        Draft { rows: whole(false), ..Draft::default() },
        Draft { rows: whole(true), ..Draft::default() },
        Draft { rows: vec![rows("2026-11-02", events[..1].to_vec(), false)], ..Draft::default() },
        Draft { rejects: vec![reject("r", b"one")], ..Draft::default() },
        Draft { rejects: vec![reject("r", b"two")], ..Draft::default() },
        Draft { releases: vec![release("one", b"one", 0)], ..Draft::default() },
        Draft { releases: vec![release("two", b"one", 0)], ..Draft::default() },
        Draft { releases: vec![release("one", b"two", 0)], ..Draft::default() },
        Draft { releases: vec![release("one", b"one", 1)], ..Draft::default() },
        Draft::from(Body { windows: vec![record(day("2026-11-02"), WindowState::Settled, 2)], ..Body::default() }),
        Draft::from(Body { windows: vec![record(day("2026-11-02"), WindowState::Sealed, 2)], ..Body::default() }),
        Draft::from(Body { streams: vec![(Stream::Activity, StreamRecord::default())], ..Body::default() }),
        Draft::from(Body { read_points: vec![(Stream::Activity, point(0))], ..Body::default() }),
        Draft::from(Body { read_points: vec![(Stream::Activity, point(1))], ..Body::default() }),
        Draft::from(Body { findings: vec![finding(FindingKind::Gap)], ..Body::default() }),
        Draft::from(Body { findings: vec![finding(FindingKind::Late)], ..Body::default() }),
        Draft::from(Body { sealed_months: vec![(Stream::Connections, november())], ..Body::default() }),
        Draft::from(Body { sealed_days: vec![(Stream::Connections, day("2026-11-02"))], ..Body::default() }),
        Draft::from(Body { sealed_days: vec![(Stream::Connections, day("2026-11-03"))], ..Body::default() }),
        Draft::from(Body { sealed_days: vec![(Stream::Activity, day("2026-11-03"))], ..Body::default() }),
        Draft { sessions: Some(sessions(false, None)), ..Draft::default() },
        Draft { sessions: Some(sessions(true, None)), ..Draft::default() },
        Draft { sessions: Some(sessions(true, Some("2026-11-02T00:00:00Z"))), ..Draft::default() },
        Draft { inventory: vec![(Computers, Vec::new())], ..Draft::default() },
        Draft::from(Body {
            inventory: vec![inventory::inventory_read(Computers, "2026-11-02T00:00:00Z", 1)],
            ..Body::default()
        }),
        Draft::from(Body { devices: devices(&["d"], &[]), ..Body::default() }),
        Draft::from(Body { devices: devices(&[], &["d"]), ..Body::default() }),
        Draft::from(Body { holds: vec![hold("one")], ..Body::default() }),
        Draft::from(Body { holds: vec![hold("two")], ..Body::default() }),
        Draft::from(Body { reviews: vec![review("one")], ..Body::default() }),
        Draft::from(Body { reviews: vec![review("two")], ..Body::default() }),
    ];
    let digests: BTreeSet<Digest> = drafts.iter().map(digest).collect();
    assert_eq!(digests.len(), drafts.len());
    assert!(drafts.iter().all(|draft| digest(draft) == digest(&draft.clone())));
    // The order of rows does not matter.
    let turned = vec![rows("2026-11-02", events.iter().rev().cloned().collect(), false)];
    assert_eq!(digest(&Draft { rows: turned, ..Draft::default() }), digest(&drafts[1]));
}

#[test]
fn only_a_finding_about_the_same_gap_closes_it() {
    let (gap, closing) = (finding(FindingKind::Gap), finding(FindingKind::GapClosed));
    assert!(closing.closes(&gap));
    let later = Some(at("2026-11-04T00:00:00Z"));
    for (case, other) in [
        ("another stream", Finding { stream: Some(Stream::Activity), ..gap.clone() }),
        ("another subject", Finding { subject: "device-2".to_owned(), ..gap.clone() }),
        ("another start", Finding { from: None, ..gap.clone() }),
        ("another end", Finding { to: later, ..gap.clone() }),
        ("no gap", finding(FindingKind::Late)),
        ("itself", closing.clone()),
    ] {
        assert!(!closing.closes(&other), "{case}");
    }
    assert!(
        !gap.closes(&gap) && !finding(FindingKind::Late).closes(&gap),
        "only a finding of the kind GapClosed closes a gap"
    );
}

#[test]
fn dense_and_old_read_points_are_dropped() {
    let remembered = |apart: u64, count: u64| {
        let mut record = StreamRecord::default();
        (0..count).for_each(|n| record.push_point(point(n * apart)));
        let last = point((count - 1) * apart);
        assert_eq!(record.read_points.last(), Some(&last));
        record.read_points
    };
    // One point a minute: all of the first half remain, then one in ten minutes and the newest.
    assert_eq!(remembered(1, 17).len(), READ_POINTS_MAX / 2 + 1);
    let dense = remembered(1, 60);
    assert!(dense.len() < 24, "{} points", dense.len());
    assert_eq!(dense[..16], remembered(1, 16)[..]);
    // Points ten minutes apart are not thinned out, so the oldest are dropped.
    let sparse = remembered(10, 40);
    assert_eq!((sparse.len(), sparse[0]), (READ_POINTS_MAX, point(80)));
}

/// The records of a draft: the writer has them, and so has a new reader of the ledger.
#[test]
fn every_record_of_a_draft_is_in_the_ledger() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let archive = open(&store);
    let mut writer = writer(&archive);
    let stream = StreamRecord { learned_lag_seconds: 60, ..StreamRecord::default() };
    let read = inventory::inventory_read(Computers, "2026-11-20T10:00:00Z", 3);
    let draft = Draft::from(Body {
        windows: vec![record(day("2026-11-02"), WindowState::Settled, 0)],
        streams: vec![(Stream::Billing, stream.clone())],
        read_points: vec![(Stream::Activity, point(1))],
        devices: devices(&["one", "two"], &[]),
        findings: vec![finding(FindingKind::Gap)],
        inventory: vec![read],
        reviews: vec![review("R. Viewer")],
        holds: vec![hold("CASE-7")],
        ..Body::default()
    });
    let _ = commit(&mut writer, draft).unwrap();
    let _ = commit(&mut writer, Draft::from(Body { devices: devices(&[], &["one"]), ..Body::default() })).unwrap();
    let state = writer.state();
    assert_eq!(state.windows.len(), 1);
    assert_eq!(state.streams[&Stream::Billing], stream);
    assert_eq!(state.streams[&Stream::Activity].read_points, [point(1)]);
    assert_eq!(state.devices, devices(&["two"], &[]).added);
    // Two commits at the same time: the clock was not set back.
    assert_eq!(state.findings, [(crate::model::LedgerSeq(1), finding(FindingKind::Gap))]);
    assert_eq!(state.last_scan(Computers), Some(&read));
    assert_eq!(state.holds.keys().collect::<Vec<_>>(), ["CASE-7"]);
    assert_eq!(state.reviews, [(crate::model::LedgerSeq(1), review("R. Viewer"))]);
    assert_eq!(archive.read(&team()).unwrap().state(), state);
}
