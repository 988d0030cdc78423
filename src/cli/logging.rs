//! Log messages on standard error: text for a terminal, else one JSON object a line.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::error::Error;

use super::Arguments;

/// The variable that names what is logged.
const VARIABLE: &str = "ANNALS_LOG";

/// Chooses the log level. `ANNALS_LOG` (`warn`, `annals=debug`, ...) has priority, unless it is empty. Without it, Annals logs
/// warnings and errors, the daemon also information, and `--verbose` adds every message of Annals.
///
/// # Errors
/// When `ANNALS_LOG` is invalid.
pub fn start_logging(arguments: &Arguments) -> Result<(), Error> {
    let is_daemon = arguments.is_daemon();
    let fallback = match (arguments.global.verbose, is_daemon) {
        (true, _) => "warn,annals=debug",
        (false, true) => "warn,annals=info",
        (false, false) => "warn",
    };
    // The error that ends the request repeats this crate's messages, and adds advice.
    let fallback = format!("{fallback},rustls_platform_verifier=off");
    let asked = std::env::var_os(VARIABLE).map(|text| text.to_string_lossy().into_owned());
    let filter = filter(asked.as_deref(), &fallback)?.or(floor(is_daemon));
    let registry = tracing_subscriber::registry();
    let layer = tracing_subscriber::fmt::layer().with_writer(stderr);
    if stderr().is_terminal() && is_daemon {
        registry.with(layer.with_target(false).with_filter(filter)).init();
    } else if stderr().is_terminal() {
        registry.with(layer.without_time().with_target(false).with_filter(filter)).init();
    } else {
        registry.with(layer.json().flatten_event(true).with_filter(filter)).init();
    }
    Ok(())
}

/// The filter that the user asks for, else `fallback`.
fn filter(asked: Option<&str>, fallback: &str) -> Result<EnvFilter, Error> {
    let Some(asked) = asked.map(str::trim).filter(|asked| !asked.is_empty()) else {
        return Ok(EnvFilter::new(fallback));
    };
    let wrong = |why: String| {
        Error::Usage(format!("{VARIABLE}: {asked:?} is not a filter such as warn or annals=debug: {why}"))
    };
    // The library takes a misspelled level for the name of a program's part, and then logs nothing else.
    let is_word = |part: &&str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let misspelled = asked
        .split(',')
        .map(str::trim)
        .filter(is_word)
        .find(|part| !part.is_empty() && *part != "annals" && part.parse::<LevelFilter>().is_err());
    match misspelled {
        Some(part) => Err(wrong(format!("{part:?} is no level: expected error, warn, info, debug, trace or off"))),
        None => EnvFilter::try_new(asked).map_err(|error| wrong(error.to_string())),
    }
}

/// The messages that no filter hides: the daemon's warnings and errors, because its log is a target of alerts.
fn floor(is_daemon: bool) -> Targets {
    Targets::new().with_target("annals", if is_daemon { LevelFilter::WARN } else { LevelFilter::OFF })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_empty_filter_counts_as_unset_and_a_wrong_one_is_refused() {
        for (asked, expected) in [
            (None, Some("info")),
            (Some(""), Some("info")),
            (Some("  "), Some("info")),
            (Some("warn"), Some("warn")),
            (Some("annals=debug"), Some("annals=debug")),
            (Some("error,hyper=off"), None),
            (Some("annals"), None),
        ] {
            let filter = filter(asked, "info").unwrap().to_string();
            assert!(expected.is_none_or(|expected| filter == expected), "{asked:?}: {filter}");
        }
        for asked in ["inof", "warn,inof", "annals=loud"] {
            let error = filter(Some(asked), "info").unwrap_err();
            assert!(matches!(&error, Error::Usage(text) if text.contains("ANNALS_LOG")), "{asked}: {error}");
        }
    }

    #[test]
    fn no_filter_hides_the_daemon_s_warnings() {
        for (is_daemon, expected) in [(true, "alert"), (false, "")] {
            let log = tempfile::NamedTempFile::new().unwrap();
            let filter = filter(Some("hyper=info"), "info").unwrap().or(floor(is_daemon));
            let layer =
                tracing_subscriber::fmt::layer().with_writer(Arc::new(log.reopen().unwrap())).with_filter(filter);
            tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
                tracing::warn!(target: "annals::alert", "an alert");
                tracing::info!(target: "annals::alert", "a detail");
            });
            let text = std::fs::read_to_string(log.path()).unwrap();
            assert!(text.contains(expected) && !text.contains("detail"), "{is_daemon}: {text}");
            assert_eq!(text.is_empty(), !is_daemon);
        }
    }
}
