//! The daemon as a separate process: polls, signals, failures, health.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use annals::model::{Instant, Stream, TeamId};
use annals::sandbox::{Fault, RequestInfo, SandboxConfig};
use rustix::process::Signal;
use serde_json::Value;

use super::program::{POLLS, Running, Scene, pause, put, wait_for};

/// Longer than any test.
const FOR_EVER: Duration = Duration::from_secs(3_600);

type Fails = fn(&RequestInfo, &str) -> Option<Fault>;

/// Answers as `fails` decides; it also sees `word`.
fn fail(scene: &Scene, word: String, fails: Fails) {
    scene.sandbox.handle.set_faults(Some(Arc::new(move |request| fails(request, &word))));
}

/// From now on, each request with `word` in its path is answered after this span. Waits for the first such request.
fn delay(scene: &Scene, word: String, span: Duration) {
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    scene.sandbox.handle.set_faults(Some(Arc::new(move |request| {
        request.path.contains(&word).then(|| {
            count.fetch_add(1, Ordering::SeqCst);
            Fault::Delay(span)
        })
    })));
    wait_for("a request that waits", || (asked.load(Ordering::SeqCst) > 0).then_some(()));
}

/// Waits for a reading of a team's connections that began after this call.
fn wait_for_a_poll(daemon: &Running, team: &TeamId) {
    let series = format!("annals_team_task_done_timestamp_seconds{{team=\"{team}\",task=\"connections\"}}");
    // The reading that ends next can have begun before.
    for _ in 0..2 {
        let before = daemon.metric(&series);
        wait_for("the end of a reading", || (daemon.metric(&series) > before).then_some(()));
    }
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
        wait_for_a_poll(&daemon, &scene.team(n % 2));
        assert_eq!(scene.count(&format!("connections where event_id = '{mark}'")), 1);
    }
    daemon.stop();
    scene.holds_the_truth();
    assert_eq!(scene.count("findings where kind = 'gap'"), 0);
}

#[test]
fn a_stop_during_a_reading_leaves_a_valid_archive_and_the_next_run_continues() {
    let config = SandboxConfig { teams: 2, days: 40, sessions_per_day: 400, ..SandboxConfig::default() };
    let scene = Scene::of(config);
    for wait in [300, 900, 1_500] {
        fail(&scene, String::new(), |_, _| Some(Fault::Delay(Duration::from_millis(20))));
        let daemon = scene.start();
        pause(Duration::from_millis(wait));
        // The daemon does not wait for the last answers.
        delay(&scene, String::new(), FOR_EVER);
        daemon.stop();
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
        daemon.signal(Signal::KILL);
        assert_eq!(daemon.ends(), None);
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
    wait_for("a second signal in time", || {
        scene.sandbox.handle.set_faults(None);
        let mut daemon = scene.start();
        wait_for("readiness", || daemon.is_ready().then_some(()));
        delay(&scene, String::new(), FOR_EVER);
        daemon.signal(Signal::TERM);
        daemon.log.wait(|line| line["message"].as_str().is_some_and(|text| text.starts_with("stopping")));
        daemon.signal(Signal::TERM);
        let code = daemon.ends();
        // After three seconds, a daemon ends although it has no answer. On a busy machine, the second signal can be later.
        let is_late = daemon.log.text().contains("stops without waiting longer");
        assert!(code == Some(1) || is_late && code == Some(0), "{code:?}: {}", daemon.log.text());
        (!is_late).then_some(())
    });
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
        daemon.reload(|line| line["error"].as_str().is_some_and(|text| text.contains(named)));
    }
    scene.configure(&seldom);
    assert_eq!(scene.count("connections where event_id = 'unseen'"), 0, "the old schedule is in force");
    scene.configure(POLLS);
    daemon.signal(Signal::HUP);
    wait_for("the event", || (scene.count("connections where event_id = 'unseen'") == 1).then_some(()));
    // From now on the daemon reads one team. It reports nothing about the other team, even during an unfinished run
    // of it.
    let (only, gone) = (scene.team(1), scene.team(0));
    delay(&scene, gone.to_string(), Duration::from_secs(3));
    let total = || daemon.metric("annals_events_new_total{stream=\"connections\"}").unwrap();
    let before = total();
    let text = std::fs::read_to_string(scene.path("annals.toml")).unwrap();
    put(&scene.path("annals.toml"), text.replace("[api]\n", &format!("[api]\nteams = [\"{only}\"]\n")));
    daemon.reload(|line| line["message"] == "the daemon uses the new configuration");
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
    put(&scene.path("annals.toml"), text.replace("[api]\n", &format!("[api]\nteams = [\"{only}\"]\n")));
    let daemon = scene.start_with(&variables);
    wait_for("readiness", || daemon.is_ready().then_some(()));
    std::fs::rename(scene.path("annals.toml"), scene.path("moved.toml")).unwrap();
    daemon.reload(|line| line["error"].as_str().is_some_and(|text| text.contains("annals.toml: the file is gone")));
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
    daemon.reload(|line| line["error"].as_str().is_some_and(|text| text.contains("store.grace")));
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
    daemon.reload(|line| line["error"].as_str().is_some_and(|text| text.contains("signing.previous_key_file")));
    scene.configure(&format!("{POLLS}[signing]\nkey_file = \"{new}\"\nprevious_key_file = \"{old}\"\n"));
    daemon.signal(Signal::HUP);
    let mut events = 0;
    wait_for("a commit that the new key signs", || {
        events += 1;
        scene.connect(&scene.team(0), &format!("signed-{events}"));
        let ledger = std::fs::read_dir(scene.path("archive/ledger")).unwrap().next().unwrap().unwrap().path();
        // Each day has its own file, and this can be the end of a day.
        let files = std::fs::read_dir(ledger).unwrap().map(|entry| entry.unwrap().path());
        let mut heads = files.filter(|path| path.extension().is_some_and(|ending| ending == "heads"));
        heads.any(|path| std::fs::read_to_string(path).unwrap().contains("rotation ")).then_some(())
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
    wait_for("the end of the failures", || daemon.metric(&failures).filter(|count| *count == 0.0));
    let log = daemon.log.text();
    daemon.stop();
    assert!(!log.contains(&scene.sandbox.admin_token) && !log.contains(&scene.sandbox.read_only_token));
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
    let some_polls = || {
        let requests = scene.sandbox.handle.requests();
        wait_for("some polls", || (scene.sandbox.handle.requests() > requests + 30).then_some(()));
    };
    let read_to = || {
        let status: Value = serde_json::from_str(&daemon.get("/api/status").1).unwrap();
        let streams = status["teams"][0]["streams"].as_array().unwrap();
        let connections = streams.iter().find(|stream| stream["stream"] == "connections").unwrap();
        connections["read_to"].as_str().unwrap().parse::<Instant>().unwrap()
    };
    // The first polls may bring something.
    wait_for("polls that commit nothing", || {
        let before = (daemon.metric(&seq), read_to());
        some_polls();
        (daemon.metric(&seq) == before.0 && read_to() > before.1).then_some(())
    });
    let quiet = read_to();
    some_polls();
    let device = scene.sandbox.handle.devices(&team)[0].clone();
    assert!(scene.sandbox.handle.remove_device(&team, &device));
    let gap = wait_for("the gap", || {
        let query =
            format!("select epoch(from_time)::bigint as at from findings where kind = 'gap' and subject = '{device}'");
        scene.sql(&query).first().cloned()
    });
    // The gap reaches back by the lag, because events may appear late.
    assert!(gap["at"].as_i64().unwrap() >= quiet.seconds() - 900, "a quiet poll read to {quiet}: {gap}");
    some_polls();
    assert_eq!(scene.count("findings where kind = 'gap'"), 1, "it is recorded once");
    daemon.stop();
}
