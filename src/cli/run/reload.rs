//! SIGHUP: the daemon reads its configuration again, and applies the whole of it or nothing.

use crate::archive::{Archive, Signer};
use crate::config::Config;
use crate::daemon::DaemonCommand;
use crate::error::Error;
use crate::files;
use crate::web::Guard;

use super::super::{query, reading};
use super::publish::Schedule;
use super::service_manager::notify;
use super::{Running, page_settings, service};

impl Running {
    pub(super) async fn reload(&mut self) {
        let now = sd_notify::NotifyState::monotonic_usec_now();
        notify(&now.map(|now| vec![sd_notify::NotifyState::Reloading, now]).unwrap_or_default());
        if let Err(error) = self.try_reload().await {
            let error = error.render(false);
            tracing::error!(error, "the new configuration is invalid: the daemon keeps the old one");
        }
        notify(&[sd_notify::NotifyState::Ready]);
    }

    /// Applies the whole new configuration, or nothing of it: everything that can fail comes first.
    async fn try_reload(&mut self) -> Result<(), Error> {
        let config = self.global.read()?;
        let guard = Guard::new(&config.http).map_err(|error| Error::Usage(error.to_string()))?;
        check_unchanged(&self.config, &config)?;
        self.args.catalog.load(&config)?;
        let (source, token) = service(&config, &self.clock, &self.counts, &self.pause)?;
        token.follow(&self.token.lock());
        let watch = self.watch(&config)?;
        let publishing = Schedule::of(self, &config)?;
        let signer = reading::signer(&config)?;
        let before = self.archive.signer();
        check_handover(before.as_deref(), signer.as_deref())?;
        match &self.port {
            Some(port) if config.http.listen == self.config.http.listen => {
                let source = query::snapshot_source(&config, Archive::clone(&self.archive))?;
                let (settings, limits) = page_settings(&config, &self.args);
                port.reconfigure(guard, settings, source, limits);
            }
            _ => self.port = Some(self.open_port(&config, guard).await?),
        }
        self.watch = Some(watch.start(self.watch.take()));
        if let Some(detecting) = self.detecting.replace(tokio::spawn(self.detector(&config).run())) {
            detecting.abort();
        }
        if let Some(publishing) = self.publishing.replace(tokio::spawn(publishing.run())) {
            publishing.abort();
        }
        files::make_private(config.group_readable);
        self.archive.set_signer(signer);
        *self.token.lock() = token;
        let reload = (self.edges(&config, source), config.schedule.clone());
        self.config = config;
        let _ = self.commands.unbounded_send(DaemonCommand::Reload(Box::new(reload)));
        Ok(())
    }
}

/// Refuses a change of the settings that a running daemon cannot change. A file that is gone would change every setting to its default.
fn check_unchanged(old: &Config, new: &Config) -> Result<(), Error> {
    if let (Some(file), None) = (&old.file, &new.file) {
        let message = format!("{}: the file is gone: put it back, or restart the daemon without it", file.display());
        return Err(Error::Usage(message));
    }
    let (before, after) = (query::archive_place(old)?, query::archive_place(new)?);
    let changed = if before.data != after.data {
        "archive: a running daemon cannot change its archive"
    } else if before.ledger != after.ledger {
        "store.ledger: a running daemon cannot change the place of its ledger"
    } else if old.shard != new.shard {
        "fleet.shard: a running daemon cannot change its shard"
    } else if old.grace_at(&before.data) != new.grace_at(&after.data) {
        "store.grace: a running daemon cannot change its grace"
    } else if old.signing.public_key != new.signing.public_key {
        "signing.public_key: a running daemon cannot change the key that its checks expect"
    } else {
        return Ok(());
    };
    Err(Error::Usage(format!("{changed}: restart it")))
}

/// A new key may sign only after a handover from the old key. Lines without a signature need a decision: a restart.
fn check_handover(before: Option<&Signer>, after: Option<&Signer>) -> Result<(), Error> {
    let Some(before) = before else { return Ok(()) };
    let Some(after) = after else {
        let message = "signing.key_file: a running daemon cannot stop signing: name the key, or restart the daemon";
        return Err(Error::Usage(message.to_owned()));
    };
    let (old, new) = (before.key.public(), after.key.public());
    if old == new || after.previous.as_ref().is_some_and(|previous| previous.public() == old) {
        return Ok(());
    }
    let (old, new) = (old.name(), new.name());
    let message =
        format!("signing.previous_key_file: name the file of key {old}, which must sign the handover to key {new}");
    Err(Error::Usage(message))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_refused_change_is_named_by_its_key() {
        let config = |text: &str| Config::of_text(Path::new("/srv/annals.toml"), text).unwrap();
        let old = config("");
        for (text, key) in [
            ("archive = \"other\"", "archive: "),
            ("[store]\nledger = \"ledger\"", "store.ledger: "),
            ("[store]\ngrace = \"3h\"", "store.grace: "),
            ("[fleet]\nshard = \"1/2\"", "fleet.shard: "),
        ] {
            let error = check_unchanged(&old, &config(text)).unwrap_err().to_string();
            assert!(error.starts_with(key) && error.ends_with(": restart it"), "{text}: {error}");
        }
        check_unchanged(&old, &config("[api]\nconcurrency = 9")).unwrap();
    }
}
