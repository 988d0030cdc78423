//! Periods, zones, coverage, exit codes and the ledger's own views, through the command line.

use crate::reporting;

use annals::model::Stream;
use reporting::{Day, HOUR, Place, at, gap};
use serde_json::{Value, json};

const HOURS: &str = "-- id: M1\n-- title: T\n-- question: Q?\n-- severity: low\n\
    SELECT local_time(event_time, $tz)::VARCHAR AS local, count(*) AS n FROM connections\n\
    WHERE event_time >= $from AND event_time < $to AND ($team IS NULL OR team_id = $team) GROUP BY 1 ORDER BY 1";
const ASKED: &str = "-- id: M2\n-- title: T\n-- question: Q?\n\
    SELECT $from AS a, $to AS b, $as_of AS c, $tz AS d, $team AS e, $now >= $from AS f";

fn summer_time() -> Place {
    let place = Place::summer_time();
    place.own_report("hours.sql", HOURS);
    place.own_report("asked.sql", ASKED);
    place
}

fn rows(place: &Place, report: &str, arguments: &[&str]) -> Vec<Value> {
    let outcome = place.run_own(report, &[&["--format", "json"], arguments].concat());
    assert!(matches!(outcome.code, 0 | 3), "{outcome:?}");
    outcome.json()["rows"].as_array().unwrap().clone()
}

/// One event for each hour of UTC: the number of events and of distinct local hours of a local day, and the special
/// hour.
#[test]
fn a_local_day_has_the_hours_that_the_zone_gives_it() {
    let place = summer_time();
    for (zone, from, to, events, hours, twice) in [
        ("UTC", "2026-03-29", "2026-03-30", 24, 24, None),
        ("Europe/Berlin", "2026-03-29", "2026-03-30", 23, 23, None),
        ("Europe/Berlin", "2026-03-30", "2026-03-31", 24, 24, None),
        ("Europe/Berlin", "2026-10-25", "2026-10-26", 25, 24, Some("2026-10-25 02:00:00")),
        ("Europe/Berlin", "2026-10-24", "2026-10-25", 24, 24, None),
        ("Australia/Sydney", "2026-04-05", "2026-04-06", 25, 24, Some("2026-04-05 02:00:00")),
        ("Australia/Sydney", "2026-10-04", "2026-10-05", 23, 23, None),
        ("America/New_York", "2026-11-01", "2026-11-02", 25, 24, Some("2026-11-01 01:00:00")),
        // Summer time of half an hour; events are at full hours of UTC.
        ("Australia/Lord_Howe", "2026-04-05", "2026-04-06", 25, 25, None),
        ("Asia/Kathmandu", "2026-04-01", "2026-04-02", 24, 24, None),
    ] {
        let found = rows(&place, "hours", &["--from", from, "--to", to, "--tz", zone]);
        let total: i64 = found.iter().map(|row| row["n"].as_i64().unwrap()).sum();
        assert_eq!((total, found.len()), (events, hours), "{zone} {from}");
        assert!(found.iter().all(|row| row["local"].as_str().unwrap().starts_with(from)), "{zone} {from}: {found:?}");
        let doubled: Vec<&str> =
            found.iter().filter(|row| row["n"] == 2).map(|row| row["local"].as_str().unwrap()).collect();
        assert_eq!(doubled, twice.into_iter().collect::<Vec<_>>(), "{zone} {from}");
    }
}

#[test]
fn dates_are_the_zone_s_days_and_moments_are_themselves() {
    let place = summer_time();
    for (arguments, expected) in [
        (
            &["--from", "2026-03-29", "--to", "2026-03-30", "--tz", "Europe/Berlin"][..],
            json!({"a": "2026-03-28T23:00:00", "b": "2026-03-29T22:00:00", "c": "2026-03-29T22:00:00",
                   "d": "Europe/Berlin", "e": null, "f": true}),
        ),
        (
            &["--from", "2026-03-29T00:00:00Z", "--to", "2026-03-30T02:00:00.5+02:00", "--tz", "europe/berlin"],
            json!({"a": "2026-03-29T00:00:00", "b": "2026-03-30T00:00:00.500", "c": "2026-03-30T00:00:00.500",
                   "d": "Europe/Berlin", "e": null, "f": true}),
        ),
        (
            &["--to", "2026-03-31", "--as-of", "2026-01-01", "--team", "acme"],
            json!({"a": "2026-03-01T00:00:00", "b": "2026-03-31T00:00:00", "c": "2026-01-01T00:00:00",
                   "d": "UTC", "e": "acme", "f": true}),
        ),
    ] {
        assert_eq!(rows(&place, "asked", arguments), [expected], "{arguments:?}");
    }
}

#[test]
fn the_default_period_is_thirty_days_and_ages_count_from_now() {
    let place = summer_time();
    let about = |arguments: &[&str]| {
        place.run_own("asked", &[&["--format", "json"], arguments].concat()).json()["about"].take()
    };
    let span = |about: &Value| {
        let moment = |key: &str| at(about["period"][key].as_str().unwrap());
        (moment("to").since(moment("from")), about["made_at"] == about["period"]["to"])
    };
    assert_eq!(span(&about(&[])), (HOUR * 24 * 30, true));
    assert_eq!(span(&about(&["--from", "-90d"])), (HOUR * 24 * 90, true));
    assert_eq!(span(&about(&["--from", "-3h", "--to", "-1h"])), (HOUR * 2, false));
}

#[test]
fn the_exit_code_distinguishes_gaps_and_detections() {
    let place = Place::month_with_a_gap();
    place.own_report("hours.sql", HOURS);
    place.own_report("asked.sql", ASKED);
    let graded = "-- id: M3\n-- title: T\n-- question: Q?\n-- severity: column\nSELECT 'medium' AS severity UNION ALL SELECT NULL";
    place.own_report("graded.sql", graded);
    let with_gap = ["--from", "2026-10-14", "--to", "2026-10-15"];
    let without = ["--from", "2026-10-15", "--to", "2026-10-16"];
    // The gap ends at 12:30, and the period is half-open.
    let behind = ["--from", "2026-10-14T12:30:00Z", "--to", "2026-10-15"];
    for (scenario, report, period, fail_on, code, said) in [
        ("nothing amiss", "hours", without, None, 0, vec![]),
        ("a gap", "hours", with_gap, None, 3, vec!["1 gap is recorded inside the period"]),
        ("behind the gap", "hours", behind, None, 0, vec![]),
        ("detections", "hours", without, Some("low"), 1, vec!["M1 found 3 rows of severity low or higher"]),
        ("milder than asked", "hours", without, Some("medium"), 0, vec![]),
        (
            "detections and a gap",
            "hours",
            with_gap,
            Some("info"),
            1,
            vec!["1 gap is", "M1 found 2 rows of severity info"],
        ),
        ("a gap and milder ones", "hours", with_gap, Some("critical"), 3, vec!["1 gap is"]),
        ("by column", "graded", without, Some("medium"), 1, vec!["M3 found 1 row of severity medium"]),
        ("by column, milder", "graded", without, Some("high"), 0, vec![]),
    ] {
        let mut arguments = period.to_vec();
        arguments.extend(fail_on.iter().flat_map(|severity| ["--fail-on", *severity]));
        let outcome = place.run_own(report, &arguments);
        assert_eq!((outcome.code, outcome.stderr.lines().count()), (code, said.len()), "{scenario}: {outcome:?}");
        assert!(said.iter().all(|said| outcome.stderr.contains(said)), "{scenario}: {}", outcome.stderr);
    }
    place.run_own("asked", &["--fail-on", "low"]).is_wrong_use("report M2 gives its rows no severity");
}

#[test]
fn unread_and_provisional_spans_are_distinguished() {
    let place = Place::month_with_a_gap();
    place.own_report("hours.sql", HOURS);
    let about = |from: &str, to: &str| {
        let outcome = place.run_own("hours", &["--from", from, "--to", to, "--format", "json"]);
        (outcome.code, outcome.json()["about"]["coverage"][1].take())
    };
    let (code, whole) = about("2026-09-01", "2026-11-05");
    assert_eq!(code, 3);
    assert_eq!((whole["settled"].as_u64(), whole["provisional"].as_u64()), (Some(29), Some(1)));
    assert_eq!(whole["missing"], json!([{"from": "2026-10-20T00:00:00Z", "to": "2026-10-21T00:00:00Z"}]));
    assert_eq!(whole["before_archive"], json!({"from": "2026-09-01T00:00:00Z", "to": "2026-10-01T00:00:00Z"}));
    assert_eq!(whole["not_yet_read"], json!({"from": "2026-11-01T00:00:00Z", "to": "2026-11-05T00:00:00Z"}));
    assert_eq!(whole["complete"], false);
    // An unread span is no gap, because nothing is lost yet.
    let (code, provisional) = about("2026-10-31", "2026-11-05");
    assert_eq!((code, provisional["missing"].as_array().unwrap().len()), (0, 0));
    let (code, settled) = about("2026-10-15", "2026-10-20");
    assert_eq!((code, settled["complete"].as_bool()), (0, Some(true)));
}

#[test]
fn a_team_s_report_is_about_that_team() {
    let place = Place::month_with_a_gap();
    place.own_report("hours.sql", HOURS);
    place.commit("acme", vec![Day::new(Stream::Connections, "2026-10-14").with(5, HOUR)], Vec::new());
    place.commit("acme", Vec::new(), vec![gap("2026-10-01T00:00:00Z", "2026-10-02T00:00:00Z")]);
    let ask = |arguments: &[&str]| {
        let period = ["--format", "json", "--from", "2026-10-14", "--to", "2026-10-15"];
        let outcome = place.run_own("hours", &[&period, arguments].concat());
        let events: i64 = outcome.json()["rows"].as_array().unwrap().iter().map(|row| row["n"].as_i64().unwrap()).sum();
        (outcome.code, events, outcome.json()["about"]["ledger"].as_array().unwrap().len())
    };
    assert_eq!(ask(&[]), (3, 7, 2));
    assert_eq!(ask(&["--team", "acme"]), (0, 5, 1));
    assert_eq!(ask(&["--team", "O'Brien & söhne"]), (3, 2, 1));
}

#[test]
fn the_ledger_s_views_equal_the_ledger() {
    let place = Place::month_with_a_gap();
    place.commit("acme", vec![Day::new(Stream::Connections, "2026-10-14").with(5, HOUR)], Vec::new());
    place.commit("acme", vec![Day::new(Stream::Connections, "2026-10-15").with(3, HOUR)], Vec::new());
    let answer = |sql: &str| {
        let outcome = place.run(&["sql", sql, "--format", "csv"]);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        outcome.text().to_owned()
    };
    let lines = "SELECT seq, kind, files_added, files_removed, rows_added, sha256, prev FROM ledger WHERE team_id = 'acme' ORDER BY seq";
    let ledger = answer(lines);
    let rows: Vec<Vec<&str>> = ledger.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!((rows[0][..5].join(","), rows[1][..5].join(",")), ("1,commit,1,0,5".into(), "2,commit,1,0,3".into()));
    assert_eq!((rows[0][6], rows[1][6], rows[1][5]), (&*"0".repeat(64), rows[0][5], &*place.head("acme")));
    assert_eq!(answer("SELECT count(*) AS n, sum(rows_added) AS r FROM ledger"), "n,r\n3,200\n");
    let files =
        "SELECT dataset, role, rows, added_seq, first_event_at FROM archive_files WHERE team_id = 'acme' ORDER BY path";
    assert_eq!(
        answer(files),
        "dataset,role,rows,added_seq,first_event_at\nconnections,window,5,1,2026-10-14T01:00:00\n\
         connections,window,3,2,2026-10-15T01:00:00\n"
    );
    let live = place.run(&["files", "connections"]).text().lines().count();
    assert_eq!(answer("SELECT count(*) AS n FROM archive_files WHERE dataset = 'connections'"), format!("n\n{live}\n"));
    assert_eq!(answer("SELECT clean, lines, faults FROM verification_verdict"), "clean,lines,faults\ntrue,3,0\n");
    let victim = place.run(&["files", "connections"]).text().lines().next().unwrap().to_owned();
    std::fs::remove_file(&victim).unwrap();
    let faults = "SELECT team_id, code, subject FROM verification";
    let (found, clean) = (answer(faults), answer("SELECT clean, faults FROM verification_verdict"));
    assert!(found.contains("acme,FILE_MISSING,tables/") || found.contains("söhne,FILE_MISSING,tables/"), "{found}");
    assert_eq!(clean, "clean,faults\nfalse,1\n");
}
