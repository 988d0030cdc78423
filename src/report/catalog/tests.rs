//! The catalog: valid files, and the message for each fault in a file.

use std::io::Write as _;

use jiff::tz::TimeZone;

use super::*;
use crate::model::Instant;

const GOOD: &str = "-- id: R77\n-- title: T\n-- question: Q?\n-- controls: A 1; B 2\n\
    -- param: n integer = 10 | how many\n-- param: who text = null | of whom\n-- param: at date | when\n\
    -- chart: columns x=a y=b series=c log | Title\n-- severity: column\n-- note: one\n-- note: two\n-- needs: verify\n\
    \nSELECT $n AS a;\n-- chart rows\nSELECT a FROM report;\n";

fn parse(text: &str) -> Result<Report, CatalogError> {
    Report::parse(Path::new("x/r77-some-name.sql"), text, Origin::File("x/r77-some-name.sql".into()))
}

fn fault(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::File::create(folder.join(name)).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_valid_header_is_parsed() {
    let report = parse(GOOD).unwrap();
    assert_eq!((report.id.as_str(), report.name.as_str()), ("R77", "some-name"));
    assert_eq!(report.controls, ["A 1", "B 2"]);
    assert_eq!(report.notes, ["one", "two"]);
    assert!(report.needs_verify);
    assert_eq!(report.severity, Some(SeverityRule::Column));
    let kinds: Vec<_> = report.params.iter().map(|param| (param.kind, param.default.clone())).collect();
    let expected = [
        (ParamKind::Integer, ParamDefault::Text("10".into())),
        (ParamKind::Text, ParamDefault::Null),
        (ParamKind::Date, ParamDefault::Required),
    ];
    assert_eq!(kinds, expected);
    let chart = report.chart.as_ref().unwrap();
    assert_eq!((chart.kind, chart.column(ChartRole::Series), chart.is_log), (ChartKind::Columns, Some("c"), true));
    assert_eq!((report.rows.sql.as_str(), report.rows.line), ("SELECT $n AS a", 14));
    assert_eq!(report.chart_rows.as_ref().unwrap().line, 16);
    assert_eq!(report.sha256, crate::model::Digest::of(GOOD.as_bytes()));
}

#[test]
fn every_fault_is_reported_with_its_line() {
    for (from, to, expected) in [
        ("-- id: R77\n", "", "x/r77-some-name.sql:11: the header has no `-- id: …` line"),
        ("R77", "7", "sql:1: \"7\" is not an id"),
        ("-- title: T", "-- title:", "sql:2: title: the value is missing"),
        ("-- title: T", "-- id: R1", "sql:2: id occurs twice"),
        ("-- title: T", "-- titel: T", "sql:2: unknown key \"titel\""),
        ("-- title: T", "-- just talk", "sql:2: expected `-- key: value`"),
        ("n integer = 10", "n integer = ten", "sql:5: \"ten\" is not a whole number"),
        ("n integer = 10", "n int = 10", "sql:5: unknown type \"int\": expected one of integer, number"),
        ("n integer = 10", "N integer = 10", "sql:5: \"N\" is not a parameter name"),
        ("n integer = 10", "from date", "sql:5: parameter from is built in"),
        ("n integer = 10", "n integer from 11 = 10", "sql:5: \"10\" is outside its range: 11 or more"),
        ("n integer = 10", "n integer from 9 to 5 = 9", "sql:5: parameter n: the range from 9 to 5 is empty"),
        ("n integer = 10", "n integer from one = 10", "sql:5: parameter n: from one: \"one\" is not of type integer"),
        ("n integer = 10", "n integer to = 10", "sql:5: parameter n: a value is missing after \"to\""),
        (
            "n integer = 10",
            "n integer up to 9 = 10",
            "sql:5: parameter n: \"up\" after the type: expected from MIN to MAX",
        ),
        ("n integer = 10", "n integer of 1,2 = 1", "sql:5: parameter n: only text and list can have a choice"),
        (
            "who text = null",
            "who text from a to b = a",
            "sql:6: parameter who: only integer, number and duration can have a range",
        ),
        ("who text = null", "who text of a,b = c", "sql:6: \"c\" is not one of a, b"),
        ("who text", "n text", "sql:6: parameter n is declared twice"),
        ("columns x=a", "pie x=a", "sql:8: unknown chart \"pie\""),
        ("columns x=a", "columns", "sql:8: chart columns needs x=COLUMN"),
        ("y=b", "z=b", "sql:8: unknown chart role \"z\""),
        ("severity: column", "severity: bad", "sql:9: unknown severity \"bad\""),
        ("needs: verify", "needs: love", "sql:12: unknown need \"love\""),
        ("SELECT a FROM report;", "SELECT 1; SELECT 2;", "sql:16: unexpected third statement"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let message = fault(&GOOD.replacen(from, to, 1));
        assert!(message.contains(expected) && !message.contains('\n'), "{to}: {message}");
    }
    assert!(fault(&GOOD[..GOOD.find("\nSELECT").unwrap()]).contains("the query after the header is missing"));
    assert!(
        Report::parse(Path::new("a b.sql"), GOOD, Origin::Embedded)
            .unwrap_err()
            .to_string()
            .contains("not a report file name")
    );
}

#[test]
fn values_are_checked_before_anything_runs() {
    let report = parse(GOOD).unwrap();
    let now: Instant = "2026-11-20T08:00:00Z".parse().unwrap();
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    let values = |given: &[(&str, &str)]| {
        let given: Vec<_> = given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        report.values(&given, now, &berlin).map_err(|e| e.to_string())
    };
    let good = values(&[("at", "2026-07-01"), ("who", "'; DROP TABLE x; --")]).unwrap();
    assert_eq!(good["n"], ParamValue::Integer(10));
    assert_eq!(good["at"], ParamValue::At("2026-06-30T22:00:00Z".parse().unwrap()));
    assert_eq!(good["who"], ParamValue::Text("'; DROP TABLE x; --".into()));
    for (given, expected) in [
        (&[][..], "report R77: parameter at is missing: give --param at=date"),
        (&[("at", "-1d"), ("at", "-2d")], "at occurs twice"),
        (&[("att", "-1d")], "no parameter \"att\"; did you mean at?; its parameters are n, who, at"),
        (&[("as_of", "-1d")], "as_of is not a --param: use the flag --as-of"),
        (&[("at", "soon")], "parameter at: \"soon\" is not a date"),
        (&[("at", "-1d"), ("n", "1.5")], "parameter n: \"1.5\" is not a whole number"),
        (&[("at", "-1d"), ("n", "1; DROP")], "is not a whole number"),
        (&[("at", " ")], "report R77: parameter at is missing: give --param at=date (when)"),
    ] {
        let message = values(given).unwrap_err();
        assert!(message.contains(expected), "{given:?}: {message}");
    }
}

#[test]
fn ranges_of_parameters_include_both_ends() {
    let now: Instant = "2026-11-20T08:00:00Z".parse().unwrap();
    for (declared, good, bad, range) in [
        ("n integer from 1 to 5 = 2", &["1", "5"][..], &["0", "6", "-9223372036854775808"][..], "from 1 to 5"),
        ("n integer from -3 = 0", &["-3", "9223372036854775807"], &["-4"], "-3 or more"),
        ("n number from 0 to 1 = 0.5", &["0", "1", "0.999", "-0"], &["-0.001", "1.0001", "1e300"], "from 0 to 1"),
        ("n duration from 1m to 2h = 1h", &["60s", "2h"], &["59s", "121m", "0s"], "from 1m to 2h"),
        ("n duration to 2h = 1h", &["0s"], &["3h"], "2h or less"),
        ("n text of on,off = on", &["OFF"], &["", "of"], "one of on, off"),
        ("n list of mon,tue = mon", &["", "Tue, MON"], &["mon,wed", "monday"], "one of mon, tue"),
        (
            "n list of dates = null",
            &["", "2026-12-25,2026-12-26"],
            &["25.12.2026", "2026-02-30", "20261225"],
            "a day such as",
        ),
    ] {
        let param: Param = declared.parse().unwrap();
        for good in good {
            assert!(param.value(good, now, &TimeZone::UTC).is_ok(), "{declared}: {good}");
        }
        for bad in bad {
            let refused = param.value(bad, now, &TimeZone::UTC).unwrap_err();
            let item = bad.rsplit(',').next().unwrap();
            assert!(refused.contains(range) && refused.contains(&format!("{item:?}")), "{declared}: {bad}: {refused}");
        }
    }
}

#[test]
fn a_time_of_day_reaches_24_00() {
    let value = |text: &str| ParamKind::Time.value(text, Instant::EARLIEST, &TimeZone::UTC).ok();
    for (text, seconds) in [("00:00", 0), ("07:30", 27_000), ("23:59:59", 86_399), ("24:00", 86_400)] {
        assert_eq!(value(text), Some(ParamValue::Time(seconds * 1_000_000)), "{text}");
        assert_eq!(value(text).unwrap().to_json(), text);
    }
    for text in ["", "7:30", "25:00", "24:00:01", "07:60", "07", "07:30:61", "07:30:00:00", "-1:00", "+7:30", "noon"] {
        assert_eq!(value(text), None, "{text}");
    }
}

#[test]
fn each_type_accepts_only_its_values() {
    let now: Instant = "2026-11-20T08:00:00Z".parse().unwrap();
    for (kind, good, bad) in [
        (ParamKind::Integer, "-5", "5x"),
        (ParamKind::Number, "2.5", "NaN"),
        (ParamKind::Boolean, "true", "yes"),
        (ParamKind::Duration, "1h30m", "90"),
        (ParamKind::Date, "-90d", "tomorrow"),
        (ParamKind::Time, "07:00", "7 o'clock"),
        (ParamKind::Text, "anything 'at' all", "zero\0byte"),
    ] {
        assert!(kind.value(good, now, &TimeZone::UTC).is_ok(), "{kind} {good}");
        let message = kind.value(bad, now, &TimeZone::UTC).unwrap_err();
        assert!(message.contains(&format!("{bad:?}")), "{kind} {bad}: {message}");
    }
    let list = ParamKind::List.value("a, 'b' ,,\"c\"", now, &TimeZone::UTC).unwrap();
    assert_eq!(list, ParamValue::List(vec!["a".into(), "'b'".into(), "\"c\"".into()]));
    assert_eq!(ParamKind::List.value("", now, &TimeZone::UTC).unwrap(), ParamValue::List(Vec::new()));
}

#[test]
fn every_built_in_report_is_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("queries");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = files.filter(|name| name.ends_with(".sql")).collect();
    files.sort();
    let embedded: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).collect();
    assert_eq!(embedded, files);
    let catalog = Catalog::embedded();
    let faults: Vec<String> = catalog.faults().iter().map(ToString::to_string).collect();
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(catalog.reports().len(), files.len());
    for report in catalog.reports() {
        let file = report.path().file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(file, format!("{}-{}.sql", report.id.to_lowercase(), report.name));
    }
}

#[test]
fn a_folder_adds_and_replaces_reports_and_keeps_faults_apart() {
    let folder = tempfile::tempdir().unwrap();
    let built_in = Catalog::embedded();
    let replaced = &built_in.reports()[0];
    write(folder.path(), "mine.sql", &GOOD.replace("R77", "M1"));
    write(folder.path(), "own.sql", &GOOD.replace("R77", &replaced.id.to_lowercase()));
    write(folder.path(), "second.sql", &GOOD.replace("R77", "m1"));
    write(folder.path(), "r98-broken.sql", "SELECT 1");
    write(folder.path(), "notes.txt", "no report");
    let mut catalog = Catalog::embedded().with_folder(folder.path()).unwrap();
    assert_eq!(catalog.reports().len(), built_in.reports().len() + 1);
    assert_eq!(catalog.find("own").unwrap().overrides.as_deref(), Some(replaced.id.as_str()));
    assert_eq!(catalog.find(&replaced.id).unwrap().name, "own");
    assert_eq!(catalog.find("M1").unwrap().name, "mine");
    let faults: Vec<String> = catalog.faults().iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("r98-broken.sql:1: the header has no"), "{}", faults[0]);
    assert!(faults[1].contains("has the same report id m1") && faults[1].contains("mine.sql"), "{}", faults[1]);
    assert!(catalog.find("R98").unwrap_err().to_string().contains("r98-broken.sql:1"));
    assert!(matches!(catalog.find("nothing-like-it"), Err(CatalogError::Unknown { .. })));
    assert!(Catalog::embedded().with_folder(&folder.path().join("nowhere")).is_err());
}
