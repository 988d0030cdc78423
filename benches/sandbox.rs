//! Measures how fast the sandbox starts, how much memory it takes, and how fast it serves pages. Compare a reader's
//! rate with these figures. Prints figures; asserts nothing about time.
//!
//! `cargo bench --bench sandbox` makes a million events, `cargo bench --bench sandbox -- --full` ten million.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::time::Duration;

use annals::clock::{Clock, SystemClock};
use annals::model::Stream;
use annals::sandbox::{RunningSandbox, Sandbox, SandboxConfig};
use futures::{StreamExt, stream};

type Failure = Box<dyn std::error::Error>;

const PAGE_EVENTS: u64 = 1001;
const AT_ONCE: usize = 4;

fn main() -> Result<(), Failure> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let days = if std::env::args().any(|argument| argument == "--full") { 200 } else { 20 };
    tokio::runtime::Runtime::new()?.block_on(measure(days))
}

async fn measure(days: u32) -> Result<(), Failure> {
    let clock = SystemClock::new();
    let config = SandboxConfig { teams: 1, days, sessions_per_day: 15_000, ..SandboxConfig::default() };
    let began = clock.monotonic();
    let sandbox = Sandbox::start(config).await?;
    let took = clock.monotonic() - began;
    let events = sandbox.handle.visible(&sandbox.teams[0], Stream::Connections);
    println!("start            {events:>12} connection events in {:.2} s", took.as_secs_f64());
    println!("memory           {}", peak_memory());

    let pages = events.min(1_000_000).div_ceil(PAGE_EVENTS);
    let offsets = |from: u64| (0..pages).map(move |page| from + page * PAGE_EVENTS);
    let first = serve(&sandbox, &clock, "", offsets(0), 1).await?;
    print_rate("one at a time", &first);
    print_rate("four at once", &serve(&sandbox, &clock, "", offsets(0), AT_ONCE).await?);
    print_rate(
        "the last pages",
        &serve(&sandbox, &clock, "", offsets(events - pages * PAGE_EVENTS / 2), AT_ONCE).await?,
    );
    let ids: String = sandbox.handle.devices(&sandbox.teams[0]).iter().take(8).map(|id| format!("&ids={id}")).collect();
    print_rate("eight computers", &serve(&sandbox, &clock, &ids, offsets(0), AT_ONCE).await?);
    println!("bytes an event   {:>12.0}", first.bytes as f64 / first.events.max(1) as f64);
    println!("memory           {}", peak_memory());
    sandbox.shutdown().await;
    Ok(())
}

#[derive(Default)]
struct Served {
    pages: u64,
    events: u64,
    bytes: u64,
    took: Duration,
}

/// Fetches pages and drops them. Counts events by a field that each event has once.
async fn serve(
    sandbox: &RunningSandbox,
    clock: &SystemClock,
    ids: &str,
    offsets: impl Iterator<Item = u64>,
    at_once: usize,
) -> Result<Served, Failure> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let base = format!("{}/v1/team/{}/history/devices?desc=false", sandbox.base_url, sandbox.teams[0]);
    let began = clock.monotonic();
    let mut served = Served::default();
    let mut pages = stream::iter(offsets)
        .map(|offset| {
            let url = format!("{base}&limit={PAGE_EVENTS}&offset={offset}{ids}");
            let request = client.get(url).header("authorization", format!("Bearer {}", sandbox.read_only_token));
            async { request.send().await?.error_for_status()?.bytes().await }
        })
        .buffered(at_once);
    while let Some(page) = pages.next().await {
        let page = page?;
        served.pages += 1;
        served.events += memchr::memmem::find_iter(&page, b"\"connectionID\":").count() as u64;
        served.bytes += page.len() as u64;
    }
    served.took = clock.monotonic() - began;
    Ok(served)
}

fn print_rate(what: &str, served: &Served) {
    let seconds = served.took.as_secs_f64();
    println!(
        "{what:<16} {:>12} events in {seconds:.2} s: {:.0} pages/s, {:.0} events/s, {:.0} MB/s",
        served.events,
        served.pages as f64 / seconds,
        served.events as f64 / seconds,
        served.bytes as f64 / 1e6 / seconds,
    );
}

/// The process's peak resident memory, if the system shows it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "not known here".to_owned(), |peak| format!("peak {}", peak.trim()))
}
