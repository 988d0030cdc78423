//! Faults of one team, of a commit and of the archive, and their log lines.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::Archive;
use annals::model::{Instant, Range, Stream, TeamId};
use annals::sandbox::{Fault, SandboxConfig};
use annals::store::LocalStore;
use rustix::process::Signal;
use serde_json::Value;

use super::program::{POLLS, Running, Scene, pause, put, wait_for};

/// Whether a commit is being written: its files are in the scratch directory.
fn is_committing(scene: &Scene) -> bool {
    std::fs::read_dir(scene.path("archive/scratch")).is_ok_and(|mut files| files.next().is_some())
}

#[test]
fn a_stop_during_a_commit_loses_nothing() {
    let config = SandboxConfig { teams: 1, days: 10, sessions_per_day: 3_000, ..SandboxConfig::default() };
    let scene = Scene::of(config);
    let mut marks = (0..).map(|n| format!("new-{n}"));
    for _ in 0..3 {
        let daemon = scene.start();
        wait_for("a commit", || {
            // The daemon can have committed the whole history unseen: a new event causes another commit.
            scene.connect(&scene.team(0), &marks.next().unwrap());
            (0..20_000).any(|_| is_committing(&scene)).then_some(())
        });
        daemon.stop();
        assert!(scene.run(&["verify"]).status.success());
    }
    let daemon = scene.start();
    let truth = scene.sandbox.handle.truth(&scene.team(0), Stream::Connections).count() as u64;
    wait_for("the whole history", || (scene.count("connections") == truth).then_some(()));
    wait_for("readiness", || daemon.is_ready().then_some(()));
    daemon.stop();
    scene.holds_the_truth();
}

#[test]
fn a_team_with_invalid_answers_does_not_affect_the_others() {
    let scene = Scene::new(3);
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    let (odd, well) = (scene.team(1), scene.team(2));
    let word = format!("/team/{odd}");
    scene.sandbox.handle.set_faults(Some(Arc::new(move |request| {
        let body = "<html>maintenance</html>";
        request.path.contains(&word).then_some(Fault::Body { content_type: "text/html", body })
    })));
    scene.connect(&odd, "odd");
    scene.connect(&well, "well");
    wait_for("the other team's event", || (scene.count("connections where event_id = 'well'") == 1).then_some(()));
    wait_for("lateness of this team alone", || {
        let body: Value = serde_json::from_str(&daemon.get("/readyz").1).ok()?;
        let late = body["late"].as_array()?;
        let is_of_odd = |late: &Value| late["team"] == odd.as_str() && late["error"].is_string();
        (!late.is_empty() && late.iter().all(is_of_odd)).then_some(())
    });
    assert_eq!(scene.count("connections where event_id = 'odd'"), 0);
    scene.sandbox.handle.set_faults(None);
    wait_for("its event", || (scene.count("connections where event_id = 'odd'") == 1).then_some(()));
    wait_for("readiness", || daemon.is_ready().then_some(()));
    daemon.stop();
    scene.holds_the_truth();
}

#[test]
fn a_refused_team_does_not_affect_the_others() {
    let scene = Scene::new(3);
    let (refused, well) = (scene.team(1), scene.team(2));
    let word = format!("/team/{refused}");
    scene.sandbox.handle.set_faults(Some(Arc::new(move |request| {
        request.path.contains(&word).then_some(Fault::Status { status: 401, retry_after: None })
    })));
    let daemon = scene.start();
    let late = wait_for("two teams that are well", || {
        let (status, body) = daemon.get("/readyz");
        let body: Value = serde_json::from_str(&body).ok()?;
        let late = body["late"].as_array()?.clone();
        let are_of_one = late.iter().all(|late| late["team"] == refused.as_str());
        (status == 503 && late.len() == 3 && are_of_one).then_some(late)
    });
    assert!(late[0]["error"].as_str().unwrap().contains("refused the token"), "{late:?}");
    scene.connect(&well, "well");
    wait_for("its events", || (scene.count("connections where event_id = 'well'") == 1).then_some(()));
    assert!(daemon.metric(&format!("annals_team_task_failures{{team=\"{refused}\",task=\"billing\"}}")) >= Some(1.0));
    let late = format!("annals_team_stream_late{{team=\"{well}\",stream=\"connections\"}}");
    wait_for("no lateness of another team", || (daemon.metric(&late) == Some(0.0)).then_some(()));
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
    scene.connect(&stuck, "stuck");
    scene.connect(&well, "well");
    wait_for("the other team's event", || holds(&scene, &well, "well").then_some(()));
    let failures = format!("annals_team_task_failures{{team=\"{stuck}\",task=\"connections\"}}");
    wait_for("a failure", || daemon.metric(&failures).filter(|count| *count >= 1.0));
    wait_for("the end of readiness", || (daemon.get("/readyz").0 == 503).then_some(()));
    std::fs::remove_file(&place).unwrap();
    std::fs::rename(&aside, &place).unwrap();
    wait_for("the event", || (scene.count("connections where event_id = 'stuck'") == 1).then_some(()));
    wait_for("readiness", || daemon.is_ready().then_some(()));
    daemon.stop();
    scene.holds_the_truth();
}

/// A program that appends each alert to a file, and the alerts of one rule.
fn alerts_of(scene: &Scene, rule: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(scene.path("output")).unwrap_or_default();
    let all = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    all.filter(|alert| alert["rule"] == rule).collect()
}

fn with_alerts(scene: &Scene, schedule: &str, alerts: &str) {
    let output = scene.path("output");
    let program = format!("cat >> {0}; echo >> {0}", output.display());
    scene.configure(&format!("{POLLS}{schedule}[alerts]\n{alerts}command = [\"/bin/sh\", \"-c\", '{program}']\n"));
}

#[test]
fn a_fault_of_the_archive_causes_one_alert() {
    let scene = Scene::new(1);
    with_alerts(&scene, "verify = \"*/2 * * * * *\"\n", "rules = [\"verify\"]\n");
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    wait_for("a clean check", || (daemon.metric("annals_verify_faults") == Some(0.0)).then_some(()));
    let files = scene.run(&["files", "connections"]).stdout;
    let file = String::from_utf8(files).unwrap().lines().next().unwrap().to_owned();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[40] ^= 1;
    put(Path::new(&file), &bytes);
    let alert = wait_for("the alert", || alerts_of(&scene, "verify").first().cloned());
    assert!(alert["message"].as_str().unwrap().contains("differs from its ledger"), "{alert}");
    pause(Duration::from_secs(6));
    assert_eq!(alerts_of(&scene, "verify").len(), 1, "once");
    assert!(daemon.metric("annals_verify_faults") >= Some(1.0));
    // Another fault brings another alert.
    put(&scene.path("archive/README.txt"), "a note\n");
    let alert = wait_for("the second alert", || alerts_of(&scene, "verify").get(1).cloned());
    let message = alert["message"].as_str().unwrap();
    assert!(message.contains("new since the last alert: 1, the first: ORPHAN_FILE README.txt"), "{message}");
    daemon.stop();

    // A daemon that checks nothing for months still shows the last check, and repeats no alert.
    with_alerts(&scene, "verify = \"0 0 1 1 *\"\n", "rules = [\"verify\"]\n");
    let daemon = scene.start();
    wait_for("the last check", || (daemon.metric("annals_verify_faults") >= Some(1.0)).then_some(()));
    let status: Value = serde_json::from_str(&daemon.get("/api/status").1).unwrap();
    assert!(status["verify"]["first"].is_string(), "{}", status["verify"]);
    pause(Duration::from_secs(5));
    assert_eq!(alerts_of(&scene, "verify").len(), 2, "once each");
    daemon.stop();
    std::fs::remove_file(scene.path("archive/README.txt")).unwrap();
    with_alerts(&scene, "verify = \"*/2 * * * * *\"\n", "rules = [\"verify\"]\n");
    let daemon = scene.start();
    bytes[40] ^= 1;
    put(Path::new(&file), &bytes);
    wait_for("a clean check", || (daemon.metric("annals_verify_faults") == Some(0.0)).then_some(()));
    daemon.stop();
}

const MARKED: &str = "\
-- id: X01
-- title: Marked events
-- question: Was a marked event seen?
-- severity: high
SELECT team_id, event_id, event_time FROM connections
WHERE event_id LIKE 'marked-%' AND event_time >= $from AND event_time < $to;
";

fn start_with_reports(scene: &Scene) -> Running {
    let daemon = scene.start_with(&[("ANNALS_QUERIES", "queries")]);
    wait_for("readiness", || daemon.is_ready().then_some(()));
    daemon
}

#[test]
fn a_detection_causes_one_alert_without_names() {
    let scene = Scene::new(1);
    std::fs::create_dir(scene.path("queries")).unwrap();
    put(&scene.path("queries/x01-marked-events.sql"), MARKED);
    with_alerts(&scene, "reports = \"*/3 * * * * *\"\n", "rules = [\"report\"]\nseverity = \"high\"\n");
    let marked = || {
        let all = alerts_of(&scene, "report").into_iter();
        all.filter(|alert| alert["report"] == "marked-events").collect::<Vec<_>>()
    };
    let daemon = start_with_reports(&scene);
    wait_for("the first run of the reports", || daemon.metric("annals_reports_timestamp_seconds"));
    assert_eq!(daemon.metric("annals_reports_failed"), Some(0.0), "{}", daemon.log.text());
    for n in 1..3 {
        scene.connect(&scene.team(0), &format!("marked-{n}"));
        let alert = wait_for("the alert", || marked().get(n - 1).cloned());
        assert_eq!((&alert["findings"], &alert["severity"]), (&Value::from(1), &Value::from("high")), "{alert}");
        let message = alert["message"].as_str().unwrap();
        assert!(message.contains("detects 1 new row") && !message.contains('.'), "{message}");
        assert!(!alert.to_string().contains(&format!("marked-{n}")), "what was found stays in the archive: {alert}");
    }
    let series = "annals_report_detections{report=\"X01\",severity=\"high\"}";
    wait_for("the metric", || (daemon.metric(series) == Some(2.0)).then_some(()));
    let at = daemon.metric("annals_reports_timestamp_seconds");
    wait_for("another run", || daemon.metric("annals_reports_timestamp_seconds").filter(|now| Some(*now) > at));
    daemon.stop();
    let daemon = start_with_reports(&scene);
    let runs = || daemon.metric("annals_reports_timestamp_seconds");
    let first = wait_for("a run after the restart", runs);
    wait_for("another run", || runs().filter(|at| *at > first));
    pause(Duration::from_secs(3));
    assert_eq!(marked().len(), 2, "no alert is sent twice");
    daemon.stop();
}

#[test]
fn a_missing_folder_of_reports_is_refused_at_the_start_and_counted_later() {
    let scene = Scene::new(1);
    with_alerts(&scene, "reports = \"*/3 * * * * *\"\n", "rules = [\"report\"]\n");
    let refused = scene.run_with(&["run"], &[("ANNALS_QUERIES", "queries")]);
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && stderr.contains("queries"), "{stderr}");
    std::fs::create_dir(scene.path("queries")).unwrap();
    put(&scene.path("queries/x01-marked-events.sql"), MARKED);
    let daemon = start_with_reports(&scene);
    let series = "annals_report_detections{report=\"X01\",severity=\"high\"}";
    wait_for("the first run of the reports", || daemon.metric(series));
    std::fs::rename(scene.path("queries"), scene.path("aside")).unwrap();
    let failed = || daemon.metric("annals_reports_failed") == Some(1.0);
    wait_for("the failure", || failed().then_some(()));
    assert_eq!(daemon.metric(series), Some(0.0), "the earlier detections stay");
    assert_eq!(daemon.get("/api/reports").0, 500, "the client asked correctly");
    let refused = |line: &Value| line["message"].as_str().is_some_and(|text| text.contains("keeps the old one"));
    let line = daemon.reload(refused);
    assert!(line["error"].as_str().unwrap().contains("queries"), "{line}");
    daemon.stop();
}

#[test]
fn the_log_is_json_and_names_no_person() {
    let scene = Scene::new(2);
    with_alerts(&scene, "reports = \"*/3 * * * * *\"\nverify = \"*/5 * * * * *\"\n", "severity = \"low\"\n");
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    wait_for("the reports", || daemon.metric("annals_reports_timestamp_seconds"));
    // Cause a removal, a failure, its end, a refused configuration, a new event type, and an event without a time.
    let team = scene.team(0);
    let device = scene.sandbox.handle.devices(&team)[0].clone();
    assert!(scene.sandbox.handle.remove_device(&team, &device));
    wait_for("a gap", || (scene.count("findings where kind = 'gap'") > 0).then_some(()));
    scene.sandbox.handle.set_faults(Some(Arc::new(|_| Some(Fault::Status { status: 500, retry_after: None }))));
    wait_for("the end of readiness", || (daemon.get("/readyz").0 == 503).then_some(()));
    scene.sandbox.handle.set_faults(None);
    wait_for("readiness", || daemon.is_ready().then_some(()));
    scene.configure("[schedule]\nconnections = \"often\"\n");
    daemon.reload(|line| line["level"] == "ERROR");
    let log = daemon.log.text();
    daemon.stop();
    scene.configure(POLLS);
    for line in log.lines() {
        let text = line;
        let line: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(["timestamp", "level", "message", "target"].iter().all(|key| line[*key].is_string()), "{line}");
        for key in line.as_object().unwrap().keys() {
            assert_eq!(text.matches(&format!("\"{key}\":")).count(), 1, "{key} occurs twice: {text}");
        }
    }
    let persons = scene.sql(
        "select distinct unnest([peer_email, peer_ip, direct_ip, local_user_name, computer_host_name]) as word from connections \
         union select email from inventory_users union select first_name from inventory_users \
         union select last_name from inventory_users union select name from inventory_computers",
    );
    let words: Vec<&str> =
        persons.iter().filter_map(|row| row["word"].as_str()).filter(|word| word.len() > 3).collect();
    assert!(words.len() > 10);
    for word in words {
        assert!(!log.contains(word), "the log contains {word}");
    }
    for kind in ["committed", "a gap was recorded", "not done", "works again", "ready"] {
        assert!(log.contains(kind), "{kind}: {log}");
    }
}

/// The start waits for another process that makes the same archive.
#[test]
fn a_hangup_during_the_start_is_a_reload_after_it() {
    let scene = Scene::new(1);
    std::fs::create_dir_all(scene.path("archive/locks")).unwrap();
    let lock = std::fs::File::create(scene.path("archive/locks/archive.lock")).unwrap();
    lock.lock().unwrap();
    let daemon = scene.start_with_events(|starting| {
        let status = format!("/proc/{}/status", starting.child.id());
        wait_for("a handler of SIGHUP", || {
            let status = std::fs::read_to_string(&status).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
            (u64::from_str_radix(caught, 16).unwrap() & 1 == 1).then_some(())
        });
        starting.signal(Signal::HUP);
        lock.unlock().unwrap();
    });
    daemon.log.wait(|line| line["message"] == "the daemon uses the new configuration");
    daemon.stop();
}
