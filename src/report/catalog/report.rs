//! One report, parsed from its file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use crate::model::{Digest, Instant};
use crate::report::sql::lexer::{Statement, all_statements};

use super::{
    CatalogError, Chart, IMPLICIT_PARAMS, Param, ParamDefault, ParamValue, SeverityRule, embedded_path, nearest,
    or_near,
};

/// The place of a report's file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Origin {
    /// Built into the program, from `queries/`.
    #[default]
    Embedded,
    File(PathBuf),
}

/// A report: its question, its query and its chart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// `R02`
    pub id: String,
    /// `failed-authentications`: the file name without the id.
    pub name: String,
    pub title: String,
    pub question: String,
    /// The controls that the report supports.
    pub controls: Vec<String>,
    pub params: Vec<Param>,
    pub chart: Option<Chart>,
    /// `None` if the report detects nothing.
    pub severity: Option<SeverityRule>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// Whether the report needs the result of `verify`.
    pub needs_verify: bool,
    /// The query that gives the report's rows.
    pub rows: Statement,
    /// The query over relation `report` that gives the chart's rows; without it, the chart shows the report's rows.
    pub chart_rows: Option<Statement>,
    /// The whole file.
    pub text: String,
    /// The digest of the whole file.
    pub sha256: Digest,
    pub origin: Origin,
    path: PathBuf,
    /// The id of the built-in report that this one replaces.
    pub overrides: Option<String>,
}

impl Report {
    /// Parses a report's file. Does not check the SQL.
    ///
    /// # Errors
    /// [`CatalogError::Malformed`] with the line and the expected text.
    pub fn parse(path: &Path, text: &str, origin: Origin) -> Result<Self, CatalogError> {
        let path = if origin == Origin::Embedded { embedded_path(path) } else { path.to_owned() };
        let mut report = Self::default();
        let header_lines = report.read_header(&path, text)?;
        let body_at: usize = text.split_inclusive('\n').take(header_lines).map(str::len).sum();
        let first_line = header_lines + 1;
        let in_file = |found: Statement| Statement { line: first_line + found.line, ..found };
        let mut found = all_statements(&text[body_at..]).map(in_file);
        let Some(rows) = found.next() else {
            return Err(CatalogError::at(path, first_line, "the query after the header is missing"));
        };
        let chart_rows = found.next();
        if let Some(third) = found.next() {
            let message = "unexpected third statement: a report has one query, and at most one more for its chart";
            return Err(CatalogError::at(path, third.line, message));
        }
        let name = name_of(&path, &report.id)?;
        let (sha256, text) = (Digest::of(text.as_bytes()), text.to_owned());
        Ok(Self { name, rows, chart_rows, text, sha256, origin, path, ..report })
    }

    /// The path of the file; for a built-in report, its path in this project.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether `name` is the report's id or name, in any case.
    pub fn is_called(&self, name: &str) -> bool {
        self.id.eq_ignore_ascii_case(name) || self.name.eq_ignore_ascii_case(name)
    }

    pub(super) fn clashes(&self, other: &Report) -> bool {
        self.id.eq_ignore_ascii_case(&other.id) || self.name.eq_ignore_ascii_case(&other.name)
    }

    /// The values of the report's parameters: the given ones, and defaults for the others.
    ///
    /// # Errors
    /// [`CatalogError::Param`] for an unknown, repeated, invalid or missing parameter.
    pub fn values(
        &self,
        given: &[(String, String)],
        now: Instant,
        zone: &TimeZone,
    ) -> Result<BTreeMap<String, ParamValue>, CatalogError> {
        let refused = |message: String| CatalogError::Param { report: self.id.clone(), message };
        for (at, (name, _)) in given.iter().enumerate() {
            if !self.params.iter().any(|param| param.name == *name) {
                return Err(refused(self.unknown_param(name)));
            }
            if given[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(refused(format!("parameter {name} occurs twice")));
            }
        }
        let mut values = BTreeMap::new();
        for param in &self.params {
            let given = given.iter().find(|(name, _)| *name == param.name).map(|(_, text)| text.as_str());
            let text = match (given, &param.default) {
                // An empty value does not count for a required parameter.
                (None, ParamDefault::Required) => return Err(refused(param.missing())),
                (Some(text), ParamDefault::Required) if text.trim().is_empty() => {
                    return Err(refused(param.missing()));
                }
                (Some(text), _) => Some(text),
                (None, ParamDefault::Text(text)) => Some(text.as_str()),
                (None, ParamDefault::Null) => None,
            };
            let value = text.map_or(Ok(ParamValue::Null), |text| param.value(text, now, zone));
            let value = value.map_err(|message| refused(format!("parameter {}: {message}", param.name)))?;
            values.insert(param.name.clone(), value);
        }
        Ok(values)
    }

    fn unknown_param(&self, name: &str) -> String {
        if IMPLICIT_PARAMS.contains(&name) {
            return format!("{name} is not a --param: use the flag --{}", name.replace('_', "-"));
        }
        if self.params.is_empty() {
            return format!("the report has no parameters, so {name:?} is unknown");
        }
        let names: Vec<&str> = self.params.iter().map(|param| param.name.as_str()).collect();
        let near = or_near(&nearest(name, names.iter().copied()));
        format!("the report has no parameter {name:?}{near}; its parameters are {}", names.join(", "))
    }
}

/// The file name without the ending and without the id.
fn name_of(path: &Path, id: &str) -> Result<String, CatalogError> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let name = match stem.split_once('-') {
        Some((first, rest)) if first.eq_ignore_ascii_case(id) => rest,
        _ => stem,
    };
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_name {
        Ok(name.to_ascii_lowercase())
    } else {
        let message = format!("{stem:?} is not a report file name: use ID-NAME.sql with letters, digits, - and _");
        Err(CatalogError::at(path, 1, message))
    }
}
