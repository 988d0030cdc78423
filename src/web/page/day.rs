//! A day as a timeline, with a lane for each computer or user.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;

use jiff::ToSpan;
use jiff::civil::Date;

use crate::config::When;
use crate::model::{Instant, Range};
use crate::report::{Zone, local_time_text, plural};

use super::super::AppState;
use super::super::answer::sessions::{DAY_MAX, Search, Session};
use super::super::input::Input;
use super::super::problem::Problem;
use super::page_request::{Frame, PageRequest};
use super::sessions::{SearchForm, row_of, session_href, words};
use super::{Page, or_mistake, shown_as};

/// The parameters of a day: its own, and those of the search that leads to it.
const PARAMETERS: [&str; 8] = ["team", "day", "by", "user", "computer", "address", "outcome", "tz"];
/// Maximum number of lanes; the busiest are drawn.
const LANES_MAX: usize = 60;
/// Maximum number of overlapping bars in a lane.
const LEVELS_MAX: usize = 6;
/// Units of the drawing: width of the day, width of the shortest bar, height of a bar with its margin.
const WIDTH: i64 = 1_440;
const BAR_MIN: i64 = 5;
const LEVEL: usize = 16;
const TICKS: i64 = 6;

struct Bar {
    x: i64,
    y: usize,
    width: i64,
    class: &'static str,
    href: String,
    title: String,
}

struct Lane {
    name: String,
    bars: Vec<Bar>,
    height: usize,
    count: String,
}

#[derive(Template)]
#[template(path = "web/day.html")]
struct DayPage {
    frame: Frame,
    asked: SearchForm,
    day: String,
    title: String,
    by: &'static str,
    others: (&'static str, String),
    problem: Option<String>,
    behind: Vec<String>,
    previous: String,
    next: String,
    lanes: Vec<Lane>,
    lanes_left: usize,
    summary: String,
    is_cut: bool,
    ticks: Vec<String>,
    list_href: String,
}

pub async fn day(State(state): State<Arc<AppState>>, request: PageRequest) -> Page {
    let (day, problem) = match request.input.parsed::<Date>("day") {
        Ok(Some(day)) if (2000..2100).contains(&day.year()) => (day, None),
        Ok(None) => (day_at(request.now, &request.zone), None),
        _ => (day_at(request.now, &request.zone), Some("day: give a date such as 2026-11-20".to_owned())),
    };
    let period = bounds(day, &request.zone);
    let problem = problem.map(Problem::bad).or_else(|| checked(&request.input).err());
    let found = match problem {
        Some(problem) => Err(problem),
        None => match Search::of(&request.input, request.teams.clone(), period) {
            Ok(search) => search.running_sessions(&state).await,
            Err(problem) => Err(problem),
        },
    };
    let (sessions, problem, status) = or_mistake(found)?;
    let behind = if problem.is_none() { request.sessions_behind(&state).await? } else { Vec::new() };
    shown_as(status, &DayPage { behind, ..document(request, day, period, sessions.unwrap_or_default(), problem) })
}

fn checked(input: &Input) -> Result<(), Problem> {
    input.only(&PARAMETERS)?;
    match input.get("by") {
        None | Some("user" | "computer") => Ok(()),
        Some(_) => Err(Problem::bad("by: expected computer or user")),
    }
}

fn document(
    request: PageRequest,
    day: Date,
    period: Range,
    mut sessions: Vec<Session>,
    problem: Option<String>,
) -> DayPage {
    let is_cut = sessions.len() > DAY_MAX;
    sessions.truncate(DAY_MAX);
    let is_by_user = request.input.get("by") == Some("user");
    let (lanes, lanes_left) = lanes(&request, period, &sessions, is_by_user);
    let moved = |days: i64| day.checked_add(days.days()).unwrap_or(day).to_string();
    let of_day = |day: &str| request.input.link("/day", &[("day", day)]);
    let (by, other) = if is_by_user { ("user", "computer") } else { ("computer", "user") };
    let text = day.to_string();
    DayPage {
        asked: SearchForm::of(&request),
        title: day.strftime("%A, %e %B %Y").to_string().replace("  ", " "),
        by,
        others: (other, request.input.link("/day", &[("day", &text), ("by", other)])),
        problem,
        behind: Vec::new(),
        previous: of_day(&moved(-1)),
        next: of_day(&moved(1)),
        lanes,
        lanes_left,
        summary: plural(sessions.len() as u64, "session"),
        is_cut,
        ticks: ticks(period, &request.zone),
        list_href: request.input.link("/sessions", &[("day", ""), ("by", ""), ("from", &text), ("to", &moved(1))]),
        day: text,
        frame: request.frame,
    }
}

fn day_at(at: Instant, zone: &Zone) -> Date {
    local_time_text(at, zone)[..10].parse().expect("BUG: a local time begins with its date")
}

/// The day in the time zone: 23 or 25 hours long when summer time begins or ends.
fn bounds(day: Date, zone: &Zone) -> Range {
    let begin = |day: Date| When::Day(day).resolve_in(Instant::EARLIEST, zone.rules());
    Range { start: begin(day), end: begin(day.checked_add(1.day()).unwrap_or(day)) }
}

/// The local times at even distances.
fn ticks(period: Range, zone: &Zone) -> Vec<String> {
    let seconds = i64::try_from(period.length().as_secs()).unwrap_or(86_400);
    let at = |n: i64| Instant::from_seconds(period.start.seconds() + seconds * n / TICKS);
    (0..TICKS).map(|n| local_time_text(at(n), zone)[11..16].to_owned()).chain(["24:00".to_owned()]).collect()
}

fn lanes(request: &PageRequest, period: Range, sessions: &[Session], is_by_user: bool) -> (Vec<Lane>, usize) {
    let mut by_name: BTreeMap<String, Vec<&Session>> = BTreeMap::new();
    for session in sessions {
        let row = row_of(request, session);
        by_name.entry(if is_by_user { row.user } else { row.computer }).or_default().push(session);
    }
    let mut found: Vec<(String, Vec<&Session>)> = by_name.into_iter().collect();
    found.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.0.cmp(&b.0)));
    let left = found.len().saturating_sub(LANES_MAX);
    found.truncate(LANES_MAX);
    found.sort_by(|a, b| a.0.cmp(&b.0));
    (found.into_iter().map(|(name, sessions)| lane(request, period, name, &sessions, is_by_user)).collect(), left)
}

fn lane(request: &PageRequest, period: Range, name: String, sessions: &[&Session], is_by_user: bool) -> Lane {
    let mut ends: Vec<i64> = Vec::new();
    let mut bars = Vec::new();
    for session in sessions {
        let bar_end = session.closed_at.unwrap_or(match session.outcome.as_str() {
            "open" => request.now.max(session.last_event_at),
            _ => session.last_event_at,
        });
        let (x, end) = (place(session.first_event_at, period), place(bar_end, period));
        let width = (end - x).max(BAR_MIN);
        let x = x.min(WIDTH - BAR_MIN);
        let level = ends.iter().position(|end| *end <= x).unwrap_or(ends.len()).min(LEVELS_MAX - 1);
        match ends.get_mut(level) {
            Some(end) => *end = x + width + 1,
            None => ends.push(x + width + 1),
        }
        let (outcome, class) = words(&session.outcome);
        let row = row_of(request, session);
        let other = if is_by_user { row.computer } else { row.user };
        let title = format!("{}, {other}, {}: {outcome}, {}", row.began.text, row.address, row.length);
        bars.push(Bar { x, y: level * LEVEL + 2, width, class, href: session_href(session), title });
    }
    let height = ends.len().max(1) * LEVEL + 2;
    Lane { name, bars, height, count: plural(sessions.len() as u64, "session") }
}

/// The position of a moment in the drawing.
fn place(at: Instant, period: Range) -> i64 {
    let seconds = |at: Instant| at.seconds();
    let length = (seconds(period.end) - seconds(period.start)).max(1);
    ((seconds(at) - seconds(period.start)) * WIDTH / length).clamp(0, WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_and_its_ticks_are_local() {
        let zone: Zone = "Europe/Berlin".parse().unwrap();
        let day = bounds("2026-10-25".parse().unwrap(), &zone);
        assert_eq!(day.length().as_secs(), 25 * 3_600);
        assert_eq!(ticks(day, &zone), ["00:00", "03:10", "07:20", "11:30", "15:40", "19:50", "24:00"]);
        let plain = bounds("2026-11-20".parse().unwrap(), &zone);
        assert_eq!(ticks(plain, &zone), ["00:00", "04:00", "08:00", "12:00", "16:00", "20:00", "24:00"]);
        assert_eq!(place(plain.start, plain), 0);
        assert_eq!(place(plain.end.plus(DAY), plain), WIDTH);
    }

    const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);
}
