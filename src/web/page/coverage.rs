//! The coverage calendar: one block for each year, one cell for each day.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;

use jiff::ToSpan;
use jiff::civil::Date;

use crate::model::{Instant, Range, Stream, TeamId};
use crate::report::{plural, printable};

use super::super::AppState;
use super::super::answer::coverage::{CoverageRanges, CoverageState, DAY};
use super::super::format::Time;
use super::super::input::link;
use super::page_request::{Frame, PageRequest};
use super::{Page, shown_page};

/// The parameters of the calendar.
const PARAMETERS: [&str; 3] = ["team", "stream", "until"];
/// Number of years on a page; further pages show older years.
const YEARS_SHOWN: usize = 10;
/// Maximum number of listed gaps.
const GAPS_SHOWN: usize = 200;
/// Size of a cell with its margin, and of the cell alone, in units of the drawing.
const STEP: i32 = 14;
const CELL: i32 = 12;
/// Room for the names of months and weekdays.
const TOP: i32 = 18;
const LEFT: i32 = 30;

/// In the order of the legend.
const STATES: [CoverageState; 6] = [
    CoverageState::Complete,
    CoverageState::Provisional,
    CoverageState::Gap,
    CoverageState::NotFetched,
    CoverageState::Expired,
    CoverageState::BeforeArchive,
];

/// Days of one month in one state, drawn as one shape.
struct Shape {
    class: &'static str,
    path: String,
}

struct Month {
    title: String,
    shapes: Vec<Shape>,
    name: String,
    x: i32,
}

/// A day with a link.
struct Linked {
    x: i32,
    y: i32,
    class: &'static str,
    href: String,
    title: String,
    cross: String,
}

struct Year {
    year: i16,
    months: Vec<Month>,
    linked: Vec<Linked>,
    width: i32,
    height: i32,
    summary: String,
}

struct Gap {
    period: String,
    subject: String,
    reason: String,
    href: String,
    found: Time,
}

struct Tab {
    label: &'static str,
    href: String,
    is_here: bool,
}

struct Open {
    period: String,
    state: &'static str,
    class: &'static str,
}

#[derive(Template, Default)]
#[template(path = "web/coverage.html")]
struct Coverage {
    frame: Frame,
    tabs: Vec<Tab>,
    stream: &'static str,
    begins: Option<Time>,
    years: Vec<Year>,
    older: Option<String>,
    newer: Option<String>,
    legend: Vec<(&'static str, &'static str)>,
    gaps: Vec<Gap>,
    gaps_left: usize,
    open: Vec<Open>,
    cell: i32,
    needs_team: bool,
}

pub async fn coverage(State(state): State<Arc<AppState>>, mut request: PageRequest) -> Page {
    request.input.only(&PARAMETERS)?;
    // A calendar shows one team: the first one by default.
    if request.team.is_none() {
        request.set_team(request.teams.first().cloned());
    }
    request.frame.has_all = false;
    let stream = request.input.parsed::<Stream>("stream")?.unwrap_or(Stream::Connections);
    let Some(team) = request.team.clone() else {
        return shown_page(&empty(request, stream));
    };
    let data = state.queries.snapshot(vec![team.clone()]).await?;
    let cover = CoverageRanges::of(&data, &team, stream, request.now);
    let now = request.now;
    let today = day_of(now);
    let first = cover.begins.map_or(today.year(), |begins| day_of(begins).year());
    let until = request.input.number("until")?.and_then(|year| i16::try_from(year).ok());
    let last = until.unwrap_or(today.year()).clamp(first, today.year());
    let oldest = first.max(last.saturating_sub(i16::try_from(YEARS_SHOWN).unwrap_or(10) - 1));
    let years = (oldest..=last).rev().map(|year| year_of(&cover, &team, year, now)).collect();
    let turned = |until: i16| request.input.link("/coverage", &[("until", &until.to_string())]);
    let document = Coverage {
        tabs: tabs(&request, stream),
        stream: stream.as_str(),
        begins: cover.begins.map(|at| request.time(at)),
        years,
        older: (oldest > first).then(|| turned(oldest - 1)),
        newer: (last < today.year()).then(|| turned(last.saturating_add(10).min(today.year()))),
        legend: legend(),
        gaps: gaps(&request, &cover, &team),
        gaps_left: cover.gaps.len().saturating_sub(GAPS_SHOWN),
        open: open(&request, &cover),
        cell: CELL,
        needs_team: false,
        frame: request.frame,
    };
    shown_page(&document)
}

fn empty(request: PageRequest, stream: Stream) -> Coverage {
    Coverage {
        tabs: tabs(&request, stream),
        stream: stream.as_str(),
        legend: legend(),
        cell: CELL,
        needs_team: true,
        frame: request.frame,
        ..Coverage::default()
    }
}

fn tabs(request: &PageRequest, stream: Stream) -> Vec<Tab> {
    let tabs = [Stream::Connections, Stream::Activity, Stream::Billing].map(|tab| Tab {
        label: tab.as_str(),
        href: link("/coverage", [("team", request.team_query().as_str()), ("stream", tab.as_str())]),
        is_here: tab == stream,
    });
    tabs.into()
}

fn legend() -> Vec<(&'static str, &'static str)> {
    STATES.map(|state| (class_of(state), words(state))).into()
}

fn words(state: CoverageState) -> &'static str {
    match state {
        CoverageState::Complete => "complete",
        CoverageState::Provisional => "provisional: read, but not confirmed yet",
        CoverageState::Gap => "gap: events were, or may have been, lost",
        CoverageState::NotFetched => "not fetched",
        CoverageState::Expired => "expired: removed under the retention policy",
        CoverageState::BeforeArchive => "before the archive begins",
    }
}

fn short(state: CoverageState) -> &'static str {
    words(state).split(':').next().unwrap_or_default()
}

fn class_of(state: CoverageState) -> &'static str {
    match state {
        CoverageState::Complete => "complete",
        CoverageState::Provisional => "provisional",
        CoverageState::Gap => "gap",
        CoverageState::NotFetched => "missing",
        CoverageState::Expired | CoverageState::BeforeArchive => "before",
    }
}

fn day_of(at: Instant) -> Date {
    at.day().parse().expect("BUG: a day is a date")
}

fn begin_of(day: Date) -> Instant {
    let midnight = format!("{day}T00:00:00Z");
    midnight.parse().unwrap_or(Instant::EARLIEST)
}

fn year_of(cover: &CoverageRanges, team: &TeamId, year: i16, now: Instant) -> Year {
    let first = jiff::civil::date(year, 1, 1);
    let offset = i32::from(first.weekday().to_monday_zero_offset());
    let mut counts = [0_u64; 6];
    let (mut months, mut linked) = (Vec::new(), Vec::new());
    for month in 1..=12_i8 {
        let (mut shapes, mut of_month): (Vec<Shape>, [u64; 6]) = (Vec::new(), [0; 6]);
        let begins = jiff::civil::date(year, month, 1);
        let mut day = begins;
        while day.month() == month && day.year() == year {
            let start = begin_of(day);
            let nth = i32::from(day.day_of_year()) - 1 + offset;
            let (x, y) = (LEFT + nth / 7 * STEP, TOP + nth % 7 * STEP);
            let range = Range { start, end: start.plus(DAY) };
            if let Some(state) = cover.state_of(range, now) {
                of_month[state as usize] += 1;
                match linked_of(cover, team, day, range, state, (x, y)) {
                    Some(link) => linked.push(link),
                    None => push_cell(&mut shapes, class_of(state), (x, y)),
                }
            }
            day = day.checked_add(1.day()).unwrap_or(Date::MAX);
        }
        let nth = i32::from(begins.day_of_year()) - 1 + offset;
        let name = begins.strftime("%b").to_string();
        let text = counts_text(of_month);
        let title = if text.is_empty() { String::new() } else { format!("{name} {year}: {text}") };
        months.push(Month { title, shapes, name, x: LEFT + (nth + 6) / 7 * STEP });
        counts.iter_mut().zip(of_month).for_each(|(sum, count)| *sum += count);
    }
    let weeks = (offset + i32::from(first.days_in_year()) + 6) / 7;
    let summary = counts_text(counts);
    let summary = if summary.is_empty() { "nothing yet".to_owned() } else { summary };
    Year { year, months, linked, width: LEFT + weeks * STEP, height: TOP + 7 * STEP, summary }
}

fn push_cell(shapes: &mut Vec<Shape>, class: &'static str, (x, y): (i32, i32)) {
    let cell = format!("M{x} {y}h{CELL}v{CELL}h-{CELL}z");
    match shapes.iter_mut().find(|shape| shape.class == class) {
        Some(shape) => shape.path.push_str(&cell),
        None => shapes.push(Shape { class, path: cell }),
    }
}

/// `29 days complete, 2 days provisional`
fn counts_text(counts: [u64; 6]) -> String {
    let parts = STATES.into_iter().filter(|state| counts[*state as usize] > 0).map(|state| match state {
        CoverageState::Gap => format!("{} with a gap", plural(counts[state as usize], "day")),
        state => format!("{} {}", plural(counts[state as usize], "day"), short(state)),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// A day with a gap links to the gap's record.
fn linked_of(
    cover: &CoverageRanges,
    team: &TeamId,
    day: Date,
    range: Range,
    state: CoverageState,
    (x, y): (i32, i32),
) -> Option<Linked> {
    if state != CoverageState::Gap {
        return None;
    }
    let begins = cover.begins?;
    let gap = cover.gaps.iter().find(|gap| gap.touches(range, begins))?;
    let (left, top, size) = (x + 3, y + 3, CELL - 6);
    Some(Linked {
        x,
        y,
        class: class_of(state),
        href: record_of(team, gap.ledger_seq),
        title: format!("{day}: a gap is recorded"),
        cross: format!("M{left} {top}l{size} {size}m0-{size}l-{size} {size}"),
    })
}

fn record_of(team: &TeamId, seq: u64) -> String {
    link("/findings", [("team", team.as_str()), ("kind", "gap"), ("seq", &seq.to_string())])
}

fn gaps(request: &PageRequest, cover: &CoverageRanges, team: &TeamId) -> Vec<Gap> {
    let text = |at: Option<Instant>, unknown: &str| at.map_or_else(|| unknown.to_owned(), |at| request.time(at).text);
    let newest = cover.gaps.iter().rev().take(GAPS_SHOWN);
    let gaps = newest.map(|gap| Gap {
        period: format!("{} to {}", text(gap.from, "an unknown time"), text(gap.to, "an unknown time")),
        subject: printable(&gap.subject),
        reason: printable(&gap.reason),
        href: record_of(team, gap.ledger_seq),
        found: request.exact(gap.found_at),
    });
    gaps.collect()
}

/// The incomplete ranges, newest first.
fn open(request: &PageRequest, cover: &CoverageRanges) -> Vec<Open> {
    let stretches = cover.stretches.iter().rev().filter(|stretch| stretch.state != CoverageState::Complete);
    let open = stretches.take(GAPS_SHOWN).map(|stretch| Open {
        period: format!("{} to {}", request.time(stretch.from).text, request.time(stretch.to).text),
        state: words(stretch.state),
        class: class_of(stretch.state),
    });
    open.collect()
}
