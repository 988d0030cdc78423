//! `annals report list`.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use clap::Args;

use crate::error::{Error, Exit};
use crate::report::{Catalog, Origin, Report};

use super::super::output::OutputArgs;
use super::output;

/// List the reports: their questions, what they detect, which controls they support
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    output: OutputArgs,
}

/// Reports each file of the folder that is no valid report, and exits as for a wrong configuration.
pub fn run(catalog: &Catalog, args: &ListArgs) -> Result<Exit, Error> {
    let rows = table(catalog.reports());
    args.output.batch(&rows)?;
    for fault in catalog.faults() {
        output::say(&format!("annals: {fault}"));
    }
    Ok(if catalog.faults().is_empty() { Exit::Done } else { Exit::Usage })
}

fn table(reports: &[Report]) -> RecordBatch {
    let column = |text: fn(&Report) -> Option<String>| -> ArrayRef {
        Arc::new(reports.iter().map(text).collect::<StringArray>())
    };
    let columns = [
        ("id", column(|report| Some(report.id.clone()))),
        ("name", column(|report| Some(report.name.clone()))),
        ("title", column(|report| Some(report.title.clone()))),
        ("question", column(|report| Some(report.question.clone()))),
        ("severity", column(|report| report.severity.map(|rule| rule.as_str().to_owned()))),
        ("controls", column(|report| Some(report.controls.join("; ")).filter(|text| !text.is_empty()))),
        ("from", column(|report| Some(origin(report)))),
    ];
    output::table(columns)
}

/// Where the report comes from.
pub(super) fn origin(report: &Report) -> String {
    match (&report.origin, &report.overrides) {
        (Origin::Embedded, _) => "built in".to_owned(),
        (Origin::File(path), None) => path.display().to_string(),
        (Origin::File(path), Some(id)) => format!("{}, instead of the built-in {id}", path.display()),
    }
}
