//! Log messages on standard error: for people on a terminal, one JSON object a line elsewhere.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::Arguments;

/// Chooses what is logged: `ANNALS_LOG` (`warn`, `annals=debug`, ...), else warnings and worse, with `--verbose` all
/// of ours.
pub fn start_logging(arguments: &Arguments) {
    let fallback = if arguments.global.verbose { "warn,annals=debug" } else { "warn" };
    let filter = EnvFilter::try_from_env("ANNALS_LOG").unwrap_or_else(|_| EnvFilter::new(fallback));
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(stderr);
    if stderr().is_terminal() {
        registry.with(layer.without_time().with_target(false)).init();
    } else {
        registry.with(layer.json().flatten_event(true)).init();
    }
}
