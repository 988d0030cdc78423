//! The table of many teams: the order of its rows, the rows that it hides, and the line that counts them.

use super::*;
use crate::model::Stream;

const NOW: i64 = 1_800_000_000;
const DAY: Duration = Duration::from_secs(86_400);

fn stream(stream: Stream) -> StreamStatus {
    let read_to = Some(Instant::from_seconds(NOW - 60));
    StreamStatus {
        stream,
        begins: read_to,
        settled_to: read_to,
        read_to,
        lag_seconds: Some(60),
        windows: 1,
        sealed_windows: 0,
        open_windows: 1,
        open_seconds: Some(60),
        unstable: Vec::new(),
        events: 7,
        late: 0,
        gaps: 0,
        seconds_to_loss: Some(80 * 86_400),
        seconds_kept: Some(90 * 86_400),
        deprecated_history: false,
    }
}

fn team(id: String) -> TeamStatus {
    TeamStatus {
        team: id,
        ledger_seq: 1,
        ledger_head: String::new(),
        committed_at: None,
        quarantined: 0,
        bytes: 0,
        streams: Stream::ALL.map(stream).into(),
        inventory: InventoryStatus { scanned_at: Some(Instant::from_seconds(NOW - 120)), ..InventoryStatus::default() },
        expired: Vec::new(),
        holds: Vec::new(),
        held_back: Vec::new(),
        sessions_lack: None,
        name_file: None,
    }
}

/// A thousand teams, five of them with a problem.
fn thousand() -> Vec<TeamStatus> {
    let mut teams: Vec<TeamStatus> = (0..1_000).map(|n| team(format!("team-{n:04}"))).collect();
    teams[900].quarantined = 3;
    teams[800].streams[1].gaps = 2;
    teams[700].streams[0].unstable.push("activity[2026-11-20T00:00:01Z..2026-11-20T00:00:02Z)".to_owned());
    teams[600].streams[1].seconds_to_loss = Some(7_200);
    teams[500].streams[1].seconds_to_loss = Some(3_600);
    problems_first(&mut teams, DAY);
    teams
}

fn names() -> TeamNames {
    TeamNames::of([("team-0500".into(), Some("Lighthouse VFX\u{1b}".to_owned())), ("team-0501".into(), None)])
}

fn order(teams: &[TeamStatus]) -> Vec<&str> {
    teams.iter().map(|team| team.team.as_str()).collect()
}

#[test]
fn teams_with_a_problem_come_first_by_urgency() {
    let teams = thousand();
    let first = ["team-0500", "team-0600", "team-0700", "team-0800", "team-0900", "team-0000", "team-0001"];
    assert_eq!(order(&teams)[..7], first);
}

#[test]
fn the_table_is_bounded_and_counts_hidden_teams() {
    let (teams, now) = (thousand(), Instant::from_seconds(NOW));
    let text = text(&teams, &[], &names(), DAY, 10, now);
    assert!(!text.contains("team-0500") && !text.contains('\u{1b}'), "{text}");
    assert!(text.ends_with("and 985 more teams without a problem: `annals status --all` shows them\n"), "{text}");
    // Borders, the header, 15 teams of four rows, the quarantine of one, and the line beneath.
    assert_eq!(text.lines().count(), 4 + 15 * 4 + 1 + 1);
    for said in [
        "warning: unread events can be lost in 60m",
        "changes at each read",
        "quarantine list",
        "│ Lighthouse VFX ",
        "│ team-0600 ",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let all = super::text(&teams, &[], &names(), DAY, usize::MAX, now);
    assert_eq!(all.lines().count(), 4 + 1_000 * 4 + 1);
    assert!(
        super::text(&teams[..6], &[], &names(), DAY, 0, now)
            .ends_with("and 1 more team without a problem: `annals status --all` shows it\n")
    );
}

#[test]
fn the_output_for_programs_has_every_row() {
    let rows = rows(&thousand(), &[], DAY, Instant::from_seconds(NOW));
    assert_eq!(rows.num_rows(), 4 * 1_000 + 1);
}

#[test]
fn a_team_of_another_shard_has_one_row() {
    let (shard, now) = (Shard::new(2, 4).unwrap(), Instant::from_seconds(NOW));
    let (own, others): (Vec<TeamStatus>, Vec<TeamStatus>) =
        thousand().into_iter().partition(|team| shard.owns(&team.team.as_str().into()));
    let others = OtherShardTeam::all(&others, shard);
    assert_eq!(own.len() + others.len(), 1_000);
    assert_eq!(others[0].owner.to_string(), "1/4");
    let all = rows(&own, &others, DAY, now);
    let quarantined = own.iter().filter(|team| team.quarantined > 0).count();
    assert_eq!(all.num_rows(), 4 * own.len() + quarantined + others.len());
    let text = text(&own, &others, &names(), DAY, 10, now);
    let of_others = text.lines().filter(|line| line.contains(" reads this team")).count();
    assert_eq!(of_others, 10);
    assert!(text.contains("shard 1/4 reads this team"), "{text}");
    let left = format!("and {} more teams of other shards: `annals status --all` shows them\n", others.len() - 10);
    assert!(text.ends_with(&left), "{text}");
}
