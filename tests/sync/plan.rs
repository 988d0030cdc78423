//! Compares `annals plan` with the `annals sync` after it: the requests that the sandbox counts, and their time at a
//! rate.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use annals::api::scans_per_second;
use annals::clock::{Clock, SystemClock};
use annals::model::Instant;
use annals::sandbox::{RunningSandbox, Sandbox, SandboxConfig};

/// The rate of plans; the syncs after them have no rate limit.
const RATE: f64 = 50.0;

struct Planned {
    requests: f64,
    seconds: f64,
}

fn annals(sandbox: &RunningSandbox, archive: &Path, rate: f64, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_annals"))
        .args(arguments)
        .current_dir(archive.parent().unwrap())
        .env("ANNALS_TOKEN", &sandbox.read_only_token)
        .env("ANNALS_BASE_URL", &sandbox.base_url)
        .env("ANNALS_ARCHIVE", archive)
        .env("ANNALS_REQUESTS_PER_SECOND", rate.to_string())
        .env_remove("ANNALS_CONFIG")
        .env_remove("ANNALS_TOKEN_FILE")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Reads the numbers of "about 312 requests, 1m 4s at 5 a second".
fn planned(said: &str) -> Planned {
    let line = said.lines().find(|line| line.starts_with("about ")).unwrap();
    let (requests, rest) = line.trim_start_matches("about ").split_once(" requests, ").unwrap();
    let (time, _) = rest.split_once(" at ").unwrap();
    Planned { requests: requests.parse().unwrap(), seconds: seconds(time) }
}

/// The seconds of a span such as `1h 2m` or `90s`.
fn seconds(span: &str) -> f64 {
    let part = |part: &str| {
        let (number, unit) = part.split_at(part.len() - 1);
        let unit = match unit {
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            _ => panic!("{span}"),
        };
        number.parse::<f64>().unwrap() * unit
    };
    span.split(' ').map(part).sum()
}

/// A moment less than a day ago, because a round with clocks a day apart requests the date again. Shortly after
/// midnight, a plan expects events of the new day, which this sandbox does not have.
fn last_noon() -> Instant {
    let half_a_day = Duration::from_secs(43_200);
    SystemClock::new().now().minus(half_a_day).floor_to(2 * half_a_day).plus(half_a_day)
}

fn is_close(planned: f64, made: f64) -> bool {
    (planned - made).abs() <= 0.3 * made
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_predicts_the_next_sync_within_a_third() {
    for (scenario, config) in [
        ("the default sandbox", SandboxConfig::default()),
        ("busy", SandboxConfig { teams: 1, sessions_per_day: 2_000, ..SandboxConfig::default() }),
        ("small", SandboxConfig { teams: 3, days: 10, sessions_per_day: 10, ..SandboxConfig::default() }),
        (
            "more teams than are asked",
            SandboxConfig { teams: 11, days: 20, sessions_per_day: 40, ..SandboxConfig::default() },
        ),
    ] {
        let home = tempfile::tempdir().unwrap();
        let archive = home.path().join("archive");
        let noon = Some(last_noon());
        let sandbox = Sandbox::start(SandboxConfig { now: noon, end: noon, ..config }).await.unwrap();
        let teams = sandbox.teams.len() as f64;
        for round in ["first", "second"] {
            let first = planned(&annals(&sandbox, &archive, RATE, &["plan"]));
            let before = sandbox.handle.requests();
            annals(&sandbox, &archive, 0.0, &["sync"]);
            let made = (sandbox.handle.requests() - before) as f64;
            assert!(is_close(first.requests, made), "{scenario}, {round}: {} of {made} requests", first.requests);
            if round == "second" {
                continue;
            }
            // Two lists of people for each team, and one request for each user.
            let users = annals(
                &sandbox,
                &archive,
                RATE,
                &["sql", "select count(*) as n from inventory_users", "--format", "csv"],
            );
            let people = 2.0 * teams + users.lines().nth(1).unwrap().parse::<f64>().unwrap();
            let scans = people / scans_per_second(RATE);
            let took = if teams > 8.0 { (made / RATE).max(scans) } else { (made - people) / RATE + scans };
            assert!((first.seconds - took).abs() <= 0.3 * took + 1.0, "{scenario}: {} of {took} s", first.seconds);
        }
        sandbox.shutdown().await;
    }
}
