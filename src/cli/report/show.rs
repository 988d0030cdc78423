//! `annals report show`.

use std::fmt::Write as _;

use clap::Args;

use crate::error::{Error, Exit};
use crate::report::{Catalog, ParamDefault, Report, printable};

use super::list::origin;
use super::output;

/// Show a report: its question, its parameters, its SQL and the hash of its file
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The report's name or id, such as session-register or R01
    name: String,
}

pub fn run(mut catalog: Catalog, args: &ShowArgs) -> Result<Exit, Error> {
    output::print(text(catalog.find(&args.name)?).as_bytes())?;
    Ok(Exit::Done)
}

fn text(report: &Report) -> String {
    let mut text = format!("{} {}: {}\n{}\n", report.id, report.name, report.title, report.question);
    let mut say = |key: &str, value: &str| {
        let _ = writeln!(text, "{key}: {}", printable(value));
    };
    if !report.controls.is_empty() {
        say("supports", &report.controls.join("; "));
    }
    if let Some(rule) = report.severity {
        say("severity", rule.as_str());
    }
    if let Some(chart) = &report.chart {
        say("chart", &format!("{} {}", chart.kind.as_str(), chart.title));
    }
    for note in &report.notes {
        say("note", note);
    }
    say("from", &origin(report));
    say("sha256", &report.sha256.to_string());
    for param in &report.params {
        let default = match &param.default {
            ParamDefault::Required => "required".to_owned(),
            ParamDefault::Null => "default: none".to_owned(),
            ParamDefault::Text(text) => format!("default: {text}"),
        };
        say("parameter", &format!("{} ({}; {default}) {}", param.name, param.accepted(), param.about));
    }
    // Print the file's own text without terminal control characters.
    text.push('\n');
    report.text.lines().for_each(|line| {
        let indent = line.len() - line.trim_start().len();
        let _ = writeln!(text, "{}{}", " ".repeat(indent), printable(line.trim_start()));
    });
    text
}
