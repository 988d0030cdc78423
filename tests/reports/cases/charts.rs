//! The numbers that a chart draws.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;

use annals::archive::{Draft, WindowRows};
use annals::model::{Detail, EventRow, Stream, TeamId, WindowGrid};
use serde_json::{Value, json};

use crate::golden::roster;
use crate::reporting::{DAY, Day, HOUR, Place, at};

use super::{NOW, TEAM, event, people, read_roster, user};

/// The description of a report's chart and the tooltips of its marks, in each of its two widths.
fn drawn(place: &Place, report: &str, from: &str, to: &str) -> [(String, Vec<String>); 2] {
    let asked = ["report", "run", report, "--from", from, "--to", to, "--tz", "Europe/Prague", "--format", "html"];
    let outcome = place.run(&asked);
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
fn the_chart_of_seats_adds_up_neither_entries_of_one_second_nor_teams() {
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
        for (series, people) in [("seats, acme", 5), ("seats, other", 50), ("people with remote access, acme", 3)] {
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
