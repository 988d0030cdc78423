//! The messages to a service manager: ready, watchdog, reloading, stopping.

use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::program::{POLLS, Scene, pause, wait_for};

/// Receives a process's messages to its service manager.
struct Manager {
    address: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Manager {
    fn of(scene: &Scene) -> Self {
        let path = scene.path("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let theirs = heard.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(length) = socket.recv(&mut bytes) {
                theirs.lock().unwrap().push(String::from_utf8_lossy(&bytes[..length]).into_owned());
            }
        });
        Self { address: path.to_str().unwrap().to_owned(), heard }
    }

    fn count(&self, word: &str) -> usize {
        self.heard.lock().unwrap().iter().flat_map(|message| message.lines()).filter(|line| *line == word).count()
    }
}

#[test]
fn systemd_gets_readiness_watchdog_reload_and_stop_messages() {
    let scene = Scene::new(1);
    let manager = Manager::of(&scene);
    let daemon = scene.start_with(&[("NOTIFY_SOCKET", &manager.address), ("WATCHDOG_USEC", "3000000")]);
    wait_for("readiness", || (manager.count("READY=1") == 1).then_some(()));
    assert_eq!(daemon.get("/healthz").0, 200, "a client can ask once the daemon is ready");
    wait_for("the watchdog's food", || (manager.count("WATCHDOG=1") >= 4).then_some(()));
    scene.configure(&POLLS.replace("*/3", "*/4"));
    daemon.signal(Signal::HUP);
    wait_for("the end of reloading", || (manager.count("READY=1") == 2).then_some(()));
    let heard = manager.heard.lock().unwrap().clone();
    let reloading = heard.iter().find(|message| message.contains("RELOADING=1")).unwrap();
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    // A refused configuration also ends the reloading: the old one stays in force.
    scene.configure("[schedule]\nconnections = \"often\"\n");
    daemon.signal(Signal::HUP);
    wait_for("the end of the refused reloading", || (manager.count("READY=1") == 3).then_some(()));
    daemon.stop();
    wait_for("the word of the end", || (manager.count("STOPPING=1") == 1).then_some(()));
}

#[test]
fn a_stopped_daemon_does_not_feed_the_watchdog() {
    let scene = Scene::new(1);
    let manager = Manager::of(&scene);
    let daemon = scene.start_with(&[("NOTIFY_SOCKET", &manager.address), ("WATCHDOG_USEC", "3000000")]);
    wait_for("the watchdog's food", || (manager.count("WATCHDOG=1") >= 2).then_some(()));
    daemon.signal(Signal::STOP);
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    let _ = waitid(WaitId::Pid(Pid::from_child(&daemon.child)), options).unwrap();
    // A later message: everything that the daemon has sent was heard.
    let _ = UnixDatagram::unbound().unwrap().send_to(b"STOPPED=1", &manager.address).unwrap();
    wait_for("the message", || (manager.count("STOPPED=1") == 1).then_some(()));
    let before = manager.count("WATCHDOG=1");
    pause(Duration::from_secs(4));
    assert_eq!(manager.count("WATCHDOG=1"), before);
    daemon.signal(Signal::CONT);
    wait_for("more food", || (manager.count("WATCHDOG=1") > before).then_some(()));
    daemon.stop();
}
