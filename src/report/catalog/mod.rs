//! The catalog of reports: the built-in reports, and the additions and replacements in the user's folder.
//!
//! A report is one `.sql` file: a header of `--` lines, one query, and optionally a second query, which gives the rows of the
//! chart. The second query reads the rows of the first one as relation `report`.

mod allowed_values;
mod chart;
mod error;
mod header;
mod kind;
mod param;
mod report;
mod severity;
mod value;

use std::io;
use std::path::{Path, PathBuf};

use crate::files::{self, Links};

pub use allowed_values::AllowedValues;
pub use chart::{Chart, ChartKind, ChartRole};
pub use error::CatalogError;
pub use header::checked_id;
pub use kind::ParamKind;
pub use param::{IMPLICIT_PARAMS, Param, ParamDefault};
pub use report::{Origin, Report};
pub use severity::{Severity, SeverityRule};
pub use value::ParamValue;

// build.rs makes `EMBEDDED: &[(file name, text)]` from every file in queries/, sorted by name.
include!(concat!(env!("OUT_DIR"), "/queries.rs"));

/// The minimum similarity (0 to 1) of a name that an error suggests.
const NEAR_MIN: f64 = 0.75;
const NEAR_SHOWN_MAX: usize = 3;
/// The maximum size of a report's file, and the maximum number of files in the folder.
const REPORT_BYTES_MAX: u64 = 1 << 20;
const REPORTS_MAX: usize = 10_000;

/// The reports, sorted by id.
#[derive(Debug, Default)]
pub struct Catalog {
    reports: Vec<Report>,
    faults: Vec<CatalogError>,
}

impl Catalog {
    /// The built-in reports.
    pub fn embedded() -> Self {
        let mut catalog = Self::default();
        for (name, text) in EMBEDDED {
            catalog.add(Report::parse(Path::new(name), text, Origin::Embedded));
        }
        catalog
    }

    /// Adds the `.sql` files of a user's folder. A file with the id or name of an existing report replaces it. A file that is no
    /// valid report is kept as a fault.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn with_folder(mut self, folder: &Path) -> Result<Self, CatalogError> {
        let unreadable = |path: &Path| {
            let path = path.to_owned();
            move |source| CatalogError::Unreadable { path, source }
        };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable(folder))? {
            let path = entry.map_err(unreadable(folder))?.path();
            if path.extension().is_some_and(|ending| ending == "sql") {
                paths.push(path);
            }
            if paths.len() > REPORTS_MAX {
                let many = io::Error::other(format!("more than {REPORTS_MAX} reports"));
                return Err(unreadable(folder)(many));
            }
        }
        paths.sort();
        for path in paths {
            match read(folder, &path).map_err(unreadable(&path)) {
                Ok(text) => self.add(Report::parse(&path, &text, Origin::File(path.clone()))),
                Err(fault) => self.faults.push(fault),
            }
        }
        Ok(self)
    }

    fn add(&mut self, parsed: Result<Report, CatalogError>) {
        let mut report = match parsed {
            Ok(report) => report,
            Err(fault) => return self.faults.push(fault),
        };
        while let Some(at) = self.reports.iter().position(|held| held.clashes(&report)) {
            let held = &self.reports[at];
            if (held.origin == Origin::Embedded) == (report.origin == Origin::Embedded) {
                let (path, other) = (report.path().to_owned(), held.path().to_owned());
                return self.faults.push(CatalogError::Twice { path, id: report.id, other });
            }
            report.overrides = Some(self.reports[at].id.clone());
            self.reports.remove(at);
        }
        let at = self.reports.partition_point(|held| held.id < report.id);
        self.reports.insert(at, report);
    }

    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// The faults of invalid report files.
    pub fn faults(&self) -> &[CatalogError] {
        &self.faults
    }

    /// The report with the id or name, in any case.
    ///
    /// # Errors
    /// [`CatalogError::Unknown`] with similar names; or the fault of the file that would be this report.
    pub fn find(&mut self, name: &str) -> Result<&Report, CatalogError> {
        if let Some(at) = self.faults.iter().position(|fault| fault.is_about(name)) {
            return Err(self.faults.swap_remove(at));
        }
        match self.reports.iter().position(|report| report.is_called(name)) {
            Some(at) => Ok(&self.reports[at]),
            None => {
                let names = self.reports.iter().flat_map(|report| [report.id.as_str(), report.name.as_str()]);
                Err(CatalogError::Unknown { name: name.to_owned(), near: nearest(name, names) })
            }
        }
    }
}

/// Reads a report's file. Follows links only within the folder, as Kubernetes volumes need: the page shows a report's whole text, so
/// a link must not show another file of the machine.
fn read(folder: &Path, path: &Path) -> io::Result<String> {
    let place = path.canonicalize()?;
    if !place.starts_with(folder.canonicalize()?) {
        return Err(io::Error::other("the symbolic link leads out of the folder"));
    }
    files::read_text(&place, Links::Refuse, REPORT_BYTES_MAX)
}

/// The names most similar to `name`, best first.
pub(in crate::report) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let likeness = |other: &str| strsim::jaro_winkler(&wanted, &other.to_lowercase());
    let mut near: Vec<(f64, &str)> = names.into_iter().map(|other| (likeness(other), other)).collect();
    near.retain(|(likeness, _)| *likeness >= NEAR_MIN);
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.into_iter().take(NEAR_SHOWN_MAX).map(|(_, other)| other.to_owned()).collect()
}

/// `; did you mean a, b or c?`, or nothing.
pub(in crate::report) fn or_near(near: &[String]) -> String {
    match near {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        [others @ .., last] => format!("; did you mean {} or {last}?", others.join(", ")),
    }
}

/// The path of a built-in report in errors and lists.
fn embedded_path(name: &Path) -> PathBuf {
    Path::new("queries").join(name)
}

#[cfg(test)]
mod tests;
