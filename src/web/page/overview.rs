//! The overview: the state of every stream of every team.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};

use crate::model::{Instant, TeamId};
use crate::report::{Zone, behind_sentence, counted, plural, printable};

use super::super::AppState;
use super::super::answer::health::{DaemonHealth, Health, StreamHealth, TeamHealth};
use super::super::format::{Time, ago, bytes, span, time};
use super::super::input::{Input, link};
use super::key_figures::{Figure, figures};
use super::other_teams::OtherTeams;
use super::page_request::{Frame, zone_of};
use super::{Page, shown_page};

/// The parameters of the overview.
const PARAMETERS: [&str; 2] = ["q", "page"];
/// Number of teams on a page.
const TEAMS_SHOWN: usize = 25;
/// Maximum number of listed errors.
const ERRORS_SHOWN: usize = 3;

struct StreamRow {
    stream: &'static str,
    class: &'static str,
    state: &'static str,
    read: Option<(String, Time)>,
    lag: String,
    settled: Option<Time>,
    left: String,
    left_class: &'static str,
    /// The daemon has read the team's archive, so its numbers are known.
    is_seen: bool,
    gaps: u64,
    gaps_href: String,
    coverage_href: Option<String>,
    events: String,
    note: String,
}

/// The last line of a team's ledger.
struct Head {
    seq: u64,
    sha256: String,
    committed: Option<(String, Time)>,
}

struct Team {
    name: String,
    /// The id, if the name differs from it.
    id: String,
    lines: Vec<StreamRow>,
    head: Option<Head>,
    bytes: String,
    quarantined: u64,
    quarantine_href: String,
    /// `None` if the archive does not hold the team yet; so also for `head` and `coverage_href`.
    sessions_href: Option<String>,
    people: String,
    /// Sessions that lack events, legal holds, months that they keep, and the last expiries.
    remarks: Vec<String>,
    class: &'static str,
}

#[derive(Template)]
#[template(path = "web/overview.html")]
struct Overview {
    frame: Frame,
    verdict: (&'static str, String, String),
    errors: Vec<String>,
    figures: Vec<Figure>,
    teams: Vec<Team>,
    shown: String,
    previous: Option<String>,
    next: Option<String>,
    search: String,
    is_searchable: bool,
    beside: OtherTeams,
    /// The shard that the daemon reads; empty if it reads all teams.
    shard: String,
}

pub async fn overview(State(state): State<Arc<AppState>>, input: Input, headers: HeaderMap, uri: Uri) -> Page {
    input.only(&PARAMETERS)?;
    let page = input.number("page")?.unwrap_or(1);
    let (now, zone) = (state.clock.now(), zone_of(&headers));
    let mut daemon = DaemonHealth::of(&state.live, now);
    // The page works even while the archive cannot be read.
    let archived = state.queries.teams().await.unwrap_or_default();
    let names = state.queries.names().await.unwrap_or_default();
    daemon.set_names(&names);
    let search = input.shown("q");
    let beside = OtherTeams::of(&archived, &daemon, &names, &search, TEAMS_SHOWN);
    let (totals, verdict, errors) = (daemon.totals(), verdict(&daemon), errors(&daemon));
    daemon.worst_first();
    let is_searchable = daemon.teams.len() > TEAMS_SHOWN || !beside.others_left.is_empty();
    if !search.is_empty() {
        let search = search.to_lowercase();
        let is_found = |text: &str| text.to_lowercase().contains(&search);
        daemon.teams.retain(|team| is_found(&team.team) || team.team_name.as_deref().is_some_and(is_found));
    }
    let found = daemon.teams.len();
    let page = usize::try_from(page).unwrap_or(usize::MAX).clamp(1, found.div_ceil(TEAMS_SHOWN).max(1));
    let begin = (page - 1) * TEAMS_SHOWN;
    let teams: Vec<Team> =
        daemon.teams.iter().skip(begin).take(TEAMS_SHOWN).map(|team| team_of(team, &archived, now, &zone)).collect();
    let of_page = |page: usize| input.link("/", &[("page", &page.to_string())]);
    let end = begin + teams.len();
    let document = Overview {
        figures: figures(&daemon, &totals, now, &zone),
        verdict,
        errors,
        shown: if end < found || begin > 0 {
            format!("Teams {} to {end} of {found}", begin + 1)
        } else {
            String::new()
        },
        previous: (page > 1).then(|| of_page(page - 1)),
        next: (end < found).then(|| of_page(page + 1)),
        teams,
        search,
        is_searchable,
        beside,
        shard: if daemon.shard.is_whole() { String::new() } else { daemon.shard.to_string() },
        frame: Frame::bare(&state, &headers, &uri),
    };
    shown_page(&document)
}

fn verdict(daemon: &DaemonHealth) -> (&'static str, String, String) {
    let totals = daemon.totals();
    let headline = |class, title: &str, sentence: String| (class, title.to_owned(), sentence);
    if let Some(found) = daemon.verified.as_ref().filter(|found| found.faults > 0) {
        let faults = plural(found.faults as u64, "fault");
        let sentence =
            format!("The last check found {faults}. `annals verify` names each of them. Do not change the archive.");
        return headline("bad", "The archive differs from its ledger", sentence);
    }
    if daemon.teams.is_empty() {
        return match &daemon.teams_error {
            Some(_) => headline(
                "warn",
                "The service does not answer",
                "Annals does not know the teams yet. It tries again by itself.".to_owned(),
            ),
            None if daemon.is_listed && !daemon.shard.is_whole() => {
                let title = format!("No team belongs to shard {}", daemon.shard);
                headline("calm", &title, "Other shards read the teams that the token sees.".to_owned())
            }
            None => headline("calm", "Annals is asking the service for its teams", "This takes a moment.".to_owned()),
        };
    }
    if totals.late > 0 {
        let left = totals.seconds_to_loss.map_or_else(String::new, |left| {
            format!(" Nothing is lost if the next read succeeds within {}.", span(left))
        });
        let sentence = format!(
            "{} of {} not read as scheduled. Annals tries again by itself.{left}",
            totals.late,
            plural(totals.streams, "stream")
        );
        let title = if totals.fresh == 0 { "Annals cannot read the service" } else { "Some streams are late" };
        return headline("warn", title, sentence);
    }
    if totals.waiting > 0 {
        let sentence = format!("{} of {} not read yet.", totals.waiting, plural(totals.streams, "stream"));
        return headline("calm", "The daemon runs its first round since its start", sentence);
    }
    if daemon.teams_error.is_some() {
        let sentence = "The daemon cannot read the list of teams, so it would miss a new team.".to_owned();
        return headline("warn", "All known streams are up to date", sentence);
    }
    let failing: usize = daemon.errors().values().sum();
    if failing > 0 {
        let sentence = format!(
            "The last read of {} of {} failed. No stream is late yet. Annals tries again by itself.",
            failing,
            plural(totals.streams, "stream")
        );
        return headline("warn", "Up to date, but reads fail", sentence);
    }
    headline(
        "good",
        "Everything is up to date",
        format!("{} of {} read as scheduled.", plural(totals.streams, "stream"), plural(totals.teams, "team")),
    )
}

fn errors(daemon: &DaemonHealth) -> Vec<String> {
    let mut found: Vec<(String, usize)> = daemon.errors().into_iter().collect();
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let of_streams = found.iter().map(|(error, count)| format!("{error} ({})", plural(*count as u64, "stream")));
    let of_listing = daemon.teams_error.iter().map(|error| format!("{} (the list of teams)", printable(error)));
    let unpublished = daemon.published.iter().filter_map(|run| run.error.as_deref());
    let of_tables = unpublished.map(|error| format!("{} (the open tables)", printable(error)));
    of_listing.chain(of_tables).chain(of_streams).take(ERRORS_SHOWN).collect()
}

fn team_of(team: &TeamHealth, archived: &[TeamId], now: Instant, zone: &Zone) -> Team {
    let of_team = |path: &str| link(path, [("team", team.team.as_str())]);
    let is_archived = archived.iter().any(|held| held.as_str() == team.team);
    Team {
        name: team.team_name.clone().unwrap_or_else(|| printable(&team.team)),
        id: team.team_name.as_ref().map_or_else(String::new, |_| printable(&team.team)),
        lines: team.streams.iter().map(|stream| line_of(team, stream, is_archived, now, zone)).collect(),
        head: team.ledger_seq.filter(|_| is_archived).map(|seq| {
            let committed = team.committed_at.map(|at| (ago(at, now), time(at, zone)));
            Head { seq, sha256: team.ledger_head.clone().unwrap_or_default(), committed }
        }),
        bytes: team.bytes.map_or_else(String::new, bytes),
        quarantined: team.quarantined.unwrap_or(0),
        quarantine_href: of_team("/quarantine"),
        sessions_href: is_archived.then(|| of_team("/sessions")),
        remarks: remarks(team),
        people: team.inventory.as_ref().filter(|held| held.scanned_at.is_some()).map_or_else(String::new, |held| {
            let parts = [plural(held.users, "user"), plural(held.computers, "computer"), plural(held.groups, "group")];
            parts.join(", ")
        }),
        class: class_of(team.urgency()),
    }
}

fn class_of(health: Health) -> &'static str {
    match health {
        Health::Fresh => "fresh",
        Health::Late => "late",
        Health::Waiting => "waiting",
    }
}

fn line_of(team: &TeamHealth, stream: &StreamHealth, is_archived: bool, now: Instant, zone: &Zone) -> StreamRow {
    let short = match (stream.seconds_to_loss, stream.seconds_kept) {
        (Some(left), Some(kept)) => left < kept / 2,
        _ => false,
    };
    let mut notes = Vec::new();
    if let Some(error) = &stream.error {
        let tries = if stream.failures > 1 { format!(", {} times in a row", stream.failures) } else { String::new() };
        let next = if stream.next_due_at > now { ago(stream.next_due_at, now) } else { "now".to_owned() };
        notes.push(format!("{error}{tries}; next try {next}"));
    }
    if !stream.unstable.is_empty() {
        notes.push(format!("{} change at each read and remain open", plural(stream.unstable.len() as u64, "second")));
    }
    if stream.deprecated_history {
        notes.push("read from the deprecated per-computer history".to_owned());
    }
    StreamRow {
        stream: stream.stream.as_str(),
        class: class_of(stream.health),
        state: match stream.health {
            Health::Fresh => "up to date",
            Health::Late => "late",
            Health::Waiting => "backfill",
        },
        read: stream.last_read_at.map(|at| (ago(at, now), time(at, zone))),
        lag: stream.lag_seconds.map_or_else(|| "–".to_owned(), span),
        settled: stream.settled_to.map(|at| time(at, zone)),
        left: stream.seconds_to_loss.map_or_else(|| "–".to_owned(), span),
        left_class: if short { "warn-text" } else { "" },
        is_seen: team.ledger_seq.is_some(),
        gaps: stream.gaps,
        gaps_href: link(
            "/findings",
            [("team", team.team.as_str()), ("kind", "gap"), ("stream", stream.stream.as_str())],
        ),
        coverage_href: is_archived
            .then(|| link("/coverage", [("team", team.team.as_str()), ("stream", stream.stream.as_str())])),
        events: counted(stream.events),
        note: notes.join("; "),
    }
}

fn remarks(team: &TeamHealth) -> Vec<String> {
    let label = team.team_name.clone().unwrap_or_else(|| printable(&team.team));
    let behind = team.sessions_lack.map(|from| behind_sentence(&label, from));
    let holds = (!team.holds.is_empty()).then(|| format!("Legal holds: {}", team.holds.join(", ")));
    let waiting = team.held_back.iter().map(|sentence| format!("Waiting: {sentence}"));
    let expired = team.expired.iter().map(|sentence| format!("Last expired: {sentence}"));
    behind.into_iter().chain(holds).chain(waiting).chain(expired).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_without_teams_is_reported_after_the_teams_are_listed() {
        let daemon = DaemonHealth::unread(Instant::EARLIEST, "2/8".parse().unwrap());
        let title = |is_listed| verdict(&DaemonHealth { is_listed, ..daemon.clone() }).1;
        assert_eq!(title(true), "No team belongs to shard 2/8");
        assert_eq!(title(false), "Annals is asking the service for its teams");
    }

    #[test]
    fn the_overview_names_a_team_whose_sessions_lack_events() {
        let now = Instant::from_seconds(1_800_000_000);
        for (from, expected) in [(Some(now), 1), (None, 0)] {
            let team = TeamHealth { team: "t-1".to_owned(), sessions_lack: from, ..TeamHealth::default() };
            let remarks = team_of(&team, &[], now, &Zone::utc()).remarks;
            assert_eq!(
                remarks.iter().filter(|line| line.contains("sessions are not complete: t-1: ")).count(),
                expected
            );
        }
    }
}
