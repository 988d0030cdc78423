//! `annals report list`.

use crate::error::{Error, Exit};
use crate::report::{Catalog, Origin, Report, SeverityRule};

use super::super::output::{self, Columns, OutputArgs};

/// Reports each file of the folder that is no valid report, and exits as for a wrong configuration.
pub fn run(catalog: &Catalog, output: &OutputArgs) -> Result<Exit, Error> {
    let rows = Columns::of(catalog.reports())
        .text("id", |report| &report.id)
        .text("name", |report| &report.name)
        .text("title", |report| &report.title)
        .text("question", |report| &report.question)
        .text_or_null("severity", |report| report.severity.map(SeverityRule::as_str))
        .text_or_null("controls", |report| Some(report.controls.join("; ")).filter(|text| !text.is_empty()))
        .text("from", origin);
    output.batch(&rows.batch())?;
    for fault in catalog.faults() {
        output::say(&format!("annals: {fault}"));
    }
    Ok(if catalog.faults().is_empty() { Exit::Done } else { Exit::Usage })
}

/// Where the report comes from.
pub(super) fn origin(report: &Report) -> String {
    match (&report.origin, &report.overrides) {
        (Origin::Embedded, _) => "built in".to_owned(),
        (Origin::File(path), None) => path.display().to_string(),
        (Origin::File(path), Some(id)) => format!("{}, instead of the built-in {id}", path.display()),
    }
}
