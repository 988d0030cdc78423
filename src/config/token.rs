//! Warns of secret files that other users can read.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::api::TokenSource;

/// A warning if every user of this machine can read the token's file.
pub fn open_to_others(source: &TokenSource) -> Option<String> {
    let TokenSource::File(path) = source else { return None };
    readable_by_others(path, "the token")
}

/// A warning if every user of this machine can read the file of `what`.
pub fn readable_by_others(path: &Path, what: &str) -> Option<String> {
    let meta = std::fs::metadata(path).ok()?;
    // A directory or a device is no file of a secret: its mode must stay as it is.
    let open = meta.is_file() && meta.permissions().mode() & 0o004 != 0;
    open.then(|| format!("{}: every user of this machine can read {what}: run chmod 600 on it", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_readable_token_file_causes_a_warning() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (mode, warned) in [(0o600, false), (0o640, false), (0o644, true)] {
            file.as_file().set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
            let source = TokenSource::File(file.path().to_owned());
            assert_eq!(open_to_others(&source).is_some(), warned, "{mode:o}");
        }
        for path in ["/", "/dev/null"] {
            assert_eq!(open_to_others(&TokenSource::File(path.into())), None, "{path}");
        }
    }
}
