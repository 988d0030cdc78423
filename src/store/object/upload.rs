//! Uploads a file. It goes to a local scratch file first, so that its size is known and it can be sent again.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use futures::stream::FuturesUnordered;
use object_store::path::Path;
use object_store::{Error, MultipartUpload, ObjectStore as Client, ObjectStoreExt};

use super::super::{StoreError, Verb};
use super::bucket::{Bucket, Created};

/// Larger files are uploaded in parts of this size.
const PART_BYTES: u64 = 16 << 20;
const PARTS_AT_ONCE: usize = 4;

pub(super) struct Upload {
    scratch: BufWriter<File>,
}

impl Upload {
    pub(super) fn begin() -> io::Result<Self> {
        Ok(Self { scratch: BufWriter::new(tempfile::tempfile()?) })
    }

    pub(super) fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.scratch.write(buffer)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.scratch.flush()
    }

    /// Uploads the file under its name and replaces an existing object; with `is_once`, only if no other object has the name.
    pub(super) fn finish(self, bucket: &Bucket, path: &str, is_once: bool) -> Result<(), StoreError> {
        let fail = |e: io::Error| StoreError::io(Verb::Write, path, e);
        let file = self.scratch.into_inner().map_err(|e| fail(e.into_error()))?;
        let size = file.metadata().map_err(fail)?.len();
        if size <= PART_BYTES {
            let content = read_at(&file, 0, size).map_err(fail)?.into();
            return if is_once { create(bucket, path, &content) } else { bucket.put(path, content) };
        }
        let (client, key) = (bucket.client(), bucket.key(path));
        bucket.run(in_parts(client, key, Arc::new(file), size)).map_err(|e| bucket.fail(Verb::Write, path, &e))
    }
}

/// Creates a small object, if its name is free.
pub(super) fn create(bucket: &Bucket, path: &str, content: &Bytes) -> Result<(), StoreError> {
    match bucket.create(path, content)? {
        Created::Ours => Ok(()),
        Created::Taken => {
            let found = bucket.get(path)?.map_or(0, |found| found.len() as u64);
            Err(StoreError::Conflict { path: path.to_owned(), expected: 0, found })
        }
    }
}

fn read_at(file: &File, at: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut content = vec![0; usize::try_from(bytes).expect("BUG: a part fits the memory")];
    file.read_exact_at(&mut content, at)?;
    Ok(content)
}

async fn in_parts(client: Arc<dyn Client>, key: Path, file: Arc<File>, size: u64) -> Result<(), Error> {
    let mut upload = client.put_multipart(&key).await?;
    let Err(error) = send(upload.as_mut(), &file, size).await else { return Ok(()) };
    // The upload can be complete although the answer was lost.
    if is_there(client, &key, &file, size).await.unwrap_or(false) {
        return Ok(());
    }
    if let Err(left) = upload.abort().await {
        tracing::info!(%key, "a failed upload left parts in the bucket: {left}");
    }
    Err(error)
}

async fn send(upload: &mut dyn MultipartUpload, file: &File, size: u64) -> Result<(), Error> {
    let mut under_way = FuturesUnordered::new();
    let mut at = 0;
    while at < size {
        if under_way.len() == PARTS_AT_ONCE {
            under_way.try_next().await?;
        }
        let content = read_at(file, at, PART_BYTES.min(size - at));
        let content = content.map_err(|e| Error::Generic { store: "scratch file", source: e.into() })?;
        at += content.len() as u64;
        under_way.push(upload.put_part(content.into()));
    }
    while under_way.try_next().await?.is_some() {}
    upload.complete().await.map(drop)
}

/// Whether the object has the file's content.
async fn is_there(client: Arc<dyn Client>, key: &Path, file: &File, size: u64) -> Result<bool, Error> {
    let object = client.get(key).await?;
    if object.meta.size != size {
        return Ok(false);
    }
    let (mut chunks, mut at) = (object.into_stream(), 0);
    while let Some(chunk) = chunks.try_next().await? {
        if read_at(file, at, chunk.len() as u64).ok().as_deref() != Some(chunk.as_ref()) {
            return Ok(false);
        }
        at += chunk.len() as u64;
    }
    Ok(at == size)
}
