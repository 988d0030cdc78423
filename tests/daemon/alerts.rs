//! Alerts arrive once, and the daemon repeats them until they arrive.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::sandbox::Fault;
use rustix::process::Signal;
use serde_json::Value;

use super::program::{POLLS, Running, Scene, pause, wait_for};

/// Refuses the first few alerts, and accepts the others.
struct Webhook {
    address: String,
    taken: Arc<Mutex<Vec<Value>>>,
}

impl Webhook {
    fn refusing(mut first: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/hook?key=webhook-secret", listener.local_addr().unwrap());
        let taken = Arc::<Mutex<Vec<Value>>>::default();
        let theirs = taken.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut length = 0;
                for line in reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()) {
                    if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = text.trim().parse().unwrap();
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let status = if first > 0 { "500 no" } else { "204 taken" };
                if first == 0 {
                    theirs.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                }
                first = first.saturating_sub(1);
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { address, taken }
    }

    fn of(&self, rule: &str) -> Vec<Value> {
        self.taken.lock().unwrap().iter().filter(|alert| alert["rule"] == rule).cloned().collect()
    }
}

#[test]
fn a_gap_causes_one_alert_even_if_the_webhook_fails_first_and_the_daemon_restarts() {
    let scene = Scene::new(1);
    let webhook = Webhook::refusing(1);
    scene.configure(&format!("{POLLS}[alerts]\nwebhook = \"{}\"\n", webhook.address));
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    let team = scene.team(0);
    let remove = |n: usize| {
        let device = scene.sandbox.handle.devices(&team)[n].clone();
        assert!(scene.sandbox.handle.remove_device(&team, &device));
        device
    };
    let device = remove(0);
    let alert = wait_for("the alert", || webhook.of("gap").first().cloned());
    assert_eq!((&alert["team"], &alert["stream"]), (&Value::from(team.as_str()), &Value::from("connections")));
    assert!(alert["message"].as_str().unwrap().contains(device.as_str()), "{alert}");
    assert!(alert["ledger_seq"].as_u64().unwrap() > 0 && alert["from"].is_string() && alert["text"].is_string());
    assert!(daemon.metric("annals_alerts_total{target=\"webhook\",result=\"failed\"}") >= Some(1.0));
    let recorded = scene.sql(
        "select floor(epoch(max(found_at)))::int as at from findings where kind = 'gap' and stream = 'connections'",
    );
    let recorded = recorded[0]["at"].as_f64();
    let shown = |daemon: &Running, stream: &str| {
        let of_team = format!("annals_team_gap_recorded_timestamp_seconds{{team=\"{team}\",stream=\"{stream}\"}}");
        let of_all = format!("annals_gap_recorded_timestamp_seconds{{stream=\"{stream}\"}}");
        (daemon.metric(&of_team), daemon.metric(&of_all))
    };
    assert_eq!(shown(&daemon, "connections"), (recorded, recorded), "the stream that lost events");
    assert_eq!(shown(&daemon, "activity"), (Some(0.0), Some(0.0)), "the stream that named the removal");
    let log = daemon.log.text();
    daemon.stop();
    assert!(!log.contains("webhook-secret"), "the address is a secret");
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    assert_eq!(shown(&daemon, "connections"), (recorded, recorded), "a restart does not hide the gap");
    pause(Duration::from_secs(5));
    assert_eq!(webhook.of("gap").len(), 1, "the alert was sent before the restart");
    remove(1);
    wait_for("the second gap's alert", || (webhook.of("gap").len() == 2).then_some(()));
    daemon.stop();
    assert!(scene.run(&["verify"]).status.success());
}

#[test]
fn a_delivery_that_has_begun_ends_before_the_daemon_stops_or_takes_a_new_configuration() {
    let scene = Scene::new(1);
    let (open, output) = (scene.path("open"), scene.path("output"));
    // A daemon that does not wait for the delivery ends before it.
    let wait = format!("until test -e {}; do sleep 0.05; done; sleep 0.3", open.display());
    let program = format!("cat >> {0}; echo >> {0}; {wait}", output.display());
    scene.configure(&format!("{POLLS}[alerts]\nrules = [\"gap\"]\ncommand = [\"/bin/sh\", \"-c\", '{program}']\n"));
    let sent = || std::fs::read_to_string(&output).unwrap_or_default().lines().count();
    let lose_a_computer = |daemon: &Running| {
        wait_for("readiness", || daemon.is_ready().then_some(()));
        let device = scene.sandbox.handle.devices(&scene.team(0))[0].clone();
        assert!(scene.sandbox.handle.remove_device(&scene.team(0), &device));
    };
    let daemon = scene.start();
    lose_a_computer(&daemon);
    wait_for("the first delivery's beginning", || (sent() == 1).then_some(()));
    daemon.reload(|line| line["message"] == "the daemon uses the new configuration");
    super::program::put(&open, "");
    pause(Duration::from_secs(5));
    assert_eq!(sent(), 1, "before and after the reload");
    std::fs::remove_file(&open).unwrap();
    lose_a_computer(&daemon);
    wait_for("the second delivery's beginning", || (sent() == 2).then_some(()));
    daemon.signal(Signal::TERM);
    daemon.log.wait(|line| line["message"].as_str().is_some_and(|said| said.starts_with("stopping")));
    super::program::put(&open, "");
    let mut daemon = daemon;
    assert_eq!(daemon.ends(), Some(0), "{}", daemon.log.text());
    let daemon = scene.start();
    lose_a_computer(&daemon);
    wait_for("the third alert", || (sent() >= 3).then_some(()));
    pause(Duration::from_secs(3));
    assert_eq!(sent(), 3, "before and after the restart");
    daemon.stop();
}

#[test]
fn an_alert_that_did_not_arrive_arrives_after_a_change_of_the_number_of_shards() {
    let scene = Scene::new(1);
    let (open, output) = (scene.path("open"), scene.path("output"));
    let program = format!("test -e {0} && cat >> {1} && echo >> {1}", open.display(), output.display());
    scene.configure(&format!("{POLLS}[alerts]\nrules = [\"gap\"]\ncommand = [\"/bin/sh\", \"-c\", '{program}']\n"));
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    let (team, failed) = (scene.team(0), "annals_alerts_total{target=\"command\",result=\"failed\"}");
    let device = scene.sandbox.handle.devices(&team)[0].clone();
    assert!(scene.sandbox.handle.remove_device(&team, &device));
    wait_for("a failed delivery", || (daemon.metric(failed) >= Some(1.0)).then_some(()));
    daemon.stop();
    super::program::put(&open, "");
    let daemons = ["1/2", "2/2"].map(|shard| scene.start_with(&[("ANNALS_SHARD", shard)]));
    let sent = || std::fs::read_to_string(&output).unwrap_or_default();
    wait_for("the alert", || sent().contains(device.as_str()).then_some(()));
    daemons.into_iter().for_each(Running::stop);
}

#[test]
fn an_unread_stream_causes_one_alert_until_it_is_read_again() {
    let scene = Scene::new(1);
    let output = scene.path("output");
    let program = format!("cat >> {0}; echo >> {0}; test -z \"$ANNALS_TOKEN\"", output.display());
    let alerts =
        format!("[alerts]\nstale = \"3s\"\nrules = [\"stale\"]\ncommand = [\"/bin/sh\", \"-c\", '{program}']\n");
    scene.configure(&format!("{POLLS}{alerts}"));
    let daemon = scene.start_with(&[("ANNALS_TOKEN", &scene.sandbox.admin_token)]);
    wait_for("readiness", || daemon.is_ready().then_some(()));
    let sent = || {
        let text = std::fs::read_to_string(&output).unwrap_or_default();
        let all: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        all.into_iter().filter(|alert| alert["stream"] == "connections").collect::<Vec<_>>()
    };
    let log = scene.path("archive/locks/alerts.json");
    let holds = || {
        let log: Value = serde_json::from_slice(&std::fs::read(&log).unwrap_or_default()).unwrap_or_default();
        log["targets"]["command"]["holding"].as_array().is_some_and(|holding| !holding.is_empty())
    };
    for _ in 0..2 {
        // On a busy machine a stream can also be unread without a fault.
        let before = wait_for("no alert that holds", || {
            let before = sent().len();
            (!holds()).then_some(before)
        });
        scene.sandbox.handle.set_faults(Some(Arc::new(|_| Some(Fault::Reset))));
        wait_for("an alert", || (sent().len() > before).then_some(()));
        pause(Duration::from_secs(4));
        scene.sandbox.handle.set_faults(None);
    }
    wait_for("readiness", || daemon.is_ready().then_some(()));
    daemon.stop();
    // An occurrence begins with the last reading before it.
    let began: BTreeSet<String> = sent().iter().map(|alert| alert["from"].to_string()).collect();
    assert_eq!(began.len(), sent().len(), "one alert an occurrence: {:#?}", sent());
}

#[test]
fn alerts_test_shows_which_targets_accept_alerts() {
    let scene = Scene::new(1);
    assert_eq!(scene.run(&["alerts", "test"]).status.code(), Some(2));
    let webhook = Webhook::refusing(1);
    scene.configure(&format!("[alerts]\nwebhook = \"{}\"\ncommand = [\"/bin/sh\", \"-c\", \":\"]\n", webhook.address));
    let refused = scene.run(&["alerts", "test"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("status 500") && said.contains("command: the target accepted the test alert"), "{said}");
    assert!(!said.contains("webhook-secret"));
    let taken = scene.run(&["alerts", "test"]);
    assert_eq!(taken.status.code(), Some(0), "{}", String::from_utf8_lossy(&taken.stderr));
    assert!(webhook.taken.lock().unwrap()[0]["message"].as_str().unwrap().contains("test"));
}
