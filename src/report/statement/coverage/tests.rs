use super::*;
use crate::archive::{ExpiredRecord, Finding, FindingKind, WindowRecord};
use crate::model::{Digest, InventoryPart, LedgerSeq};
use crate::report::views::data::Recorded;

fn at(day: &str) -> Instant {
    let text = if day.contains('T') { format!("{day}Z") } else { format!("2026-11-{day}T00:00:00Z") };
    text.parse().unwrap()
}

fn window(start: &str, end: &str, state: WindowState) -> WindowRecord {
    WindowRecord {
        state,
        reads: 2,
        requests: 2,
        ..WindowRecord::new(Stream::Connections, Range::new(at(start), at(end)))
    }
}

fn gap(kind: FindingKind, stream: Option<Stream>, from: Option<&str>, to: Option<&str>) -> (LedgerSeq, Finding) {
    let finding = Finding {
        stream,
        kind,
        subject: "d1".into(),
        from: from.map(at),
        to: to.map(at),
        reason: "computer removed".into(),
        count: 0,
        found_at: at("20"),
    };
    (LedgerSeq(1), finding)
}

/// Sealed from the 3rd to the 5th, nothing on the 5th, settled on the 6th, open on the 7th.
fn windows() -> Vec<WindowRecord> {
    vec![
        window("03", "04", WindowState::Sealed),
        window("04", "05", WindowState::Sealed),
        window("06", "07", WindowState::Settled),
        window("07", "08", WindowState::Provisional),
    ]
}

fn view_data(windows: Vec<WindowRecord>, findings: Vec<(LedgerSeq, Finding)>) -> ViewData {
    let mut data = ViewData::default();
    let team_id = TeamId::from("t");
    data.teams.push(TeamSnapshot {
        team_id: team_id.clone(),
        seq: LedgerSeq(1),
        head: Digest([0; 32]),
        begins: BTreeMap::new(),
        read_to: BTreeMap::new(),
        sessions_lack: None,
    });
    data.add_team(&team_id, windows, findings);
    data
}

fn of_connections(data: &ViewData, from: &str, to: &str) -> StreamCoverage {
    let found = coverage(data, Range::new(at(from), at(to)), None);
    found.into_iter().find(|stream| stream.stream == Some(Stream::Connections)).unwrap()
}

#[test]
fn unread_and_unsettled_parts_are_distinguished() {
    let data = view_data(windows(), Vec::new());
    for (from, to, expected) in [
        ("03", "05", "complete, 2 windows settled"),
        ("03", "2026-11-04T12:00:00", "complete, 2 windows settled"),
        (
            "01",
            "04",
            "not complete, 1 windows settled, before the archive begins [2026-11-01T00:00:00Z..2026-11-03T00:00:00Z)",
        ),
        ("04", "07", "not complete, 2 windows settled, never read [2026-11-05T00:00:00Z..2026-11-06T00:00:00Z)"),
        ("05", "06", "not complete, 0 windows settled, never read [2026-11-05T00:00:00Z..2026-11-06T00:00:00Z)"),
        ("06", "08", "not complete, 1 windows settled, 1 provisional"),
        (
            "06",
            "09",
            "not complete, 1 windows settled, 1 provisional, not yet read [2026-11-08T00:00:00Z..2026-11-09T00:00:00Z)",
        ),
        ("10", "11", "not complete, 0 windows settled, not yet read [2026-11-10T00:00:00Z..2026-11-11T00:00:00Z)"),
        (
            "01",
            "02",
            "not complete, 0 windows settled, before the archive begins [2026-11-01T00:00:00Z..2026-11-02T00:00:00Z)",
        ),
    ] {
        assert_eq!(of_connections(&data, from, to).sentence(), expected, "{from} {to}");
    }
    let empty = view_data(Vec::new(), Vec::new());
    assert_eq!(of_connections(&empty, "01", "02").sentence(), "not complete, never read");
    assert_eq!(coverage(&ViewData::default(), Range::new(at("01"), at("02")), None), []);
}

#[test]
fn a_gap_is_inside_when_it_touches_the_period() {
    let connections = Some(Stream::Connections);
    for (scenario, from, to, expected) in [
        ("inside", Some("2026-11-03T10:00:00"), Some("2026-11-03T11:00:00"), 1),
        ("around", Some("01"), Some("20"), 1),
        ("before, its end not part of it", Some("01"), Some("03"), 0),
        ("after, the period's end not part of it", Some("05"), Some("06"), 0),
        ("since always", None, Some("2026-11-03T11:00:00"), 1),
        ("for ever", Some("04"), None, 1),
        ("of one moment", Some("03"), Some("03"), 1),
        ("of one moment after it", Some("05"), Some("05"), 0),
    ] {
        let data = view_data(windows(), vec![gap(FindingKind::Gap, connections, from, to)]);
        let found = of_connections(&data, "03", "05");
        assert_eq!((found.gaps.len(), found.complete), (expected, expected == 0), "{scenario}");
    }
}

#[test]
fn a_closed_gap_or_a_gap_of_another_stream_does_not_count() {
    let connections = Some(Stream::Connections);
    let taken_back = vec![
        gap(FindingKind::Gap, connections, Some("03"), Some("04")),
        gap(FindingKind::GapClosed, connections, Some("03"), Some("04")),
        gap(FindingKind::Late, connections, Some("03"), Some("04")),
        gap(FindingKind::Gap, Some(Stream::Billing), Some("03"), Some("04")),
    ];
    assert!(of_connections(&view_data(windows(), taken_back), "03", "05").complete);
    let of_no_stream = view_data(windows(), vec![gap(FindingKind::Gap, None, Some("03"), Some("04"))]);
    let found = coverage(&of_no_stream, Range::new(at("03"), at("05")), None);
    assert_eq!(found.iter().map(|stream| stream.gaps.len()).sum::<usize>(), 1);
    let other = TeamId::from("other");
    assert_eq!(coverage(&of_no_stream, Range::new(at("03"), at("05")), Some(&other)), []);
}

#[test]
fn a_period_is_incomplete_if_a_computer_was_removed_before_it_was_read() {
    let removed = || vec![gap(FindingKind::RemovedBefore, Some(Stream::Connections), Some("02"), Some("04"))];
    for (from, to, expected) in [("03", "05", 1), ("04", "05", 0)] {
        let found = of_connections(&view_data(windows(), removed()), from, to);
        assert_eq!((found.removed_before.len(), found.gaps.len()), (expected, 0), "{from}");
        assert_eq!(found.complete, expected == 0, "{from}");
    }
}

fn november_expired() -> Recorded<ExpiredRecord> {
    Recorded {
        team_id: TeamId::from("t"),
        record: ExpiredRecord {
            policy: "connections = 7y".to_owned(),
            at: at("2033-12-02T03:40:00"),
            dataset: Stream::Connections.into(),
            month: at("01"),
            files: 1,
            rows: 12,
            rows_digest: Digest([0; 32]),
        },
        ledger_seq: LedgerSeq(9),
    }
}

/// Its last window ends in December.
#[test]
fn an_expired_month_reaches_to_the_end_of_its_last_window() {
    let mut crossing = window("03", "04", WindowState::Sealed);
    crossing.range = Range::new(at("24"), at("2026-12-08T00:00:00"));
    let mut after = window("03", "04", WindowState::Sealed);
    after.range = Range::new(at("2026-12-08T00:00:00"), at("2026-12-22T00:00:00"));
    let mut data = view_data(vec![after, crossing], Vec::new());
    data.expired.push(november_expired());
    for (from, to, expired) in [("02", "04", 1), ("07", "09", 1), ("08", "10", 0)] {
        let day = |day: &str| format!("2026-12-{day}T00:00:00");
        let found = of_connections(&data, &day(from), &day(to));
        assert_eq!((found.expired.len(), found.complete), (expired, expired == 0), "{from} to {to}");
    }
}

/// The 5th was never read: in an expired month that is not missing, and no month that expired is a gap.
#[test]
fn an_expired_month_is_neither_a_gap_nor_missing() {
    let mut data = view_data(windows(), Vec::new());
    assert_eq!(of_connections(&data, "04", "07").missing.len(), 1);
    data.expired.push(november_expired());
    let found = of_connections(&data, "04", "07");
    assert_eq!((found.missing.len(), found.gaps.len(), found.complete), (0, 0, false));
    let said = "not complete, 2 windows settled, 2026-11 expired under connections = 7y on 2033-12-02";
    assert_eq!(found.sentence(), said);
    let month = found.expired[0].sentence();
    assert!(month.contains("expired under connections = 7y on 2033-12-02 (12 rows, line 9 of the ledger)"), "{month}");
}

/// All parts that expired in one line are one entry. The team's streams stay as they are.
#[test]
fn an_expired_month_of_people_is_named_once() {
    let mut data = view_data(windows(), Vec::new());
    for part in [InventoryPart::Users, InventoryPart::Grants] {
        data.expired.push(Recorded {
            team_id: TeamId::from("t"),
            record: ExpiredRecord {
                policy: "inventory = 1y".to_owned(),
                at: at("2028-01-02T03:40:00"),
                dataset: Dataset::Inventory(part),
                month: at("01"),
                files: 1,
                rows: 4,
                rows_digest: Digest([0; 32]),
            },
            ledger_seq: LedgerSeq(9),
        });
    }
    let of_people = |from: &str, to: &str| {
        let found = coverage(&data, Range::new(at(from), at(to)), None);
        found.into_iter().filter(|line| line.stream.is_none()).flat_map(|line| line.expired).collect::<Vec<_>>()
    };
    let found = of_people("04", "07");
    assert_eq!(found.len(), 1, "{found:?}");
    let month = found[0].sentence();
    assert!(month.contains("expired under inventory = 1y on 2028-01-02 (8 rows, line 9 of the ledger)"), "{month}");
    assert_eq!(of_people("2026-12-04T00:00:00", "2026-12-07T00:00:00"), []);
    assert!(of_connections(&data, "03", "05").complete);
}
