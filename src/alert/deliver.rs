//! Where warnings go: an address that takes JSON, or a program that reads it.

use std::process::Stdio;
use std::time::Duration;

use futures::FutureExt;
use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use thiserror::Error;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::clock::Clock;
use crate::config::Alerts;

use super::occurrence::Occurrence;

/// One delivery may take so long.
const DEADLINE: Duration = Duration::from_secs(15);

/// Why a warning did not arrive. Never holds the address.
#[derive(Debug, Error)]
pub enum DeliveryError {
    #[error("no HTTP client can be made for alerts.webhook")]
    Client,
    #[error("the webhook cannot be reached: {0}")]
    Unreachable(&'static str),
    #[error("the webhook answered with status {0}")]
    Status(u16),
    #[error("the program {program:?} cannot be started: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("the program {program:?} ended with {how}")]
    Ended { program: String, how: String },
    #[error("it took longer than {} s", DEADLINE.as_secs())]
    Late,
}

/// Where warnings go.
pub enum Target {
    /// The log of the daemon: always.
    Log,
    Webhook {
        client: Client,
        address: SecretString,
    },
    Command(Vec<String>),
}

/// The configured targets, without the log.
///
/// # Errors
/// When no HTTP client can be made.
pub fn targets(config: &Alerts) -> Result<Vec<Target>, DeliveryError> {
    let mut targets = Vec::new();
    if let Some(address) = &config.webhook {
        // A second installation finds the first and changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder().redirect(reqwest::redirect::Policy::none()).referer(false);
        if address.expose_secret().starts_with("http://") {
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|_| DeliveryError::Client)?;
        targets.push(Target::Webhook { client, address: address.clone() });
    }
    if !config.command.is_empty() {
        targets.push(Target::Command(config.command.clone()));
    }
    Ok(targets)
}

impl Target {
    pub const fn name(&self) -> &'static str {
        match self {
            Target::Log => "log",
            Target::Webhook { .. } => "webhook",
            Target::Command(_) => "command",
        }
    }

    /// Delivers one warning.
    ///
    /// # Errors
    /// When the target does not say that it took it.
    pub async fn deliver(&self, occurrence: &Occurrence, clock: &dyn Clock) -> Result<(), DeliveryError> {
        let body = body(occurrence);
        let sent = match self {
            Target::Log => {
                let (rule, key) = (occurrence.rule.as_str(), &occurrence.key);
                tracing::warn!(rule, key, "{}", occurrence.message);
                return Ok(());
            }
            Target::Webhook { client, address } => post(client, address, body).boxed(),
            Target::Command(words) => execute(words, body).boxed(),
        };
        tokio::select! {
            done = sent => done,
            () = clock.sleep(DEADLINE) => Err(DeliveryError::Late),
        }
    }
}

/// The warning as one JSON object. `text` is what chat programs show.
fn body(occurrence: &Occurrence) -> Vec<u8> {
    let mut value = json!(occurrence);
    value["text"] = json!(format!("annals: {}", occurrence.message));
    value["annals"] = json!(env!("CARGO_PKG_VERSION"));
    value.to_string().into_bytes()
}

async fn post(client: &Client, address: &SecretString, body: Vec<u8>) -> Result<(), DeliveryError> {
    let request = client.post(address.expose_secret()).header("content-type", "application/json").body(body);
    let answer = request.send().await.map_err(|error| {
        DeliveryError::Unreachable(match (error.is_connect(), error.is_timeout()) {
            (_, true) => "no answer in time",
            (true, _) => "no connection",
            _ => "the connection broke",
        })
    })?;
    match answer.status().is_success() {
        true => Ok(()),
        false => Err(DeliveryError::Status(answer.status().as_u16())),
    }
}

/// The program gets nothing of ours but the warning: no token stands in its environment.
async fn execute(words: &[String], body: Vec<u8>) -> Result<(), DeliveryError> {
    let [program, arguments @ ..] = words else { return Ok(()) };
    let start = |source| DeliveryError::Start { program: program.clone(), source };
    let mut child = Command::new(program)
        .args(arguments)
        .env_remove("ANNALS_TOKEN")
        .env_remove("ANNALS_TOKEN_FILE")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(start)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input may be content all the same: its exit code says.
        let _ = stdin.write_all(&body).await;
    }
    let status = child.wait().await.map_err(start)?;
    match status.success() {
        true => Ok(()),
        false => Err(DeliveryError::Ended { program: program.clone(), how: status.to_string() }),
    }
}
