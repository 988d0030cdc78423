//! The header of a report's file: `-- key: value` lines before the first statement.

use std::path::Path;

use super::{CatalogError, IMPLICIT_PARAMS, Param, Report};

const KEYS: &str = "id, title, question, controls, param, chart, severity, note or needs";

impl Report {
    /// Reads the header of a report's file, and returns the number of its lines.
    ///
    /// # Errors
    /// The invalid line, and the expected text.
    pub(super) fn read_header(&mut self, path: &Path, text: &str) -> Result<usize, CatalogError> {
        let lines = text.lines().take_while(|line| line.starts_with("--")).count();
        for (at, line) in text.lines().take(lines).enumerate() {
            self.take(&line[2..]).map_err(|message| CatalogError::at(path, at + 1, message))?;
        }
        for (key, value) in [("id", &self.id), ("title", &self.title), ("question", &self.question)] {
            if value.is_empty() {
                let message = format!("the header has no `-- {key}: …` line");
                return Err(CatalogError::at(path, lines.max(1), message));
            }
        }
        Ok(lines)
    }

    fn take(&mut self, text: &str) -> Result<(), String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        let Some((key, value)) = text.split_once(':') else {
            return Err(format!("expected `-- key: value` in the header, with key one of {KEYS}"));
        };
        let (key, value) = (key.trim(), value.trim());
        if value.is_empty() {
            return Err(format!("{key}: the value is missing"));
        }
        match key {
            "id" => set_once(&mut self.id, key, checked_id(value)?),
            "title" => set_once(&mut self.title, key, value.to_owned()),
            "question" => set_once(&mut self.question, key, value.to_owned()),
            "controls" if self.controls.is_empty() => {
                self.controls = value.split(';').map(|one| one.trim().to_owned()).collect();
                Ok(())
            }
            "param" => self.take_param(value.parse()?),
            "chart" if self.chart.is_none() => {
                self.chart = Some(value.parse()?);
                Ok(())
            }
            "severity" if self.severity.is_none() => {
                self.severity = Some(value.parse()?);
                Ok(())
            }
            "note" => {
                self.notes.push(value.to_owned());
                Ok(())
            }
            "needs" if value == "verify" => {
                self.needs_verify = true;
                Ok(())
            }
            "needs" => Err(format!("unknown need {value:?}: expected verify")),
            "controls" | "chart" | "severity" => Err(format!("{key} occurs twice")),
            other => Err(format!("unknown key {other:?} in the header: expected {KEYS}")),
        }
    }

    fn take_param(&mut self, param: Param) -> Result<(), String> {
        if IMPLICIT_PARAMS.contains(&param.name.as_str()) {
            return Err(format!("parameter {} is built in: choose another name", param.name));
        }
        if self.params.iter().any(|held| held.name == param.name) {
            return Err(format!("parameter {} is declared twice", param.name));
        }
        self.params.push(param);
        Ok(())
    }
}

fn set_once(field: &mut String, key: &str, value: String) -> Result<(), String> {
    if !field.is_empty() {
        return Err(format!("{key} occurs twice"));
    }
    *field = value;
    Ok(())
}

/// The id, if it is one.
pub fn checked_id(text: &str) -> Result<String, String> {
    let is_id = text.len() <= 16
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_id {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is not an id: an id is a letter, then letters and digits, at most 16 characters"))
    }
}
