//! `annals sandbox`: the documented API over synthetic teams.

use std::io::Write;
use std::net::SocketAddr;

use clap::Args;
use serde_json::json;

use crate::model::{Instant, Stream};
use crate::sandbox::{LIVE_DAYS, RunningSandbox, Sandbox, SandboxConfig, SandboxError};

/// Serve the documented API over synthetic teams
#[derive(Debug, Clone, Args)]
pub struct SandboxArgs {
    /// How many teams
    #[arg(long, default_value_t = 2)]
    pub teams: u32,
    /// Whole UTC days of history
    #[arg(long, default_value_t = 30)]
    pub days: u32,
    /// Connections a day and team; each makes three to four events
    #[arg(long, default_value_t = 200)]
    pub sessions_per_day: u32,
    /// Equal seeds make equal data on every machine
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// No event is younger than this moment (RFC 3339) [default: the current hour]
    #[arg(long)]
    pub end: Option<Instant>,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Let events keep arriving in real time, for a week
    #[arg(long)]
    pub live: bool,
    /// Print one line of JSON when ready: base_url, tokens, teams
    #[arg(long)]
    pub json: bool,
}

/// Serves until interrupted.
///
/// # Errors
/// When the sandbox cannot be made or cannot listen.
pub async fn run(args: SandboxArgs) -> Result<(), SandboxError> {
    let config = SandboxConfig {
        seed: args.seed,
        teams: args.teams,
        days: args.days,
        sessions_per_day: args.sessions_per_day,
        listen: args.listen,
        end: args.end,
        days_ahead: if args.live { LIVE_DAYS } else { 0 },
        ..SandboxConfig::default()
    };
    let sandbox = Sandbox::start(config).await?;
    let text = if args.json { ready_line(&sandbox) } else { ready_text(&sandbox) };
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(SandboxError::Print)?;
    // Where interrupts cannot be listened for, the sandbox serves until it is killed.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    sandbox.shutdown().await;
    Ok(())
}

fn ready_line(sandbox: &RunningSandbox) -> String {
    let line = json!({
        "base_url": sandbox.base_url,
        "tokens": {"admin": sandbox.admin_token, "read_only": sandbox.read_only_token},
        "teams": sandbox.teams,
    });
    format!("{line}\n")
}

fn ready_text(sandbox: &RunningSandbox) -> String {
    let mut text = format!(
        "The sandbox serves at {}\n  admin token      {}\n  read-only token  {}\n",
        sandbox.base_url, sandbox.admin_token, sandbox.read_only_token
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
        "Try: curl -H 'Authorization: Bearer {}' {}/v1/user/teams\nCtrl-C stops it.\n",
        sandbox.read_only_token, sandbox.base_url
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_ready_line_is_one_line_of_json_with_the_documented_keys() {
        let config = SandboxConfig { days: 1, sessions_per_day: 5, ..SandboxConfig::default() };
        let sandbox = Sandbox::start(config).await.unwrap();
        let line = ready_line(&sandbox);
        assert_eq!((line.matches('\n').count(), line.ends_with('\n')), (1, true));
        let expected = json!({
            "base_url": sandbox.base_url,
            "tokens": {"admin": sandbox.admin_token, "read_only": sandbox.read_only_token},
            "teams": [sandbox.teams[0].as_str(), sandbox.teams[1].as_str()],
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), expected);
        let text = ready_text(&sandbox);
        assert!(text.contains(&sandbox.base_url) && sandbox.teams.iter().all(|team| text.contains(team.as_str())));
    }
}
