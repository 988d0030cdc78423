//! The numbers that a chart draws.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};

use annals::archive::{Body, Draft, ReviewOutcome, ReviewRecord, WindowRows};
use annals::model::{ConnectionDetail, Detail, Digest, EventRow, Stream, TeamId, WindowGrid};
use serde_json::{Value, json};

use crate::golden::roster;
use crate::reporting::{DAY, Day, HOUR, Place, at};

use super::{
    ESTABLISHED, NOW, SECOND, TEAM, change_by, commit, commit_events, connection, event, people, read_roster, user,
};

/// The description of a report's chart and the tooltips of its marks, in each of its two widths. `asked` is the report with
/// its arguments.
fn drawn(place: &Place, asked: &str, from: &str, to: &str) -> [(String, Vec<String>); 2] {
    let asked = format!("report run {asked} --from {from} --to {to} --tz Europe/Prague --format html");
    let outcome = place.run(&asked.split(' ').collect::<Vec<_>>());
    let page = outcome.text();
    let pictures = page.split("<svg class=\"chart\"").skip(1).take(2).map(|svg| {
        let svg = svg.split("</svg>").next().unwrap();
        let description = svg.split("aria-label=\"").nth(1).unwrap().split('"').next().unwrap();
        let tooltips = svg.split("<title>").skip(1).map(|text| text.split("</title>").next().unwrap().to_owned());
        // The tooltip of a cut name has no number.
        (description.to_owned(), tooltips.filter(|text| text.contains(": ")).collect())
    });
    pictures.collect::<Vec<_>>().try_into().unwrap()
}

fn october(place: &Place, report: &str) -> [(String, Vec<String>); 2] {
    drawn(place, report, "2026-10-01", "2026-11-01")
}

fn team_of(count: usize, is_granted: bool) -> Value {
    let users: Vec<Value> = (0..count).map(|nth| user(&format!("u{nth}"), &format!("p{nth}@own.example"))).collect();
    let granted: Vec<String> = (0..count).filter(|_| is_granted).map(|nth| format!("u{nth}")).collect();
    people(&json!(users), &json!({}), &json!([{"id": "d1", "name": "PC-1", "users": granted}]))
}

/// A period longer than the places of a narrow chart, and a month in which summer time ends.
#[test]
fn the_chart_of_second_factors_counts_people_at_single_moments() {
    let place = Place::empty();
    read_roster(&place, "2026-06-01T03:00:00Z", &team_of(3, true));
    let mut later = team_of(3, true);
    later["users"]["users"].as_array_mut().unwrap().iter_mut().for_each(|user| user["totpEnabled"] = json!(true));
    read_roster(&place, "2026-10-20T03:00:00Z", &later);
    for (from, to) in [("2026-07-01", "2026-10-01"), ("2026-10-01", "2026-11-01")] {
        for (_, tooltips) in drawn(&place, "R10", from, to) {
            let mut people: BTreeMap<&str, u32> = BTreeMap::new();
            for (mark, number) in tooltips.iter().map(|text| text.rsplit_once(": ").unwrap()) {
                *people.entry(mark.rsplit(", ").next().unwrap()).or_default() += number.parse::<u32>().unwrap();
            }
            assert!(people.len() > 30 && people.values().all(|number| *number == 3), "{tooltips:?}");
        }
    }
    let is_gone = |text: &String| text.starts_with("UNKNOWN, 2026-10-30") && text.ends_with(": 0");
    assert!(october(&place, "R10").iter().all(|(_, tooltips)| tooltips.iter().any(is_gone)));
}

#[test]
fn the_chart_of_seats_adds_up_neither_entries_of_one_second_nor_teams_and_names_the_teams() {
    let place = Place::empty();
    for (team, seats) in [(TEAM, 5), ("other", 50)] {
        let mut writer = place.opened().writer(&TeamId::from(team)).unwrap();
        roster::record(&mut writer, &team_of(3, true), at("2026-10-02T03:00:00Z"));
        let mut entries = Vec::new();
        for (day, kind) in [
            ("2026-10-10", "userCountUpdatedEvent"),
            ("2026-10-10", "paymentSucceededEvent"),
            ("2026-10-20", "userCountUpdatedEvent"),
        ] {
            let payload = Detail::Billing { payload: Some(json!({"count": seats}).to_string()) };
            let entry = event(&format!("b{}", entries.len()), kind, at(day).plus(HOUR), payload);
            entries.push(EventRow { team_id: team.into(), ..entry });
        }
        let rows = entries.chunk_by(|a, b| a.time == b.time).map(|rows| {
            WindowRows::new(Stream::Billing, WindowGrid::new(DAY).window_of(rows[0].time), rows.to_vec(), true)
        });
        let _ = writer.commit(Draft { rows: rows.collect(), ..Draft::default() }, at(NOW)).unwrap();
    }
    for (_, tooltips) in october(&place, "R22") {
        for (series, people) in
            [("seats, Acme (acme)", 5), ("seats, Acme (other)", 50), ("people with remote access, Acme (acme)", 3)]
        {
            let of_series = tooltips.iter().filter_map(|text| text.strip_prefix(&format!("{series}, ")));
            let held: Vec<&str> = of_series.map(|text| text.rsplit(": ").next().unwrap()).collect();
            assert!(held == [people.to_string(), people.to_string()], "{series}: {tooltips:?}");
        }
    }
}

#[test]
fn the_chart_of_retention_adds_up_no_days_of_different_teams() {
    let place = Place::empty();
    for team in ["acme", "other"] {
        place.commit_whole(team, vec![Day::new(Stream::Connections, "2026-10-10").with(1, HOUR)], Vec::new());
    }
    for (description, tooltips) in october(&place, "R25") {
        assert!(description.ends_with(": 4 marks by held days and class"), "{description}");
        assert!(tooltips.contains(&"other, connections: 21".to_owned()), "{tooltips:?}");
    }
}

#[test]
fn a_chart_names_teams_as_the_tables_do() {
    let place = Place::empty();
    read_roster(&place, "2026-10-02T03:00:00Z", &team_of(1, true));
    place.commit_whole("other", vec![Day::new(Stream::Connections, "2026-10-10").with(1, HOUR)], Vec::new());
    for (_, tooltips) in october(&place, "R25") {
        let teams: BTreeSet<&str> = tooltips.iter().map(|text| text.split(", ").next().unwrap()).collect();
        assert_eq!(teams, ["Acme", "other"].into(), "{tooltips:?}");
    }
}

#[test]
fn the_chart_of_commits_has_one_mark_for_commits_of_a_short_time() {
    let place = Place::empty();
    for time in ["2025-10-01T03:00:00Z", "2025-10-01T04:00:00Z", "2025-10-01T05:00:00Z", "2026-10-01T03:00:00Z"] {
        read_roster(&place, time, &team_of(1, true));
    }
    for (description, tooltips) in october(&place, "R24") {
        assert!(description.ends_with(": 2 marks by committed"), "{description}");
        assert!(tooltips.iter().any(|text| text.contains("2026-10-01")), "{tooltips:?}");
    }
}

/// More rows than a chart reads: addresses of one person, reviews of one day, and days of two teams.
#[test]
fn a_chart_draws_the_newest_of_many_rows() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    read_roster(&place, "2026-10-02T03:00:00Z", &team_of(1, true));
    let session = |nth: u32| {
        let time = if nth == 10_000 { time.plus(DAY * 8) } else { time.plus(SECOND * nth) };
        let peer = |detail: &mut ConnectionDetail| {
            detail.peer_ip = Some(format!("203.{}.{}.9", nth / 250, nth % 250).into());
        };
        connection(&format!("c{nth}"), ESTABLISHED, time, peer)
    };
    commit_events(&place, Stream::Connections, (0..=10_000).map(session).collect());
    let review = |nth: u32| ReviewRecord {
        reviewed_at: if nth == 10_000 { time.plus(DAY * 8) } else { time.plus(SECOND * nth) },
        reviewer: "R-7".to_owned(),
        pack_sha256: Digest::of(b"a pack"),
        period_from: at("2026-10-01T00:00:00Z"),
        period_to: at("2026-10-02T00:00:00Z"),
        reports: Vec::new(),
        findings: 0,
        outcome: ReviewOutcome::Accepted,
        ticket: None,
    };
    let reviews = (0..=10_000).map(review).collect();
    commit(&place, Draft::from(Body { reviews, ..Body::default() }), at(NOW));
    for report in ["R15", "R21 --param subject=ann@own.example", "R26"] {
        for (_, tooltips) in october(&place, report) {
            assert!(tooltips.iter().any(|text| text.contains(": 2026-10-28")), "{report}: {tooltips:?}");
        }
    }
    for team in [TEAM, "other"] {
        let days = ["2005-01-01", "2026-10-27"].map(|day| Day::new(Stream::Activity, day).with(7, HOUR));
        place.commit(team, days.into(), Vec::new());
    }
    for (description, tooltips) in drawn(&place, "R23", "2005-01-01", "2026-11-01") {
        assert!(description.contains(": 10,029 in all"), "{description}");
        for team in ["Acme", "other"] {
            assert!(tooltips.iter().any(|text| text.starts_with(&format!("activity, {team}"))), "{tooltips:?}");
        }
    }
}

#[test]
fn a_tooltip_of_a_strip_names_the_lane_once() {
    let place = Place::empty();
    for team in [TEAM, "other"] {
        place.commit(team, vec![Day::new(Stream::Activity, "2026-10-10").with(1, HOUR)], Vec::new());
    }
    for (_, tooltips) in october(&place, "R24") {
        assert!(tooltips.iter().all(|text| !text.contains(", ")), "{tooltips:?}");
    }
}

#[test]
fn a_chart_leaves_out_no_name() {
    let place = Place::empty();
    read_roster(&place, "2026-09-30T03:00:00Z", &team_of(45, false));
    read_roster(&place, "2026-10-30T03:00:00Z", &team_of(45, true));
    let time = at("2026-10-20T10:00:00Z");
    let session = |nth: u32| {
        let peer = |detail: &mut ConnectionDetail| detail.peer_email = Some(format!("s{nth}@else.example").into());
        connection(&format!("c{nth}"), ESTABLISHED, time.plus(SECOND * nth), peer)
    };
    commit_events(&place, Stream::Connections, (0..45).map(session).collect());
    let change = |nth: u32| {
        let actor = json!({"title": format!("token {nth}")});
        change_by(&actor, &format!("a{nth}"), "teamSettingsChangedEvent", "2026-10-20T10:00:00Z", &json!({}))
    };
    commit_events(&place, Stream::Activity, (0..45).map(change).collect());
    for report in ["R04", "R07", "R08", "R20"] {
        for (description, _) in october(&place, report) {
            assert!(description.contains(": 45 in all"), "{report}: {description}");
        }
    }
}

/// The durations of one minute alone are more rows than a chart reads.
#[test]
fn the_chart_of_durations_has_the_longest_session() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let session = |nth: u32| {
        let ends = if nth == 10_000 { time.plus(HOUR * 30) } else { time.plus(SECOND * 60) };
        let of = |kind, id: String, time| {
            connection(&id, kind, time, |detail| detail.connection_id = Some(format!("c{nth}").as_str().into()))
        };
        [of(ESTABLISHED, format!("e{nth}"), time), of("connectionClosedEvent", format!("z{nth}"), ends)]
    };
    commit_events(&place, Stream::Connections, (0..=10_000).flat_map(session).collect());
    for (description, tooltips) in october(&place, "R18") {
        assert!(description.contains("sessions by hours: 10,001 in all"), "{description}");
        assert!(tooltips.contains(&"20 to under 50: 1".to_owned()), "{tooltips:?}");
    }
}

/// The rows say how many sessions an account has, but not how many each person has.
#[test]
fn the_chart_of_shared_identities_gives_nobody_the_sessions_of_others() {
    let (place, time) = (Place::empty(), at("2026-10-20T10:00:00Z"));
    let session = |nth: u32| {
        connection(&format!("c{nth}"), ESTABLISHED, time.plus(HOUR * nth), |detail| {
            detail.peer_email = Some(format!("p{}@own.example", nth % 3).into());
            detail.local_user_name = Some("operator".into());
        })
    };
    commit_events(&place, Stream::Connections, (0..9).map(session).collect());
    for (description, tooltips) in october(&place, "R17") {
        assert!(description.contains("shares by identity and other: 3 in all"), "{description}");
        assert!(tooltips.iter().all(|text| text.ends_with(": 1")), "{tooltips:?}");
    }
}
