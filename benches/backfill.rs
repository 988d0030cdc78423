//! Compares a backfill of a million connection events from the sandbox with a loop of the same client that fetches
//! the same pages and drops them. Prints ratios; asserts nothing about time.
//!
//! `cargo bench --bench backfill` takes a minute. `-- --full` instead measures the peak memory of the program for ten
//! million events, in several minutes; `-- --teams 8` for a million events of each of eight teams. `--bucket` keeps
//! the archive in a bucket of our own server, in this process. `--events` (of each team), `--days` and `--rounds`
//! change the sizes.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod support;

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use annals::api::{EventSource, PageQuery};
use annals::clock::{Clock, SystemClock};
use futures::{StreamExt, TryStreamExt, stream};
use object_server::{ACCESS_KEY, BUCKET, ObjectServer, REGION, SECRET_KEY};
use support::{Began, END, Failure, Took, World, has_flag, median, number, print_ratio, sessions_per_day};

fn main() -> Result<(), Failure> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    if has_flag("--full") || has_flag("--teams") { runtime.block_on(memory()) } else { runtime.block_on(rates()) }
}

/// Reads the same pages with each of three readers in turn.
async fn rates() -> Result<(), Failure> {
    let world = World::start(number("--events", 1_000_000)?, number("--days", 90)?).await?;
    let rounds = number("--rounds", 3)?;
    let [mut pipeline, mut twice, mut once, mut plain] = [const { Vec::new() }; 4];
    let (mut last, mut served) = (None, 0);
    for round in 0..rounds {
        drop(last.take());
        let done = world.backfill().await?;
        let single = distinct(&done.pages);
        pipeline.push(done.took);
        if !has_flag("--alone") {
            let (took, events) = drop_parsed(&world, &done.pages).await?;
            twice.push(took);
            served = events;
            once.push(drop_parsed(&world, &single).await?.0);
            plain.push(drop_unparsed(&world, &done.pages).await?);
        }
        if has_flag("--verbose") {
            println!("round {round}: {pipeline:?} {twice:?} {once:?} {plain:?}");
        }
        last = Some((done, single.len()));
    }
    if has_flag("--alone") {
        return Ok(());
    }
    let (done, single) = last.ok_or("no rounds")?;
    let [pipeline, twice, once, plain] = [pipeline, twice, once, plain].map(median);
    let events = world.events() as f64;
    println!("{events} connection events; sandbox, client and pipeline in one process; medians of {rounds} rounds");
    println!("{} pages of {served} events in two whole walks; {single} pages in one", done.pages.len());
    let print = |what: &str, took: Took, note: &str| {
        let (Took { wall, processor }, rate) = (took, events / took.wall);
        println!("{what:<18} {wall:>7.2} s, {processor:>6.2} s of processors, {rate:>8.0} events/s {note}");
    };
    print("backfill", pipeline, &format!("in {} commits", done.committed.commits));
    print("pages dropped", twice, "the same client, the same pages of both walks");
    print("one walk dropped", once, "the same client, each page once");
    print("pages unparsed", plain, "a bare HTTP client, the same pages of both walks");
    print_ratio("backfill / same pages of both walks dropped, rates", twice.wall / pipeline.wall, "0.45", "0.80");
    print_ratio("backfill / one walk's pages dropped, rates", once.wall / pipeline.wall, "-", "-");
    print_ratio("sandbox serves / pipeline takes, pages a second", pipeline.wall / plain.wall, "5.00", "5.00");
    world.sandbox.shutdown().await;
    Ok(())
}

/// Each page once, like a single walk.
fn distinct(pages: &[PageQuery]) -> Vec<PageQuery> {
    let mut seen = HashSet::new();
    let new = |page: &&PageQuery| seen.insert((page.start, page.stop, page.offset));
    pages.iter().filter(new).cloned().collect()
}

/// The client without the pipeline: fetches pages, parses their events and drops them. Also returns the number of
/// events.
async fn drop_parsed(world: &World, pages: &[PageQuery]) -> Result<(Took, usize), Failure> {
    let began = Began::now(&world.clock);
    let events = stream::iter(pages)
        .map(|query| async move { world.http.page(world.team(), query).await.map(|page| page.body.events.len()) })
        .buffer_unordered(world.settings().concurrency)
        .try_fold(0, |sum, events| async move { Ok(sum + events) })
        .await?;
    Ok((began.took(), events))
}

/// The sandbox alone: fetches pages as bytes and drops them.
async fn drop_unparsed(world: &World, pages: &[PageQuery]) -> Result<Took, Failure> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let base = format!("{}/v1/team/{}/history/devices?desc=false", world.sandbox.base_url, world.team());
    let token = format!("Bearer {}", world.sandbox.read_only_token);
    let began = Began::now(&world.clock);
    stream::iter(pages)
        .map(|page| {
            let PageQuery { start, stop, offset, limit, .. } = page;
            let url = format!("{base}&limit={limit}&offset={offset}&startTime={start}&stopTime={stop}");
            let request = client.get(url).header("authorization", &token);
            async { request.send().await?.error_for_status()?.bytes().await.map(drop) }
        })
        .buffer_unordered(world.settings().concurrency)
        .try_collect::<()>()
        .await?;
    Ok(began.took())
}

/// Runs the program and the sandbox in two processes, and returns the peak memory of each.
async fn memory() -> Result<(), Failure> {
    let teams = number("--teams", 1)?;
    let (events, days) = match teams {
        1 => (number("--events", 10_000_000)?, number("--days", 200)?),
        _ => (number("--events", 1_000_000)?, number("--days", 90)?),
    };
    let clock = SystemClock::new();
    let mut sandbox = annals(&["sandbox", "--json", "--odd-events", "--end", END])
        .args(["--teams", &teams.to_string()])
        .args(["--days", &days.to_string(), "--sessions-per-day", &sessions_per_day(events, days).to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(sandbox.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
    let ready: serde_json::Value = serde_json::from_str(&line)?;
    let text = |pointer: &str| ready.pointer(pointer).and_then(|v| v.as_str()).map(str::to_owned).ok_or("not there");
    let directory = tempfile::tempdir()?;
    let since = END.parse::<annals::model::Instant>()?.minus(Duration::from_secs(u64::from(days) * 86_400));
    let bucket = has_flag("--bucket").then(ObjectServer::start);
    let location = match &bucket {
        Some(_) => format!("s3://{BUCKET}/archive").into(),
        None => directory.path().as_os_str().to_owned(),
    };
    let mut sync = annals(&["sync", "--stream", "connections", "--requests-per-second", "0"])
        .args(["--since", &since.to_string(), "--base-url", &text("/base_url")?])
        .arg("--archive")
        .arg(location)
        .env("ANNALS_TOKEN", text("/tokens/read_only")?)
        .envs(bucket.iter().flat_map(|server| keys(&server.endpoint())))
        .spawn()?;
    let began = clock.monotonic();
    let (mut peak, mut served) = (0, 0);
    let status = loop {
        peak = peak_mebibytes(&sync).unwrap_or(peak);
        served = peak_mebibytes(&sandbox).unwrap_or(served);
        match sync.try_wait()? {
            Some(status) => break status,
            None => clock.sleep(Duration::from_millis(20)).await,
        }
    };
    let took = (clock.monotonic() - began).as_secs_f64();
    sandbox.kill()?;
    sandbox.wait()?;
    println!(
        "annals sync of {teams} teams of about {events} connection events in {took:.0} s ({status}); \
         the sandbox took {served} MiB"
    );
    if let Some(server) = bucket {
        println!("requests to the bucket: {:?}", server.counts());
    }
    let (required, goal) = if teams == 1 && !has_flag("--bucket") { (200, 100) } else { (256, 200) };
    print_ratio("peak memory of annals sync, MiB", f64::from(peak), required, goal);
    Ok(())
}

fn annals(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
    command.args(arguments);
    command
}

/// The environment that the program needs for the server.
fn keys(endpoint: &str) -> [(&'static str, String); 5] {
    [
        ("AWS_ENDPOINT_URL", endpoint.to_owned()),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_REGION", REGION.to_owned()),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.to_owned()),
    ]
}

/// The peak resident memory of a running process, if the system shows it.
fn peak_mebibytes(process: &Child) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.trim().trim_end_matches(" kB").parse::<u32>().ok()?.div_ceil(1024))
}
