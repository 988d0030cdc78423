//! Paths survive a round trip through their text.

use proptest::prelude::*;

use super::*;
use crate::model::TeamId;

fn role() -> impl Strategy<Value = FileRole> {
    prop_oneof![
        Just(FileRole::Part),
        Just(FileRole::Window),
        Just(FileRole::Day),
        Just(FileRole::Month),
        Just(FileRole::Amendment),
        Just(FileRole::Open)
    ]
}

const METADATA_NAME: &str = "v[1-9][0-9]{0,14}\\.metadata\\.json|version-hint\\.text|snap-[0-9a-f]{16}\\.avro|\
    lines-[0-9a-f]{16}\\.json|[0-9a-f]{16}-m0\\.avro";

fn any_path() -> impl Strategy<Value = ArchivePath> {
    let team = any::<String>().prop_map(|t| TeamKey::of(&TeamId::new(t)));
    let second = 0..4_102_444_800i64;
    prop_oneof![
        Just(ArchivePath::Manifest),
        Just(ArchivePath::LedgerManifest),
        (team.clone(), second.clone())
            .prop_map(|(team, s)| ArchivePath::Ledger { team, day: day_start(Instant::from_seconds(s)) }),
        (team.clone(), second.clone())
            .prop_map(|(team, s)| ArchivePath::Heads { team, day: day_start(Instant::from_seconds(s)) }),
        (team.clone(), second.clone(), "[0-9a-f]{16}").prop_map(|(team, s, hash)| {
            ArchivePath::Salt { team, month: Instant::from_seconds(s).first_of_month(), hash }
        }),
        (0..Dataset::ALL.len(), METADATA_NAME)
            .prop_map(|(at, name)| ArchivePath::Table { table: Dataset::ALL[at].to_string(), name }),
        (0..LEDGER_TABLES.len(), "20[0-9]{2}-0[1-9]-[0-9a-f]{16}\\.parquet")
            .prop_map(|(at, name)| ArchivePath::LedgerTable { table: LEDGER_TABLES[at].to_owned(), name }),
        (team, second, role(), 0..Dataset::ALL.len(), "[0-9a-f]{16}").prop_map(|(team, s, role, dataset, hash)| {
            let dataset = Dataset::ALL[dataset];
            ArchivePath::Data(DataPath { dataset, team, role, start: Instant::from_seconds(s), hash })
        }),
    ]
}

proptest! {
    #[test]
    fn every_path_round_trips_in_safe_characters(path in any_path()) {
        let text = path.to_string();
        prop_assert_eq!(ArchivePath::parse(&text), Some(path));
        for name in text.split('/') {
            prop_assert!(name.len() < 200);
            prop_assert!(name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'=' | b'.' | b'-')));
        }
    }

    #[test]
    fn a_parsed_text_is_the_canonical_path(text in "(tables|ledger|salts)/[a-z/=0-9.-]{0,60}") {
        if let Some(path) = ArchivePath::parse(&text) {
            prop_assert_eq!(path.to_string(), text);
        }
    }
}

#[test]
fn paths_with_contradicting_parts_do_not_parse() {
    let name = "20261120t000000z-part-0123456789abcdef.parquet";
    for (path, is_good) in [
        ("tables/activity/metadata/v1.metadata.json".to_owned(), true),
        ("tables/findings/data/2026-11-0123456789abcdef.parquet".to_owned(), true),
        ("tables/sessions/data/2026-11-0123456789abcdef.parquet".to_owned(), false),
        ("tables/findings/metadata/version-hint.text".to_owned(), true),
        ("tables/nothing/metadata/version-hint.text".to_owned(), false),
        ("tables/activity/metadata/.hidden".to_owned(), false),
        ("tables/activity/metadata/v9007199254740991.metadata.json".to_owned(), true),
        ("tables/activity/metadata/v9007199254740992.metadata.json".to_owned(), false),
        ("tables/activity/metadata/v0.metadata.json".to_owned(), false),
        ("tables/activity/metadata/v007.metadata.json".to_owned(), false),
        ("tables/activity/metadata/v-1.metadata.json".to_owned(), false),
        ("tables/activity/metadata/v5.6.metadata.json".to_owned(), false),
        ("tables/activity/metadata/snap-0123456789abcdef.avro".to_owned(), true),
        ("tables/activity/metadata/snap-0123456789abcdef.json".to_owned(), false),
        ("tables/activity/metadata/lines-0123456789abcde.json".to_owned(), false),
        ("tables/findings/data/0123456789abcdef.parquet".to_owned(), false),
        ("tables/findings/data/2026-13-0123456789abcdef.parquet".to_owned(), false),
        ("tables/activity/metadata/x/y".to_owned(), false),
        (format!("tables/activity/team=t/month=2026-11/{name}"), true),
        (format!("tables/activity/team=t/month=2026-12/{name}"), false),
        (format!("tables/activity/team=t/date=2026-11-20/{name}"), false),
        (format!("data/activity/team=t/month=2026-11/{name}"), false),
        (format!("tables/activity/team=t/month=2026-11/{}", name.replace("part", "p")), false),
        (format!("tables/nothing/team=t/month=2026-11/{name}"), false),
        (format!("tables/activity/team=T/month=2026-11/{name}"), false),
        (format!("tables/activity/team=t/../month=2026-11/{name}"), false),
        (format!("tables/activity/team=t/month=2026-11/{}", name.replace("cdef", "cde")), false),
        (format!("tables/activity/team=t/month=2026-11/{}", name.replace("cdef", "cdeff")), false),
        (format!("tables/activity/team=t/month=2026-11/{}", name.replace("cdef", "cdeg")), false),
        ("ledger/team=t/2026-11-20.jsonl".to_owned(), true),
        ("ledger/team=t/2026-11-31.jsonl".to_owned(), false),
        ("ledger/team=t/2026-11-20.json".to_owned(), false),
        ("salts/team=t/2026-11-0123456789abcdef.json".to_owned(), true),
        ("salts/team=t/2026-13-0123456789abcdef.json".to_owned(), false),
        ("salts/team=t/2026-11-20-0123456789abcdef.json".to_owned(), false),
        ("salts/team=t/2026-11-0123456789abcde.json".to_owned(), false),
    ] {
        assert_eq!(ArchivePath::parse(&path).is_some(), is_good, "{path}");
    }
}

#[test]
fn months_end_where_the_next_begins() {
    for (at, start, end) in [
        ("2024-02-29T12:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"),
        ("2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
    ] {
        let month = month_of(at.parse().unwrap());
        assert_eq!((month.start, month.end), (start.parse().unwrap(), end.parse().unwrap()));
    }
}
