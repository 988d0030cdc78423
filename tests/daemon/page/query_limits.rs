//! Visitors' SQL that needs too much: each query's process has limits, and nothing else suffers.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use super::sql::{ENDLESS, SLOW, begin, sql};
use super::world::Lonely;
use crate::common::is_linux;
use crate::program::{PATIENCE, put, wait_for};

/// Each query needs gigabytes: for one value, for several values, for a sort, for a page's cells.
const LARGE: [&str; 5] = [
    "SELECT repeat('x', 3000000000) AS x",
    "SELECT length(repeat('x', 2000000000)) AS n FROM range(8)",
    "SELECT len(list(repeat('x', 1000000) || i)) AS n FROM range(1000000) t(i)",
    "SELECT length(string_agg(repeat('x', 1000000), '')) AS n FROM range(3000)",
    "SELECT map_from_entries(list((i, repeat('y', 100000)))) AS m FROM range(100000) t(i)",
];

fn status_line(world: &Lonely, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", world.daemon.child.id())).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The daemon's running child processes.
fn children(world: &Lonely) -> BTreeSet<u32> {
    let listed = Command::new("ps").args(["-A", "-o", "ppid=", "-o", "pid="]).output().unwrap();
    let pairs = String::from_utf8(listed.stdout).unwrap();
    let ids = pairs.lines().map(|line| line.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<u32>>());
    ids.filter(|ids| ids[0] == world.daemon.child.id()).map(|ids| ids[1]).collect()
}

fn cmdline(process: u32) -> String {
    std::fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default()
}

/// A query that never ends, and its process. Repeats the query while the daemon still holds the one before.
fn begin_endless(world: &Lonely) -> (TcpStream, u32) {
    wait_for("a query at work", || {
        let stream = begin(world, ENDLESS);
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let at_work = wait_for("its process, or a refusal", || match stream.peek(&mut [0]) {
            Ok(_) => Some(None),
            Err(_) => children(world).into_iter().find(|child| !cmdline(*child).is_empty()).map(Some),
        });
        at_work.map(|child| (stream, child))
    })
}

/// The query before may still be running: then ask again.
fn still_answers(world: &Lonely) {
    wait_for("an answer", || {
        let answer = sql(world, "SELECT count(*) AS n FROM ledger");
        assert!([200, 429].contains(&answer.status), "{}", answer.body);
        (answer.status == 200).then(|| assert_eq!(answer.json()["rows"][0]["n"], 1))
    });
}

#[test]
fn a_query_that_needs_too_much_memory_affects_no_other() {
    if !is_linux("the memory of a query's process", "macOS limits no process's memory") {
        return;
    }
    let world = Lonely::new(&format!("sql = true\n{SLOW}[sql]\nmemory = \"128MiB\"\nthreads = 2\n"));
    still_answers(&world);
    let before = status_line(&world, "VmHWM:");
    for query in LARGE {
        let answer = sql(&world, query);
        assert_eq!((answer.status, answer.refusal().as_str()), (422, "too_large"), "{query}: {}", answer.body);
        assert!(answer.body.contains("memory") && answer.body.contains("128 MiB"), "{query}: {}", answer.body);
        let page = world.post("/sql", &[("query", query)]);
        assert!(page.status == 422 && page.body.contains("more memory than its limit"), "{query}: {}", page.body);
        still_answers(&world);
    }
    // Linux forgets a high-water mark when it takes unused memory back.
    let grown = status_line(&world, "VmHWM:").saturating_sub(before);
    assert!(grown < 64 << 10, "the daemon grew by {grown} KiB");
    assert_eq!(world.get("/healthz").status, 200);
    wait_for("the end of its processes", || children(&world).is_empty().then_some(()));
    world.daemon.stop();
}

#[test]
fn an_endless_query_is_stopped_at_its_time_limit() {
    let world = Lonely::new("sql = true\nsql_time = \"2s\"\n");
    let answer = sql(&world, ENDLESS);
    assert_eq!((answer.status, answer.refusal().as_str()), (503, "too_long"), "{}", answer.body);
    assert!(answer.body.contains("2 seconds"), "{}", answer.body);
    // On a busy machine, two seconds are too short for any query.
    let path = world.place.path().join("annals.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    put(&path, text.replace("sql_time = \"2s\"\n", SLOW));
    world.daemon.reload(|line| line["message"] == "the daemon uses the new configuration");
    still_answers(&world);
    wait_for("the end of its processes", || children(&world).is_empty().then_some(()));
    world.daemon.stop();
}

#[test]
fn a_query_s_process_has_no_environment_has_limits_and_ends_with_its_client() {
    if !is_linux("the limits of a query's process", "only Linux shows them in /proc") {
        return;
    }
    let world = Lonely::new(&format!("sql = true\n{SLOW}"));
    let (asker, child) = begin_endless(&world);
    let of = |name: &str| std::fs::read_to_string(format!("/proc/{child}/{name}")).unwrap_or_default();
    let limit = |name: &str| {
        let limits = of("limits");
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        line.trim_start_matches(name).split_whitespace().next().map(str::to_owned)
    };
    wait_for("its bounds", || limit("Max address space").is_some_and(|limit| limit != "unlimited").then_some(()));
    wait_for("its bounds", || (limit("Max core file size").as_deref() == Some("0")).then_some(()));
    assert!(limit("Max cpu time").is_some_and(|seconds| seconds.parse::<u64>().is_ok()), "{}", of("limits"));
    assert_eq!(of("environ"), "");
    assert!(!cmdline(child).contains("SELECT"), "who lists the processes of this machine sees no query");
    drop(asker);
    wait_for("its end", || cmdline(child).is_empty().then_some(()));
    // The daemon reports a killed query, and answers the next one.
    let (stream, child) = begin_endless(&world);
    assert!(Command::new("kill").args(["-KILL", &child.to_string()]).status().unwrap().success());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = [0; 200];
    let length = stream.peek(&mut answer).unwrap();
    assert!(String::from_utf8_lossy(&answer[..length]).starts_with("HTTP/1.1 422"), "{answer:?}");
    still_answers(&world);
    // No query process outlives the daemon.
    let (_stream, child) = begin_endless(&world);
    world.daemon.signal(Signal::KILL);
    wait_for("its end", || cmdline(child).is_empty().then_some(()));
}
