//! A file opened for random reads: bytes in memory, or a disk file that is never loaded whole.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::model::Digest;

/// Cheap to clone; reads share no cursor.
#[derive(Debug, Clone)]
pub enum Blob {
    File { file: Arc<File>, len: u64 },
    Bytes(Bytes),
}

impl Blob {
    pub fn size(&self) -> u64 {
        match self {
            Blob::File { len, .. } => *len,
            Blob::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// A new cursor at `start`.
    pub fn reader(&self, start: u64) -> BlobReader {
        BlobReader { blob: self.clone(), at: start }
    }

    /// The whole content; for ledgers and manifests, not for data files.
    pub fn to_bytes(&self) -> io::Result<Bytes> {
        match self {
            Blob::Bytes(bytes) => Ok(bytes.clone()),
            Blob::File { len, .. } => {
                let mut content = Vec::with_capacity(usize::try_from(*len).unwrap_or(0));
                self.reader(0).read_to_end(&mut content)?;
                Ok(content.into())
            }
        }
    }

    /// The SHA-256 of the whole content, streamed.
    pub fn digest(&self) -> io::Result<Digest> {
        Digest::of_reader(&mut self.reader(0))
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        match self {
            Blob::File { file, .. } => file.read_at(buffer, at),
            Blob::Bytes(bytes) => {
                let start = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                let n = buffer.len().min(bytes.len() - start);
                buffer[..n].copy_from_slice(&bytes[start..start + n]);
                Ok(n)
            }
        }
    }
}

/// A cursor over a [`Blob`].
#[derive(Debug)]
pub struct BlobReader {
    blob: Blob,
    at: u64,
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.blob.read_at(buffer, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Length for Blob {
    fn len(&self) -> u64 {
        self.size()
    }
}

impl ChunkReader for Blob {
    type T = BufReader<BlobReader>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(self.reader(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.size());
        let Some(end) = end else {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} of a file of {} bytes", self.size())));
        };
        match self {
            Blob::Bytes(bytes) => {
                let at = |n: u64| usize::try_from(n).expect("BUG: within bytes in memory");
                Ok(bytes.slice(at(start)..at(end)))
            }
            Blob::File { file, .. } => {
                let mut buffer = vec![0; length];
                file.read_exact_at(&mut buffer, start)?;
                Ok(buffer.into())
            }
        }
    }
}
