//! Alert targets: a webhook that receives JSON, or a program that reads it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures::FutureExt;
use reqwest::Client;
use rustix::fs::{Access, access};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use thiserror::Error;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::clock::Clock;
use crate::config::Alerts;
use crate::http_client;

use super::occurrence::Occurrence;

/// The time limit of one delivery.
const DEADLINE: Duration = Duration::from_secs(15);

/// Why an alert did not arrive. Never contains the address.
#[derive(Debug, Error)]
pub enum DeliveryError {
    #[error("the HTTP client for alerts.webhook cannot start: {0}")]
    Client(String),
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

impl DeliveryError {
    /// Whether the target refuses this one alert. Any other error would meet the next alert, too.
    pub fn is_of_one_alert(&self) -> bool {
        match self {
            Self::Ended { .. } => true,
            Self::Status(status) => (400..500).contains(status) && *status != 429,
            _ => false,
        }
    }
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
        let client = http_client::start(Client::builder(), address.expose_secret()).map_err(DeliveryError::Client)?;
        targets.push(Target::Webhook { client, address: address.clone() });
    }
    if !config.command.is_empty() {
        targets.push(Target::Command(config.command.clone()));
    }
    Ok(targets)
}

/// Checks that the system can start the configured program, and starts nothing.
///
/// # Errors
/// A sentence about the program.
pub fn check_program(config: &Alerts) -> Result<(), String> {
    let Some(program) = config.command.first() else { return Ok(()) };
    let bad = |why: &str| Err(format!("alerts.command: {program}: {why}"));
    let is_executable = |path: &Path| access(path, Access::EXEC_OK).is_ok();
    if !program.contains('/') {
        let directories = std::env::var_os("PATH").unwrap_or_default();
        let is_in = |directory: PathBuf| is_executable(&directory.join(program)) && directory.join(program).is_file();
        return match std::env::split_paths(&directories).any(is_in) {
            true => Ok(()),
            false => bad("no directory of PATH holds this program: install it, or give its whole path"),
        };
    }
    match std::fs::metadata(program) {
        Err(error) => bad(&format!("cannot find this program: {error}")),
        Ok(found) if !found.is_file() => bad("this is no file: name a program"),
        Ok(_) if !is_executable(Path::new(program)) => bad("this file is not executable: run chmod +x on it"),
        Ok(_) => Ok(()),
    }
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

/// Whether a variable of the environment holds a secret of this process: the service's token, or a key of a bucket.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_of_bucket = ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|prefix| name.starts_with(prefix));
    ["ANNALS_TOKEN", "ANNALS_TOKEN_FILE"].contains(&name.as_str())
        || (is_of_bucket && ["SECRET", "KEY", "TOKEN"].iter().any(|word| name.contains(word)))
}

/// The program receives only the alert: its environment holds no secret of this process.
async fn execute(words: &[String], body: Vec<u8>) -> Result<(), DeliveryError> {
    let [program, arguments @ ..] = words else { return Ok(()) };
    let start = |source| DeliveryError::Start { program: program.clone(), source };
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_secret(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    let mut child = command
        .args(arguments)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn no_secret_of_the_daemon_is_in_the_program_s_environment() {
        for (name, is_hidden) in [
            ("ANNALS_TOKEN", true),
            ("ANNALS_TOKEN_FILE", true),
            ("AWS_ACCESS_KEY_ID", true),
            ("AWS_SECRET_ACCESS_KEY", true),
            ("AWS_secret_access_key", true),
            ("AWS_SESSION_TOKEN", true),
            ("AWS_SSE_CUSTOMER_KEY_BASE64", true),
            ("AZURE_STORAGE_ACCOUNT_KEY", true),
            ("AZURE_STORAGE_SAS_TOKEN", true),
            ("AZURE_CLIENT_SECRET", true),
            ("GOOGLE_SERVICE_ACCOUNT_KEY", true),
            ("GOOGLE_BEARER_TOKEN", true),
            ("AWS_REGION", false),
            ("AZURE_STORAGE_ACCOUNT_NAME", false),
            ("ANNALS_CONFIG", false),
            ("PATH", false),
            ("PAGER_KEY", false),
        ] {
            assert_eq!(is_secret(name), is_hidden, "{name}");
        }
    }

    #[test]
    fn a_program_that_cannot_start_is_named_with_the_reason() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        std::fs::File::create(at("file")).unwrap();
        for (program, said) in [
            (at("absent"), "cannot find this program: "),
            (at(""), "this is no file: name a program"),
            (at("file"), "this file is not executable: run chmod +x on it"),
            ("no-such-program-of-annals".to_owned(), "no directory of PATH holds this program"),
        ] {
            let config = alerts(&format!("command = ['{program}']"));
            let found = check_program(&config).unwrap_err();
            assert!(found.starts_with(&format!("alerts.command: {program}: {said}")), "{found}");
        }
        for fit in ["", "command = ['sh', '-c', 'cat']", "command = ['/bin/sh']"] {
            assert_eq!(check_program(&alerts(fit)), Ok(()), "{fit}");
        }
    }

    fn alerts(text: &str) -> Alerts {
        Config::of_text(Path::new("annals.toml"), &format!("[alerts]\n{text}\n")).unwrap().alerts
    }

    #[test]
    fn only_an_answer_about_one_alert_lets_the_next_one_follow() {
        let ended = DeliveryError::Ended { program: "page-me".to_owned(), how: "exit status: 1".to_owned() };
        for (error, is_of_one) in [
            (ended, true),
            (DeliveryError::Status(400), true),
            (DeliveryError::Status(413), true),
            (DeliveryError::Status(429), false),
            (DeliveryError::Status(500), false),
            (DeliveryError::Status(302), false),
            (DeliveryError::Unreachable("no connection"), false),
            (DeliveryError::Late, false),
        ] {
            assert_eq!(error.is_of_one_alert(), is_of_one, "{error}");
        }
    }
}
