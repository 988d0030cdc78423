//! Pages: a report, or a pack of reports, as one HTML document without external files.
//!
//! The template engine escapes every string of data. Only two types are not escaped: [`Svg`], which the chart code makes and
//! escapes, and [`Style`], which is our own style sheet.
//!
//! [`Svg`]: crate::report::output::chart::Svg

mod cells;
mod coverage_calendar;
mod plain;
mod section;
mod style;

use std::collections::BTreeMap;

use askama::Template;

use crate::archive::VerifyReport;
use crate::model::Range;

use super::chart::counted;
use crate::report::statement::about::gaps_recorded;
use crate::report::statement::coverage::{GapInside, Span, StreamCoverage};
use crate::report::views::data::ViewData;
use crate::report::{About, Engine, ReportError, Run, Severity, Zone, printable};

pub use cells::{Cell, ColumnHead, FirstRows};
use coverage_calendar::coverage_calendar;
pub use coverage_calendar::local;
pub use plain::HtmlTable;
use section::text_below;
pub use section::{Figure, Section};
use style::Style;

/// Maximum number of listed faults of `verify`.
const FAULTS_SHOWN_MAX: usize = 20;

/// The facts that all parts of a page share.
struct Facts {
    team: String,
    period: String,
    period_utc: String,
    zone: String,
    made_at: String,
    version: String,
    archive: String,
    heads: Vec<LastLine>,
    calendar: Option<Figure>,
    coverage: Vec<CoverageLine>,
    expired: Vec<GapLine>,
    gaps: Vec<GapLine>,
    removed_before: Vec<GapLine>,
}

/// The last line of a team's ledger.
struct LastLine {
    team: String,
    seq: u64,
    sha256: String,
}

/// A stream of a team in the coverage table.
struct CoverageLine {
    team: String,
    stream: String,
    complete: bool,
    sentence: String,
}

struct GapLine {
    place: String,
    sentence: String,
}

/// A verdict at the top of a page.
struct PageVerdict {
    class: &'static str,
    title: String,
    sentence: String,
    faults: Vec<String>,
}

#[derive(Template)]
#[template(path = "report.html")]
struct ReportPage<'a> {
    style: Style,
    facts: Facts,
    /// The time of the shown people and computers, if it is not the period's end.
    as_of: Option<String>,
    section: &'a Section,
}

#[derive(Template)]
#[template(path = "pack.html")]
struct PackPage<'a> {
    style: Style,
    facts: Facts,
    verdict: PageVerdict,
    gap_verdict: PageVerdict,
    severities: Vec<&'static str>,
    /// The sum over all reports.
    all_rows: String,
    /// The detections of all reports, for each severity.
    all_found: Vec<String>,
    sections: &'a [Section],
    pseudonymised: bool,
    left_out: &'a BTreeMap<String, String>,
}

/// One report as a whole document.
pub fn report_page(run: &Run<'_>, section: &Section) -> Result<String, ReportError> {
    let (data, about, zone) = (run.data(), run.about(), run.zone());
    let page = ReportPage {
        style: Style,
        facts: facts(data, about, zone, ""),
        as_of: (about.as_of != about.period.to).then(|| format!("{}, {}", local(about.as_of, zone), zone.name())),
        section,
    };
    page.render().map_err(failed)
}

/// A pack's own page, about all its reports: each has a statement and a section. `left_out` are reports that are not in the pack,
/// with the reason.
pub fn pack_page(
    engine: &Engine,
    zone: &Zone,
    abouts: &[About],
    sections: &[Section],
    verify: &VerifyReport,
    left_out: &BTreeMap<String, String>,
) -> Result<String, ReportError> {
    // Period, zone, team, coverage and heads are the same in all statements.
    let about = &abouts[0];
    let severities = Severity::ALL.into_iter().rev();
    let detections = || abouts.iter().filter_map(|about| about.detections.as_ref());
    let of = |severity: Severity| detections().filter_map(|found| found.get(&severity)).sum();
    let page = PackPage {
        style: Style,
        facts: facts(engine.data(), about, zone, verify.archive_id.as_deref().unwrap_or("unknown")),
        verdict: verdict(verify),
        gap_verdict: gap_verdict(about),
        severities: severities.clone().map(Severity::as_str).collect(),
        all_rows: counted(abouts.iter().map(|about| about.rows).sum()),
        all_found: severities.map(|severity| counted(of(severity))).collect(),
        sections,
        pseudonymised: engine.pseudonyms.is_some(),
        left_out,
    };
    page.render().map_err(failed)
}

fn failed(error: askama::Error) -> ReportError {
    ReportError::Format { format: "html", detail: error.to_string() }
}

fn facts(data: &ViewData, about: &About, zone: &Zone, archive: &str) -> Facts {
    Facts {
        team: about.team.as_deref().map_or_else(|| all_teams(about), |team| one_team(about, team)),
        period: period(about, zone),
        period_utc: format!("[{} .. {}), half-open: the end is not part of it", about.period.from, about.period.to),
        zone: zone.name().to_owned(),
        made_at: format!("{}, {}", local(about.made_at, zone), zone.name()),
        version: about.annals_version.clone(),
        archive: printable(archive),
        heads: head_lines(about),
        calendar: calendar(data, about, zone),
        coverage: coverage_lines(about),
        expired: gap_lines(about, |line| &line.expired),
        gaps: gap_lines(about, |line| &line.gaps),
        removed_before: gap_lines(about, |line| &line.removed_before),
    }
}

/// An id alone does not say that it is a team.
fn one_team(about: &About, team: &str) -> String {
    let label = about.names.with_id(team);
    if about.names.name(team).is_some() { label } else { format!("team {label}") }
}

fn all_teams(about: &About) -> String {
    match about.ledger.as_slice() {
        [] => "no team".to_owned(),
        [one] => one_team(about, &one.team),
        many => format!("all {} teams", many.len()),
    }
}

/// `2026-10-01 00:00 to 2026-11-01 00:00, Europe/Berlin`
fn period(about: &About, zone: &Zone) -> String {
    format!("{} to {}, {}", local(about.period.from, zone), local(about.period.to, zone), zone.name())
}

fn verdict(report: &VerifyReport) -> PageVerdict {
    let counts = format!("commits {}, files {}, rows {} as recorded", report.commits, report.files, report.rows);
    if report.is_clean() {
        let anchored = if report.heads_asked == 0 {
            "Only a head kept elsewhere can show whether somebody cut off the ledger's end: compare the heads below."
        } else {
            "The ledger holds every given head."
        };
        return PageVerdict {
            class: "good",
            title: "✓ The archive agrees with its ledger".to_owned(),
            sentence: format!("Verified when this pack was made: {counts}. {anchored}"),
            faults: Vec::new(),
        };
    }
    let more = report.faults.len().saturating_sub(FAULTS_SHOWN_MAX);
    let named = report.faults.iter().take(FAULTS_SHOWN_MAX);
    let named = named.map(|f| printable(&format!("{} {}: {}", f.code.into_str(), f.object, f.detail)));
    let rest = (more > 0).then(|| format!("and {more} more, in verify.json"));
    PageVerdict {
        class: "bad",
        title: format!("✗ The archive differs from its ledger: {}", report.verdict),
        sentence: format!(
            "Verify found {} faults when this pack was made ({counts}). The reports may be wrong or incomplete.",
            report.faults.len()
        ),
        faults: named.chain(rest).collect(),
    }
}

fn gap_verdict(about: &About) -> PageVerdict {
    let page_verdict = |class, title: String, sentence: &str| PageVerdict {
        class,
        title,
        sentence: sentence.to_owned(),
        faults: Vec::new(),
    };
    let open = about.coverage.iter().filter(|line| line.stream.is_some() && !line.complete).count();
    match (about.gaps(), open) {
        (0, 0) if !about.coverage.is_empty() => page_verdict(
            "good",
            "✓ The period is covered".to_owned(),
            "Annals read every stream completely, and no gap is recorded.",
        ),
        (0, open) => page_verdict(
            "warn",
            format!("! No gap is recorded, but {open} of {} streams are not complete", about.coverage.len()),
            "A part of the period is not read or not settled yet: see the coverage.",
        ),
        (gaps, _) => page_verdict(
            "bad",
            format!("✗ {}", gaps_recorded(gaps as u64)),
            "Events were, or may have been, lost before Annals could read them: the coverage lists each gap.",
        ),
    }
}

fn calendar(data: &ViewData, about: &About, zone: &Zone) -> Option<Figure> {
    if about.coverage.is_empty() {
        return None;
    }
    let period = Range { start: about.period.from, end: about.period.to };
    let drawing = coverage_calendar(data, about, period, zone);
    Some(Figure { title: String::new(), text: text_below(&drawing), drawing })
}

fn head_lines(about: &About) -> Vec<LastLine> {
    let lines = about.ledger.iter().map(|head| LastLine {
        team: about.names.with_id(&head.team),
        seq: head.seq,
        sha256: head.sha256.to_string(),
    });
    lines.collect()
}

fn coverage_lines(about: &About) -> Vec<CoverageLine> {
    let lines = about.coverage.iter().filter(|line| line.stream.is_some()).map(|line| CoverageLine {
        team: about.names.label(&line.team),
        stream: line.stream.map_or_else(String::new, |stream| stream.to_string()),
        complete: line.complete,
        sentence: printable(&line.sentence()),
    });
    lines.collect()
}

fn gap_lines(about: &About, of: fn(&StreamCoverage) -> &Vec<GapInside>) -> Vec<GapLine> {
    let place = |line: &StreamCoverage| {
        let stream = line.stream.map_or_else(String::new, |stream| format!("{stream}, "));
        format!("{stream}{}:", about.names.label(&line.team))
    };
    let lines = about.coverage.iter().flat_map(|line| {
        of(line).iter().map(move |gap| GapLine { place: place(line), sentence: printable(&gap.sentence()) })
    });
    lines.collect()
}
