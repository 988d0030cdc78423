//! Several daemons write to one bucket, which has no locks. They are killed at random, and read the same teams or
//! shards that change. Each ledger line has one writer, and every event is archived once.
#![allow(clippy::print_stdout, reason = "a run on request prints the counts")]

use crate::bucket_scene;
use crate::common::free_port::free_port;
use crate::common::wait::{note, pause, wait_for};
use crate::faulty_service;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bucket_scene::{Scene, is_long};
use faulty_service::program::Running;
use faulty_service::{Chance, DAY, HOUR};
use object_server::{Effect, Kind, Rule};
use rustix::process::Signal;
use serde_json::Value;

/// Ten minutes before a day of the service ends, so its windows settle while the daemons compete.
const BEGIN: i64 = DAY + 96 * HOUR - 600;
const ANY_PORT: &str = "127.0.0.1:0";
/// How many times faster than ours the service's clock runs.
const SPEED: i64 = 120;
const TICK: Duration = Duration::from_millis(100);
const TICKS_A_SECOND: u64 = 10;

/// A service with new events, and the daemons that read it.
struct Fleet<'a> {
    scene: &'a Scene,
    chance: Chance,
    teams: u64,
    tick: u64,
    /// The daemons, each with its shard.
    daemons: Vec<(String, Running<'a>)>,
    kills: usize,
    conflicts: usize,
}

impl<'a> Fleet<'a> {
    /// `teams` teams with some days of history, and an empty bucket.
    fn new(scene: &'a Scene, teams: u64, seed: u64) -> Self {
        let mut world = scene.service.world();
        for team in 0..usize::try_from(teams).unwrap() {
            if team > 0 {
                world.add_team(&format!("team-{team:03}"));
            }
            for n in 0..20 {
                world.connection_of(team, usize::try_from(n % 3).unwrap(), DAY + n * 4 * HOUR, n);
                world.activity_of(team, DAY + n * 4 * HOUR, n);
            }
        }
        world.now = BEGIN;
        drop(world);
        Self { scene, chance: Chance::of(seed), teams, tick: 0, daemons: Vec::new(), kills: 0, conflicts: 0 }
    }

    fn start(&mut self, shard: &str) {
        self.daemons.push((shard.to_owned(), self.scene.program.start(&["run", "--shard", shard])));
    }

    /// Kills a running daemon.
    fn kill(&mut self, at: usize) -> String {
        let (shard, daemon) = self.daemons.swap_remove(at);
        let run = daemon.kill_after(Duration::ZERO);
        assert!(run.code.is_none() && !run.stderr.contains("BUG"), "shard {shard}: {run:?}");
        self.conflicts += run.stderr.matches("another writer committed line").count();
        self.kills += 1;
        shard
    }

    fn kill_those_of(&mut self, shards: &str) {
        while let Some(at) = self.daemons.iter().position(|(shard, _)| shard.ends_with(shards)) {
            self.kill(at);
        }
    }

    /// Lets this many seconds pass. Kills and restarts a daemon every `kill_every` ticks.
    fn live(&mut self, seconds: u64, kill_every: u64) {
        for _ in 0..seconds * TICKS_A_SECOND {
            pause(TICK);
            self.change();
            if self.chance.below(kill_every) == 0 {
                let at = usize::try_from(self.chance.below(self.daemons.len() as u64)).unwrap();
                let shard = self.kill(at);
                self.start(&shard);
            }
        }
    }

    /// Advances the service's clock and adds events to some teams.
    fn change(&mut self) {
        self.tick += 1;
        let now = BEGIN + i64::try_from(self.tick).unwrap() * SPEED / i64::try_from(TICKS_A_SECOND).unwrap();
        let mut world = self.scene.service.world();
        world.now = now;
        for n in 0..1 + self.teams / 10 {
            let team = usize::try_from(self.chance.below(self.teams)).unwrap();
            let at = now - i64::try_from(self.chance.below(30)).unwrap();
            let (device, n) = (usize::try_from(n % 3).unwrap(), i64::try_from(n).unwrap());
            world.connection_of(team, device, at, n);
            if n % 2 == 0 {
                world.activity_of(team, at, n);
            }
        }
    }

    /// Kills the daemons and runs a last `sync`. Asserts that every event is archived once.
    fn ends(mut self, name: &str) {
        self.kill_those_of("");
        self.scene.program.sync(&[]).ended(0);
        self.scene.holds_and_rests();
        self.scene.is_signed();
        let events: usize = self.scene.service.world().teams.iter().map(|team| team.events.len()).sum();
        let (lines, lost) = (self.scene.ledger_lines().len(), self.scene.lost_line_creates());
        let Self { kills, conflicts, teams, tick, .. } = self;
        println!(
            "{name}: {teams} teams, {} s, {kills} kills, {conflicts} reported conflicts, {lost} lost creates of lines, {lines} \
             lines, {events} events",
            tick / TICKS_A_SECOND
        );
    }
}

/// A scene whose daemons poll every `poll` seconds.
fn scene(listen: &str, poll: u32) -> Scene {
    Scene::signed(&format!(
        "[store]\ncommit_every = \"1s\"\n[http]\nlisten = \"{listen}\"\n[schedule]\nconnections = \"*/{poll} * * * * *\"\n\
         activity = \"*/{poll} * * * * *\"\nbilling = \"*/10 * * * * *\"\n"
    ))
}

/// S2: both daemons believe that they own every team.
#[test]
fn two_daemons_that_compete_for_ten_teams_write_each_line_once() {
    let scene = scene(ANY_PORT, 1);
    let mut fleet = Fleet::new(&scene, 10, 2);
    fleet.start("1/1");
    fleet.start("1/1");
    fleet.live(if is_long() { 120 } else { 15 }, 15);
    assert!(fleet.kills >= 3);
    // Go on until the daemons have met: both tried to create the same line.
    wait_for("a meeting", || {
        fleet.live(1, 15);
        (scene.lost_line_creates() > 0).then_some(())
    });
    fleet.ends("two daemons");
}

/// I1: four shards, then three, then four again; the new daemons start before the old ones end.
#[test]
fn daemons_whose_shards_change_archive_every_event_once() {
    let (teams, poll, seconds) = if is_long() { (200, 5, 20) } else { (24, 1, 3) };
    let scene = scene(ANY_PORT, poll);
    let mut fleet = Fleet::new(&scene, teams, 3);
    let start = |fleet: &mut Fleet, shards: usize| (1..=shards).for_each(|n| fleet.start(&format!("{n}/{shards}")));
    start(&mut fleet, 4);
    fleet.live(2 * seconds, 20);
    for (old, new) in [("/4", 3), ("/3", 4)] {
        start(&mut fleet, new);
        fleet.live(seconds, 20);
        fleet.kill_those_of(old);
        fleet.live(seconds, 20);
    }
    fleet.ends("shards that change");
}

fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    note(path, &answer);
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200 ").then(|| body.to_owned())
}

/// The sum of a metric's series.
fn metric(address: &str, name: &str) -> f64 {
    let text = get(address, "/metrics").unwrap();
    let series = text.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
    series.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

/// A check that could not be done says nothing about the archive: the last result stays.
#[test]
fn a_store_that_does_not_answer_is_no_fault_of_the_archive() {
    let address = format!("127.0.0.1:{}", free_port());
    let scene = Scene::signed(&format!("[http]\nlisten = \"{address}\"\n[schedule]\nverify = \"*/2 * * * * *\"\n"));
    scene.service.world().fill(DAY, 0..3);
    scene.sync().ended(0);
    let daemon = scene.program.start(&["run"]);
    let verify = || {
        let status: Value = serde_json::from_str(&get(&address, "/api/status")?).unwrap();
        Some((status["verify"].clone(), status["verify_error"].clone()))
    };
    wait_for("a check", || verify().filter(|(verify, _)| verify["faults"] == 0));
    scene.server.fail(Rule::new(Effect::Refused(403, None)).on(Kind::List));
    let (verify_then, error) = wait_for("a refused check", || verify().filter(|(_, error)| error.is_string()));
    assert!(error.as_str().unwrap().contains("403"), "{error}");
    assert_eq!((&verify_then["faults"], metric(&address, "annals_verify_faults")), (&Value::from(0), 0.0));
    scene.server.heal();
    wait_for("a later check", || {
        verify().filter(|(verify, error)| error.is_null() && verify["at"] != verify_then["at"])
    });
    let run = daemon.kill_after(Duration::ZERO);
    assert!(run.stderr.contains("the archive could not be checked"), "{run:?}");
}

/// `sync` commits events before the daemon sees them, so the daemon's next commit conflicts.
#[test]
fn the_loser_of_a_race_reports_it_pauses_and_continues() {
    let address = format!("127.0.0.1:{}", free_port());
    let scene = scene(&address, 2);
    scene.service.world().fill(DAY, 0..3);
    let daemon = scene.program.start(&["run"]);
    wait_for("readiness", || get(&address, "/readyz"));
    assert_eq!(metric(&address, "annals_commit_conflicts_total"), 0.0);
    let mut clock = scene.service.world().now;
    wait_for("a race that the daemon loses", || {
        clock += 60;
        scene.service.set_clock(clock);
        scene.service.world().connection(clock - 20, 1);
        // The daemon may be the faster one.
        let run = scene.sync();
        assert!(matches!(run.code, Some(0 | 1)), "{run:?}");
        (metric(&address, "annals_commit_conflicts_total") > 0.0).then_some(())
    });
    assert!(metric(&address, "annals_team_commit_conflicts_total") > 0.0);
    let status = || serde_json::from_str::<Value>(&get(&address, "/api/status").unwrap()).unwrap();
    assert!(status()["teams"][0]["commit_conflicts"].as_u64() > Some(0), "{}", status());
    // The daemon reads the uncommitted events again.
    let is_well = || {
        let status = status();
        let streams = status["teams"][0]["streams"].as_array().unwrap();
        (status["healthy"] == true && streams.iter().all(|stream| stream["error"].is_null())).then_some(())
    };
    wait_for("a successful round", is_well);
    let lines = scene.ledger_lines().len();
    scene.service.world().connection(clock, 2);
    scene.service.set_clock(clock + 60);
    wait_for("a commit of the daemon", || (scene.ledger_lines().len() > lines).then_some(()));
    let run = daemon.kill_after(Duration::ZERO);
    assert!(run.stderr.contains("another writer committed line"), "{run:?}");
    scene.sync().ended(0);
    scene.holds_and_rests();
}

/// Another process writes a team while a command over several teams waits at the team before it. No clock is set back.
#[test]
fn a_command_takes_the_time_of_each_line_when_it_writes_the_line() {
    let scene = Scene::new();
    scene.service.world().add_team("team-two");
    scene.sync().ended(0);
    scene.server.fail(Rule::new(Effect::Refused(503, None)).on(Kind::Put).key("team=team-one/line/"));
    let whole = scene.program.start(&["hold", "add", "--id", "WHOLE", "--reason", "all teams"]);
    wait_for("the command writes the first team", || (scene.server.struck() > 0).then_some(()));
    // A stopped process does not run out of attempts.
    assert!(whole.stop());
    scene.run(&["hold", "add", "--id", "TWO", "--reason", "one team", "--team", "team-two"]).ended(0);
    scene.server.heal();
    whole.signal(Signal::CONT);
    whole.wait().ended(0).says(&["team-one", "team-two"]);
    let run = scene.run(&["verify"]).ended(0);
    assert!(!run.stdout.contains("TIME_REGRESSION"), "{}", run.stdout);
    assert!(scene.sql("select 1 from findings where kind = 'clock_regression'").is_empty());
}
