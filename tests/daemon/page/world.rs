//! Daemons for tests of the page: one with an archive and a service that never answers, and one over a service with
//! hostile events.

use std::process::{Child, Stdio};

use annals::model::{Instant, Stream, TeamId};
use annals::sandbox::{InsertedEvent, SandboxConfig};

use super::http::{Answer, get, post};
use crate::program::{Log, Running, Scene, put, wait_for};
use crate::reporting::Place;

/// An untrusted text. No page may contain it unescaped.
pub const HOSTILE: &str = "<script>alert('x')</script><img src=x onerror=alert(1)>\u{202e}&\"'";

/// October 2026 of one team with an unusual id: a gap on the 14th, the 20th never read, and an unreachable service.
pub struct Lonely {
    pub place: Place,
    pub daemon: Running,
}

impl Lonely {
    pub fn new(http: &str) -> Self {
        Self::over(Place::month_with_a_gap(), http)
    }

    pub fn over(place: Place, http: &str) -> Self {
        put(&place.path().join("token"), "a-token");
        let api = "[api]\nbase_url = \"http://127.0.0.1:1\"\ntoken_file = \"token\"\n";
        let listen = if http.contains("listen") { "" } else { "listen = \"127.0.0.1:0\"\n" };
        put(&place.path().join("annals.toml"), format!("{api}[http]\n{listen}{http}"));
        let mut command = place.command(&["run"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        Self { daemon: running(child), place }
    }

    pub fn get(&self, path: &str) -> Answer {
        get(&self.daemon.address, path)
    }

    /// Requests a page and asserts success.
    #[track_caller]
    pub fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        answer.body
    }

    pub fn post(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        post(&self.daemon.address, path, form)
    }
}

fn running(mut child: Child) -> Running {
    let log = Log::of(child.stderr.take().unwrap());
    let ready = log.wait(|line| line["message"] == "ready");
    let address = ready["listen"].as_str().unwrap().to_owned();
    assert_eq!(ready["page"], format!("http://{address}/"));
    Running { child, log, address }
}

/// A service with two teams over some days; the first team has a session with untrusted text and a broken event.
pub fn with_strangers() -> (Scene, Running) {
    // No day has a dense second.
    let config =
        SandboxConfig { teams: 2, days: 3, sessions_per_day: 40, dense_every_days: 0, ..SandboxConfig::default() };
    let scene = Scene::of(config);
    let team = scene.team(0);
    let now = scene.sandbox.handle.now();
    let text = serde_json::Value::from(HOSTILE).to_string();
    let hostile = |id: &str, minutes: i64, event: &str| {
        let at = Instant::from_seconds(now.seconds() - 3_600 + 60 * minutes);
        let detail = format!(
            "\"connectionID\":\"hostile-1\",\"tunnelID\":{text},\"sourceType\":\"client\",\"localUserName\":{text},\
             \"peerInfo\":{{\"email\":{text},\"ipAddress\":\"203.0.113.7\"}}"
        );
        let body = match event {
            "incomingConnectionEvent" => format!("\"{event}\":{{{detail}}}"),
            _ => format!("\"{event}\":{{}},\"associatedIncomingConnectionEvent\":{{{detail}}}"),
        };
        let raw = format!(
            "{{\"id\":\"{id}\",\"timestamp\":{},\"computerHostName\":{text},{body},\"note\":{text}}}",
            at.seconds() * 1_000
        );
        insert(&scene, &team, raw, at);
    };
    hostile("h1", 0, "incomingConnectionEvent");
    hostile("h2", 10, "connectionClosedEvent");
    let at = Instant::from_seconds(now.seconds() - 1_800);
    insert(&scene, &team, format!("{{\"id\":\"broken\",\"timestamp\":{},\"text\":{text}}}", at.seconds() * 1_000), at);
    let raw = format!(
        "{{\"id\":\"spaced\",\"timestamp\":{},\"incomingConnectionEvent\":{{\"connectionID\":\" lead\",\
         \"peerInfo\":{{\"email\":\"lead@x.example\"}}}}}}",
        at.seconds() * 1_000
    );
    insert(&scene, &team, raw, at);
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    (scene, daemon)
}

fn insert(scene: &Scene, team: &TeamId, raw: String, at: Instant) {
    let event = InsertedEvent { raw: raw.into(), at, device: None, visible_from: None };
    assert!(scene.sandbox.handle.insert(team, Stream::Connections, event));
}
