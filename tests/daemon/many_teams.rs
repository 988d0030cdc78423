//! Two hundred teams in real time: one daemon, one sandbox, one port.

use annals::model::Stream;
use annals::sandbox::SandboxConfig;

use super::program::{Scene, wait_for};

const TEAMS: u32 = 200;

#[test]
fn two_hundred_teams_are_read_by_one_process() {
    let config =
        SandboxConfig { teams: TEAMS, days: 1, sessions_per_day: 5, computers_per_team: 5, ..SandboxConfig::default() };
    let scene = Scene::of(config);
    scene.configure(
        "[schedule]\nconnections = \"*/20 * * * * *\"\nactivity = \"*/30 * * * * *\"\nbilling = \"0 * * * * *\"\nreports = \"0 0 1 1 *\"\n",
    );
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    assert_eq!(daemon.metric("annals_teams"), Some(f64::from(TEAMS)));
    for n in [0, 77, 199] {
        scene.connect(&scene.team(n), &format!("one-of-many-{n}"));
    }
    wait_for("the events", || (scene.count("connections where event_id like 'one-of-many-%'") == 3).then_some(()));
    let truth: usize =
        scene.sandbox.teams.iter().map(|team| scene.sandbox.handle.truth(team, Stream::Connections).count()).sum();
    assert_eq!(scene.count("connections"), truth as u64);
    let resident = super::program::resident_kib(daemon.child.id());
    assert!(resident < 250_000, "{resident} KiB");
    daemon.stop();
}
