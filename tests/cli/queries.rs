//! Questions to an archive through the command line: `sql`, `connect`, `files`, `quarantine list`.

use std::path::Path;
use std::process::Stdio;

use crate::common;

use common::query_archive::Place;

#[test]
fn a_question_is_answered_in_every_text_format() {
    let place = Place::new();
    let sql = "SELECT team_id, count(*) AS events, max(event_time) AS last FROM connections GROUP BY ALL ORDER BY ALL";
    for (format, expected) in [
        ("csv", "team_id,events,last\nO'Brien & söhne,6,2026-11-19T02:00:00\nacme,6,2026-11-19T02:00:00\n"),
        (
            "ndjson",
            "{\"team_id\":\"O'Brien & söhne\",\"events\":6,\"last\":\"2026-11-19T02:00:00\"}\n\
             {\"team_id\":\"acme\",\"events\":6,\"last\":\"2026-11-19T02:00:00\"}\n",
        ),
        (
            "markdown",
            "| team\\_id | events | last |\n| --- | ---: | --- |\n\
             | O'Brien &amp; söhne | 6 | 2026-11-19T02:00:00 |\n| acme | 6 | 2026-11-19T02:00:00 |\n",
        ),
    ] {
        assert_eq!(place.answer(&["sql", sql, "--format", format]), expected, "{format}");
    }
    let table = place.answer(&["sql", sql]);
    assert!(table.contains("acme") && table.contains("│") && table.lines().count() >= 5, "{table}");
    let hostile =
        place.answer(&["sql", "SELECT any_value(computer_host_name) AS h FROM connections", "--format", "csv"]);
    assert_eq!(hostile, "h\n'=cmd|' /C calc'!A0\n");
}

#[test]
fn every_view_counts_what_was_committed() {
    let place = Place::new();
    let counts = ["activity", "connections", "billing", "quarantine", "coverage", "findings"]
        .map(|view| place.answer(&["sql", &format!("SELECT count(*) AS n FROM {view}"), "--format", "csv"]));
    assert_eq!(counts, [0, 12, 0, 1, 4, 1].map(|n| format!("n\n{n}\n")));
    let gaps = "SELECT window_start, state, events, gaps FROM coverage WHERE team_id = 'acme' ORDER BY 1";
    assert_eq!(
        place.answer(&["sql", gaps, "--format", "csv"]),
        "window_start,state,events,gaps\n2026-11-18T00:00:00,settled,3,1\n2026-11-19T00:00:00,settled,3,0\n"
    );
}

#[test]
fn sessions_that_lack_events_are_named_by_status_and_beside_an_answer() {
    let place = Place::new();
    let said = "sessions are not complete";
    for (statements, is_named) in [
        ("SELECT count(*) AS n FROM sessions", true),
        ("SELECT count(*) AS n FROM sessions; SELECT 1 AS n", true),
        ("SELECT count(*) AS n FROM connections", false),
    ] {
        let (code, stdout, stderr) = place.run(&["sql", statements, "--format", "csv"]);
        assert_eq!((code, stderr.matches(said).count()), (0, usize::from(is_named)), "{statements}: {stderr}");
        assert!(!stdout.contains(said), "{stdout}");
    }
    let status = place.answer(&["status"]);
    assert_eq!(status.matches(said).count(), 2, "both teams: {status}");
    let status: serde_json::Value = serde_json::from_str(&place.answer(&["status", "--json"])).expect("JSON");
    assert_eq!(status["teams"][0]["sessions_lack"], "2026-11-18T00:00:00Z");
}

#[test]
fn a_query_comes_from_standard_input_too() {
    let place = Place::new();
    let query = place.directory.path().join("query.sql");
    std::io::Write::write_all(&mut std::fs::File::create(&query).expect("a file"), b"SELECT 1 AS one")
        .expect("written");
    for arguments in [&["sql", "--format", "csv"][..], &["sql", "-", "--format", "csv"]] {
        let input = std::fs::File::open(&query).expect("the query");
        let output = place.command(arguments).stdin(input).output().expect("the program runs");
        assert_eq!(output.stdout, b"one\n1\n", "{arguments:?}");
    }
}

#[test]
fn a_wrong_query_is_code_2_with_one_clear_line_and_leaves_the_file_as_it_was() {
    let place = Place::new();
    let (code, stdout, stderr) = place.run(&["sql", "SELECT nothing FROM connections", "-o", "out.csv"]);
    assert_eq!((code, stdout.as_str(), stderr.lines().count()), (2, "", 1), "{stderr}");
    assert!(stderr.starts_with("annals: the query cannot be answered: ") && stderr.contains("nothing"), "{stderr}");
    assert!(!place.directory.path().join("out.csv").try_exists().expect("the directory can be read"));
}

#[test]
fn the_file_s_ending_chooses_the_format() {
    let place = Place::new();
    let sql = "SELECT count(*) AS n FROM connections";
    assert_eq!(place.answer(&["sql", sql, "-o", "out.json"]), "");
    assert_eq!(
        std::fs::read_to_string(place.directory.path().join("out.json")).expect("written"),
        "[\n{\"n\":12}\n]\n"
    );
    assert_eq!(place.answer(&["sql", "FROM connections", "-o", "out.parquet"]), "");
    assert_eq!(place.answer(&["sql", "SELECT count(*) AS n FROM 'out.parquet'", "--format", "csv"]), "n\n12\n");
}

#[test]
fn files_lists_every_live_file_by_its_absolute_path() {
    let place = Place::new();
    let listed = place.answer(&["files", "connections"]);
    let paths: Vec<&Path> = listed.lines().map(Path::new).collect();
    assert_eq!(paths.len(), 4, "{listed}");
    for path in paths {
        assert!(path.is_absolute() && path.is_file(), "{}", path.display());
    }
    assert_eq!(place.answer(&["files", "billing"]), "");
    let (code, _, stderr) = place.run(&["files", "coverage"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("connections"), "{stderr}");
}

#[test]
fn the_quarantine_names_each_reason() {
    let place = Place::new();
    assert_eq!(
        place.answer(&["quarantine", "list", "--format", "csv"]),
        "team_id,stream,event_id,event_time,reason,detail,first_seen_at\n\
         acme,activity,odd,,time_out_of_range,time 1 in Millis lies outside 2000 to 2100,2026-11-20T12:00:00\n"
    );
}

#[test]
fn another_client_sees_the_same_rows() {
    let place = Place::new();
    let sql = place.answer(&["connect"]);
    assert!(sql.contains("\n-- Only Annals has one_spelling(text) "), "{sql}");
    let client = duckdb::Connection::open_in_memory().expect("another client");
    // An engine built from source lacks the extension that the zone function needs.
    let views = if cfg!(feature = "bundled") { sql.split_once(";\n").expect("a macro first").1 } else { &sql };
    client.execute_batch(views).expect("the views exist");
    let count = |sql: &str| client.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("an answer");
    assert_eq!(count("SELECT count(*) FROM connections"), 12);
    assert_eq!(count("SELECT count(*) FROM coverage"), 4);
    assert_eq!(count("SELECT count(*) FROM ledger"), 2);
    assert_eq!(count("SELECT sum(rows)::BIGINT FROM archive_files"), 13);
    if !cfg!(feature = "bundled") {
        let local = "SELECT count(*) FROM connections WHERE hour(local_time(event_time, 'Asia/Tokyo')) = 11";
        let ours = place.answer(&["sql", local, "--format", "csv"]);
        assert_eq!(ours, format!("count_star()\n{}\n", count(local)));
        assert_eq!(count(local), 4);
    }
}

#[test]
fn without_an_archive_the_error_names_the_next_step() {
    let place = Place::new();
    let mut command = place.command(&["sql", "SELECT 1"]);
    let output = command.env("ANNALS_ARCHIVE", "elsewhere").output().expect("the program runs");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("elsewhere") && stderr.contains("annals sync"), "{stderr}");
}

#[test]
fn a_wrong_configuration_is_code_2_and_names_file_and_key() {
    let place = Place::new();
    let file = place.directory.path().join("annals.toml");
    std::io::Write::write_all(&mut std::fs::File::create(file).expect("a file"), b"[api]\ntokn_file = 'x'\n")
        .expect("written");
    let (code, stdout, stderr) = place.run(&["sql", "SELECT 1"]);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert!(stderr.contains("annals.toml: line 2: unknown key `tokn_file`"), "{stderr}");
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_fault() {
    let place = Place::new();
    let mut command = place.command(&["sql", "SELECT * FROM range(3000000)", "--format", "csv"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_variable_that_overrides_the_archive_of_the_file_is_named() {
    let place = Place::new();
    let file = place.directory.path().join("annals.toml");
    std::io::Write::write_all(&mut std::fs::File::create(file).expect("a file"), b"archive = 's3://audit/annals'\n")
        .expect("written");
    let (code, _, stderr) = place.run(&["files", "connections"]);
    assert!(code == 0 && stderr.contains("s3://audit/annals") && stderr.contains("ANNALS_ARCHIVE"), "{code}: {stderr}");
    place.answer(&["files", "connections", "--archive", "it's [an] archive"]);
    let checks = place.run(&["doctor", "--format", "csv"]).1;
    let configuration = checks.lines().find(|line| line.starts_with("configuration,warning,")).expect("a warning");
    assert!(configuration.contains("ANNALS_ARCHIVE"), "{configuration}");
}

/// `annals verify | head` in a script under `pipefail` must still tell of a fault.
#[test]
fn a_closed_pipe_hides_no_verdict() {
    let place = Place::new();
    let to_nobody = |arguments: &[&str]| {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = place.command(arguments).stdout(writer).output().expect("the program runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let period = ["--from", "2026-11-18", "--to", "2026-11-20"];
    for format in ["csv", "json", "parquet", "table"] {
        let report = [&["report", "run", "R23", "--fail-on", "info", "--format", format][..], &period].concat();
        let (code, stderr) = to_nobody(&report);
        assert!(code == Some(1) && stderr.contains("of severity info or higher"), "{format}: {code:?} {stderr}");
    }
    assert_eq!(to_nobody(&["verify"]), (Some(0), String::new()));
    let listed = place.answer(&["files", "connections"]);
    std::fs::remove_file(listed.lines().next().expect("a file")).expect("removed");
    for arguments in [&["verify"][..], &["verify", "--json"], &["copy", "it's [an] archive", "copy"], &["doctor"]] {
        assert_eq!(to_nobody(arguments).0, Some(1), "{arguments:?}");
    }
}

#[test]
fn verify_prints_the_counts_and_names_every_fault() {
    let place = Place::new();
    let clean = place.answer(&["verify"]);
    assert!(clean.contains(": SELF-CONSISTENT (unanchored)\n") && clean.contains("rows 13/13"), "{clean}");
    let head = clean.lines().find_map(|line| line.split_once(", head ")).expect("a head").1.split(' ').next();
    let head = head.expect("a digest");
    assert!(place.answer(&["verify", "--head", head]).contains(", anchored up to seq 1, "));
    let (code, stdout, _) = place.run(&["verify", "--head", &"0".repeat(64)]);
    assert!(code == 1 && stdout.contains("HEAD_ROLLBACK"), "{stdout}");
    let listed = place.answer(&["files", "connections"]);
    let victims: Vec<&str> = listed.lines().take(2).collect();
    for victim in &victims {
        std::fs::remove_file(victim).expect("removed");
    }
    let (code, _, stderr) = place.run(&["sql", "select count(distinct raw) from connections"]);
    assert!(code == 1 && stderr.contains("`annals verify` names every such file"), "{stderr}");
    let (code, stdout, stderr) = place.run(&["verify"]);
    assert_eq!((code, stdout.matches("FILE_MISSING").count(), stderr.as_str()), (1, 2, ""), "{stdout}");
    let (code, stdout, _) = place.run(&["verify", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((code, report["verdict"].as_str()), (1, Some("BROKEN")));
    assert_eq!(report["faults"].as_array().map(Vec::len), Some(2));
    assert_eq!(place.run(&["verify", "--archive", "nowhere"]).0, 2);
    assert_eq!(place.run(&["verify", "--head", "xyz"]).0, 2);
}

#[test]
fn a_file_of_heads_may_have_any_name_and_is_read_to_its_end() {
    let place = Place::new();
    let heads = place.answer(&["anchor"]) + "\n";
    let put = |name: &str, text: &str| {
        let path = place.directory.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::io::Write::write_all(&mut std::fs::File::create(path).expect("a file"), text.as_bytes()).expect("written");
    };
    // Editors on Windows begin a file with a byte order mark.
    for (name, mark) in [("annals/heads.txt", ""), (&*"h".repeat(64), ""), ("marked.txt", "\u{feff}")] {
        put(name, &format!("{mark}{heads}"));
        assert!(place.answer(&["verify", "--head", name]).contains(": ANCHORED"), "{name}");
    }
    assert!(place.answer(&["verify", "--head", &heads]).contains(": ANCHORED"));
    // The archive lost the line of the newest head, which follows more than a MiB of older heads.
    let long = heads.repeat((1 << 20) / heads.len() + 1) + &heads.replace("\n1\n", "\n9\n");
    put("long", &long);
    let (code, stdout, _) = place.run(&["verify", "--head", "long"]);
    assert!(code == 1 && stdout.contains("HEAD_ROLLBACK"), "{code}: {stdout}");
    let endless = std::fs::File::create(place.directory.path().join("endless")).expect("a file");
    endless.set_len(1 << 30).expect("a sparse file");
    let (code, _, stderr) = place.run(&["verify", "--head", "endless"]);
    assert!(code == 2 && stderr.contains("endless: the file is larger than"), "{code}: {stderr}");
}

/// Another user of the machine can plant files under a shared directory such as `/tmp`.
#[test]
fn a_user_without_a_home_has_the_cache_beside_the_configuration() {
    let place = Place::new();
    let file = place.directory.path().join("annals.toml");
    drop(std::fs::File::create(&file).expect("a file"));
    let arguments = ["--config", file.to_str().expect("text"), "cache", "status", "--format", "json"];
    for home in [None, Some("")] {
        let mut command = place.command(&arguments);
        command.env_remove("HOME").env_remove("XDG_CACHE_HOME").envs(home.map(|home| ("HOME", home)));
        let output = command.output().expect("the program runs");
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let expected = place.directory.path().join("annals-cache");
        assert_eq!(said[0]["directory"].as_str(), expected.to_str(), "{home:?}");
    }
}

#[test]
fn a_report_of_a_team_needs_no_valid_ledger_of_another_team() {
    let place = Place::new();
    let report = |team: &[&str]| {
        let period = ["--from", "2026-11-18", "--to", "2026-11-20", "--format", "csv", "--bare"];
        place.run(&[&["report", "run", "R23"], &period[..], team].concat())
    };
    let intact = ["--team", "O'Brien & söhne"];
    let before = report(&intact);
    assert!(before.0 == 0 && before.1.lines().count() > 1, "{before:?}");
    let ledger = place.archive().join("ledger/team=acme/2026-11-20.jsonl");
    let content = std::fs::read_to_string(&ledger).expect("a ledger");
    for (broken, line) in [(format!("{content}{{}}\n{{}}\n"), 2), (format!("x{content}"), 1)] {
        let mut file = std::fs::File::create(&ledger).expect("a file");
        std::io::Write::write_all(&mut file, broken.as_bytes()).expect("written");
        let (code, stdout, stderr) = report(&intact);
        assert_eq!((code, &stdout), (0, &before.1), "{stderr}");
        assert!(stderr.contains("leaves out team acme, also its holds"), "{stderr}");
        for refused in [&[][..], &["--team", "acme"]] {
            let (code, stdout, stderr) = report(refused);
            assert_eq!((code, stdout.as_str()), (1, ""), "{refused:?}: {stderr}");
            let said = ["no report shows team acme", "such as --team O'Brien & söhne", &format!("jsonl line {line}: ")];
            assert!(said.iter().all(|said| stderr.contains(said)), "{refused:?}: {stderr}");
        }
        for all in [&["sql", "SELECT 1"][..], &["status"], &["report", "pack", "--team", intact[1], "-o", "pack"]] {
            let (code, stdout, stderr) = place.run(all);
            assert!(code == 1 && stdout.is_empty() && stderr.contains("team=acme/"), "{all:?}: {stderr}");
        }
    }
}
