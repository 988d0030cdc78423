//! The evidence pack: reports over one period as files that users can keep, hand over, read without Annals, and check.
//!
//! ```text
//! index.html                        everything, to read in a browser
//! reports/<id>-<name>.html          one report with more of its rows
//! reports/<id>-<name>.csv .parquet  all its rows
//! sql/<id>-<name>.sql               its query, as it was run
//! about.json                        the statement of each report: period, thresholds, coverage, heads, hashes
//! coverage.csv                      every window of the period, and its state
//! verify.json                       the result of `verify`, for the team or the teams of the pack
//! ledger.json                       the last ledger line of each team
//! manifest.json                     the pack: reports, findings, every file with its SHA-256
//! SHA256SUMS                        for `sha256sum -c`; its own SHA-256 identifies the pack in the ledger
//! ```
//! The same archive, arguments and creation time make the same bytes.

mod check;
mod manifest;
mod tree;
mod zipped;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;

use crate::archive::{VerifyFault, VerifyReport};
use crate::model::{Instant, TeamId, TeamKey};

use super::{About, Engine, Format, Medium, Report, ReportError, ReportInput, Zone, sink_for};
use crate::report::output::page::{FirstRows, Section, local, pack_page, report_page};
use crate::report::output::pseudonyms::{IDENTIFIERS, Pseudonyms};
use crate::report::output::render::Columnar;
use crate::report::output::team_name_sink::TeamNameSink;
use crate::report::output::write::PAGE_ROWS_MAX;
use crate::report::sql::sink::{Flow, Sink};
use crate::report::views::lookup::place_of;

pub use check::{CheckedPack, PackError, check_pack};
pub use manifest::{Manifest, PackedFile, PackedReport};
pub use tree::Tree;
pub use zipped::zip_tree;

use manifest::{FORMAT, VERSION};

/// The file that lists every other file with its hash.
pub const SUMS: &str = "SHA256SUMS";
const MANIFEST: &str = "manifest.json";
/// Number of rows of each report on the pack's own page.
const INDEX_ROWS_MAX: usize = 25;

/// Writes all files of a pack into `tree`. The arguments of all reports have the same period, team, zone and time. `left_out` are
/// reports that are not in the pack, with the reason.
pub fn write_pack(
    engine: &mut Engine,
    reports: &[(Report, ReportInput)],
    left_out: BTreeMap<String, String>,
    tree: &mut Tree,
) -> Result<Manifest, ReportError> {
    if let Some(names) = &engine.pseudonyms {
        reports.iter().try_for_each(|(report, _)| check_sql(names, report))?;
    }
    engine.start_verifying();
    let (abouts, sections): (Vec<_>, Vec<_>) = write_reports(engine, reports, tree)?.into_iter().unzip();
    let (Some(about), Some((_, first))) = (abouts.first(), reports.first()) else {
        return Err(ReportError::query("a pack needs at least one report: name one"));
    };
    let verify = verdict_of(engine, about.team.as_deref())?;
    let page = pack_page(engine, &first.zone, &abouts, &sections, &verify, &left_out)?;
    tree.put("index.html", page.as_bytes())?;
    write_coverage(engine, about, tree)?;
    put_json(tree, "about.json", &abouts)?;
    put_json(tree, "verify.json", &verify)?;
    put_json(tree, "ledger.json", &json!({ "archive_id": verify.archive_id, "teams": about.ledger }))?;
    let manifest = manifest(engine, left_out, &abouts, &verify, tree);
    put_json(tree, MANIFEST, &manifest)?;
    let sums = tree.sums();
    tree.put(SUMS, sums.as_bytes())?;
    if let Some(names) = &engine.pseudonyms {
        check_pseudonyms(names, tree)?;
    }
    Ok(manifest)
}

impl Engine {
    /// From now on, all rows and statements of reports have pseudonyms, made with this random key. The engine needs all views.
    pub fn pseudonymise(&mut self, key: [u8; 32]) -> Result<(), ReportError> {
        let mut statement = self.connection().prepare(IDENTIFIERS).map_err(|e| self.failed(&e))?;
        let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let found = found.and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(|e| self.failed(&e))?;
        drop(statement);
        self.pseudonyms = Some(Arc::new(Pseudonyms::new(key, found)));
        Ok(())
    }
}

/// The result of `verify`, for one team or all. Its faults can name rows, so they get pseudonyms, too.
fn verdict_of(engine: &Engine, team: Option<&str>) -> Result<VerifyReport, ReportError> {
    let mut verify = engine.verified()?;
    if let Some(team) = team {
        verify = of_team(verify, &TeamId::from(team));
    }
    if let Some(names) = &engine.pseudonyms {
        for fault in verify.faults.iter_mut().chain(&mut verify.notices) {
            (fault.object, fault.detail) = (names.in_text(&fault.object), names.in_text(&fault.detail));
        }
    }
    Ok(verify)
}

/// Keeps the results about one team, and the faults that concern no team.
fn of_team(mut verify: VerifyReport, team: &TeamId) -> VerifyReport {
    let own = format!("team={}", TeamKey::of(team));
    let is_own = |fault: &VerifyFault| place_of(fault).is_none_or(|place| place == own);
    verify.asked = "one_team";
    verify.teams.retain(|found| found.team_id.as_ref() == Some(team));
    verify.faults.retain(is_own);
    verify.notices.retain(is_own);
    // Nothing says which of these files are the team's.
    (verify.retired, verify.unnamed) = (0, 0);
    (verify.commits, verify.files, verify.rows) = Default::default();
    (verify.found_from, verify.found_to) = (None, None);
    verify.conclude();
    verify
}

/// Refuses a report whose own text, which is part of the pack, names a person.
fn check_sql(names: &Pseudonyms, report: &Report) -> Result<(), ReportError> {
    let named = |(line, text): (usize, &str)| {
        let left = names.left_in(text)?;
        let message = format!(
            "the SQL names {left:?}, and --pseudonymise leaves SQL as it is: take the name out, or leave the report out with --reports"
        );
        Some(ReportError::Report { path: report.path().to_owned(), line, message })
    };
    (1..).zip(report.text.lines()).find_map(named).map_or(Ok(()), Err)
}

/// Refuses a pack in which an identifier is left.
fn check_pseudonyms(names: &Pseudonyms, tree: &Tree) -> Result<(), ReportError> {
    for path in tree.files().keys().filter(|path| !path.ends_with(".parquet")) {
        if let Some(left) = names.left_in(&tree.read(path)?) {
            let message =
                format!("{path} would name {left:?} in spite of --pseudonymise: leave its report out with --reports");
            return Err(ReportError::query(message));
        }
    }
    Ok(())
}

/// Writes the files of all reports, in order. Two reports run in parallel: while one sorts or writes on a single thread, the
/// other uses the second core.
fn write_reports(
    engine: &mut Engine,
    reports: &[(Report, ReportInput)],
    tree: &mut Tree,
) -> Result<Vec<(About, Section)>, ReportError> {
    let mut other = engine.second_connection()?;
    let tree = Mutex::new(tree);
    let waiting = Mutex::new(reports.iter().enumerate());
    let take = || waiting.lock().next();
    let write_some = |engine: &mut Engine| -> Result<Vec<_>, ReportError> {
        let mut written = Vec::new();
        while let Some((at, (report, asked))) = take() {
            let done = write_one(engine, report, asked, &tree);
            // After an error, drop the waiting reports.
            written.push((at, done.inspect_err(|_| while take().is_some() {})?));
        }
        Ok(written)
    };
    let (mine, others) = thread::scope(|scope| {
        let others = scope.spawn(|| write_some(&mut other));
        let mine = write_some(engine);
        (mine, others.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let mut written = mine?;
    written.extend(others?);
    written.sort_by_key(|(at, _)| *at);
    Ok(written.into_iter().map(|(_, done)| done).collect())
}

/// A report's rows as CSV and Parquet in one pass; its page; and its query.
fn write_one(
    engine: &mut Engine,
    report: &Report,
    asked: &ReportInput,
    tree: &Mutex<&mut Tree>,
) -> Result<(About, Section), ReportError> {
    let run = engine.run(report, asked)?;
    let stem = format!("{}-{}", report.id.to_lowercase(), report.name);
    let file = |ending: &str| format!("reports/{stem}.{ending}");
    let create = |ending: &str| tree.lock().create(&file(ending));
    let (mut csv, mut parquet) = (create("csv")?, create("parquet")?);
    let mut rows = FirstRows::new(PAGE_ROWS_MAX);
    let about = serde_json::to_string(run.about()).expect("BUG: a statement is plain data");
    {
        let mut as_csv = sink_for(Format::Csv, &mut csv, Medium::default());
        let mut as_parquet = Columnar::new(&mut parquet).with_metadata("annals.about", about);
        let mut named = TeamNameSink::new(&mut rows, &run.about().names);
        run.rows(&mut TeeSink { sinks: vec![as_csv.as_mut(), &mut as_parquet, &mut named] })?;
    }
    for written in [csv, parquet] {
        tree.lock().keep(written)?;
    }
    let beside = ["csv", "parquet"].map(|ending| (ending.to_uppercase(), format!("{stem}.{ending}")));
    let mut section = Section::of(&run, rows, beside.to_vec())?;
    let page = report_page(&run, &section)?;
    tree.lock().put(&file("html"), page.as_bytes())?;
    tree.lock().put(&format!("sql/{stem}.sql"), report.text.as_bytes())?;
    let links = ["csv", "parquet", "html"].map(|ending| (ending.to_uppercase(), file(ending)));
    section.shorten(INDEX_ROWS_MAX, links.to_vec());
    Ok((run.about().clone(), section))
}

fn write_coverage(engine: &Engine, about: &About, tree: &mut Tree) -> Result<(), ReportError> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let time = |at: Instant| format!("make_timestamp({})", at.micros());
    let team = about.team.as_ref().map_or_else(String::new, |team| format!(" AND team_id = {}", quoted(team)));
    let sql = format!(
        "SELECT * FROM coverage WHERE window_start < {} AND window_end > {}{team} ORDER BY team_id, stream, window_start",
        time(about.period.to),
        time(about.period.from)
    );
    let mut file = tree.create("coverage.csv")?;
    engine.query(&sql, sink_for(Format::Csv, &mut file, Medium::default()).as_mut())?;
    Ok(tree.keep(file)?)
}

fn manifest(
    engine: &Engine,
    left_out: BTreeMap<String, String>,
    abouts: &[About],
    verify: &VerifyReport,
    tree: &Tree,
) -> Manifest {
    let about = &abouts[0];
    let packed = |about: &About| PackedReport {
        id: about.report.clone(),
        name: about.name.clone(),
        title: about.title.clone(),
        rows: about.rows,
        detections: about.detections.clone(),
        query_sha256: about.query_sha256,
    };
    let files = tree.files().iter();
    Manifest {
        format: FORMAT.to_owned(),
        version: VERSION,
        archive_id: verify.archive_id.clone().unwrap_or_default(),
        team: about.team.clone(),
        team_names: about.team_names.clone(),
        from: about.period.from,
        to: about.period.to,
        zone: about.zone.clone(),
        made_at: about.made_at,
        annals_version: about.annals_version.clone(),
        pseudonymised: engine.pseudonyms.is_some(),
        verdict: verify.verdict.to_string(),
        faults: verify.faults.len() as u64,
        gaps: about.gaps() as u64,
        ledger: about.ledger.clone(),
        reports: abouts.iter().map(packed).collect(),
        left_out,
        files: files
            .map(|(path, file)| PackedFile { path: path.clone(), bytes: file.bytes, sha256: file.sha256 })
            .collect(),
    }
}

fn put_json(tree: &mut Tree, path: &str, value: &impl Serialize) -> Result<(), ReportError> {
    let text = serde_json::to_string_pretty(value).expect("BUG: every part of a pack serialises");
    Ok(tree.put(path, format!("{text}\n").as_bytes())?)
}

/// The folder in the zip: `annals-pack-2026-10-01-2026-11-01`, with the days in the pack's time zone.
fn folder_of(manifest: &Manifest) -> String {
    let day = |at: Instant| match manifest.zone.parse::<Zone>() {
        Ok(zone) => local(at, &zone).chars().take("2026-10-01".len()).collect(),
        Err(_) => at.day(),
    };
    format!("annals-pack-{}-{}", day(manifest.from), day(manifest.to))
}

/// Writes a pack's tree at `root` into one zip.
pub fn zip_pack(root: &Path, tree: &Tree, manifest: &Manifest, out: &mut File) -> std::io::Result<()> {
    zip_tree(root, tree.files().keys().map(String::as_str), &folder_of(manifest), out)
}

/// Sends one result to several sinks.
struct TeeSink<'a> {
    sinks: Vec<&'a mut dyn Sink>,
}

impl Sink for TeeSink<'_> {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        self.sinks.iter_mut().try_for_each(|sink| sink.begin(schema.clone()))
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        let mut flow = Flow::Enough;
        for sink in &mut self.sinks {
            if sink.batch(batch)? == Flow::More {
                flow = Flow::More;
            }
        }
        Ok(flow)
    }

    fn finish(&mut self) -> Result<(), ReportError> {
        self.sinks.iter_mut().try_for_each(|sink| sink.finish())
    }
}
