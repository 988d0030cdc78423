//! The list of reports, and the answer of one report.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream::try_unfold;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::config::When;
use crate::model::TeamId;
use crate::report::{
    About, Catalog, Engine, FirstRows, Format, JsonRows, Medium, Needs, Report, ReportError, ReportInput, Run, Section,
    Zone, printable, write_report,
};

use super::super::AppState;
use super::super::input::Input;
use super::super::problem::Problem;
use super::super::query_service::{check_together, on_thread};
use super::{asked_teams, period};

/// The parameters that every report accepts; a report's own parameters begin with `param.`.
const PARAMETERS: [&str; 6] = ["team", "from", "to", "tz", "as_of", "limit"];
/// The deadline for a report.
pub const REPORT_TIME_MAX: Duration = Duration::from_secs(60);
/// The maximum size of a download.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// The maximum size of a report's JSON rows.
const JSON_BYTES_MAX: usize = 32 << 20;
/// The default number of JSON rows.
pub const JSON_ROWS: usize = 1_000;
const CHUNK_BYTES: usize = 64 << 10;

/// The current reports: the user can change the own reports at any time.
pub async fn catalog(state: &AppState) -> Result<Catalog, Problem> {
    let folder: Option<PathBuf> = state.settings().queries;
    let load = move || match folder {
        Some(folder) => Catalog::embedded().with_folder(&folder),
        None => Ok(Catalog::embedded()),
    };
    on_thread(load).await
}

/// A report with its parameters.
#[derive(Clone)]
pub struct Question {
    pub report: Report,
    pub asked: ReportInput,
    pub teams: Vec<TeamId>,
}

impl Question {
    /// Applies `input` to `report`.
    pub async fn of(state: &AppState, report: Report, input: &Input, zone: Zone) -> Result<Self, Problem> {
        let now = state.clock.now();
        let period = period(input, now, &zone)?;
        let as_of = input.parsed::<When>("as_of")?.map_or(period.end, |at| at.resolve_in(now, zone.rules()));
        let values = report.values(&input.under("param."), now, zone.rules());
        // The message names the flag of the command line: a request has another form.
        let values =
            values.map_err(|error| Problem::bad(printable(&error.to_string().replace("--param ", "param."))))?;
        let (team, teams) = asked_teams(state, input).await?;
        Ok(Self { report, asked: ReportInput { period, team, zone, as_of, now, values }, teams })
    }

    /// The report as a section of a page, with its first rows. `links` name the files with all rows.
    pub async fn section(
        self,
        state: &AppState,
        rows_max: usize,
        links: Vec<(String, String)>,
    ) -> Result<(Section, About), Problem> {
        self.ask(state, move |run| {
            let mut rows = FirstRows::new(rows_max);
            run.named_rows(&mut rows)?;
            Ok((Section::of(run, rows, links.clone())?, run.about().clone()))
        })
        .await
    }

    /// The report's rows as JSON, at most `rows_max`, with the statement about the report.
    pub async fn rows(self, state: &AppState, rows_max: usize) -> Result<Answered, Problem> {
        self.ask(state, move |run| {
            let mut rows = JsonRows::new(rows_max, JSON_BYTES_MAX);
            run.rows(&mut rows)?;
            Ok(Answered { about: run.about().clone(), columns: rows.columns, rows: rows.rows, truncated: rows.is_cut })
        })
        .await
    }

    /// The whole report as a file. The file is sent only after it is complete, so a slow client blocks nobody.
    ///
    /// # Errors
    /// The errors of the query; when the file would be too large.
    pub async fn file(self, state: &AppState, format: Format) -> Result<Body, Problem> {
        let spill = state.queries.limits().spill_parent;
        let write = move |run: &Run<'_>| {
            let mut file = Bounded { file: tempfile::tempfile_in(&spill)?, left: FILE_BYTES_MAX };
            write_report(run, format, &mut file, Medium::default(), false)?;
            file.file.seek(SeekFrom::Start(0))?;
            Ok(file.file)
        };
        Ok(sent(self.ask(state, write).await?))
    }

    /// Runs the report, and returns what `answer` makes of it.
    async fn ask<T: Send + 'static>(
        self,
        state: &AppState,
        answer: impl Fn(&Run<'_>) -> Result<T, ReportError> + Send + 'static,
    ) -> Result<T, Problem> {
        let Self { report, asked, mut teams } = self;
        let needs = Needs::of_report(&report);
        if needs.reads_holds() {
            // Another team's ledger can hold the whole archive. The report filters by its team.
            let archived = state.queries.teams().await?;
            teams = if check_together(&archived).is_ok() { archived } else { teams };
        }
        let ask = move |engine: &mut Engine| answer(&engine.run(&report, &asked)?);
        state.queries.ask(teams, needs, REPORT_TIME_MAX, ask).await
    }
}

/// A report's rows, and the statement about them.
#[derive(Serialize)]
pub struct Answered {
    pub about: About,
    pub columns: Vec<String>,
    pub rows: Vec<Box<RawValue>>,
    /// True if the report has more rows.
    pub truncated: bool,
}

/// A file with a maximum size.
struct Bounded {
    file: std::fs::File,
    left: u64,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = bytes.len() as u64;
        self.left = self.left.checked_sub(count).ok_or_else(|| {
            let message = format!(
                "the file is larger than {} MiB, the limit of the page: choose a shorter period, or use `annals report run`",
                FILE_BYTES_MAX >> 20
            );
            std::io::Error::new(std::io::ErrorKind::FileTooLarge, message)
        })?;
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

fn sent(file: std::fs::File) -> Body {
    Body::from_stream(try_unfold(file, |mut file| async move {
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; CHUNK_BYTES];
            let count = file.read(&mut chunk)?;
            chunk.truncate(count);
            Ok::<_, std::io::Error>((chunk, file))
        });
        let (chunk, file) = read.await.map_err(std::io::Error::other)??;
        Ok::<_, std::io::Error>((!chunk.is_empty()).then_some((Bytes::from(chunk), file)))
    }))
}

/// Refuses parameters that no report accepts.
pub fn check_parameters(input: &Input) -> Result<(), Problem> {
    let own = input.under("param.").into_iter().map(|(name, _)| format!("param.{name}")).collect::<Vec<_>>();
    let known: Vec<&str> = PARAMETERS.into_iter().chain(own.iter().map(String::as_str)).collect();
    input.only(&known)
}
