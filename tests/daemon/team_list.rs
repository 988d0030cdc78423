//! The list of the token's teams: an archived team that the token no longer sees stays in view, and no team is read twice.

use std::process::Output;
use std::sync::Arc;

use annals::model::{Shard, TeamId};
use annals::sandbox::Fault;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::program::{POLLS, Scene, put, wait_for};

/// From now on, the service lists exactly these teams, and refuses every request about another team.
fn list(scene: &Scene, teams: &[&TeamId]) {
    let body: &'static str = Box::leak(json!(teams).to_string().into_boxed_str());
    let hidden: Vec<TeamId> = scene.sandbox.teams.iter().filter(|team| !teams.contains(team)).cloned().collect();
    scene.sandbox.handle.set_faults(Some(Arc::new(move |request| {
        if request.path == "/v1/user/teams" {
            return Some(Fault::Body { content_type: "application/json", body });
        }
        let is_hidden = hidden.iter().any(|team| request.path.split('/').any(|part| part == team.as_str()));
        is_hidden.then_some(Fault::Status { status: 403, retry_after: None })
    })));
}

/// Names the teams to read in `api.teams`.
fn name_teams(scene: &Scene, teams: &[&TeamId]) {
    let text = std::fs::read_to_string(scene.path("annals.toml")).unwrap();
    put(&scene.path("annals.toml"), text.replace("[api]\n", &format!("[api]\nteams = {}\n", json!(teams))));
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_daemon_starts_with_every_archived_team_and_warns_of_one_that_the_token_no_longer_sees() {
    let scene = Scene::new(2);
    let (seen, gone) = (scene.team(0), scene.team(1));
    assert!(scene.run(&["sync"]).status.success());
    list(&scene, &[&seen]);
    let output = scene.path("output");
    let program = format!("cat >> {0}; echo >> {0}", output.display());
    let alerts = format!("[alerts]\nstale = \"3s\"\ncommand = [\"/bin/sh\", \"-c\", '{program}']\n");
    scene.configure(&format!("{POLLS}{alerts}"));
    let daemon = scene.start();
    let late =
        |team: &TeamId| daemon.metric(&format!("annals_team_stream_late{{team=\"{team}\",stream=\"connections\"}}"));
    wait_for("the team that is seen", || (late(&seen) == Some(0.0)).then_some(()));
    let alert = wait_for("the alert", || {
        let text = std::fs::read_to_string(&output).unwrap_or_default();
        let mut all = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        all.find(|alert| alert["rule"] == "stale" && alert["team"] == gone.as_str())
    });
    assert!(alert["message"].as_str().unwrap().contains("403"), "{alert}");
    assert_eq!((late(&gone), daemon.metric("annals_teams")), (Some(1.0), Some(2.0)));
    let (status, body) = daemon.get("/readyz");
    assert!(status == 503 && body.contains(gone.as_str()), "{status} {body}");

    // The administrator excludes the team.
    name_teams(&scene, &[&seen]);
    daemon.signal(Signal::HUP);
    wait_for("readiness", || daemon.is_ready().then_some(()));
    assert_eq!((late(&gone), daemon.metric("annals_teams")), (None, Some(1.0)));
    daemon.stop();
}

#[test]
fn a_sync_names_an_archived_team_that_the_token_no_longer_sees() {
    let scene = Scene::new(5);
    let (first, second) = ("1/2", "2/2");
    assert!(scene.run(&["sync"]).status.success());
    let shard: Shard = first.parse().unwrap();
    let gone = scene.sandbox.teams.iter().find(|team| shard.owns(team)).unwrap().clone();
    let seen: Vec<&TeamId> = scene.sandbox.teams.iter().filter(|team| **team != gone).collect();
    list(&scene, &seen);
    for (arguments, code) in [
        (&["sync"][..], 3),
        (&["sync", "--shard", first], 3),
        // The team belongs to the other shard, or the command names the teams to read.
        (&["sync", "--shard", second], 0),
        (&["sync", "--team", seen[0].as_str()], 0),
    ] {
        let output = scene.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        let is_named =
            said(&output).lines().any(|line| line.contains(gone.as_str()) && line.contains("does not see it"));
        assert_eq!(is_named, code == 3, "{arguments:?}: {}", said(&output));
    }
    name_teams(&scene, &seen);
    let output = scene.run(&["sync"]);
    assert!(output.status.success() && !said(&output).contains(gone.as_str()), "{}", said(&output));
}

#[test]
fn a_team_that_is_named_twice_is_read_once() {
    let scene = Scene::new(1);
    let team = scene.team(0);
    let syncs_once = |arguments: &[&str]| {
        let output = scene.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        assert_eq!(said(&output).matches(" new events in ").count(), 1, "{}", said(&output));
    };
    list(&scene, &[&team, &team]);
    syncs_once(&["sync"]);
    syncs_once(&["sync", "--team", team.as_str(), "--team", team.as_str()]);
    name_teams(&scene, &[&team, &team]);
    syncs_once(&["sync"]);
    scene.holds_the_truth();
}
