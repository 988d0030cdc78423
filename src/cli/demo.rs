//! `annals demo`: the sandbox, a sync, reports and verify in one process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use crate::api::{HttpOptions, TokenSource};
use crate::archive::VerifyOptions;
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::model::{ArchivePlace, GRACE_LOCAL, Location};
use crate::pipeline::{FleetRound, InventorySettings, ScanMode, Settings};
use crate::sandbox::{RunningSandbox, Sandbox, SandboxConfig};
use crate::store::{LocalStore, Store};

use super::output::{self, OutputArgs};
use super::{Global, bars, query, reading, sync, verify};

/// Connections for each team and day: two teams make about 100,000 events in a month.
const SESSIONS_PER_DAY: u32 = 350;
/// The demo's archive, unless `--archive` names another place.
const DEMO_ARCHIVE: &str = "annals-demo";

/// Try Annals on the built-in sandbox: sync twice, answer three questions, verify
///
/// The archive is ./annals-demo, unless the flag --archive names another place. ANNALS_ARCHIVE does not count: it names the
/// archive of real teams. The demo refuses an archive that holds other teams than its own.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Equal seeds make equal data
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const QUESTIONS: [(&str, &str); 3] = [
    (
        "Who fails to authenticate most often, and on how many computers?",
        "select peer_email, count(*) as failures, count(distinct device_id) as computers,
           count(distinct peer_ip) as addresses, max(event_time) as last
         from connections where event_type = 'authFailedEvent'
         group by peer_email order by failures desc, peer_email limit 5",
    ),
    (
        "Which computers are reached most, by how many people, and how long was the longest session?",
        "select any_value(computer_host_name) as computer, count(*) as sessions,
           count(distinct peer_email) as people, count(*) filter (outcome = 'auth_failed') as refused,
           count(*) filter (outcome = 'open') as still_open, round(max(duration_ms) / 3600e3, 1) as longest_hours
         from sessions where device_id is not null group by device_id order by sessions desc, device_id limit 5",
    ),
    (
        "Was everything read, and is it final?",
        "select stream, min(window_start) as since, count(*) as windows,
           count(*) filter (state = 'sealed') as sealed, count(*) filter (state = 'settled') as settled,
           count(*) filter (state = 'provisional') as open, sum(events)::bigint as events, sum(gaps)::bigint as gaps
         from coverage group by stream order by stream",
    ),
];

pub async fn run(global: &Global, args: &DemoArgs) -> Result<Exit, Error> {
    let global = Global { archive: Some(place(global)), ledger: None, ..global.clone() };
    // The ledger of the configured archive is not the demo's.
    let mut config = global.load()?;
    config.ledger = None;
    let location = query::location(&config)?;
    let Some(root) = location.directory().map(Path::to_owned) else {
        return Err(Error::Usage(format!("{location}: the demo needs a directory for its archive, not a bucket")));
    };
    let sandbox = start(args.seed).await?;
    refuse_other_archive(&config, &sandbox)?;
    output::say(&format!("a sandbox with two teams serves at {}", sandbox.base_url));
    let first = round(&sandbox, &root).await?;
    sync::print_round(&first, &Settings::default());
    output::say("sync again: events that the archive already holds are not written twice");
    let second = round(&sandbox, &root).await?;
    sync::print_round(&second, &Settings::default());
    sandbox.shutdown().await;
    for (question, sql) in QUESTIONS {
        output::print(format!("\n{question}\n").as_bytes())?;
        query::answer(&config, sql, &OutputArgs { format: None, output: None })?;
    }
    let store: Arc<dyn Store> = Arc::new(LocalStore::new(&root));
    let report = crate::archive::verify(store.as_ref(), &VerifyOptions::default())?;
    let word = output::shell_word(&root);
    output::print(
        format!(
            "\nIs the archive complete and unaltered?\n{}\n\
             The archive is at {word}. What to try next:\n\
             \x20 annals --archive {word} sql \"from connections limit 5\"\n\
             \x20 annals --archive {word} report run failed-authentications --from -7d\n\
             \x20 annals --archive {word} report list\n\
             \x20 annals --archive {word} status\n\
             \x20 annals sandbox        a service to try `annals sync` with\n",
            verify::text(&location.to_string(), &report, &verify::names(store))
        )
        .as_bytes(),
    )?;
    Ok(if first.is_done() && second.is_done() && report.is_clean() { Exit::Done } else { Exit::Fault })
}

/// Synthetic teams must never join real teams.
fn refuse_other_archive(config: &Config, sandbox: &RunningSandbox) -> Result<(), Error> {
    let teams = query::existing(config)?.map(|archive| archive.teams()).transpose()?.unwrap_or_default();
    match teams.iter().find(|team| !sandbox.teams.contains(team)) {
        None => Ok(()),
        Some(team) => Err(Error::Usage(format!(
            "{}: this archive holds team {team}, which this demo does not serve: --archive names another place",
            config.archive
        ))),
    }
}

/// The value of `--archive`, else the demo's own directory.
fn place(global: &Global) -> PathBuf {
    global.archive.clone().unwrap_or_else(|| PathBuf::from(DEMO_ARCHIVE))
}

async fn start(seed: u64) -> Result<RunningSandbox, Error> {
    Ok(Sandbox::start(SandboxConfig { seed, sessions_per_day: SESSIONS_PER_DAY, ..SandboxConfig::default() }).await?)
}

async fn round(sandbox: &RunningSandbox, root: &Path) -> Result<FleetRound, Error> {
    let clock = reading::clock();
    let token = TokenSource::Fixed(sandbox.read_only_token.clone().into());
    let options = HttpOptions { requests_per_second: None, ..HttpOptions::new(&sandbox.base_url, token) };
    let archive = reading::archive(&ArchivePlace::whole(Location::Local(root.to_owned())), GRACE_LOCAL, &clock)?;
    let source = reading::source(options, &clock)?;
    let inventory = InventorySettings { scan: ScanMode::WhenDue, user_info: true };
    let settings = Settings { inventory, ..Settings::default() };
    let edges = reading::edges(source, archive, clock, settings, bars::for_stderr());
    Ok(edges.read_once().await?)
}
