//! Messages to systemd.

use std::sync::Arc;

use crate::clock::Clock;
use crate::daemon::Live;

/// Tells systemd's watchdog, if one watches, that the loop still runs. Stays silent when the loop is stuck.
pub async fn notify_watchdog(live: Arc<Live>, clock: Arc<dyn Clock>) {
    let Some(within) = sd_notify::watchdog_enabled() else { return };
    let mut seen = None;
    loop {
        let beat = live.last_beat();
        if beat != seen {
            seen = beat;
            notify(&[sd_notify::NotifyState::Watchdog]);
        }
        clock.sleep(within / 3).await;
    }
}

/// Tells systemd, if it started this process, that the state has changed.
pub fn notify(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "cannot notify the service manager");
    }
}
