//! The orders that the user gives: one by arguments, or several in a file.
//!
//! No message repeats a value of a subject.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Read as _};
use std::path::Path;

use serde_json::{Map, Value};

use crate::archive::{Subject, check_order, normal_subject};
use crate::error::Error;
use crate::files::{self, Links};
use crate::report::printable;

/// The maximum size of a file of orders.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// An order as the user gave it.
pub struct Request {
    pub order: String,
    pub subject: Subject,
    /// Ids or names of teams; all teams if empty.
    pub team: Vec<String>,
    /// The file and line that hold it.
    place: Option<String>,
}

impl Request {
    /// The order of the arguments.
    ///
    /// # Errors
    /// When a value cannot be a subject, or standard input cannot be read.
    pub fn given(order: String, values: &[String], team: Vec<String>) -> Result<Self, Error> {
        let mut subject: Vec<String> = Vec::new();
        for value in values {
            if value == "-" {
                let lines = std::io::stdin().lock().lines().collect::<Result<Vec<_>, _>>();
                let lines = lines.map_err(|source| Error::io("cannot read standard input", source))?;
                subject.extend(lines.into_iter().filter(|line| !normal_subject(line).is_empty()));
            } else {
                subject.push(value.clone());
            }
        }
        let subject = Subject::new(subject.iter().map(String::as_str)).map_err(Error::Usage)?;
        Ok(Self { order, subject, team, place: None })
    }

    /// The error with the file and line of the order.
    pub fn placed(&self, error: Error) -> Error {
        match (&self.place, error) {
            (Some(place), Error::Usage(text)) => Error::Usage(format!("{place}: {text}")),
            (Some(place), Error::Refused(text)) => Error::Refused(format!("{place}: {text}")),
            (_, other) => other,
        }
    }
}

/// The orders of a file, or of standard input.
///
/// # Errors
/// When the file cannot be read, or a line is not one order.
pub fn read(file: &str) -> Result<Vec<Request>, Error> {
    let name = if file == "-" { "standard input" } else { &printable(file) };
    let text = match file {
        "-" => {
            let mut text = String::new();
            std::io::stdin().lock().take(FILE_BYTES_MAX).read_to_string(&mut text).map(|_| text)
        }
        _ => files::read_text(Path::new(file), Links::Follow, FILE_BYTES_MAX),
    };
    let text = text.map_err(|source| Error::Usage(format!("--again: cannot read {name}: {source}")))?;
    let requests = parse(text.trim_start_matches('\u{feff}'), name).map_err(Error::Usage)?;
    match requests.is_empty() {
        true => Err(Error::Usage(format!("{name} holds no order: write one JSON object on each line"))),
        false => Ok(requests),
    }
}

fn parse(text: &str, name: &str) -> Result<Vec<Request>, String> {
    let mut requests = Vec::new();
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let place = format!("{name}:{number}");
        let request = parse_line(line, &place).map_err(|what| format!("{place}: {what}"))?;
        if let Some(first) = lines.insert(request.order.clone(), number) {
            let order = &request.order;
            return Err(format!(
                "{place}: order {order} is also in line {first}: give each order once, with all its values"
            ));
        }
        requests.push(request);
    }
    Ok(requests)
}

fn parse_line(line: &str, place: &str) -> Result<Request, String> {
    // An error of the parser can repeat a value, so only its place is shown.
    let value: Value = serde_json::from_str(line).map_err(|e| format!("not JSON, at column {}", e.column()))?;
    let Value::Object(members) = value else { return Err("not a JSON object".to_owned()) };
    if let Some(odd) = members.keys().find(|key| !["order", "subject", "team"].contains(&key.as_str())) {
        return Err(format!("unknown key {}: the keys are order, subject and team", printable(odd)));
    }
    let order = match members.get("order") {
        Some(Value::String(order)) => order.clone(),
        Some(_) => return Err("order is not a text".to_owned()),
        None => return Err("the key order is missing".to_owned()),
    };
    check_order(&order).map_err(|why| format!("order: {why}"))?;
    let subject = texts(&members, "subject")?.ok_or("the key subject is missing")?;
    let subject = Subject::new(subject.iter().map(String::as_str))?;
    let team = texts(&members, "team")?.unwrap_or_default();
    Ok(Request { order, subject, team, place: Some(place.to_owned()) })
}

/// A text, or a list of texts.
fn texts(members: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, String> {
    let wrong = || format!("{name} is neither a text nor a list of texts");
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(wrong);
    match members.get(name) {
        None => Ok(None),
        Some(Value::Array(values)) if values.is_empty() => Err(format!("{name} is an empty list")),
        Some(Value::Array(values)) => values.iter().map(text).collect::<Result<_, _>>().map(Some),
        Some(value) => Ok(Some(vec![text(value)?])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_orders_has_one_order_on_each_line() {
        let text = "{\"order\":\"DPO-1\",\"subject\":[\"a@b.de\",\"u-1\"],\"team\":\"acme\"}\n\n{\"subject\":\"u-2\",\"order\":\"DPO-2\"}\n";
        let requests = parse(text, "orders").unwrap();
        let shape: Vec<_> = requests.iter().map(|r| (r.order.as_str(), r.team.join(","), r.place.clone())).collect();
        let place = |line: usize| Some(format!("orders:{line}"));
        assert_eq!(shape, [("DPO-1", "acme".to_owned(), place(1)), ("DPO-2", String::new(), place(3))]);
        assert!(requests[0].subject.find("A@B.de").is_some() && requests[0].subject.find("u-1").is_some());
    }

    #[test]
    fn a_wrong_line_is_named_and_no_value_is_repeated() {
        let good = "{\"order\":\"DPO-1\",\"subject\":\"u-1\"}\n";
        for (line, says) in [
            ("secret", "not JSON, at column 1"),
            ("[\"secret\"]", "not a JSON object"),
            ("{\"order\":\"DPO-2\",\"subject\":\"secret\",\"teams\":[]}", "unknown key teams"),
            ("{\"order\":\"DPO-2\",\"subject\":{\"secret\":1}}", "subject is neither a text nor a list of texts"),
            ("{\"order\":\"DPO-2\",\"subject\":[\"secret\",7]}", "subject is neither"),
            ("{\"order\":\"DPO-2\",\"subject\":[]}", "subject is an empty list"),
            ("{\"order\":\"DPO-2\",\"subject\":\" \"}", "the subject is empty"),
            ("{\"order\":\"DPO-2\"}", "the key subject is missing"),
            ("{\"subject\":\"secret\"}", "the key order is missing"),
            ("{\"order\":7,\"subject\":\"secret\"}", "order is not a text"),
            ("{\"order\":\"a b\",\"subject\":\"secret\"}", "order: it has other characters"),
            ("{\"order\":\"DPO-1\",\"subject\":\"secret\"}", "order DPO-1 is also in line 1"),
        ] {
            let error = parse(&format!("{good}{line}\n"), "orders").err().unwrap();
            assert!(error.starts_with("orders:2: ") && error.contains(says), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
