use crate::report::{Engine, Limits, ViewData};

use super::*;

fn print(sql: &str, format: Format, medium: Medium) -> String {
    let engine =
        Engine::open(ViewData::default(), &Limits { memory_mib: 256, threads: 1, ..Limits::default() }).unwrap();
    let mut out = Vec::new();
    let mut sink = sink_for(format, &mut out, medium);
    engine.query(sql, sink.as_mut()).unwrap();
    drop(sink);
    String::from_utf8(out).unwrap()
}

fn plain(sql: &str, format: Format) -> String {
    print(sql, format, Medium::default())
}

#[test]
fn json_keeps_digits_types_and_column_order() {
    for (sql, expected) in [
        ("9223372036854775807 AS z, -9223372036854775808 AS a", r#""z":9223372036854775807,"a":-9223372036854775808"#),
        ("sum(i) AS s FROM (VALUES (9223372036854775807), (1)) t(i)", r#""s":9223372036854775808"#),
        ("12345678901234567.890::DECIMAL(20,3) AS d", r#""d":12345678901234567.890"#),
        ("0.1::DOUBLE AS d, 'nan'::DOUBLE AS n, 1e300::DOUBLE AS e", r#""d":0.1,"n":null,"e":1e+300"#),
        ("TIMESTAMP '2026-11-20 08:00:00.123456' AS t", r#""t":"2026-11-20T08:00:00.123456""#),
        (
            "TIMESTAMP '2026-11-20 08:00:00' AS t, DATE '2026-11-20' AS d",
            r#""t":"2026-11-20T08:00:00","d":"2026-11-20""#,
        ),
        ("NULL AS n, NULL::VARCHAR AS v, true AS b, '' AS e", r#""n":null,"v":null,"b":true,"e":"""#),
        ("'\u{1}\"\\\n\u{e9}\u{1f600}' AS s", "\"s\":\"\\u0001\\\"\\\\\\n\u{e9}\u{1f600}\""),
        ("'\\x00{a}\\xFF'::BLOB AS b", r#""b":"\\x00{a}\\xFF""#),
        ("[1, NULL, 3] AS l, {'x': 1, 'y': ['a']} AS s", r#""l":[1,null,3],"s":{"x":1,"y":["a"]}"#),
        ("MAP {'k': 1} AS m", r#""m":{"k":1}"#),
        ("1 AS a, 2 AS a", r#""a":1,"a_2":2"#),
        ("18446744073709551615::UBIGINT AS u, 'b'::ENUM('a', 'b') AS e", r#""u":18446744073709551615,"e":"b""#),
    ] {
        assert_eq!(plain(&format!("SELECT {sql}"), Format::Ndjson), format!("{{{expected}}}\n"), "{sql}");
    }
}

#[test]
fn json_is_one_list() {
    assert_eq!(plain("SELECT 1 AS a WHERE false", Format::Json), "[]\n");
    assert_eq!(plain("SELECT unnest([1, 2]) AS a", Format::Json), "[\n{\"a\":1},\n{\"a\":2}\n]\n");
    assert_eq!(plain("SELECT 1 AS a WHERE false", Format::Ndjson), "");
}

#[test]
fn csv_disarms_formulas_and_keeps_numbers() {
    for (value, expected) in [
        ("'=1+1'", "'=1+1"),
        ("'@SUM(A1)'", "'@SUM(A1)"),
        ("'+cmd'", "'+cmd"),
        ("'-x'", "'-x"),
        ("chr(9) || 'x'", "\"'\tx\""),
        ("chr(13) || 'x'", "\"'\rx\""),
        ("chr(10) || '=x'", "\"'\n=x\""),
        ("'＝1'", "'＝1"),
        ("'-inf'", "'-inf"),
        ("'# no remark'", "\"# no remark\""),
        ("-5", "-5"),
        ("-5.5::DOUBLE", "-5.5"),
        ("-5.50::DECIMAL(5,2)", "-5.50"),
        ("'-5.5'", "-5.5"),
        ("'a,b'", "\"a,b\""),
        ("'say \"x\"'", "\"say \"\"x\"\"\""),
        ("'=\"x\",1'", "\"'=\"\"x\"\",1\""),
        ("'h;=HYPERLINK(A1);x'", "h;'=HYPERLINK(A1);x"),
        ("'a;b; -c'", "a;b; '-c"),
        ("'a,;\"@x\"'", "\"a,;\"\"'@x\"\"\""),
        ("'=a;b'", "'=a;b"),
        ("''", "\"\""),
        ("NULL", ""),
        ("'plain'", "plain"),
    ] {
        assert_eq!(plain(&format!("SELECT {value} AS v"), Format::Csv), format!("v\n{expected}\n"), "{value}");
    }
    assert_eq!(plain("SELECT 1 AS \"=a\"", Format::Csv), "'=a\n1\n");
}

#[test]
fn a_line_of_the_statement_is_no_formula_in_any_cell() {
    for (line, expected) in [
        ("team: Acme, inc.; 2", "# team: Acme, inc.; 2"),
        ("=1", "# =1"),
        ("a,=1,b", "# a,'=1,b"),
        ("a; +1", "# a; '+1"),
        ("a,\"@SUM(A1)\"", "# a,\"'@SUM(A1)\""),
        ("a,\n-x,＝1", "# a, '-x,'＝1"),
        ("a = -1", "# a = -1"),
    ] {
        assert_eq!(csv_comment(line), expected, "{line}");
    }
}

#[test]
fn markdown_escapes_cells() {
    let sql = "SELECT 'a|b' AS text, 3 AS n, '<b>' || chr(10) || '`x`' AS m, NULL AS z";
    let expected = "| text | n | m | z |\n| --- | ---: | --- | ---: |\n| a\\|b | 3 | &lt;b> \\`x\\` |  |\n";
    assert_eq!(plain(sql, Format::Markdown), expected);
}

#[test]
fn a_table_has_no_control_characters_and_is_cut_only_on_a_terminal() {
    let sql = format!("SELECT chr(27) || '[31mred' || chr(8238) || 'x' AS v, '{}' AS w", "y".repeat(200));
    let whole = plain(&sql, Format::Table);
    assert!(!whole.contains('\u{1b}') && !whole.contains('\u{202e}') && whole.contains("[31mredx"), "{whole}");
    assert!(whole.contains(&"y".repeat(200)));
    let medium = Medium { terminal_width: Some(200) };
    let cut = print(&sql, Format::Table, medium);
    assert!(!cut.contains(&"y".repeat(100)) && cut.contains('…'), "{cut}");
}

#[test]
fn a_cut_table_has_a_note() {
    let printed = plain("SELECT * FROM range(20000)", Format::Table);
    assert!(printed.ends_with("only the first 10000 rows: use another --format for all rows\n"));
    assert_eq!(plain("SELECT * FROM range(20000)", Format::Csv).lines().count(), 20_001);
}

#[test]
fn parquet_reads_back_equal() {
    let engine =
        Engine::open(ViewData::default(), &Limits { memory_mib: 256, threads: 1, ..Limits::default() }).unwrap();
    let sql = "SELECT i AS id, TIMESTAMP '2026-11-20' + to_seconds(i) AS t, 'row ' || i AS text, 1 AS id FROM range(5000) t(i)";
    let mut file = tempfile::Builder::new().suffix(".parquet").tempfile().unwrap();
    let mut sink = sink_for(Format::Parquet, file.as_file_mut(), Medium::default());
    engine.query(sql, sink.as_mut()).unwrap();
    drop(sink);
    let back =
        format!("SELECT count(*) AS n, sum(id) AS s, max(t) AS t, sum(id_2) AS o FROM '{}'", file.path().display());
    assert_eq!(plain(&back, Format::Csv), "n,s,t,o\n5000,12497500,2026-11-20T01:23:19,5000\n");
}

#[test]
fn names_of_formats_round_trip() {
    for format in Format::ALL {
        assert_eq!(format.as_str().parse(), Ok(format));
    }
    assert!("xlsx".parse::<Format>().unwrap_err().contains("ndjson"));
}

#[test]
fn a_wide_table_cuts_cells_and_then_omits_middle_columns() {
    let columns = (0..12).map(|n| format!("'{}' AS column_{n}", "x".repeat(20 + n))).collect::<Vec<_>>().join(", ");
    for width in [40, 60, 80, 100, 200, 500] {
        let printed = print(&format!("SELECT {columns}"), Format::Table, Medium { terminal_width: Some(width) });
        let lines = printed.lines().filter(|line| line.starts_with(['│', '┌']));
        let widest = lines.map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(width), "{width}: {widest}\n{printed}");
        assert!(printed.contains("column_0") || printed.contains("column…"), "{printed}");
        assert_eq!(printed.contains("columns do not fit"), width < 133, "{width}\n{printed}");
    }
    let wide =
        print("SELECT '漢字漢字漢字漢字漢字漢字' AS a, 1 AS b", Format::Table, Medium { terminal_width: Some(24) });
    assert!(wide.contains('…') && wide.lines().count() == 5, "{wide}");
}

/// The text form of each type's values; in the JSON formats, in quotes unless it is a number.
const PRINTED: [(&str, &str); 22] = [
    ("TIME '24:00'", "24:00:00"),
    ("TIME_NS '24:00:00'", "24:00:00"),
    ("TIME '23:59:59.999999'", "23:59:59.999999"),
    ("'infinity'::TIMESTAMP", "infinity"),
    ("'infinity'::TIMESTAMP_S", "infinity"),
    ("'infinity'::TIMESTAMP_MS", "infinity"),
    ("'infinity'::TIMESTAMP_NS", "infinity"),
    ("'infinity'::TIMESTAMPTZ", "infinity"),
    ("'infinity'::DATE", "infinity"),
    ("'-infinity'::DATE", "-infinity"),
    ("'-infinity'::TIMESTAMP", "-infinity"),
    ("TIMESTAMPTZ '2026-11-20 09:00:00.5+01'", "2026-11-20T08:00:00.500Z"),
    ("DATE '300000-01-01'", "+300000-01-01"),
    ("DATE '0044-03-15 (BC)'", "-0043-03-15"),
    ("TIMESTAMP '290000-01-01 10:00:00.000001'", "+290000-01-01T10:00:00.000001"),
    ("170141183460469231731687303715884105727::HUGEINT", "170141183460469231731687303715884105727"),
    ("(-170141183460469231731687303715884105728)::HUGEINT", "-170141183460469231731687303715884105728"),
    ("INTERVAL '14 months 2 days 3.5 seconds'", "14 mons 2 days 3.500000000 secs"),
    ("'a9a9a9a9-1111-2222-3333-444444444444'::UUID", "a9a9a9a9-1111-2222-3333-444444444444"),
    ("'b'::ENUM('a', 'b')", "b"),
    ("union_value(n := 2)", "2"),
    ("TIMESTAMP_NS '2026-11-20 10:00:00.123456789'", "2026-11-20T10:00:00.123456789"),
];

#[test]
fn every_value_of_the_engine_is_printed_in_every_format() {
    for (sql, expected) in PRINTED {
        let is_number = expected.parse::<f64>().is_ok_and(f64::is_finite);
        let json = if is_number { expected.to_owned() } else { format!("\"{expected}\"") };
        let query = format!("SELECT {sql} AS v");
        assert_eq!(plain(&query, Format::Ndjson), format!("{{\"v\":{json}}}\n"), "{sql}");
        let nested = format!("SELECT [{sql}] AS l, {{'v': {sql}}} AS s, MAP {{1: {sql}}} AS m");
        let of_nested = format!("{{\"l\":[{json}],\"s\":{{\"v\":{json}}},\"m\":{{\"1\":{json}}}}}\n");
        assert_eq!(plain(&nested, Format::Ndjson), of_nested, "{sql}");
        assert!(plain(&query, Format::Html).replace(' ', "T").contains(&expected.replace(' ', "T")), "{sql} as html");
        for format in [Format::Table, Format::Csv, Format::Markdown] {
            assert!(plain(&query, format).contains(expected), "{sql} as {}", format.as_str());
        }
        let written = refusal(&query, Format::Parquet);
        assert_eq!(written.is_none(), !sql.starts_with("INTERVAL") && !sql.starts_with("union"), "{sql}: {written:?}");
    }
}

/// The error of a refused query.
fn refusal(sql: &str, format: Format) -> Option<String> {
    let engine =
        Engine::open(ViewData::default(), &Limits { memory_mib: 256, threads: 1, ..Limits::default() }).unwrap();
    let mut out = Vec::new();
    let refused = engine.query(sql, sink_for(format, &mut out, Medium::default()).as_mut()).err();
    refused.map(|error| error.to_string())
}

#[test]
fn values_without_an_exact_form_are_refused_with_a_cast() {
    for (sql, kind) in [
        ("TIMETZ '10:00:00+02'", "TIMETZ"),
        ("340282366920938463463374607431768211455::UHUGEINT", "UHUGEINT"),
        ("'101'::BIT", "BIT"),
        ("12345678901234567890::BIGNUM", "BIGNUM"),
    ] {
        for format in Format::ALL {
            for nested in [sql.to_owned(), format!("[{sql}]"), format!("{{'a': {sql}}}")] {
                let refused = refusal(&format!("SELECT 1 AS n, {nested} AS odd"), format).unwrap();
                assert!(refused.contains(&format!("column odd has values of type {kind}")), "{nested}: {refused}");
                assert!(refused.contains("cast it to VARCHAR"), "{refused}");
            }
            assert_eq!(refusal(&format!("SELECT ({sql})::VARCHAR AS odd"), format), None, "{sql}");
        }
    }
    let interval = refusal("SELECT [INTERVAL 1 DAY] AS odd", Format::Parquet).unwrap();
    assert!(interval.contains("column odd has values of type INTERVAL: cast it to VARCHAR"), "{interval}");
    assert!(refusal("SELECT 42::VARIANT AS odd", Format::Csv).is_some());
}
