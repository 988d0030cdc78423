//! Local files: opens only plain files, and creates files for their owner alone.

use std::fs::{File, FileType, Metadata, OpenOptions, symlink_metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use thiserror::Error;

mod work_folder;

pub use work_folder::{WorkFolder, remove_stale_folders, remove_work_folders};

/// Rights that new files and directories never grant: none for the group and others.
const OWNER_ALONE: Mode = Mode::RWXG.union(Mode::RWXO);
/// The group can read.
const GROUP_READS: Mode = Mode::WGRP.union(Mode::RWXO);

/// Whether a symbolic link to a plain file is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// For files of an administrator: Kubernetes and configuration tools place them as links.
    Follow,
    Refuse,
}

/// `None` for a file or directory that is gone: another process can have removed it.
pub fn if_exists<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// The kind of something that is no plain file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0}, not a plain file")]
pub struct Irregular(&'static str);

impl Irregular {
    /// `None` for a plain file.
    pub fn of(kind: FileType) -> Option<Self> {
        let what = match kind {
            _ if kind.is_file() => return None,
            _ if kind.is_symlink() => "a symbolic link",
            _ if kind.is_dir() => "a directory",
            _ if kind.is_fifo() => "a pipe",
            _ if kind.is_socket() => "a socket",
            _ => "a device",
        };
        Some(Self(what))
    }

    /// The kind that `error` carries, if any.
    pub fn in_error(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<Irregular> for io::Error {
    fn from(irregular: Irregular) -> Self {
        io::Error::new(io::ErrorKind::InvalidInput, irregular)
    }
}

/// Opens a plain file for reading. Refuses a pipe, a socket or a device without blocking.
///
/// # Errors
/// [`Irregular`] within an [`io::Error`], or errors of the system.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path, links)
}

/// Like [`open`], with `options`.
///
/// # Errors
/// As [`open`].
pub fn open_with(options: &mut OpenOptions, path: &Path, links: Links) -> io::Result<File> {
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    flags.set(OFlags::NOFOLLOW, links == Links::Refuse);
    match options.custom_flags(flags.bits().cast_signed()).open(path) {
        Ok(file) => match Irregular::of(file.metadata()?.file_type()) {
            None => Ok(file),
            Some(irregular) => Err(irregular.into()),
        },
        // The system's message for a link or a socket does not name it.
        Err(error) => {
            Err(metadata(path, links).ok().and_then(|meta| Irregular::of(meta.file_type())).map_or(error, Into::into))
        }
    }
}

fn metadata(path: &Path, links: Links) -> io::Result<Metadata> {
    match links {
        Links::Follow => std::fs::metadata(path),
        Links::Refuse => symlink_metadata(path),
    }
}

/// The content of a plain file of at most `bytes_max` bytes.
///
/// # Errors
/// As [`open`], and when the file is larger.
pub fn read(path: &Path, links: Links, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, links)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {bytes_max} bytes"))),
        false => Ok(bytes),
    }
}

/// Like [`read`], as text, without the byte order mark with which editors on Windows begin a file.
///
/// # Errors
/// As [`read`], and when the content is not UTF-8.
pub fn read_text(path: &Path, links: Links, bytes_max: u64) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "the content is not UTF-8 text");
    let bytes = read(path, links, bytes_max)?;
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    std::str::from_utf8(text).map(str::to_owned).map_err(not_text)
}

/// Makes all later files and directories of this process and its libraries private to the owner (0600 and 0700). With
/// `group_readable`, the group can read them, too (0640 and 0750). Files that must stay secret from the group get their own
/// mode.
pub fn make_private(group_readable: bool) {
    rustix::process::umask(umask(group_readable));
}

/// The mode bits that this process never grants.
pub fn umask(group_readable: bool) -> Mode {
    if group_readable { GROUP_READS } else { OWNER_ALONE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn refusal(path: &Path, links: Links) -> String {
        open(path, links).unwrap_err().to_string()
    }

    #[test]
    fn special_files_are_refused_without_blocking() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        File::create(at("file")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (link, target) in [("to-file", "file"), ("to-pipe", "pipe"), ("to-nothing", "nothing")] {
            std::os::unix::fs::symlink(at(target), at(link)).unwrap();
        }
        assert!(open(&at("file"), Links::Refuse).is_ok() && open(&at("to-file"), Links::Follow).is_ok());
        for (name, links, words) in [
            ("pipe", Links::Refuse, "a pipe, not a plain file"),
            ("socket", Links::Refuse, "a socket, not a plain file"),
            ("to-file", Links::Refuse, "a symbolic link, not a plain file"),
            ("to-nothing", Links::Refuse, "a symbolic link, not a plain file"),
            ("to-pipe", Links::Follow, "a pipe, not a plain file"),
            ("", Links::Follow, "a directory, not a plain file"),
        ] {
            assert_eq!(refusal(&at(name), links), words, "{name}");
        }
        assert_eq!(refusal(Path::new("/dev/zero"), Links::Follow), "a device, not a plain file");
        assert_eq!(open(&at("to-nothing"), Links::Follow).unwrap_err().kind(), io::ErrorKind::NotFound);
        // Opening a pipe for writing does not block, either.
        let error = open_with(OpenOptions::new().write(true), &at("pipe"), Links::Refuse).unwrap_err();
        assert!(Irregular::in_error(&error).is_some(), "{error}");
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"four").unwrap();
        assert_eq!(read(file.path(), Links::Refuse, 4).unwrap(), b"four");
        assert_eq!(read(file.path(), Links::Refuse, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        file.write_all(b"\xff").unwrap();
        assert_eq!(read_text(file.path(), Links::Refuse, 9).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_text_loses_its_byte_order_mark() {
        for (content, text) in [("\u{feff}four", "four"), ("four\u{feff}", "four\u{feff}"), ("\u{feff}", ""), ("", "")]
        {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(content.as_bytes()).unwrap();
            assert_eq!(read_text(file.path(), Links::Refuse, 9).unwrap(), text, "{content:?}");
        }
    }
}
