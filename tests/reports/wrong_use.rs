//! Wrong use of a report: one clear message, code 2, and no output.

use crate::reporting;

use reporting::Place;

const HEAD: &str = "-- id: M1\n-- title: T\n-- question: Q?\n";
const PARAMS: &str = "-- id: M2\n-- title: T\n-- question: Q?\n-- param: who text = null\n-- param: many integer = 2\n\
    -- param: span duration = 1h\n-- param: names list = a,b\n-- param: share number = 0.5\n-- param: on boolean = true\n\
    -- param: day date = 2026-07-01\n-- param: clock time = 07:00\n\
    SELECT $who AS who, $many AS many, $span AS span, $names AS names, $share AS share, $on AS flag, $day AS day,\n    $clock AS clock;\n\
    -- chart rows\nSELECT who, $many AS n FROM report;\n";

fn place() -> Place {
    let place = Place::one_event();
    place.own_report("params.sql", PARAMS);
    place
}

#[test]
fn parameters_are_checked() {
    let place = place();
    for (params, expected) in [
        (&["nobody=x"][..], "report M2: the report has no parameter \"nobody\"; its parameters are who, many"),
        (&["whom=x"], "no parameter \"whom\"; did you mean who?"),
        (&["many=x"], "parameter many: \"x\" is not a whole number"),
        (&["many="], "parameter many: \"\" is not a whole number"),
        (&["many=2.5"], "is not a whole number"),
        (&["many=99999999999999999999"], "is not a whole number"),
        (&["share=much"], "parameter share: \"much\" is not a number"),
        (&["share=inf"], "is not a number"),
        (&["on=1"], "parameter on: \"1\" is not true or false"),
        (&["span=90"], "\"90\" is not a duration"),
        (&["day=2026-02-30"], "parameter day: \"2026-02-30\" is not a date"),
        (&["many=1", "many=1"], "parameter many occurs twice"),
        (&["many"], "expected NAME=VALUE"),
        (&["=5"], "expected NAME=VALUE"),
        (&["from=2026-01-01"], "from is not a --param: use the flag --from"),
        (&["as_of=2026-01-01"], "as_of is not a --param: use the flag --as-of"),
    ] {
        let arguments: Vec<&str> = params.iter().flat_map(|param| ["--param", param]).collect();
        place.run_own("params", &arguments).is_wrong_use(expected);
    }
    place.own_report("needy.sql", &format!("{HEAD}-- param: who text | whose\nSELECT $who AS who"));
    place.run_own("needy", &[]).is_wrong_use("report M1: parameter who is missing: give --param who=text");
}

/// No message uses the engine's words, and no wrong value is accepted as another one.
#[test]
fn an_invalid_value_is_refused_with_its_range() {
    let place = Place::one_event();
    for (report, param, expected) in [
        ("r18", "percentile=1.5", "report R18: parameter percentile: \"1.5\" is outside its range: from 0 to 1"),
        ("r18", "percentile=-0.1", "\"-0.1\" is outside its range: from 0 to 1"),
        ("r18", "percentile=NaN", "parameter percentile: \"NaN\" is not a number"),
        ("r18", "percentile=1e999", "parameter percentile: \"1e999\" is not a number"),
        ("r18", "percentile_sessions=-5", "\"-5\" is outside its range: from 1 to 1000000000"),
        ("r18", "long=-12h", "parameter long: \"-12h\" is not a duration"),
        ("r18", "long=0s", "parameter long: \"0s\" is outside its range: from 1s to 36500d"),
        ("r14", "opens=25:00", "report R14: parameter opens: \"25:00\" is not a time of day such as 07:00"),
        ("r14", "closes=-07:00", "parameter closes: \"-07:00\" is not a time of day"),
        ("r14", "opens=", "parameter opens: \"\" is not a time of day"),
        ("r14", "workdays=mon,someday", "parameter workdays: \"someday\" is not one of mon, tue, wed"),
        ("r14", "holidays=25.12.2026", "parameter holidays: \"25.12.2026\" is not a day such as 2026-12-25"),
        (
            "r15",
            "history_days=9999999999",
            "parameter history_days: \"9999999999\" is outside its range: from 1 to 36500",
        ),
        ("r02", "burst_count=0", "parameter burst_count: \"0\" is outside its range: from 1 to 1000000"),
        ("r25", "keep_at_most_days=-1", "parameter keep_at_most_days: \"-1\" is outside its range"),
        ("r21", "aliases=x", "report R21: parameter subject is missing: give --param subject=text (an email address"),
        ("r21", "subject= ", "report R21: parameter subject is missing"),
    ] {
        place.run(&["report", "run", report, "--param", param]).is_wrong_use(expected);
    }
    place.run(&["report", "run", "dossier"]).is_wrong_use("parameter subject is missing");
    let shown = place.run(&["report", "show", "r18"]);
    assert!(shown.text().contains("parameter: percentile (number, from 0 to 1; default: 0.99) "), "{}", shown.text());
    assert_eq!(place.run(&["report", "run", "r14", "--param", "closes=24:00"]).code, 0, "a day ends then");
}

#[test]
fn values_never_become_sql() {
    let place = place();
    for hostile in [
        "'; DROP VIEW connections; --",
        "' OR 1=1 --",
        "$many",
        "getvariable('x')",
        "x'); ATTACH 'a.db'; SELECT ('",
        "ünï ;\"\\ 'quoted'\n\ttext",
        "=1+1",
        "null",
        "",
    ] {
        let param = format!("who={hostile}");
        let names = format!("names={hostile}, b");
        let outcome = place.run_own("params", &["--param", &param, "--param", &names, "--format", "json"]);
        assert_eq!(outcome.code, 0, "{hostile}: {}", outcome.stderr);
        let answer = outcome.json();
        assert_eq!((&answer["rows"][0]["who"], &answer["about"]["params"]["who"]), (&hostile.into(), &hostile.into()));
        let list: Vec<String> = serde_json::from_str(answer["rows"][0]["names"].as_str().unwrap()).unwrap();
        let items: Vec<&str> = hostile.split(',').chain(["b"]).map(str::trim).filter(|item| !item.is_empty()).collect();
        assert_eq!(list, items);
    }
    let typed = ["many=-7", "span=1h30m", "share=0.25", "on=false", "day=2026-07-02", "clock=07:30"]
        .map(|param| ["--param", param]);
    let typed = typed.concat();
    let outcome = place.run_own("params", &[&typed[..], &["--tz", "Europe/Berlin", "--format", "json"]].concat());
    assert_eq!(
        outcome.json()["rows"][0],
        serde_json::json!({"who": null, "many": -7, "span": 5400, "names": "[\"a\",\"b\"]", "share": 0.25, "flag": false,
                           "day": "2026-07-01T22:00:00", "clock": "07:30:00"})
    );
}

#[test]
fn dates_zones_names_and_formats_are_checked() {
    let place = place();
    for (arguments, expected) in [
        (&["r23", "--from", "2026-13-01"][..], "\"2026-13-01\" is not a date: give 2026-11-20"),
        (&["r23", "--from", "30d"], "is not a date"),
        (&["r23", "--to", "yesterday"], "is not a date"),
        (&["r23", "--from", ""], "is not a date"),
        (&["r23", "--to", "1999-12-31"], "is outside the years 2000 to 2099"),
        (&["r23", "--as-of", "soon"], "is not a date"),
        (
            &["r23", "--from", "2026-10-02", "--to", "2026-10-02"],
            "the period is empty: it begins and ends at 2026-10-02T00:00:00Z",
        ),
        (&["r23", "--from", "-1d", "--to", "-2d"], "the period ends before it begins: it begins at "),
        (&["r23", "--tz", "Europe/Berlim"], "did you mean Europe/Berlin"),
        (&["r23", "--tz", "prague"], "did you mean Europe/Prague?"),
        (&["r23", "--tz", "'; DROP"], "unknown time zone"),
        (&["r23", "--team", "nobody"], "unknown team \"nobody\": the known teams are acme"),
        (&["collection-helth"], "did you mean collection-health?"),
        (&["r999"], "no report has the name \"r999\""),
        (&[""], "no report has the name \"\""),
        (&["r23", "--format", "pdf"], "unknown format \"pdf\""),
        (&["r23", "--fail-on", "fatal"], "unknown severity \"fatal\": expected info, low, medium, high or critical"),
        (&["r23", "--queries", "nowhere"], "cannot read nowhere"),
    ] {
        place.run(&[&["report", "run"], arguments].concat()).is_wrong_use(expected);
    }
    place.run(&["report", "show", "r999"]).is_wrong_use("annals report list");
    place.run(&["report", "run", "r23", "--archive", "elsewhere"]).is_wrong_use("no archive exists here");
}

#[test]
fn wrong_sql_is_reported_with_file_and_line() {
    let place = place();
    for (sql, expected) in [
        ("SELECT 1 +", "own/m1.sql:4: syntax error at end of input"),
        ("SELECT 1,\n  2,\n  FORM x y z", "own/m1.sql:6: syntax error"),
        ("SELEKT 1", "own/m1.sql:4: syntax error"),
        (
            "SELECT\n  1,\n  nothing\nFROM connections",
            "own/m1.sql:6: Binder Error: Referenced column \"nothing\" not found",
        ),
        ("SELECT * FROM nowhere", "own/m1.sql:4: Catalog Error: Table with name nowhere does not exist"),
        (
            "SELECT $nobody AS x",
            "own/m1.sql:4: the query uses $nobody, which the header does not declare: it can use from, to",
        ),
        ("SELECT ? AS x", "which the header does not declare"),
        ("SELECT 'x'::INTEGER AS x", "Conversion Error"),
        ("SELECT error('on purpose') AS x", "on purpose"),
        ("SELECT error('bold\u{1b}[1m') AS x", "bold[1m"),
        ("SELECT 1 AS x;\n\nSELECT x FORM report", "own/m1.sql:6: "),
        ("", "the query after the header is missing"),
        ("SELECT 1; SELECT 2; SELECT 3", "unexpected third statement"),
    ] {
        place.own_report("m1.sql", &format!("{HEAD}{sql}"));
        place.run_own("m1", &[]).is_wrong_use(expected);
    }
    place.own_report("m1.sql", &format!("{HEAD}-- severity: column\nSELECT 1 AS x"));
    place
        .run_own("m1", &[])
        .is_wrong_use("own/m1.sql:5: the header says `severity: column`, but the query has no column");
    place.own_report("m1.sql", &format!("{HEAD}-- severity: column\nSELECT 'grave' AS severity"));
    place.run_own("m1", &[]).is_wrong_use("column severity: unknown severity \"grave\"");
}

#[test]
fn a_report_is_a_query_and_nothing_else() {
    let place = place();
    let victim = place.path().join("written.csv");
    for sql in [
        "COPY (SELECT 1) TO 'written.csv'",
        "DELETE FROM connections",
        "CREATE TABLE t AS SELECT 1",
        "ATTACH 'written.csv' AS w",
        "INSTALL httpfs",
        "LOAD icu",
        "SET enable_external_access = true",
        "SET VARIABLE x = 1",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "DROP VIEW connections",
        "EXPORT DATABASE 'written.csv'",
        "PREPARE p AS SELECT 1",
        "EXPLAIN ANALYZE SELECT 1",
        "BEGIN",
    ] {
        place.own_report("m1.sql", &format!("{HEAD}{sql}"));
        place.run_own("m1", &[]).is_wrong_use("own/m1.sql:4: a report can contain only SELECT");
        place.own_report("m1.sql", &format!("{HEAD}SELECT 1 AS x;\n{sql};\n"));
        place.run_own("m1", &[]).is_wrong_use("own/m1.sql:5: a report can contain only SELECT");
    }
    for sql in [
        "SELECT * FROM read_csv('annals.csv')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '../other.parquet'",
        "SELECT * FROM glob('*')",
        "SELECT * FROM read_parquet('https://example.com/x.parquet')",
        "SELECT * FROM read_json('own/m1.sql')",
        "SELECT * FROM query('SELECT * FROM read_text(''own/m1.sql'')')",
    ] {
        place.own_report("m1.sql", &format!("{HEAD}{sql}"));
        place.run_own("m1", &[]).is_wrong_use("own/m1.sql:4: a report reads the archive's views alone");
    }
    assert!(!victim.try_exists().unwrap());
}

#[test]
fn a_faulty_file_is_reported_and_blocks_no_other_report() {
    let place = place();
    place.own_report("r02-broken.sql", "-- id: R02\n-- title: T\nSELECT 1");
    place.own_report("twice.sql", PARAMS);
    let listed = place.run(&["report", "list", "--queries", "own", "--format", "csv"]);
    assert_eq!((listed.code, listed.stderr.lines().count()), (2, 2), "{listed:?}");
    assert!(listed.text().contains("M2,params,"), "{}", listed.text());
    assert!(
        listed.stderr.contains("own/r02-broken.sql:2: the header has no `-- question: …` line"),
        "{}",
        listed.stderr
    );
    assert!(listed.stderr.contains("own/params.sql has the same report id M2"), "{}", listed.stderr);
    // A faulty file that should replace a built-in report causes an error.
    place.run_own("r02", &[]).is_wrong_use("own/r02-broken.sql:2");
    assert_eq!(place.run_own("params", &[]).code, 0);
}

#[test]
fn a_folder_is_found_by_flag_environment_and_configuration_and_replaces() {
    let place = place();
    place.own_report(
        "r23-collection-health.sql",
        &HEAD.replace("M1", "R23").replace("T\n", "Mine\n").replace("?\n", "?\nSELECT 41 + 1 AS answer\n"),
    );
    let shows = |outcome: reporting::Outcome| {
        assert_eq!(outcome.code, 0, "{outcome:?}");
        outcome.text().contains("Mine")
    };
    assert!(!shows(place.run(&["report", "show", "r23"])));
    assert!(shows(place.run(&["report", "show", "r23", "--queries", "own"])));
    let output = place.command(&["report", "list"]).env("ANNALS_QUERIES", "own").output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.contains("own/r23-collection-health.sql, instead of the built-in R23"), "{listed}");
    let mut file = std::fs::File::create(place.path().join("annals.toml")).unwrap();
    std::io::Write::write_all(&mut file, b"queries = 'own'\n").unwrap();
    assert!(shows(place.run(&["report", "show", "collection-health"])));
    let answer = place.run(&["report", "run", "r23", "--format", "csv", "--bare"]);
    assert_eq!(answer.text(), "answer\n42\n");
}

#[test]
fn a_failed_report_leaves_the_output_file_unchanged() {
    let place = place();
    place.own_report("m1.sql", &format!("{HEAD}SELECT nothing FROM connections"));
    place.run_own("m1", &["-o", "out.csv"]).is_wrong_use("nothing");
    assert!(!place.path().join("out.csv").try_exists().unwrap());
}
