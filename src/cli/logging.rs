//! Log messages on standard error: text for a terminal, else one JSON object a line.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::Arguments;

/// Chooses the log level. `ANNALS_LOG` (`warn`, `annals=debug`, ...) has priority. Without it, Annals logs warnings and
/// errors, the daemon also information, and `--verbose` adds every message of Annals.
pub fn start_logging(arguments: &Arguments) {
    let fallback = match (arguments.global.verbose, arguments.is_daemon()) {
        (true, _) => "warn,annals=debug",
        (false, true) => "warn,annals=info",
        (false, false) => "warn",
    };
    // The error that ends the request repeats this crate's messages, and adds advice.
    let fallback = format!("{fallback},rustls_platform_verifier=off");
    let filter = EnvFilter::try_from_env("ANNALS_LOG").unwrap_or_else(|_| EnvFilter::new(fallback));
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(stderr);
    if stderr().is_terminal() && arguments.is_daemon() {
        registry.with(layer.with_target(false)).init();
    } else if stderr().is_terminal() {
        registry.with(layer.without_time().with_target(false)).init();
    } else {
        registry.with(layer.json().flatten_event(true)).init();
    }
}
