//! Several daemons, or several `sync`, share the teams of one token and write to one archive.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;
use std::sync::{Arc, Mutex};

use annals::model::{Shard, TeamId};
use annals::sandbox::Fault;
use serde_json::Value;

use super::program::{POLLS, Running, Scene, put, wait_for};

const HALVES: [&str; 2] = ["1/2", "2/2"];

fn shard(text: &str) -> Shard {
    text.parse().unwrap()
}

/// The teams of a shard, and the other teams.
fn dealt(scene: &Scene, text: &str) -> (BTreeSet<TeamId>, BTreeSet<TeamId>) {
    let (own, others): (BTreeSet<_>, BTreeSet<_>) =
        scene.sandbox.teams.iter().cloned().partition(|team| shard(text).owns(team));
    assert!(!own.is_empty() && !others.is_empty(), "the sandbox's teams fall to both shards");
    (own, others)
}

fn output_text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat()
}

/// The teams that get a request from now on.
fn watch_requests(scene: &Scene) -> Arc<Mutex<BTreeSet<TeamId>>> {
    let asked = Arc::<Mutex<BTreeSet<TeamId>>>::default();
    let (teams, seen) = (scene.sandbox.teams.clone(), asked.clone());
    scene.sandbox.handle.set_faults(Some(Arc::new(move |request| {
        let named = teams.iter().filter(|team| request.path.split('/').any(|part| part == team.as_str()));
        seen.lock().unwrap().extend(named.cloned());
        None
    })));
    asked
}

/// The teams whose lock a process has ever taken in this archive.
fn locked(scene: &Scene) -> BTreeSet<TeamId> {
    let names = std::fs::read_dir(scene.path("archive/locks")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let of = |name: String| Some(TeamId::from(name.strip_prefix("team=")?.strip_suffix(".lock")?));
    names.filter_map(of).collect()
}

#[test]
fn two_syncs_read_all_teams_once() {
    let scene = Scene::new(5);
    let (first, second) = dealt(&scene, HALVES[0]);
    let asked = watch_requests(&scene);
    let plan = scene.run(&["plan", "--format", "ndjson", "--shard", HALVES[0]]);
    assert!(plan.status.success(), "{}", output_text(&plan));
    let teams = |output: &Output| -> BTreeSet<TeamId> {
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let rows = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.map(|row| TeamId::from(row["team_id"].as_str().unwrap())).collect()
    };
    assert_eq!((teams(&plan), asked.lock().unwrap().clone()), (first.clone(), first.clone()));
    asked.lock().unwrap().clear();

    let output = scene.run(&["sync", "--shard", HALVES[0]]);
    assert!(output.status.success(), "{}", output_text(&output));
    assert_eq!((asked.lock().unwrap().clone(), locked(&scene)), (first.clone(), first.clone()));
    asked.lock().unwrap().clear();

    let output = scene.run_with(&["sync"], &[("ANNALS_SHARD", HALVES[1])]);
    assert!(output.status.success(), "{}", output_text(&output));
    assert_eq!((asked.lock().unwrap().clone(), locked(&scene).len()), (second, 5));
    scene.sandbox.handle.set_faults(None);
    scene.holds_the_truth();

    // Neither the shards nor a `sync` without a shard have anything left to read.
    for arguments in [&["sync", "--shard", HALVES[0]][..], &["sync", "--shard", HALVES[1]], &["sync"]] {
        let output = scene.run(arguments);
        assert!(output.status.success(), "{}", output_text(&output));
        let teams = if arguments.len() > 1 { dealt(&scene, arguments[2]).0.len() } else { 5 };
        assert_eq!(output_text(&output).matches(": 0 new events").count(), teams, "{}", output_text(&output));
    }
}

#[test]
fn a_shard_reads_only_its_own_of_the_named_teams() {
    let scene = Scene::new(5);
    let (own, others) = dealt(&scene, HALVES[1]);
    let named: Vec<TeamId> = own.iter().chain(&others).cloned().collect();
    let listed = serde_json::to_string(&named).unwrap();
    let text = std::fs::read_to_string(scene.path("annals.toml")).unwrap();
    let text = text.replace("[api]\n", &format!("[api]\nteams = {listed}\n"));
    put(&scene.path("annals.toml"), format!("{text}[fleet]\nshard = \"{}\"\n", HALVES[1]));
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    assert_eq!(daemon.metric("annals_teams"), Some(own.len() as f64));
    daemon.stop();
    assert_eq!(locked(&scene), own);

    // A shard does not read a named team of another shard.
    let other = others.first().unwrap();
    let refused = scene.run(&["sync", "--team", other.as_str()]);
    assert_eq!(refused.status.code(), Some(2));
    let expected = format!("team {other} belongs to shard 1/2, but this process is shard 2/2");
    assert!(output_text(&refused).contains(&expected), "{}", output_text(&refused));
    assert_eq!(locked(&scene), own);

    // The environment and the flag override the file. With this many shards, one shard owns none of these teams.
    let idle = (1..=1_024).map(|n| Shard::new(n, 1_024).unwrap());
    let idle = idle.filter(|shard| !named.iter().any(|team| shard.owns(team))).max().unwrap().to_string();
    let output = scene.run_with(&["sync", "--shard", &idle], &[("ANNALS_SHARD", HALVES[0])]);
    assert!(output.status.success(), "{}", output_text(&output));
    assert!(
        output_text(&output).contains(&format!("no team belongs to shard {idle}: nothing to read")),
        "{}",
        output_text(&output)
    );
}

#[test]
fn an_invalid_shard_is_refused_with_its_text() {
    let scene = Scene::new(1);
    for wrong in ["0/8", "9/8", "x", "1/0", "2", "1/1025", ""] {
        let expected = format!("{wrong:?} is not a shard: expected K/N, shard K of N");
        let by_flag = scene.run(&["sync", "--shard", wrong]);
        let by_environment = scene.run_with(&["run"], &[("ANNALS_SHARD", wrong)]);
        scene.configure(&format!("[fleet]\nshard = \"{wrong}\"\n"));
        let by_file = scene.run(&["run"]);
        scene.configure(POLLS);
        for output in [&by_flag, &by_environment, &by_file] {
            assert_eq!(output.status.code(), Some(2), "{wrong}: {}", output_text(output));
            assert!(output_text(output).contains(&expected), "{wrong}: {}", output_text(output));
        }
        assert!(output_text(&by_file).contains("fleet.shard"), "{}", output_text(&by_file));
    }
    assert!(!scene.path("archive").is_dir());
}

/// Each team's shard, and its number of streams, in a daemon's `/api/status`.
fn shown(daemon: &Running) -> BTreeSet<(TeamId, String, usize)> {
    let status: Value = serde_json::from_str(&daemon.get("/api/status").1).unwrap();
    let teams = status["teams"].as_array().unwrap().iter();
    let of = |team: &Value| {
        let (id, shard) = (team["team"].as_str().unwrap(), team["shard"].as_str().unwrap());
        (TeamId::from(id), shard.to_owned(), team["streams"].as_array().unwrap().len())
    };
    teams.map(of).collect()
}

#[test]
fn two_daemons_share_an_archive_and_each_shows_its_own_teams() {
    let scene = Scene::new(5);
    let (first, second) = dealt(&scene, HALVES[0]);
    scene.configure(&format!("{POLLS}[fleet]\nshard = \"{}\"\n", HALVES[1]));
    let daemons = [scene.start_with(&[("ANNALS_SHARD", HALVES[0])]), scene.start()];
    let refused = scene.run(&["run"]);
    assert_eq!(refused.status.code(), Some(1), "{}", output_text(&refused));
    assert!(output_text(&refused).contains("holds the lock of shard 2/2 of this archive"), "{}", output_text(&refused));
    for (daemon, own) in daemons.iter().zip([&first, &second]) {
        wait_for("readiness", || daemon.is_ready().then_some(()));
        assert_eq!(daemon.metric("annals_teams"), Some(own.len() as f64));
    }
    let all: BTreeSet<(TeamId, String, usize)> = [(&first, HALVES[0]), (&second, HALVES[1])]
        .into_iter()
        .flat_map(|(teams, shard)| teams.iter().map(move |team| (team.clone(), shard.to_owned())))
        .map(|(team, shard)| (team, shard, 0))
        .collect();
    for (daemon, shard) in daemons.iter().zip(HALVES) {
        let expected: BTreeSet<_> = all
            .iter()
            .map(|(team, owner, _)| (team.clone(), owner.clone(), if owner == shard { 3 } else { 0 }))
            .collect();
        // The daemon reads the list of the archive's teams again after half a minute.
        wait_for("all teams of the archive", || (shown(daemon) == expected).then_some(()));
        let (number, _) = shard.split_once('/').unwrap();
        assert_eq!(daemon.metric(&format!("annals_shard{{shard=\"{number}\",shards=\"2\"}}")), Some(1.0));
        let page = daemon.get("/").1;
        assert!(page.contains(&format!("Shard {shard} of the fleet")), "{page}");
        assert!(page.contains("Read by other shards") && !page.contains("not read any more"), "{page}");
    }
    for team in &scene.sandbox.teams {
        scene.connect(team, &format!("new-of-{team}"));
    }
    wait_for("the events", || (scene.count("connections where event_id like 'new-of-%'") == 5).then_some(()));

    // The first shard does not report silence of the second shard's teams.
    let silent = second.clone();
    scene.sandbox.handle.set_faults(Some(Arc::new(move |request| {
        let is_silent = silent.iter().any(|team| request.path.contains(team.as_str()));
        is_silent.then_some(Fault::Status { status: 500, retry_after: None })
    })));
    wait_for("the late event", || (!daemons[1].is_ready()).then_some(()));
    let late = || daemons[0].metric("annals_streams_late{stream=\"connections\"}");
    wait_for("readiness of the first", || (daemons[0].is_ready() && late() == Some(0.0)).then_some(()));
    scene.sandbox.handle.set_faults(None);
    wait_for("readiness", || daemons[1].is_ready().then_some(()));

    // A change of the shard needs a restart.
    scene.configure(&format!("{POLLS}[fleet]\nshard = \"1/3\"\n"));
    daemons[1].reload(|line| line["error"].as_str().is_some_and(|text| text.contains("fleet.shard: a running daemon")));
    daemons.into_iter().for_each(Running::stop);
    scene.holds_the_truth();
    status_names_the_owners(&scene, &second);
}

/// `annals status` of the first shard, over an archive that holds all teams.
fn status_names_the_owners(scene: &Scene, others: &BTreeSet<TeamId>) {
    let json = scene.run(&["status", "--json", "--shard", HALVES[0]]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["shard"], HALVES[0]);
    for team in json["teams"].as_array().unwrap() {
        let id = TeamId::from(team["team"].as_str().unwrap());
        assert_eq!(team["shard"], if others.contains(&id) { HALVES[1] } else { HALVES[0] });
    }
    let table = output_text(&scene.run(&["status", "--shard", HALVES[0]]));
    assert_eq!(table.matches("shard 2/2 reads this team").count(), others.len(), "{table}");
    let own = 5 - others.len();
    assert!(table.contains(&format!("shard 1/2: it reads {own} of the archive's 5 teams")), "{table}");
    let undivided = scene.run_with(&["status", "--json"], &[("ANNALS_SHARD", "1/1")]);
    let undivided: Value = serde_json::from_slice(&undivided.stdout).unwrap();
    assert!(undivided["teams"].as_array().unwrap().iter().all(|team| team.get("shard").is_none()));
}

/// Two daemons that both believe that they own a team, as during a change of the number of shards.
#[test]
fn a_team_s_lock_admits_one_daemon_at_a_time() {
    let scene = Scene::new(4);
    let (first, _) = dealt(&scene, HALVES[0]);
    let before = scene.start_with(&[("ANNALS_SHARD", HALVES[0])]);
    wait_for("readiness", || before.is_ready().then_some(()));
    let after = scene.start();
    let refused =
        |line: &Value| line["error"].as_str().is_some_and(|text| text.contains("another writer holds the lock"));
    let team = after.log.wait(refused)["team"].as_str().unwrap().to_owned();
    assert!(first.contains(team.as_str()), "{team}");
    before.stop();
    wait_for("readiness", || after.is_ready().then_some(()));
    after.stop();
    scene.holds_the_truth();
}

/// A percentile of all teams is not one of a shard's teams, so R18 can list other sessions here.
const LONGER_THAN_THE_PERCENTILE: &str = "{report=\"R18\",severity=\"info\"}";

/// The number of detections, by report and severity.
fn detections(scene: &Scene, shard: &str) -> BTreeMap<String, f64> {
    let daemon = scene.start_with(&[("ANNALS_SHARD", shard)]);
    wait_for("a run of the reports", || daemon.metric("annals_reports_timestamp_seconds"));
    let text = daemon.get("/metrics").1;
    daemon.stop();
    let series = text.lines().filter_map(|line| line.strip_prefix("annals_report_detections")?.rsplit_once(' '));
    let additive = series.filter(|(labels, _)| *labels != LONGER_THAN_THE_PERCENTILE);
    additive.map(|(labels, value)| (labels.to_owned(), value.parse().unwrap())).collect()
}

#[test]
fn each_shard_warns_of_what_reports_detect_in_its_own_teams() {
    let scene = Scene::new(4);
    let synced = scene.run(&["sync"]);
    assert!(synced.status.success(), "{}", output_text(&synced));
    scene.configure(
        "[schedule]\nconnections = \"0 0 1 1 *\"\nactivity = \"0 0 1 1 *\"\nbilling = \"0 0 1 1 *\"\nreports = \"*/2 * * * * *\"\n\
         [alerts]\nseverity = \"info\"\nperiod = \"3d\"\n",
    );
    let whole = detections(&scene, "1/1");
    let halves = HALVES.map(|shard| detections(&scene, shard));
    // A run distinguishes at most a thousand detections of one report.
    let sum = |series: &String| halves.iter().filter_map(|half| half.get(series)).sum::<f64>().min(1_000.0);
    let summed: BTreeMap<String, f64> = whole.keys().map(|series| (series.clone(), sum(series))).collect();
    assert_eq!(summed, whole);
    assert!(halves.iter().all(|half| half.values().sum::<f64>() > 0.0), "{halves:?}");
}

#[test]
fn before_the_service_lists_teams_a_shard_serves_its_own_teams_of_the_archive() {
    let scene = Scene::new(4);
    let (own, _) = dealt(&scene, HALVES[0]);
    let synced = scene.run(&["sync"]);
    assert!(synced.status.success(), "{}", output_text(&synced));
    std::fs::remove_dir_all(scene.path("archive/locks")).unwrap();
    scene.sandbox.handle.set_faults(Some(Arc::new(|request| {
        (request.path == "/v1/user/teams").then_some(Fault::Status { status: 500, retry_after: None })
    })));
    let daemon = scene.start_with(&[("ANNALS_SHARD", HALVES[0])]);
    wait_for("readiness", || daemon.is_ready().then_some(()));
    wait_for("a list that fails", || (daemon.metric("annals_teams_listed") == Some(0.0)).then_some(()));
    assert_eq!(daemon.metric("annals_teams"), Some(own.len() as f64));
    daemon.stop();
    assert_eq!(locked(&scene), own);
}
