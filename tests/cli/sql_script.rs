//! `annals sql` over statements on standard input.

use std::io::Write;
use std::process::Stdio;

use crate::common;

use common::query_archive::Place;

/// Exit code, standard output and standard error of the program over `input`.
fn script(place: &Place, arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut command = place.command(&[&["sql"], arguments].concat());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("not killed"), text(output.stdout), text(output.stderr))
}

#[test]
fn statements_run_in_order_up_to_the_first_that_fails() {
    let place = Place::new();
    let input = "-- two; questions\nselect 1 as a; select 2\n  as b;\ncreate table t as select 3 as c;\nfrom t;\n\
                 select\n nothing\n from connections;\nselect 4 as d;";
    let (code, stdout, stderr) = script(&place, &["--format", "csv"], input);
    assert_eq!((code, stdout.as_str()), (2, "a\n1\nb\n2\nc\n3\n"), "{stderr}");
    assert!(
        stderr.starts_with("annals: the query cannot be answered: line 6: ") && stderr.lines().count() == 1,
        "{stderr}"
    );
    let (code, stdout, _) = script(&place, &["--format", "csv"], "select ';' as a -- no end");
    assert_eq!((code, stdout.as_str()), (0, "a\n;\n"));
    assert_eq!(script(&place, &[], " \n-- nothing\n"), (0, String::new(), String::new()));
}

#[test]
fn an_argument_of_several_statements_gives_the_answer_of_each() {
    let place = Place::new();
    let (code, stdout, stderr) =
        place.run(&["sql", "SET threads = 1; SELECT 1 AS a; SELECT 2 AS b", "--format", "csv"]);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "a\n1\nb\n2\n", ""));
    let (code, stdout, stderr) = place.run(&["sql", "SELECT 1 AS a;\nSELECT nothing", "--format", "csv"]);
    assert!(code == 2 && stdout == "a\n1\n" && stderr.contains(": line 2: "), "{stdout} {stderr}");
}

#[test]
fn commands_may_be_between_statements() {
    let place = Place::new();
    let file = place.directory.path().join("more.sql");
    std::fs::File::create(&file).expect("a file").write_all(b"select 5 as five;\n.format ndjson\n").expect("written");
    let input = ".tables\n.schema findings\n.format csv\n.read more.sql\nselect 6 as six;\n.exit\nselect 7;";
    let (code, stdout, stderr) = script(&place, &[], input);
    assert_eq!((code, stderr.as_str()), (0, ""));
    for view in ["activity\n", "billing\n", "connections\n", "coverage\n", "findings\n", "quarantine\n"] {
        assert!(stdout.contains(view), "{stdout}");
    }
    assert!(stdout.contains("findings (\n  team_id VARCHAR,\n  stream VARCHAR,\n"), "{stdout}");
    assert!(stdout.contains("\n  ledger_seq BIGINT\n)\n"), "{stdout}");
    assert!(stdout.ends_with("five\n5\n{\"six\":6}\n"), "{stdout}");
    for (input, reason) in [
        (".nonsense\nselect 1;", "line 1: unknown command \".nonsense\""),
        ("select 1;\n.schema nowhere", "line 2: no table or view has the name \"nowhere\""),
        (".read nowhere.sql", "line 1: cannot read nowhere.sql"),
        (".format xlsx", "line 1: unknown format"),
    ] {
        let (code, _, stderr) = script(&place, &[], input);
        assert!(code == 2 && stderr.contains(reason), "{input}: {code} {stderr}");
    }
}

#[test]
fn a_file_that_reads_itself_ends() {
    let place = Place::new();
    let file = place.directory.path().join("round.sql");
    std::fs::File::create(&file).expect("a file").write_all(b".read round.sql\n").expect("written");
    let (code, _, stderr) = script(&place, &[], ".read round.sql");
    assert!(code == 2 && stderr.contains(".read is nested more than 16 files deep"), "{stderr}");
}

#[test]
fn answers_go_to_files() {
    let place = Place::new();
    let input =
        ".output out.csv\nselect 1 as a; select 2 as b;\n.output out.json\nselect 3 as c;\n.output\nselect 4 as d;";
    let (code, stdout, stderr) = script(&place, &["--format", "ndjson"], input);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "{\"d\":4}\n", ""));
    let read = |name: &str| std::fs::read_to_string(place.directory.path().join(name)).expect(name);
    assert_eq!(read("out.csv"), "a\n1\nb\n2\n");
    assert_eq!(read("out.json"), "[\n{\"c\":3}\n]\n");
    let (code, stdout, _) = script(&place, &["-o", "whole.csv"], "select 1 as a; select 2 as b;");
    assert_eq!((code, stdout.as_str(), read("whole.csv").as_str()), (0, "", "a\n1\nb\n2\n"));
    assert_eq!(script(&place, &["-o", "half.csv"], "select 1 as a; select nothing;").0, 2);
    assert!(!place.directory.path().join("half.csv").try_exists().expect("readable"));
    let (code, _, stderr) = script(&place, &["-o", "two.parquet"], "select 1 as a; select 2 as b;");
    assert!(code == 2 && stderr.contains("a parquet file holds one answer"), "{stderr}");
}

#[test]
fn a_plan_keeps_its_lines() {
    let place = Place::new();
    let (code, stdout, _) = script(&place, &[], "explain select count(*) from coverage;");
    assert!(
        code == 0 && stdout.lines().count() > 5 && stdout.lines().all(|line| line.chars().count() < 300),
        "{stdout}"
    );
}
