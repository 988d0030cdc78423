//! The cost of a thousand teams: bytes of a scrape, lines of `status`, time of the first inventory readings. Run it
//! by hand: `cargo test --release --test daemon -- --ignored --nocapture a_thousand_teams_measured`; `ANNALS_TEAMS`
//! and `ANNALS_RATE` (requests a second) set other numbers.

use std::time::Duration;

use annals::sandbox::SandboxConfig;
use serde_json::Value;

use super::program::{Running, Scene, now, pause};

/// The plan's span is two days, so the backfill is short.
const PLAN_SPAN: Duration = Duration::from_secs(2 * 86_400);
const PATIENCE: Duration = Duration::from_secs(3_600);
/// The time between two requests to the port or to `status`.
const PAUSE: Duration = Duration::from_secs(5);
/// The largest scrape without series of each team, in bytes.
const SCRAPE_BYTES_MAX: usize = 32 * 1024;
const STATUS_LINES_MAX: usize = 60;

fn number(variable: &str, default: u32) -> u32 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = now();
    while !is_so() {
        assert!(now() - began < PATIENCE, "{what}");
        pause(PAUSE);
    }
    now() - began
}

fn status(scene: &Scene, arguments: &[&str]) -> String {
    let output = scene.run(&[&["status"][..], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn scrape(daemon: &Running) -> String {
    let (code, text) = daemon.get("/metrics");
    assert_eq!(code, 200);
    text
}

#[test]
#[ignore = "some minutes: a measurement of a thousand teams"]
#[expect(clippy::print_stdout, reason = "a measurement prints its result")]
fn a_thousand_teams_measured() {
    let (teams, rate) = (number("ANNALS_TEAMS", 1_000), number("ANNALS_RATE", 100));
    let scene = Scene::of(SandboxConfig {
        teams,
        days: 1,
        sessions_per_day: 2,
        people_per_team: 5,
        computers_per_team: 3,
        plan_span: Some(PLAN_SPAN),
        ..SandboxConfig::default()
    });
    let rate_text = rate.to_string();
    scene.configure("concurrency = 16\n[http]\nlisten = \"127.0.0.1:0\"\n");
    let began = now();
    let daemon =
        scene.start_with(&[("ANNALS_REQUESTS_PER_SECOND", rate_text.as_str()), ("ANNALS_TEAM_METRICS", "true")]);
    until("readiness", || daemon.is_ready());
    println!("{teams} teams at {rate} requests a second: within their lag after {} s", (now() - began).as_secs());
    let arguments = ["--json", "--requests-per-second", rate_text.as_str()];
    let scans = || serde_json::from_str::<Value>(&status(&scene, &arguments)).unwrap()["scans"].clone();
    println!("scans left then: {}", scans());
    until("the scans", || scans()["teams"] == 0);
    println!("every team's people and computers were looked at after {} s", (now() - began).as_secs());
    let with_teams = scrape(&daemon);
    daemon.stop();
    let daemon = scene.start_with(&[("ANNALS_REQUESTS_PER_SECOND", rate_text.as_str())]);
    until("readiness", || daemon.is_ready());
    let without = scrape(&daemon);
    daemon.stop();
    println!("/metrics: {} bytes with series of each team, {} without", with_teams.len(), without.len());
    let (short, all) = (status(&scene, &[]), status(&scene, &["--all"]));
    println!("status: {} lines, with --all {}", short.lines().count(), all.lines().count());
    if teams > 100 {
        assert!(without.len() < SCRAPE_BYTES_MAX && !without.contains("team=\""), "{without}");
        assert!(short.lines().count() < STATUS_LINES_MAX, "{short}");
        assert!(short.contains("more teams without a problem"), "{short}");
    }
}
