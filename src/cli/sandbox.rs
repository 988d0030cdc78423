//! `annals sandbox`: the documented API over synthetic teams.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::files::{self, Links};
use crate::model::{Instant, Stream};
use crate::sandbox::{Choices, LIVE_DAYS, Lateness, RunningSandbox, Sandbox, SandboxConfig, SandboxError, Saved};

use super::output::writable_file;

/// The largest saved sandbox.
const SAVED_BYTES_MAX: u64 = 4 << 30;

/// Serve the documented API with synthetic teams
#[derive(Debug, Clone, Args)]
pub struct SandboxArgs {
    /// Number of teams
    #[arg(long, default_value_t = 2)]
    pub teams: u32,
    /// Whole UTC days of history
    #[arg(long, default_value_t = 30)]
    pub days: u32,
    /// Connections for each team and day; each makes three to four events
    #[arg(long, default_value_t = 200)]
    pub sessions_per_day: u32,
    /// Equal seeds make equal data on every machine
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// No event is later than this moment (RFC 3339) [default: the current hour]
    #[arg(long)]
    pub end: Option<Instant>,
    /// Address to listen on; port 0 takes a free port
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Let new events arrive as the clock moves, for a week
    #[arg(long)]
    pub live: bool,
    /// Start with a clock that stands at this moment (RFC 3339) until a request moves it [default: the machine's clock]
    #[arg(long, value_name = "MOMENT")]
    pub now: Option<Instant>,
    /// Sandbox seconds for each real second [default: 1, or 0 with --now]
    #[arg(long, value_name = "SECONDS")]
    pub speed: Option<u32>,
    /// How many of a million events are served late
    #[arg(long, value_name = "EVENTS", default_value_t = 0)]
    pub late_per_million: u32,
    /// The longest delay of a late event, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub late_up_to: u64,
    /// Make a few percent of the connection events differ from the document, as a service in development does
    #[arg(long)]
    pub odd_events: bool,
    /// Days of connection history that the plan shows [default: 90, or all days of --days]
    #[arg(long, value_name = "DAYS")]
    pub plan_days: Option<u32>,
    /// Set a switch for a point that the document leaves open, e.g. error_shape=nested; GET /sandbox/choices lists them
    #[arg(long, value_name = "NAME=VALUE")]
    pub choice: Vec<String>,
    /// Add a fault rule, e.g. '{"path": "/history", "every": 5, "fault": {"status": {"status": 503}}}'
    #[arg(long, value_name = "JSON")]
    pub fault: Vec<String>,
    /// Continue from a saved sandbox, with the data settings of that file
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["teams", "days", "sessions_per_day", "seed", "end", "live", "now", "speed"],
        conflicts_with_all = ["late_per_million", "late_up_to", "odd_events", "plan_days", "choice", "fault"],
    )]
    pub load: Option<PathBuf>,
    /// Save the sandbox as one JSON file when it stops (Ctrl-C or SIGTERM)
    #[arg(long, value_name = "FILE", value_parser = writable_file())]
    pub save: Option<PathBuf>,
    /// Print one line of JSON when the sandbox is ready: base_url, tokens, teams
    #[arg(long)]
    pub json: bool,
}

/// Serves until a signal arrives.
pub async fn run(args: SandboxArgs) -> Result<(), SandboxError> {
    let sandbox = Sandbox::start(config(&args)?).await?;
    // Listen for signals before the sandbox says that it runs.
    let stop = stop_signal().map_err(SandboxError::Signals)?;
    let text = if args.json { ready_line(&sandbox) } else { ready_text(&sandbox) };
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(SandboxError::Print)?;
    stop.await;
    if let Some(path) = &args.save {
        save(&sandbox, path).map_err(|source| SandboxError::Save { path: path.clone(), source })?;
    }
    sandbox.shutdown().await;
    Ok(())
}

/// Waits for Ctrl-C or SIGTERM.
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let (mut interrupted, mut terminated) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    })
}

fn config(args: &SandboxArgs) -> Result<SandboxConfig, SandboxError> {
    if let Some(path) = &args.load {
        let text = files::read(path, Links::Follow, SAVED_BYTES_MAX)
            .map_err(|source| SandboxError::Load { path: path.clone(), source })?;
        return Ok(SandboxConfig { listen: args.listen, ..Saved::parse(&text)?.config() });
    }
    let wrong = |what, text, reason| SandboxError::Option { what, text, reason };
    let rule =
        |text: &String| serde_json::from_str(text).map_err(|error| wrong("--fault", text.clone(), error.to_string()));
    Ok(SandboxConfig {
        seed: args.seed,
        teams: args.teams,
        days: args.days,
        sessions_per_day: args.sessions_per_day,
        listen: args.listen,
        now: args.now,
        speed: args.speed,
        end: args.end,
        days_ahead: if args.live { LIVE_DAYS } else { 0 },
        lateness: Lateness { per_million: args.late_per_million, longest: Duration::from_secs(args.late_up_to) },
        odd_events: args.odd_events,
        plan_span: args.plan_days.map(|days| Duration::from_secs(u64::from(days) * 86_400)),
        choices: Choices::from_pairs(&args.choice).map_err(|(text, reason)| wrong("--choice", text, reason))?,
        fault_rules: args.fault.iter().map(rule).collect::<Result<_, _>>()?,
        ..SandboxConfig::default()
    })
}

/// Writes the whole file, or leaves the old one.
fn save(sandbox: &RunningSandbox, path: &Path) -> std::io::Result<()> {
    let place = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(place)?;
    serde_json::to_writer(&mut file, &sandbox.handle.saved())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn ready_line(sandbox: &RunningSandbox) -> String {
    let line = json!({
        "base_url": sandbox.base_url,
        "tokens": {
            "admin": sandbox.admin_token, "read_only": sandbox.read_only_token, "member": sandbox.member_token,
        },
        "teams": sandbox.teams,
    });
    format!("{line}\n")
}

fn ready_text(sandbox: &RunningSandbox) -> String {
    let mut text = format!(
        "The sandbox serves at {}\n  admin token      {}\n  read-only token  {}\n  member's token   {}\n",
        sandbox.base_url, sandbox.admin_token, sandbox.read_only_token, sandbox.member_token
    );
    for team in &sandbox.teams {
        let count = |stream| sandbox.handle.visible(team, stream);
        text.push_str(&format!(
            "  team {team}: {} connection events, {} activity events, {} billing entries\n",
            count(Stream::Connections),
            count(Stream::Activity),
            count(Stream::Billing),
        ));
    }
    text.push_str(&format!(
        "Try: curl -H 'Authorization: Bearer {}' {}/v1/user/teams\nIts OpenAPI description: {}/openapi.json\nCtrl-C stops it.\n",
        sandbox.read_only_token, sandbox.base_url, sandbox.base_url
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: SandboxArgs,
    }

    fn parse(words: &[&str]) -> Result<SandboxArgs, clap::Error> {
        <Line as clap::Parser>::try_parse_from([&["sandbox"], words].concat()).map(|line| line.args)
    }

    #[tokio::test]
    async fn a_saved_sandbox_keeps_its_changes() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("saved.json");
        let words =
            ["--days", "1", "--sessions-per-day", "5", "--now", "2026-11-20T13:00:00Z", "--choice", "default_limit=9"];
        let sandbox = Sandbox::start(config(&parse(&words).unwrap()).unwrap()).await.unwrap();
        let team = sandbox.teams[0].clone();
        let device = sandbox.handle.devices(&team)[0].clone();
        assert!(sandbox.handle.remove_device(&team, &device));
        save(&sandbox, &file).unwrap();
        let load = parse(&["--load", file.to_str().unwrap()]).unwrap();
        let again = Sandbox::start(config(&load).unwrap()).await.unwrap();
        assert_eq!((again.handle.now(), again.handle.choices()), (sandbox.handle.now(), sandbox.handle.choices()));
        assert_eq!(again.handle.devices(&team), sandbox.handle.devices(&team));
        assert!(parse(&["--load", "x", "--seed", "2"]).is_err());
    }

    #[test]
    fn a_wrong_option_is_named_with_the_reason() {
        for (words, named) in [
            (["--choice", "error_shape=loud"], "error_shape=loud"),
            (["--choice", "default_limit"], "name=value"),
            (["--fault", "{}"], "--fault"),
            (["--load", "/nowhere/at/all"], "/nowhere/at/all"),
        ] {
            let error = config(&parse(&words).unwrap()).err().unwrap().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[tokio::test]
    async fn the_ready_line_is_one_line_of_json_with_the_documented_keys() {
        let config = SandboxConfig { days: 1, sessions_per_day: 5, ..SandboxConfig::default() };
        let sandbox = Sandbox::start(config).await.unwrap();
        let line = ready_line(&sandbox);
        assert_eq!((line.matches('\n').count(), line.ends_with('\n')), (1, true));
        let expected = json!({
            "base_url": sandbox.base_url,
            "tokens": {
                "admin": sandbox.admin_token, "read_only": sandbox.read_only_token, "member": sandbox.member_token,
            },
            "teams": [sandbox.teams[0].as_str(), sandbox.teams[1].as_str()],
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), expected);
        let text = ready_text(&sandbox);
        assert!(text.contains(&sandbox.base_url) && sandbox.teams.iter().all(|team| text.contains(team.as_str())));
    }
}
