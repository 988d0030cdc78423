//! The daemon as a separate process: polls, signals, failures, health.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use annals::archive::Archive;
use annals::model::{Instant, Range, Stream, TeamId};
use annals::sandbox::{Fault, RequestInfo, SandboxConfig};
use annals::store::LocalStore;

use super::program::{PATIENCE, POLLS, Scene, now, pause, put, wait_for, wait_within};

type Fails = fn(&RequestInfo, &str) -> Option<Fault>;

/// Answers as `fails` decides; it also sees `word`.
fn fail(scene: &Scene, word: String, fails: Fails) {
    scene.sandbox.handle.set_faults(Some(Arc::new(move |request| fails(request, &word))));
}

fn unauthorized() -> Option<Fault> {
    Some(Fault::Status { status: 401, retry_after: None })
}

#[test]
fn queries_see_new_events_within_one_poll() {
    let scene = Scene::new(2);
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    for n in 0..3 {
        let mark = format!("born-{n}");
        scene.connect(&scene.team(n % 2), &mark);
        let born = now();
        let query = format!("connections where event_id = '{mark}'");
        wait_for("the event", || (scene.count(&query) == 1).then_some(()));
        assert!(now() - born < Duration::from_secs(2) + PATIENCE / 6, "{:?}", now() - born);
    }
    daemon.stop();
    scene.holds_the_truth();
    assert_eq!(scene.count("findings where kind = 'gap'"), 0);
}

#[test]
fn a_stop_during_a_reading_leaves_a_valid_archive_and_the_next_run_continues() {
    let config = SandboxConfig { teams: 2, days: 40, sessions_per_day: 400, ..SandboxConfig::default() };
    let scene = Scene::of(config);
    fail(&scene, String::new(), |_, _| Some(Fault::Delay(Duration::from_millis(20))));
    for wait in [300, 900, 1_500] {
        let mut daemon = scene.start();
        pause(Duration::from_millis(wait));
        daemon.signal("TERM");
        let (code, took) = daemon.ends();
        assert_eq!(code, Some(0), "{}", daemon.log.text());
        assert!(took < Duration::from_secs(10), "{took:?}");
        if scene.path("archive/ledger").is_dir() {
            assert!(scene.run(&["verify"]).status.success(), "after {wait} ms");
        }
    }
    scene.sandbox.handle.set_faults(None);
    let daemon = scene.start();
    wait_for("the whole history", || {
        let total: usize =
            scene.sandbox.teams.iter().map(|team| scene.sandbox.handle.truth(team, Stream::Connections).count()).sum();
        (scene.count("connections") == total as u64).then_some(())
    });
    wait_for("readiness", || daemon.is_ready().then_some(()));
    daemon.stop();
    scene.holds_the_truth();
}

#[test]
fn a_killed_daemon_continues_with_its_ledger_elsewhere() {
    let scene = Scene::new(2);
    scene.configure(&format!("{POLLS}[store]\nledger = \"ledgers\"\n[publish]\nschedule = \"*/2 * * * * *\"\n"));
    for n in 0..2 {
        let mut daemon = scene.start();
        let mark = format!("born-{n}");
        scene.connect(&scene.team(n), &mark);
        wait_for("the event", || (scene.count(&format!("connections where event_id = '{mark}'")) == 1).then_some(()));
        daemon.signal("KILL");
        assert_eq!(daemon.ends().0, None);
    }
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    daemon.stop();
    scene.holds_the_truth();
    assert!(scene.path("ledgers/ledger").is_dir() && !scene.path("archive/ledger").is_dir());
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let scene = Scene::new(1);
    let mut daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    fail(&scene, String::new(), |_, _| Some(Fault::Delay(Duration::from_secs(30))));
    // Task runs that would not end by themselves.
    pause(Duration::from_secs(4));
    daemon.signal("TERM");
    daemon.log.wait(|line| line["message"].as_str().is_some_and(|text| text.starts_with("stopping")));
    daemon.signal("TERM");
    let (code, took) = daemon.ends();
    assert_eq!(code, Some(1));
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn a_new_configuration_is_loaded_completely_or_not_at_all() {
    let scene = Scene::new(2);
    let seldom = POLLS.replace("*/2 * * * * *", "0 0 1 1 *");
    scene.configure(&seldom);
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    scene.connect(&scene.team(0), "unseen");
    for (wrong, named) in [
        ("[schedule]\nconnections = \"often\"\n", "schedule.connections"),
        ("[schedule]\nbilling = \"* * * * 1\"\n", "by name"),
        ("[sched]\n", "sched"),
        ("[http]\nlisten = \"0.0.0.0:0\"\n", "token_file"),
        ("[alerts]\nrules = [\"everything\"]\n", "alerts.rules"),
        ("[store]\ngrace = \"3h\"\n", "store.grace"),
        ("[signing]\npublic_key = \"key\"\n", "signing.public_key"),
        // An unknown key.
        ("[signing]\nkey_file = \"another.key\"\n", "signing"),
    ] {
        scene.configure(&format!("{}{wrong}", if wrong.contains("schedule") { "" } else { POLLS }));
        daemon.signal("HUP");
        daemon.log.wait(|line| line["error"].as_str().is_some_and(|text| text.contains(named)));
    }
    scene.configure(&seldom);
    assert_eq!(scene.count("connections where event_id = 'unseen'"), 0, "the old schedule is in force");
    scene.configure(POLLS);
    daemon.signal("HUP");
    wait_for("the event", || (scene.count("connections where event_id = 'unseen'") == 1).then_some(()));
    // From now on the daemon reads one team. It reports nothing about the other team, even during an unfinished run
    // of it.
    let (only, gone) = (scene.team(1), scene.team(0));
    fail(&scene, gone.to_string(), |request, word| {
        request.path.contains(word).then_some(Fault::Delay(Duration::from_secs(3)))
    });
    pause(Duration::from_secs(3));
    let total = || daemon.metric("annals_events_new_total{stream=\"connections\"}").unwrap();
    let before = total();
    let text = std::fs::read_to_string(scene.path("annals.toml")).unwrap();
    put(&scene.path("annals.toml"), &text.replace("[api]\n", &format!("[api]\nteams = [\"{only}\"]\n")));
    daemon.signal("HUP");
    daemon.log.wait(|line| line["message"] == "the daemon uses the new configuration");
    wait_for("one team", || (daemon.metric("annals_teams") == Some(1.0)).then_some(()));
    pause(Duration::from_secs(4));
    assert_eq!(
        daemon.metric("annals_teams"),
        Some(1.0),
        "a run that ended after the reload shows the removed team again"
    );
    assert!(total() >= before, "a counter never falls: {} after {before}", total());
    assert!(!daemon.get("/metrics").1.contains(gone.as_str()) && !daemon.get("/readyz").1.contains(gone.as_str()));
    daemon.stop();
}

#[test]
fn a_file_that_is_gone_changes_no_setting() {
    let scene = Scene::new(2);
    let variables =
        [("ANNALS_BASE_URL", scene.sandbox.base_url.as_str()), ("ANNALS_TOKEN", &scene.sandbox.admin_token)];
    let only = scene.team(1);
    let text = std::fs::read_to_string(scene.path("annals.toml")).unwrap();
    put(&scene.path("annals.toml"), &text.replace("[api]\n", &format!("[api]\nteams = [\"{only}\"]\n")));
    let daemon = scene.start_with(&variables);
    wait_for("readiness", || daemon.is_ready().then_some(()));
    std::fs::rename(scene.path("annals.toml"), scene.path("moved.toml")).unwrap();
    daemon.signal("HUP");
    daemon.log.wait(|line| line["error"].as_str().is_some_and(|text| text.contains("annals.toml: the file is gone")));
    assert_eq!(daemon.metric("annals_teams"), Some(1.0));
    daemon.stop();
}

/// The files under a directory that other users than the owner can read.
fn shared_files(directory: &Path) -> Vec<PathBuf> {
    let mut shared = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let (path, about) = (entry.path(), entry.metadata().unwrap());
        if about.permissions().mode() & 0o077 != 0 {
            shared.push(path.clone());
        }
        if about.is_dir() {
            shared.extend(shared_files(&path));
        }
    }
    shared
}

#[test]
fn a_refused_configuration_changes_no_modes_of_files() {
    let scene = Scene::new(1);
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    scene.configure(&format!("{POLLS}[store]\ngroup_readable = true\ngrace = \"3h\"\n"));
    daemon.signal("HUP");
    daemon.log.wait(|line| line["error"].as_str().is_some_and(|text| text.contains("store.grace")));
    scene.connect(&scene.team(0), "after");
    wait_for("the event", || (scene.count("connections where event_id = 'after'") == 1).then_some(()));
    daemon.stop();
    assert_eq!(shared_files(&scene.path("archive")), Vec::<PathBuf>::new());
}

#[test]
fn another_signing_key_takes_over_without_a_restart() {
    let scene = Scene::new(1);
    let key = |name: &str| {
        let path = scene.path(name).to_str().unwrap().to_owned();
        let made = scene.run(&["anchor", "--keygen", &path]);
        assert!(made.status.success(), "{made:?}");
        path
    };
    let (old, new) = (key("old.key"), key("new.key"));
    scene.configure(&format!("{POLLS}[signing]\nkey_file = \"{old}\"\n"));
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    scene.configure(&format!("{POLLS}[signing]\nkey_file = \"{new}\"\n"));
    daemon.signal("HUP");
    daemon.log.wait(|line| line["error"].as_str().is_some_and(|text| text.contains("signing.previous_key_file")));
    scene.configure(&format!("{POLLS}[signing]\nkey_file = \"{new}\"\nprevious_key_file = \"{old}\"\n"));
    daemon.signal("HUP");
    let mut events = 0;
    wait_for("a commit that the new key signs", || {
        events += 1;
        scene.connect(&scene.team(0), &format!("signed-{events}"));
        let ledger = std::fs::read_dir(scene.path("archive/ledger")).unwrap().next().unwrap().unwrap().path();
        let mut files = std::fs::read_dir(ledger).unwrap().map(|entry| entry.unwrap().path());
        let heads = files.find(|path| path.extension().is_some_and(|ending| ending == "heads")).unwrap();
        std::fs::read_to_string(heads).unwrap().contains("rotation ").then_some(())
    });
    daemon.stop();
    assert!(scene.run(&["verify"]).status.success());
}

#[test]
fn a_new_token_in_the_file_is_used_without_a_restart() {
    let scene = Scene::new(1);
    scene.set_token("expired");
    let daemon = scene.start();
    daemon.log.wait(|line| line["message"] == "the service does not list the teams");
    assert_eq!((daemon.get("/healthz").0, daemon.get("/readyz").0), (200, 503));
    scene.set_token(&scene.sandbox.read_only_token);
    wait_for("readiness", || daemon.is_ready().then_some(()));
    // The daemon uses the file's token even while the old token is still valid.
    scene.set_token("not-a-token-of-this-service");
    wait_for("the end of readiness", || (daemon.get("/readyz").0 == 503).then_some(()));
    scene.set_token(&scene.sandbox.read_only_token);
    wait_for("readiness", || daemon.is_ready().then_some(()));
    // The service refuses the token in the middle of work, as after a rotation, and the daemon waits for minutes.
    fail(&scene, "team".into(), |request, word| request.path.contains(word).then(unauthorized).flatten());
    let team = scene.team(0);
    let failures = format!("annals_team_task_failures{{team=\"{team}\",task=\"connections\"}}");
    wait_for("failures", || daemon.metric(&failures).filter(|count| *count >= 4.0));
    scene.sandbox.handle.set_faults(None);
    scene.set_token(&scene.sandbox.admin_token);
    let replaced = now();
    wait_for("the end of the failures", || daemon.metric(&failures).filter(|count| *count == 0.0));
    assert!(now() - replaced < Duration::from_secs(8) + PATIENCE / 6);
    let log = daemon.log.text();
    daemon.stop();
    assert!(!log.contains(&scene.sandbox.admin_token) && !log.contains(&scene.sandbox.read_only_token));
}

#[test]
fn a_refused_team_does_not_affect_the_others() {
    let scene = Scene::new(3);
    let (refused, well) = (scene.team(1), scene.team(2));
    fail(&scene, format!("/team/{refused}"), |request, word| request.path.contains(word).then(unauthorized).flatten());
    let daemon = scene.start();
    let late = wait_for("two teams that are well", || {
        let (status, body) = daemon.get("/readyz");
        let body: serde_json::Value = serde_json::from_str(&body).ok()?;
        let late = body["late"].as_array()?.clone();
        (status == 503 && late.len() == 3).then_some(late)
    });
    assert!(late.iter().all(|late| late["team"] == refused.as_str()), "{late:?}");
    assert!(late[0]["error"].as_str().unwrap().contains("refused the token"), "{late:?}");
    scene.connect(&well, "well");
    wait_for("its events", || (scene.count("connections where event_id = 'well'") == 1).then_some(()));
    assert!(daemon.metric(&format!("annals_team_task_failures{{team=\"{refused}\",task=\"billing\"}}")) >= Some(1.0));
    assert_eq!(daemon.metric(&format!("annals_team_stream_late{{team=\"{well}\",stream=\"connections\"}}")), Some(0.0));
    daemon.stop();
}

/// Whether one team's archive holds an event.
fn holds(scene: &Scene, team: &TeamId, event: &str) -> bool {
    let archive = Archive::open(Arc::new(LocalStore::new(scene.path("archive")))).unwrap();
    let events = archive
        .read(team)
        .unwrap()
        .rows()
        .events_in(Stream::Connections, Range::new(Instant::EARLIEST, Instant::LATEST));
    events.unwrap().iter().any(|held| held.event_id.as_str() == event)
}

#[test]
fn a_team_without_write_access_does_not_affect_the_others_and_recovers() {
    let scene = Scene::new(2);
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    let (stuck, well) = (scene.team(0), scene.team(1));
    // Imitate a full disk: the writer cannot create its files, because it does not follow links.
    let place = scene.path(&format!("archive/tables/connections/team={stuck}"));
    let aside = scene.path("aside");
    std::fs::rename(&place, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &place).unwrap();
    let began = now();
    scene.connect(&stuck, "stuck");
    scene.connect(&well, "well");
    wait_for("the other team's event", || holds(&scene, &well, "well").then_some(()));
    let failures = format!("annals_team_task_failures{{team=\"{stuck}\",task=\"connections\"}}");
    wait_for("a failure", || daemon.metric(&failures).filter(|count| *count >= 1.0));
    wait_for("the end of readiness", || (daemon.get("/readyz").0 == 503).then_some(()));
    std::fs::remove_file(&place).unwrap();
    std::fs::rename(&aside, &place).unwrap();
    // The daemon retries after at most as long as the failures have lasted.
    wait_within(now() - began + PATIENCE, "the event", || {
        (scene.count("connections where event_id = 'stuck'") == 1).then_some(())
    });
    wait_for("readiness", || daemon.is_ready().then_some(()));
    daemon.stop();
    scene.holds_the_truth();
}

#[test]
fn while_the_service_is_down_the_daemon_is_alive_but_not_ready() {
    let scene = Scene::new(2);
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    fail(&scene, String::new(), |_, _| Some(Fault::Reset));
    wait_for("the end of readiness", || (daemon.get("/readyz").0 == 503).then_some(()));
    assert_eq!(daemon.get("/healthz").0, 200);
    assert!(daemon.metric("annals_requests_total{result=\"unavailable\"}") > Some(0.0));
    scene.connect(&scene.team(0), "meanwhile");
    scene.sandbox.handle.set_faults(None);
    wait_for("readiness", || daemon.is_ready().then_some(()));
    wait_for("the event", || (scene.count("connections where event_id = 'meanwhile'") == 1).then_some(()));
    daemon.stop();
    scene.holds_the_truth();
    assert_eq!(scene.count("findings where kind = 'gap'"), 0);
}

#[test]
fn a_second_daemon_on_the_same_archive_is_refused() {
    let scene = Scene::new(1);
    let daemon = scene.start();
    let second = scene.run(&["run"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("lock of this archive"));
    wait_for("readiness", || daemon.is_ready().then_some(()));
    let sync = scene.run(&["sync"]);
    assert_eq!(sync.status.code(), Some(1), "a sync beside the daemon is refused for each team");
    daemon.stop();
    assert_eq!(scene.run(&["sync"]).status.code(), Some(0));
}

#[test]
fn quiet_polls_write_nothing_and_a_removal_s_gap_begins_at_the_last_poll() {
    let scene = Scene::new(1);
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    let team = scene.team(0);
    let seq = format!("annals_team_ledger_seq{{team=\"{team}\"}}");
    let done_at = format!("annals_team_task_done_timestamp_seconds{{team=\"{team}\",task=\"inventory\"}}");
    wait_for("the scan of the inventory", || daemon.metric(&done_at));
    assert!(scene.count("inventory_users") > 0);
    pause(Duration::from_secs(3));
    let before = daemon.metric(&seq);
    let requests = scene.sandbox.handle.requests();
    wait_for("some polls", || (scene.sandbox.handle.requests() > requests + 30).then_some(()));
    assert_eq!(daemon.metric(&seq), before, "polls that brought nothing were committed");
    let device = scene.sandbox.handle.devices(&team)[0].clone();
    assert!(scene.sandbox.handle.remove_device(&team, &device));
    let gap = wait_for("the gap", || {
        let query = format!(
            "select epoch(to_time - from_time)::int as n from findings where kind = 'gap' and subject = '{device}'"
        );
        scene.sql(&query).first().cloned()
    });
    // The gap reaches back by the lag, because events may appear late.
    assert!(gap["n"].as_u64().unwrap() < 900 + 12, "the last quiet poll was seconds before: {gap}");
    pause(Duration::from_secs(4));
    assert_eq!(scene.count("findings where kind = 'gap'"), 1, "it is recorded once");
    daemon.stop();
}
