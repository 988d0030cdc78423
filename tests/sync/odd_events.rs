//! Events that the interface does not describe: the archive keeps and counts them byte for byte, and none affects
//! another event.

use crate::awkward;

use awkward::laws::{files_agree, findings, nanos};
use awkward::{DAY, HOUR, Kind, SINCE, events, hold, scene};

const BUSY: i64 = DAY + 13 * HOUR;

#[test]
fn events_without_a_usable_time_are_kept_in_quarantine() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..3);
    let times = [
        "null",
        "\"1794315600000\"",
        "1794315600000.5",
        "-5",
        "0",
        "1794315600",
        "9223372036854775808",
        "true",
        "253402300799000",
        "1.794e12",
        "[1]",
        "{}",
        "179431560000000000000000000000",
    ];
    for (n, time) in times.iter().enumerate() {
        let text = format!(
            "{{\"id\":\"odd-{n}\",\"timestamp\":{time},\"deviceID\":\"team-one-computer-1\",\"incomingConnectionEvent\":{{}}}}"
        );
        service.world().add(Kind::Connections, nanos(BUSY), Some("team-one-computer-1"), text);
        let text = format!("{{\"header\":{{\"eventTimestampUnixNano\":{time}}},\"teamOddEvent\":{{\"n\":{n}}}}}");
        service.world().add(Kind::Activity, nanos(BUSY), None, text);
    }
    for text in ["{\"teamOddEvent\":{}}", "{\"header\":{},\"teamOddEvent\":{}}", "{}", "[]", "7", "\"text\"", "null"] {
        service.world().add(Kind::Activity, nanos(BUSY), None, text.to_owned());
    }
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    files_agree(&program);
    let listed = program.sql("select count(*)::int as n from quarantine");
    assert_eq!(listed[0]["n"], 2 * times.len() + 7);
    assert!(!findings(&program, "quarantined").is_empty());
    program.run(&["quarantine", "list"]).ended(0).says(&["time_not_integer"]);
    service.set_clock(DAY + 200 * HOUR);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn all_twins_in_quarantine_are_kept() {
    let (service, program) = scene();
    for _ in 0..5 {
        let text = "{\"header\":{\"eventTimestampUnixNano\":\"soon\"},\"teamOddEvent\":{}}";
        service.world().add(Kind::Activity, nanos(BUSY), None, text.to_owned());
    }
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn unknown_types_and_fields_are_kept() {
    let (service, program) = scene();
    for n in 0..6 {
        let text =
            events::typed_activity("teamNeverHeardOfEvent", n, (BUSY + i64::try_from(n).unwrap()) * 1_000_000_000);
        service.world().add(Kind::Activity, nanos(BUSY), None, text);
    }
    let at = BUSY * 1_000;
    for text in [
        format!("{{\"id\":\"u1\",\"timestamp\":{at},\"connectionMovedEvent\":{{\"x\":[1,2,{{\"y\":null}}]}}}}"),
        format!(
            "{{\"id\":\"u2\",\"timestamp\":{at},\"incomingConnectionEvent\":{{}},\"later\":\"field\",\"e\":1e400}}"
        ),
        format!("{{\"id\":\"u3\",\"timestamp\":{at},\"incomingConnectionEvent\":{{}},\"connectionClosedEvent\":{{}}}}"),
        format!("{{\"id\":\"u4\",\"timestamp\":{at}}}"),
        format!("{{\"id\":12345678901234567890,\"timestamp\":{at},\"incomingConnectionEvent\":{{}}}}"),
        format!("{{ \"id\" : \"\" , \"timestamp\" : {at} , \"incomingConnectionEvent\" : {{ }} }}"),
        format!(
            "{{\"id\":\"u5\\u0000\\ud83d\\ude00\",\"timestamp\":{at},\"incomingConnectionEvent\":{{\"a\":\"\\ud800\"}}}}"
        ),
    ] {
        service.world().add(Kind::Connections, nanos(BUSY), Some("team-one-computer-1"), text);
    }
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    files_agree(&program);
    let new = findings(&program, "new_event_type");
    assert_eq!(new.keys().filter(|subject| subject.contains("teamNeverHeardOfEvent")).count(), 1, "{new:?}");
}

#[test]
fn extreme_texts_come_back_byte_for_byte() {
    let (service, program) = scene();
    let long = "x".repeat(300_000);
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    for (n, note) in [
        "\"'; drop table connections; --\"",
        "\"\\u202e\\u0007 \\\\ \\\" \\/ </script>\"",
        "\"\u{202e}\u{feff}\u{10ffff}\u{a0}\u{2028}\"",
        "\"${HOME} `id` $(id) %s %n\"",
        "\"../../../../etc/passwd\"",
        deep.as_str(),
        &format!("\"{long}\""),
        "-0.0",
        "1E+2",
    ]
    .iter()
    .enumerate()
    {
        let at = (BUSY + i64::try_from(n).unwrap()) * 1_000;
        let text = format!(
            "{{\"id\":\"hell-{n}\",\t\"timestamp\":{at},\r\n \"computerHostName\":{note},\"incomingConnectionEvent\":{{\"note\":{note}}}}}"
        );
        service.world().add(Kind::Connections, nanos(BUSY), Some("team-one-computer-1"), text);
    }
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    files_agree(&program);
}

#[test]
fn a_team_with_an_unusual_name_has_its_own_directory() {
    let (service, program) = scene();
    for id in ["TEAM-ONE", "team one", "tëam/..", "-x", "a=b"] {
        service.world().add_team(id);
    }
    for team in 0..6 {
        service.world().connection_of(team, 0, BUSY, 1);
        service.world().activity_of(team, BUSY, 1);
    }
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    let teams = program.sql("select distinct team_id from connections order by 1");
    let names: Vec<&str> = teams.iter().map(|row| row["team_id"].as_str().unwrap()).collect();
    for id in ["team-one", "TEAM-ONE", "team one", "tëam/..", "-x", "a=b"] {
        assert!(names.contains(&id), "{id} in {names:?}");
    }
}
