//! All texts for people show teams by name, and `--team` accepts a name. The names are untrusted text.

use crate::faulty_service;
use crate::reporting;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use annals::archive::Draft;
use annals::clock::{Clock as _, SystemClock};
use annals::model::{InventoryPart, InventoryRow, InventoryValue, Stream, TeamId};
use annals::report::TeamNames;
use faulty_service::{DAY, SINCE, scene};
use reporting::{Day, HOUR, Outcome, Place, at};

const PERIOD: [&str; 4] = ["--from", "2026-10-10", "--to", "2026-10-11"];
/// A hostile team name.
const RED: &str = "=cmd|'x'!A1 <script>alert(1)</script>\u{1b}[2J\u{202e}\u{7}\n,\"|`*";

/// Teams with these names, and one event of each.
fn named(teams: &[(&str, &str)]) -> Place {
    let place = Place::empty();
    for (team, name) in teams {
        place.commit_whole(team, vec![Day::new(Stream::Connections, "2026-10-10").with(1, 12 * HOUR)], Vec::new());
        call(&place, team, name, "2026-10-11T00:00:00Z");
    }
    place
}

/// Commits the inventory of a team.
fn call(place: &Place, team: &str, name: &str, seen_at: &str) {
    let mut values = vec![InventoryValue::Text(name.to_owned())];
    values.resize(InventoryPart::Team.columns().len(), InventoryValue::Unknown);
    let row = InventoryRow { key: Vec::new(), seen_at: at(seen_at).micros(), present: true, repeats: false, values };
    let draft = Draft { inventory: vec![(InventoryPart::Team, vec![row])], ..Draft::default() };
    let mut writer = place.opened().writer(&TeamId::from(team)).unwrap();
    let _ = writer.commit(draft, at("2026-11-20T13:00:00Z")).unwrap();
}

fn report(place: &Place, team: &str, more: &[&str]) -> Outcome {
    place.run(&[&["report", "run", "r01", "--team", team], &PERIOD[..], more].concat())
}

#[test]
fn a_team_is_named_by_its_name_or_its_id_and_the_id_wins() {
    let place = named(&[("t1", "Lighthouse VFX"), ("t2", "Lab"), ("t3", "Lab"), ("t4", "t1"), ("t5", RED)]);
    for (asked, expected) in [
        ("t1", "team: Lighthouse VFX (t1)"),
        ("Lighthouse VFX", "team: Lighthouse VFX (t1)"),
        ("lighthouse vfx", "team: Lighthouse VFX (t1)"),
        ("t3", "team: Lab (t3)"),
        ("t4", "team: t1 (t4)"),
    ] {
        let outcome = report(&place, asked, &[]);
        assert_eq!(outcome.code, 0, "{asked}: {}", outcome.stderr);
        assert!(outcome.text().lines().any(|line| line == expected), "{asked}: {}", outcome.text());
        let anchored = place.run(&["anchor", "--team", asked]);
        let id = expected.rsplit(['(', ')']).nth(1).unwrap();
        assert!(anchored.text().contains(&format!("team={id}\n")), "{asked}: {anchored:?}");
        assert_eq!(place.run(&["quarantine", "retry", "--team", asked]).code, 0, "{asked}");
    }
    for verb in
        [&["report", "run", "r01"][..], &["anchor"], &["quarantine", "retry"], &["report", "pack", "-o", "pack"]]
    {
        for (asked, expected) in [
            ("Lab", "2 teams have the name \"Lab\": give the id of one: t2, t3"),
            ("Lighthose VFX", "unknown team \"Lighthose VFX\"; did you mean Lighthouse VFX?"),
            ("", "unknown team \"\": the known teams are Lighthouse VFX (t1), Lab (t2), Lab (t3)"),
        ] {
            let outcome = place.run(&[verb, &["--team", asked]].concat());
            assert_eq!(outcome.code, 2, "{verb:?} {asked}: {outcome:?}");
            assert!(outcome.stderr.contains(expected), "{verb:?} {asked}: {}", outcome.stderr);
            assert!(!outcome.stderr.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{}", outcome.stderr);
        }
    }
}

#[test]
fn people_read_names_and_programs_read_ids() {
    let place = named(&[("t1", "Lighthouse VFX"), ("t2", "Lab"), ("t3", "Lab")]);
    let all = |format: &str| {
        let asked = ["report", "run", "r01", "--format", format];
        let outcome = place.run(&[&asked[..], &PERIOD[..]].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.text().to_owned()
    };
    let table = all("table");
    for words in [
        "│ team ",
        "│ Lighthouse VFX",
        "│ Lab (t2)",
        "coverage: Lighthouse VFX connections: ",
        "ledger: Lighthouse VFX (t1) line 2 ",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let html = all("html");
    assert!(html.contains("<td>Lab (t3)</td>") && html.contains("Lighthouse VFX (t1), line 2"), "{html}");
    for format in ["csv", "ndjson", "markdown"] {
        assert!(all(format).replace('\\', "").contains("team_id"), "{format}");
    }
    let json: serde_json::Value = serde_json::from_str(&all("json")).unwrap();
    assert_eq!(json["rows"][0]["team_id"], "t1");
    assert_eq!(json["about"]["team_names"], serde_json::json!({"t1": "Lighthouse VFX", "t2": "Lab", "t3": "Lab"}));
    let status = place.run(&["status"]);
    assert!(status.text().contains("│ Lighthouse VFX ") && status.text().contains("│ Lab (t3) "), "{}", status.text());
    let status = place.run(&["status", "--json"]).json();
    assert_eq!(
        (&status["teams"][0]["team"], &status["teams"][0]["team_name"]),
        (&"t1".into(), &"Lighthouse VFX".into())
    );
    let verified = place.run(&["verify"]);
    assert!(verified.text().contains("team Lighthouse VFX (t1): commits 2"), "{}", verified.text());
    let packed = place.run(&[&["report", "pack", "-o", "pack", "--team", "Lighthouse VFX"], &PERIOD[..]].concat());
    assert_eq!(packed.code, 0, "{}", packed.stderr);
    let pack = |file: &str| std::fs::read_to_string(place.path().join("pack").join(file)).unwrap();
    assert!(pack("index.html").contains("<dt>Team</dt><dd>Lighthouse VFX (t1)</dd>"));
    let manifest: serde_json::Value = serde_json::from_str(&pack("manifest.json")).unwrap();
    assert_eq!((&manifest["team"], &manifest["team_names"]["t1"]), (&"t1".into(), &"Lighthouse VFX".into()));
    call(&place, "t1", "Beacon", "2026-11-12T00:00:00Z");
    assert!(report(&place, "Beacon", &[]).text().contains("team: Beacon (t1)"), "a team that was renamed");
}

#[test]
fn a_stranger_s_name_is_harmless_in_every_format() {
    let formulas = "Acme,=HYPERLINK(\"http://x\"),b;@SUM(1), \"=1\"";
    let place = named(&[("t1", RED), ("t2", &"very long ".repeat(1_000)), ("t3", formulas)]);
    for format in ["table", "csv", "json", "ndjson", "markdown", "html"] {
        let outcome = place.run(&[&["report", "run", "r01", "--format", format], &PERIOD[..]].concat());
        let text = outcome.text();
        // Rows for programs keep ids; the statement about them names the teams.
        let is_for_people = matches!(format, "table" | "markdown" | "html");
        let said: String = text.lines().filter(|line| is_for_people || !line.contains("HYPERLINK")).collect();
        assert!(!said.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{format}: {text}");
        assert!(format != "html" || !text.contains("<script>alert"), "{text}");
        assert!(!text.contains(&"very long ".repeat(8)), "{format}");
        let cells = text.lines().filter(|_| format == "csv").flat_map(|line| line.split([',', ';']));
        let mut cells = cells.map(|cell| cell.trim_start_matches([' ', '"']));
        assert!(cells.all(|cell| !cell.starts_with(['=', '@'])), "{text}");
    }
}

#[test]
fn sync_prints_team_names_and_accepts_them() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..1);
    service.world().add_team("team-two");
    let [since, day] = SINCE;
    let first = program.sync(&[since, day, "--team", "Team team-two"]).ended(0);
    assert!(first.stderr.contains("team Team team-two (team-two): "), "{}", first.stderr);
    let teams = program.sql("SELECT DISTINCT team_id FROM coverage");
    assert_eq!(teams.len(), 1, "{teams:?}");
    let planned = program.run(&["plan", since, day, "--team", "team team-ONE"]).ended(0);
    assert!(planned.stdout.contains("│ Team team-one ┆") && !planned.stdout.contains("team-two"), "{}", planned.stdout);
    program.sync(&["--team", "Team team-three"]).ended(2).says(&["unknown team \"Team team-three\"", "did you mean"]);
    service.world().add_team("team-three");
    service.world().team("team-three").name = "Team team-one".to_owned();
    program.sync(&["--team", "Team team-one"]).ended(2).says(&["give the id of one: team-one, team-three"]);
}

/// Requests one path from the daemon's port.
fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer[9..12].parse().unwrap(), answer)
}

#[test]
fn the_page_and_the_api_show_teams_by_name() {
    let place = named(&[("t1", "Lighthouse VFX"), ("t2", RED), ("t3", "Lab"), ("t4", "Lab")]);
    let config = "[api]\nbase_url = \"http://127.0.0.1:1\"\n[http]\nlisten = \"127.0.0.1:0\"\n";
    #[expect(clippy::disallowed_methods, reason = "files of tests need not be durable")]
    std::fs::write(place.path().join("annals.toml"), config).unwrap();
    let mut command = place.command(&["run"]);
    command.env("ANNALS_TOKEN", "a-token").stdout(Stdio::null()).stderr(Stdio::piped());
    let mut daemon = command.spawn().unwrap();
    let mut lines = BufReader::new(daemon.stderr.take().unwrap()).lines();
    let ready = lines.find_map(|line| {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap_or_default();
        (line["message"] == "ready").then(|| line["listen"].as_str().unwrap().to_owned())
    });
    let address = ready.unwrap();
    let drained = std::thread::spawn(move || lines.for_each(drop));
    let (_, overview) = get(&address, "/");
    assert!(overview.contains("Lighthouse VFX") && !overview.contains("<script>alert"), "{overview}");
    assert!(!overview.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{overview}");
    for (path, status, words) in [
        ("/sessions?team=t1", 200, "<option value=\"t1\" selected>Lighthouse VFX</option>"),
        ("/sessions?team=Lighthouse+VFX", 200, "<option value=\"t1\" selected>Lighthouse VFX</option>"),
        ("/sessions", 200, "<option value=\"t3\">Lab (t3)</option>"),
        ("/reports/r01?team=Lighthouse+VFX&from=2026-10-10&to=2026-10-11", 200, ">Lighthouse VFX</td>"),
        ("/sessions?team=Lab", 400, "give the id of one: t3, t4"),
        ("/sessions?team=Lighthose+VFX", 404, "did you mean Lighthouse VFX?"),
        ("/api/findings?team=Lighthouse+VFX", 200, "\"findings\""),
        ("/api/ledger?team=lighthouse%20vfx", 200, "\"team_name\":\"Lighthouse VFX\""),
        ("/api/sessions?team=Lab", 400, "give the id of one: t3, t4"),
        ("/api/sessions?team=nobody", 404, "unknown team"),
    ] {
        let (answered, body) = get(&address, path);
        assert_eq!(answered, status, "{path}: {body}");
        assert!(body.contains(words), "{path}: {body}");
        assert!(path.starts_with("/api/") || !body.contains("<script>alert"), "{path}: {body}");
    }
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    drained.join().unwrap();
}

/// Measures the cost of a thousand names beside a thousand ledgers. It prints, and asserts nothing about time.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::print_stdout, reason = "a measurement is printed")]
fn names_of_a_thousand_teams() {
    let place = Place::empty();
    for nth in 0..1_000 {
        call(&place, &format!("team-{nth:04}"), &format!("Team number {nth}"), "2026-10-11T00:00:00Z");
    }
    let (archive, clock) = (place.opened(), SystemClock::new());
    for _ in 0..3 {
        let begun = clock.monotonic();
        let readers: Vec<_> = archive.teams().unwrap().iter().map(|team| archive.read(team).unwrap()).collect();
        let read = clock.monotonic();
        let mut names = TeamNames::default();
        readers.iter().for_each(|reader| names.put_archived(&archive, reader.state()));
        println!("1,000 ledgers: {:?}; their names: {:?}", read - begun, clock.monotonic() - read);
        assert_eq!(names.label("team-0999"), "Team number 999");
    }
}
