//! Reads each format back: the number of rows, and the statement.

use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use super::{HOSTILE, Outcome};

/// The content of an output.
pub struct OutputContent {
    pub rows: u64,
    /// The columns' names, if the format has them.
    pub columns: Vec<String>,
    pub about: About,
}

/// The statement about the report, as an object or as lines.
pub enum About {
    Object(Value),
    Lines(String),
}

impl About {
    pub fn says(&self, key: &str, line: &str) -> bool {
        match self {
            About::Object(object) => object.pointer(key).is_some_and(|value| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                line.contains(&text)
            }),
            About::Lines(lines) => lines.lines().any(|said| said.contains(line)),
        }
    }
}

/// Reads an output back.
pub fn read(format: &str, outcome: &Outcome) -> OutputContent {
    match format {
        "json" => json(outcome.json()),
        "ndjson" => ndjson(outcome.text()),
        "csv" => csv(outcome.text()),
        "parquet" => parquet(outcome.stdout.clone()),
        "markdown" => markdown(outcome.text()),
        "table" => table(outcome.text()),
        other => panic!("no reader for {other}"),
    }
}

fn json(mut whole: Value) -> OutputContent {
    let about = whole["about"].take();
    let rows = whole["rows"].as_array().expect("a list of rows");
    let columns = rows.first().and_then(Value::as_object).map(|row| row.keys().cloned().collect()).unwrap_or_default();
    OutputContent { rows: rows.len() as u64, columns, about: About::Object(about) }
}

fn ndjson(text: &str) -> OutputContent {
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let about = lines.pop().expect("a last line")["about"].take();
    let columns = lines.first().and_then(Value::as_object).map(|row| row.keys().cloned().collect());
    OutputContent { rows: lines.len() as u64, columns: columns.unwrap_or_default(), about: About::Object(about) }
}

fn csv(text: &str) -> OutputContent {
    let (rows, about): (Vec<_>, Vec<_>) = records(text).into_iter().partition(|record| !record[0].starts_with("# "));
    for record in &rows {
        assert_eq!(record.len(), rows[0].len(), "{record:?}");
        for cell in record.iter().filter(|cell| cell.parse::<f64>().is_err()) {
            assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "a formula: {cell:?}");
        }
    }
    let lines = about.into_iter().map(|record| record.join(",")).collect::<Vec<_>>().join("\n");
    OutputContent { rows: rows.len() as u64 - 1, columns: rows[0].clone(), about: About::Lines(lines) }
}

/// Parses CSV records; a line that begins with `#` is one cell.
fn records(text: &str) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if rest.starts_with('#') {
            let end = rest.find('\n').expect("a line ends");
            records.push(vec![rest[..end].to_owned()]);
            rest = &rest[end + 1..];
            continue;
        }
        let (record, behind) = record(rest);
        records.push(record);
        rest = behind;
    }
    records
}

fn record(text: &str) -> (Vec<String>, &str) {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' if is_quoted && characters.peek().is_some_and(|(_, next)| *next == '"') => {
                characters.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            '\n' if !is_quoted => {
                cells.push(cell);
                return (cells, &text[at + 1..]);
            }
            c => cell.push(c),
        }
    }
    panic!("a record ends in a line: {text:?}");
}

fn parquet(bytes: Vec<u8>) -> OutputContent {
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).expect("a Parquet file");
    let metadata = reader.metadata().file_metadata().key_value_metadata().expect("metadata");
    let about = metadata.iter().find(|pair| pair.key == "annals.about").and_then(|pair| pair.value.as_deref());
    let about = serde_json::from_str(about.expect("the statement")).expect("JSON");
    let columns = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    let rows = reader.build().expect("readable").map(|batch| batch.expect("a batch").num_rows() as u64).sum();
    OutputContent { rows, columns, about: About::Object(about) }
}

fn markdown(text: &str) -> OutputContent {
    let (table, about) = text.split_once("\n\n").expect("the statement is separate");
    let lines: Vec<&str> = table.lines().collect();
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    for line in &lines {
        assert_eq!(bars(line), bars(lines[0]), "{line}");
        assert!(!line.contains("<script"), "{line}");
    }
    assert_harmless(text);
    let plain = about.replace('\\', "").replace("&lt;", "<").replace("&amp;", "&");
    OutputContent { rows: lines.len() as u64 - 2, columns: Vec::new(), about: About::Lines(plain) }
}

fn table(text: &str) -> OutputContent {
    let (table, about) = text.split_once("\nreport: ").expect("the statement is below the rows");
    assert_harmless(text);
    // Without a terminal, each row is one line between bars.
    let rows = table.lines().filter(|line| line.starts_with('│')).count() as u64 - 1;
    OutputContent { rows, columns: Vec::new(), about: About::Lines(format!("report: {about}")) }
}

/// Asserts that no character moves a terminal's cursor or changes the reading direction.
fn assert_harmless(text: &str) {
    assert!(!text.contains(HOSTILE) && !text.contains(['\u{1b}', '\u{202e}']), "{text}");
}
