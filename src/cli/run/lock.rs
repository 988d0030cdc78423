//! The locks that keep the daemons of one archive apart.

use crate::archive::{Archive, ArchiveError};
use crate::error::Error;
use crate::model::Shard;
use crate::store::{Guard, StoreError};

/// Keeps a second daemon of the same shard off the archive. Daemons of different shards work side by side. While the number of
/// shards changes, two daemons can claim a team: the team's own lock admits one of them.
///
/// # Errors
/// When another process holds the lock, or the lock cannot be created.
pub fn take(archive: &Archive, shard: Shard) -> Result<Box<dyn Guard>, Error> {
    archive.store().lock(&name(shard)).map_err(|error| match error {
        StoreError::Locked { .. } if shard.is_whole() => {
            Error::Refused("another `annals run` holds the lock of this archive: stop it first".to_owned())
        }
        StoreError::Locked { .. } => Error::Refused(format!(
            "another `annals run` holds the lock of shard {shard} of this archive: stop it first"
        )),
        other => Error::Archive(ArchiveError::from(other)),
    })
}

fn name(shard: Shard) -> String {
    format!("daemon{}", ending(shard))
}

/// The path of the shard's alert file, which lists the alerts that the daemon has sent. The archive does not own this
/// file, although it is in the directory of the locks.
pub fn sent_alerts(shard: Shard) -> String {
    format!("locks/alerts{}.json", ending(shard))
}

/// Empty for a fleet without shards.
fn ending(shard: Shard) -> String {
    match shard.is_whole() {
        true => String::new(),
        false => format!("-{}-of-{}", shard.number(), shard.shards()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shard_has_its_own_files() {
        let of = |shard: &str| (name(shard.parse().unwrap()), sent_alerts(shard.parse().unwrap()));
        assert_eq!(of("1/1"), ("daemon".to_owned(), "locks/alerts.json".to_owned()));
        assert_eq!(of("2/8"), ("daemon-2-of-8".to_owned(), "locks/alerts-2-of-8.json".to_owned()));
    }
}
