//! Every kind of chart with every kind of rows: the drawing is well-formed, bounded and harmless.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};

use super::axis::Axis;
use super::input::{MAGNITUDE_MAX, TIME_MAX, Value};
use super::text::{clean, cut, number, short, width};
use super::time::{MONTHS, Step, moment, span, ticks};
use super::*;

const HOSTILE: &str = "</title></svg><script>alert(1)</script>\u{1b}[31m\u{202e}=cmd|' /C calc'!A0\"'&";
const HOUR: f64 = 3_600e6;
/// 2026-11-20T00:00:00 in microseconds.
const DAY_ONE: f64 = 1_795_132_800e6;

/// A chart of each kind over the columns of [`rows`].
fn charts() -> Vec<Chart> {
    [
        "columns x=at y=n series=who | Columns",
        "columns x=who y=n | Columns of names",
        "bars x=who y=n series=why | Bars",
        "bars x=n y=who | Bars, the other way round",
        "line x=at y=n series=why | Lines",
        "line x=n y=ms | Lines of numbers",
        "step x=at y=n series=who | Steps",
        "area x=at y=n series=who | Areas",
        "area100 x=at y=n series=who | Shares",
        "heatmap x=at y=who value=n | Heat map",
        "heatmap x=why y=who value=n | Heat map of names",
        "dots x=at y=n series=why | Dots",
        "dots x=ms y=who | Dots of names",
        "histogram x=ms log | Histogram",
        "histogram x=n | Histogram of numbers",
        "timeline start=at end=until lane=who series=why | Timeline",
        "strip x=at y=who series=why | Strip",
        "punchcard x=hour y=weekday value=n | Punch card",
    ]
    .map(|text| text.parse().unwrap())
    .into()
}

fn rows(all: impl IntoIterator<Item = [Value; 8]>) -> Rows {
    let mut rows = Rows::new(["at", "until", "who", "why", "n", "ms", "hour", "weekday"].map(String::from));
    for row in all {
        rows.0.iter_mut().zip(row).for_each(|((_, values), value)| values.push(value));
    }
    rows
}

/// An ordinary row, number `nth`.
fn row(nth: u32) -> [Value; 8] {
    let at = DAY_ONE + f64::from(nth) * HOUR;
    [
        Value::Time(at),
        if nth.is_multiple_of(7) { Value::Null } else { Value::Time(at + 2.5 * HOUR) },
        Value::Text(format!("someone{}@example.com", nth % 11)),
        Value::Text(["wrong password", "unknown user", "expired"][nth as usize % 3].to_owned()),
        Value::Number(f64::from(nth * 37 % 23) - 3.0),
        Value::Number(f64::from(nth % 13 + 1).powi(5) * 10.0),
        Value::Number(f64::from(nth % 24)),
        Value::Number(f64::from(nth % 7)),
    ]
}

fn drawn(chart: &Chart, rows: &Rows) -> Drawing {
    draw(chart, rows, 0).unwrap()
}

/// Checks tags, attributes and entities; returns the text of all elements.
fn texts(svg: &str) -> Vec<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut texts = Vec::new();
    let mut rest = svg;
    while let Some(at) = rest.find('<') {
        let (text, tagged) = rest.split_at(at);
        if !text.is_empty() {
            texts.push(resolved(text));
        }
        let end = tag_end(tagged);
        let tag = &tagged[1..end];
        rest = &tagged[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        let known = ["svg", "path", "text", "title"];
        assert!(known.contains(&name), "element {name:?} in {svg}");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{svg}");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty() && rest.is_empty(), "{open:?}");
    texts
}

/// The end of the tag: a `>` outside quotes.
fn tag_end(tag: &str) -> usize {
    let mut quoted = false;
    let found = tag.char_indices().find(|(_, c)| {
        quoted ^= *c == '"';
        *c == '>' && !quoted
    });
    found.expect("a tag is closed").0
}

fn resolved(text: &str) -> String {
    let mut out = text.to_owned();
    for (entity, c) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'")] {
        out = out.replace(entity, c);
    }
    for part in out.split('&').skip(1) {
        assert!(part.starts_with("amp;"), "a bare & in {text}");
    }
    out.replace("&amp;", "&")
}

fn check(name: &str, drawing: &Drawing) {
    for (svg, width) in [(&drawing.wide, WIDE), (&drawing.narrow, NARROW)] {
        let text = svg.to_string();
        let said = texts(&text);
        assert!(!text.contains("NaN") && !text.contains("inf\"") && !text.contains("script>"), "{name}: {text}");
        assert!(said.iter().all(|one| !one.contains(char::is_control) && !one.contains('\u{202e}')), "{name}");
        assert!(text.len() < 700_000, "{name}: {} bytes", text.len());
        assert!(text.contains("role=\"img\"") && text.contains("aria-label=\""), "{name}");
        for before in [" x=\"", "d=\"M"] {
            for (at, _) in text.match_indices(before) {
                let value = text[at + before.len()..].split(['"', ' ']).next().unwrap();
                let place: f64 = value.parse().unwrap_or_else(|_| panic!("{name}: {before}{value}"));
                assert!((-4.0..=width + 4.0).contains(&place), "{name}: {before}{value} of {width}");
            }
        }
    }
}

#[test]
fn every_kind_draws_every_kind_of_rows() {
    let hostile = || Value::Text(HOSTILE.to_owned());
    let nulls = || [const { Value::Null }; 8];
    let huge = |n: f64| {
        let number = Value::Number(n);
        let time = Value::Time(DAY_ONE);
        [time.clone(), time, hostile(), hostile(), number.clone(), number.clone(), number.clone(), number]
    };
    let many_names = |nth: u32| {
        let mut row = row(nth);
        row[2] = Value::Text(format!("{nth} {}", "long name ".repeat(30)));
        row[3] = Value::Text(format!("reason {nth}"));
        row
    };
    for (case, rows) in [
        ("no rows", rows([])),
        ("one row", rows([row(1)])),
        ("one row of nulls", rows([nulls()])),
        ("nulls among rows", rows([row(1), nulls(), row(3), nulls()])),
        ("hostile names and huge numbers", rows([huge(MAGNITUDE_MAX), huge(-MAGNITUDE_MAX), huge(0.0), huge(1e-300)])),
        ("a day", rows((0..24).map(row))),
        ("ten thousand rows", rows((0..10_000).map(row))),
        ("ten thousand names", rows((0..10_000).map(many_names))),
        (
            "times at the ends",
            rows([-TIME_MAX, 0.0, TIME_MAX].map(|t| {
                let mut row = row(0);
                (row[0], row[1]) = (Value::Time(t), Value::Time(t));
                row
            })),
        ),
    ] {
        for chart in charts() {
            let drawing = drawn(&chart, &rows);
            check(&format!("{} of {case}", chart.title), &drawing);
            assert_eq!(drawing.summary == "no rows to draw", rows.len() == 0, "{}: {case}", chart.title);
        }
    }
}

#[test]
fn the_tooltip_of_a_cut_name_is_complete() {
    let name = "a.very.long.address.of.somebody.who.has.a.very.long.name@subdomain.example.com";
    let mut long = row(3);
    long[2] = Value::Text(name.to_owned());
    let chart: Chart = "bars x=who y=n".parse().unwrap();
    let said = texts(&drawn(&chart, &rows([long])).narrow.to_string());
    assert!(said.iter().any(|one| one == name), "{said:?}");
    assert!(said.iter().any(|one| one.ends_with('…') && name.starts_with(one.trim_end_matches('…'))), "{said:?}");
}

#[test]
fn joined_and_omitted_data_has_a_note() {
    let chart: Chart = "columns x=at y=n series=who".parse().unwrap();
    let drawing = drawn(&chart, &rows((0..500).map(row)));
    for expected in ["“all others”", "each mark stands for a longer time"] {
        assert!(drawing.notes.iter().any(|note| note.contains(expected)), "{:?}", drawing.notes);
    }
    let sum: f64 = (0..500).map(row).filter_map(|row| row[4].number()).sum();
    assert!(drawing.summary.contains(&format!("{} in all", number(sum))), "{}", drawing.summary);
    let unseen = draw(&chart, &rows([row(1)]), 7).unwrap();
    assert!(unseen.notes.iter().any(|note| note.contains("7 more")), "{:?}", unseen.notes);
    let missing: Chart = "columns x=at y=nothing".parse().unwrap();
    assert!(draw(&missing, &rows([row(1)]), 0).unwrap_err().contains("nothing"));
}

#[test]
fn columns_equal_the_rows() {
    let mut two = [row(0), row(1)];
    (two[0][4], two[1][4]) = (Value::Number(30.0), Value::Number(10.0));
    let chart: Chart = "columns x=at y=n".parse().unwrap();
    let text = drawn(&chart, &rows(two)).wide.to_string();
    let heights: Vec<f64> = text
        .match_indices("class=\"f0\"")
        .map(|(at, _)| text[..at].rsplit('v').next().unwrap().split('h').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(heights.len(), 2, "{text}");
    assert!((heights[0] / heights[1] - 3.0).abs() < 0.01, "{heights:?}");
}

#[test]
fn texts_of_a_hostile_chart_are_harmless() {
    let mut hostile = row(1);
    hostile[2] = Value::Text(HOSTILE.to_owned());
    for chart in charts() {
        let drawing = drawn(&chart, &rows([hostile.clone()]));
        let said = [drawing.summary, drawing.notes.join(" ")].concat();
        assert!(!said.contains(char::is_control) && !said.contains('\u{202e}'), "{}: {said}", chart.title);
    }
}

/// The classes of filled marks, in drawing order.
fn fills(svg: &str) -> Vec<&str> {
    svg.split("class=\"f").skip(1).map(|rest| &rest[..1]).collect()
}

#[test]
fn all_others_are_last_and_grey() {
    let named = |who: &str, n: f64| {
        let mut row = row(0);
        (row[2], row[4]) = (Value::Text(who.to_owned()), Value::Number(n));
        row
    };
    let heavy = || named(group::REST, 1_000.0);
    let few = || rows([heavy(), named("a", 1.0), named("b", 2.0)]);
    let columns: Chart = "columns x=at y=n series=who".parse().unwrap();
    let drawing = drawn(&columns, &few());
    assert!(drawing.summary.ends_with("b 2, a 1, all others 1,000"), "{}", drawing.summary);
    // The legend, then the stack.
    assert_eq!(fills(&drawing.wide.to_string()), ["0", "1", "6", "0", "1", "6"]);
    assert_eq!(drawing.notes, Vec::<String>::new(), "nothing was joined here");
    // Eight names and the rest: names without a colour join the rest.
    let eight = (0..8_u8).map(|nth| named(&format!("name {nth}"), f64::from(nth) + 1.0));
    let drawing = drawn(&columns, &rows(eight.chain([heavy()])));
    assert!(drawing.summary.ends_with("all others 1,003"), "{}", drawing.summary);
    assert!(drawing.notes.iter().any(|note| note.contains("the 2 smallest")), "{:?}", drawing.notes);
    assert_eq!(fills(&drawing.wide.to_string()).last(), Some(&"6"));
    // The same for a bar, and for a place of an axis.
    let bars: Chart = "bars x=who y=n".parse().unwrap();
    assert_eq!(fills(&drawn(&bars, &few()).wide.to_string()), ["0", "0", "6"]);
    let thirty = (0..30_u8).map(|nth| named(&format!("name {nth}"), 5.0));
    let drawing = drawn(&bars, &rows([heavy()].into_iter().chain(thirty)));
    let text = drawing.wide.to_string();
    assert_eq!((fills(&text).len(), fills(&text).last()), (20, Some(&"6")));
    assert!(text.contains("all others: 1,055"), "{text}");
    let said = texts(&drawn(&"columns x=who y=n".parse().unwrap(), &few()).wide.to_string());
    let at = |name: &str| said.iter().rposition(|text| text == name).unwrap();
    assert!(at("a") < at("b") && at("b") < at("all others"), "{said:?}");
}

#[test]
fn an_empty_chart_is_labelled() {
    for chart in charts() {
        let said = texts(&drawn(&chart, &rows([])).narrow.to_string());
        assert_eq!(said, ["no rows to draw"], "{}", chart.title);
    }
}

#[test]
fn ticks_are_round_and_enclose_the_data() {
    for (low, high, expected) in [
        (0.0, 0.0, vec!["0", "1"]),
        (0.0, 0.9, vec!["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (0.0, 4.0, vec!["0", "1", "2", "3", "4"]),
        (0.0, 97.0, vec!["0", "20", "40", "60", "80", "100"]),
        (-30.0, 60.0, vec!["-40", "-20", "0", "20", "40", "60"]),
        (0.0, 100.000_000_000_1, vec!["0", "20", "40", "60", "80", "100"]),
    ] {
        let axis = Axis::numbers([low, high].into_iter(), 5.0);
        let found: Vec<String> = axis.ticks.into_iter().map(|tick| tick.1).collect();
        assert_eq!(found, expected, "{low} to {high}");
    }
    for high in [1e-300, 1e300, 3.3e7, f64::MIN_POSITIVE] {
        let axis = Axis::numbers([0.0, high].into_iter(), 5.0);
        assert!(axis.ticks.len() <= 12 && axis.ticks.last().is_some_and(|tick| tick.0 >= high), "{axis:?}");
    }
}

#[test]
fn numbers_are_written_for_people() {
    for (value, full, compact) in [
        (0.0, "0", "0"),
        (-0.0, "0", "0"),
        (7.0, "7", "7"),
        (1_234_567.0, "1,234,567", "1.23M"),
        (-12_345.0, "-12,345", "-12.35k"),
        (0.25, "0.25", "0.25"),
        (1e21, "1e21", "1e21"),
        (-1e300, "-1e300", "-1e300"),
    ] {
        assert_eq!((number(value).as_str(), short(value).as_str()), (full, compact), "{value}");
    }
}

#[test]
fn hostile_text_is_cut_and_cleaned() {
    let piled = format!("a{}b", "\u{0301}".repeat(50));
    assert_eq!(clean(&piled).chars().count(), 4);
    assert_eq!(clean("a\u{1b}[31m\u{202e}b\nc"), "a[31mb c");
    let long = "x".repeat(1_000);
    assert!(width(&cut(&long, 100.0)) <= 100.0 && cut(&long, 100.0).ends_with('…'));
    assert_eq!(cut("short", 100.0), "short");
    assert_eq!(cut("anything", 1.0), "…");
    let mut canvas = Canvas::default();
    canvas.path("M0 0", "", &long);
    let drawn = canvas.finish("").to_string();
    assert!((200..500).contains(&drawn.matches('x').count()), "{drawn}");
}

#[test]
fn numbers_stay_finite_and_nulls_are_named() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("n", Arc::new(Float64Array::from(vec![Some(f64::NAN), Some(f64::MAX), None]))),
        ("i", Arc::new(Int64Array::from(vec![Some(i64::MIN), Some(7), None]))),
        ("t", Arc::new(StringArray::from(vec![Some(""), Some("a"), None]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![Some(i64::MAX), Some(0), None]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut rows = Rows::new(["n", "i", "t", "at"].map(String::from));
    rows.extend(&batch).unwrap();
    assert_eq!(rows.column("N").unwrap(), [Value::Null, Value::Number(MAGNITUDE_MAX), Value::Null]);
    assert_eq!(rows.column("i").unwrap()[1], Value::Number(7.0));
    assert_eq!(rows.column("at").unwrap(), [Value::Time(TIME_MAX), Value::Time(0.0), Value::Null]);
    let names: Vec<String> = rows.column("t").unwrap().iter().map(Value::name).collect();
    assert_eq!(names, ["(empty)", "a", "(none)"]);
    assert!(rows.column("x").is_none() && rows.len() == 3);
}

#[test]
fn every_form_of_a_weekday_is_recognised() {
    for (value, day) in [
        (Value::Number(1.0), Some(0)),
        (Value::Number(7.0), Some(6)),
        (Value::Number(0.0), Some(6)),
        (Value::Number(8.0), None),
        (Value::Text("Saturday".into()), Some(5)),
        (Value::Text("wednesday".into()), Some(2)),
        (Value::Text(String::new()), None),
        (Value::Null, None),
    ] {
        assert_eq!(cells::day_of(&value), day, "{value:?}");
    }
    assert_eq!(cells::hour_of(&Value::Number(24.0)), None);
}

fn micros(text: &str) -> f64 {
    let at: jiff::civil::DateTime = text.parse().unwrap();
    jiff::tz::TimeZone::UTC.to_timestamp(at).unwrap().as_microsecond() as f64
}

#[test]
fn ticks_fall_on_round_moments() {
    for (first, last, expected) in [
        ("2026-11-20T08:10", "2026-11-20T09:10", vec!["08:15", "08:30", "08:45", "09:00"]),
        ("2026-11-20T20:00", "2026-11-21T14:00", vec!["21:00", "21 Nov", "03:00", "06:00", "09:00", "12:00"]),
        ("2026-11-01T00:00", "2026-12-01T00:00", vec!["2 Nov 2026", "9 Nov", "16 Nov", "23 Nov", "30 Nov"]),
        ("2026-10-15T00:00", "2027-03-02T00:00", vec!["Nov 2026", "Dec", "Jan 2027", "Feb", "Mar"]),
        ("2019-01-01T00:00", "2026-12-01T00:00", vec!["2020", "2022", "2024", "2026"]),
    ] {
        let labels: Vec<String> = ticks(micros(first), micros(last), 7.0).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, expected, "{first} to {last}");
    }
}

#[test]
fn spans_are_whole_calendar_months_without_holes() {
    for months in MONTHS {
        let step = Step::Months(months);
        let spans = step.spans(micros("1999-02-28T12:00"), micros("2026-11-20T08:00"));
        assert!(spans.windows(2).all(|pair| pair[0].1 == pair[1].0), "{months}: {spans:?}");
        assert!(spans.iter().all(|(from, to)| step.floor(*from) == *from && from < to), "{months}: {spans:?}");
        let expected = (27 * 12 + 10) / usize::from(months);
        assert!((expected..=expected + 2).contains(&spans.len()), "{months}: {}", spans.len());
    }
}

#[test]
fn moments_and_spans_are_short() {
    let moments = ["2026-11-20T00:00", "2026-11-20T08:00:07.5", "2026-11-20T00:00:00.5"].map(|at| moment(micros(at)));
    assert_eq!(moments, ["2026-11-20", "2026-11-20 08:00:07", "2026-11-20 00:00:00"]);
    assert_eq!(span(micros("2026-11-20T08:00"), micros("2026-11-20T10:00")), "2026-11-20 08:00 to 10:00");
    assert_eq!(span(micros("2026-11-20T08:00"), micros("2026-11-21T10:00")), "2026-11-20 08:00 to 2026-11-21 10:00");
    assert_eq!(moment(1e300), "out of range");
}
