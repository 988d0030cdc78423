//! Alert targets: a webhook that receives JSON, or a program that reads it.

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

/// The time limit of one delivery.
const DEADLINE: Duration = Duration::from_secs(15);

/// Why an alert did not arrive. Never contains the address.
#[derive(Debug, Error)]
pub enum DeliveryError {
    #[error("the HTTP client for alerts.webhook cannot start")]
    Client,
    #[error("cannot reach the webhook: {0}")]
    Unreachable(&'static str),
    #[error("the webhook answered with status {0}")]
    Status(u16),
    #[error("cannot start the program {program:?}: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("the program {program:?} ended with {how}")]
    Ended { program: String, how: String },
    #[error("the delivery took longer than {} s", DEADLINE.as_secs())]
    Late,
}

/// A target of alerts.
pub enum Target {
    /// The daemon's log, always.
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
/// When the HTTP client cannot start.
pub fn targets(config: &Alerts) -> Result<Vec<Target>, DeliveryError> {
    let mut targets = Vec::new();
    if let Some(address) = &config.webhook {
        // If a provider is installed already, this call changes nothing.
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

    /// Delivers one alert.
    ///
    /// # Errors
    /// When the target does not confirm the alert.
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

/// The alert as one JSON object. Chat programs show `text`.
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

/// The program receives only the alert: its environment holds no token.
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
        // A program can succeed without reading its input: its exit code decides.
        let _ = stdin.write_all(&body).await;
    }
    let status = child.wait().await.map_err(start)?;
    match status.success() {
        true => Ok(()),
        false => Err(DeliveryError::Ended { program: program.clone(), how: status.to_string() }),
    }
}
