//! The port: its content, and who may see it.

use std::collections::BTreeSet;

use annals::web::metric_names::{self as names, Kind};
use rustix::process::Signal;

use crate::common::wait::note;

use super::program::{Scene, get, put, wait_for};

/// The name of every metric of a scrape, without histograms' suffixes.
pub fn names_in(text: &str) -> BTreeSet<String> {
    let samples = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    samples
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let name = series.split('{').next().unwrap();
            let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|ending| name.strip_suffix(ending));
            histogram.filter(|name| names::ALL.iter().any(|known| known.name == *name)).unwrap_or(name).to_owned()
        })
        .collect()
}

#[test]
fn the_list_of_metrics_equals_a_scrape() {
    let scene = Scene::new(2);
    let more = "verify = \"*/2 * * * * *\"\nreports = \"*/4 * * * * *\"\n[publish]\nschedule = \"*/2 * * * * *\"\n";
    let polls = format!("{}{more}", super::program::POLLS);
    scene.configure(&polls);
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    wait_for("a check of the archive", || daemon.metric(names::VERIFY_AT.name));
    wait_for("a run of the reports", || daemon.metric(names::REPORTS_AT.name));
    wait_for("a publication", || daemon.metric(names::PUBLISH_AT.name));
    let listed: BTreeSet<String> = names::ALL.iter().map(|name| name.name.to_owned()).collect();
    let text = wait_for("every metric", || {
        let text = daemon.get("/metrics").1;
        let scraped = names_in(&text);
        note("not listed, or not scraped", &format!("{:?}", &scraped ^ &listed));
        (scraped == listed).then_some(text)
    });
    for name in names::ALL {
        let kind = match name.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        assert!(text.contains(&format!("# TYPE {} {kind}\n", name.name)), "{}", name.name);
        assert!(text.contains(&format!("# HELP {} {}\n", name.name, name.help)), "{}", name.name);
        let sample = text.lines().find(|line| line.starts_with(&format!("{}{{", name.name)));
        let labels =
            name.labels.iter().all(|label| sample.is_some_and(|sample| sample.contains(&format!("{label}=\""))));
        assert!(name.labels.is_empty() || labels, "{}: {sample:?}", name.name);
    }
    let team = scene.team(0);
    let new =
        daemon.metric(&format!("annals_team_events_new_total{{team=\"{team}\",stream=\"connections\"}}")).unwrap();
    assert_eq!(new, scene.count(&format!("connections where team_id = '{team}'")) as f64);
    assert!(daemon.metric("annals_commit_seconds_count").unwrap() >= 2.0);
    assert_eq!(daemon.metric("annals_verify_faults"), Some(0.0));
    assert_eq!(daemon.get("/elsewhere").0, 404);
    daemon.stop();
}

#[test]
fn off_loopback_the_port_demands_a_token_or_stays_closed() {
    let scene = Scene::new(1);
    scene.configure("[http]\nlisten = \"0.0.0.0:0\"\n");
    let refused = scene.run(&["run"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("http.token_file"));
    assert!(!scene.path("archive").is_dir());
    put(&scene.path("port-token"), "a-token-for-the-port\n");
    scene.configure("[http]\nlisten = \"0.0.0.0:0\"\ntoken_file = \"port-token\"\n");
    let daemon = scene.start();
    let address = daemon.address.replace("0.0.0.0", "127.0.0.1");
    for (path, token, status) in [
        ("/metrics", None, 401),
        ("/metrics", Some("a-token-for-the-por"), 401),
        ("/metrics", Some("a-token-for-the-port"), 200),
        ("/elsewhere", None, 401),
        ("/healthz", None, 200),
    ] {
        assert_eq!(get(&address, path, token).0, status, "{path} {token:?}");
    }
    let team = scene.team(0);
    assert!(!get(&address, "/readyz", None).1.contains(team.as_str()), "without the token no details");
    // A new token works without a restart.
    put(&scene.path("port-token"), "another-token-for-it\n");
    daemon.signal(Signal::HUP);
    wait_for("the new token", || (get(&address, "/metrics", Some("another-token-for-it")).0 == 200).then_some(()));
    assert_eq!(get(&address, "/metrics", Some("a-token-for-the-port")).0, 401);
    daemon.stop();
}

#[test]
fn a_port_in_use_is_reported_and_nothing_starts() {
    let scene = Scene::new(1);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    scene.configure(&format!("[http]\nlisten = \"{address}\"\n"));
    let refused = scene.run(&["run"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains(&address.to_string()));
}
