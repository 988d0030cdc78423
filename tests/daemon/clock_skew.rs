//! The daemon compares the service's clock with the machine's.

use std::time::Duration;

use crate::program::{Scene, wait_for};

#[test]
fn the_daemon_warns_once_while_the_service_s_clock_differs() {
    let scene = Scene::new(1);
    let daemon = scene.start();
    let ahead = || daemon.metric("annals_service_clock_ahead_seconds");
    wait_for("clocks that agree", || ahead().filter(|seconds| seconds.abs() < 30.0));
    let warnings = || daemon.log.text().matches("the service's clock differs from this machine's").count();
    assert_eq!(warnings(), 0);
    let handle = &scene.sandbox.handle;
    handle.advance(Duration::from_secs(200));
    wait_for("a clock ahead", || ahead().filter(|seconds| *seconds > 150.0));
    let requests = handle.requests();
    wait_for("some polls", || (handle.requests() > requests + 20).then_some(()));
    assert_eq!(warnings(), 1);
    handle.set_now(handle.now().minus(Duration::from_secs(200)));
    wait_for("clocks that agree", || ahead().filter(|seconds| seconds.abs() < 30.0));
    daemon.log.wait(|line| line["message"] == "the two clocks agree again");
    handle.set_now(handle.now().minus(Duration::from_secs(200)));
    wait_for("a clock behind", || ahead().filter(|seconds| *seconds < -150.0));
    assert_eq!(warnings(), 2);
    daemon.stop();
}
