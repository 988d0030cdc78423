//! The files of a new pack: written under one directory, with their sizes and SHA-256.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::model::Digest;

/// Size and digest of a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub bytes: u64,
    pub sha256: Digest,
}

/// A directory that is being filled.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// By path relative to the root, with `/`.
    files: BTreeMap<String, Written>,
}

impl Tree {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), files: BTreeMap::new() }
    }

    pub fn files(&self) -> &BTreeMap<String, Written> {
        &self.files
    }

    /// Creates a file; it becomes part of the tree with [`Tree::keep`].
    pub fn create(&self, path: &str) -> io::Result<TreeFile> {
        let place = self.root.join(path);
        if let Some(directory) = place.parent() {
            fs::create_dir_all(directory)?;
        }
        let out = BufWriter::with_capacity(1 << 18, File::create_new(place)?);
        Ok(TreeFile { path: path.to_owned(), out, hasher: Sha256::new(), bytes: 0 })
    }

    /// Finishes a file.
    pub fn keep(&mut self, mut file: TreeFile) -> io::Result<()> {
        file.out.flush()?;
        let written = Written { bytes: file.bytes, sha256: Digest(file.hasher.finalize().into()) };
        self.files.insert(file.path, written);
        Ok(())
    }

    /// Writes a whole file.
    pub fn put(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        let mut file = self.create(path)?;
        file.write_all(content)?;
        self.keep(file)
    }

    /// A file that was kept.
    pub fn read(&self, path: &str) -> io::Result<String> {
        fs::read_to_string(self.root.join(path))
    }

    /// One line `<SHA-256>  <path>` for each file, sorted by path: the format of `sha256sum -c`.
    pub fn sums(&self) -> String {
        self.files.iter().map(|(path, file)| sums_line(&file.sha256, path)).collect()
    }

    /// Makes every file and directory durable.
    pub fn sync(&self) -> io::Result<()> {
        for path in self.files.keys() {
            File::open(self.root.join(path))?.sync_all()?;
        }
        for directory in ["reports", "sql", ""] {
            match File::open(self.root.join(directory)) {
                Ok(directory) => directory.sync_all()?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// One line of the list of hashes.
pub fn sums_line(digest: &Digest, path: &str) -> String {
    format!("{digest}  {path}\n")
}

/// A file of a tree while it is being written.
pub struct TreeFile {
    path: String,
    out: BufWriter<File>,
    hasher: Sha256,
    bytes: u64,
}

impl Write for TreeFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let taken = self.out.write(buffer)?;
        self.hasher.update(&buffer[..taken]);
        self.bytes += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
