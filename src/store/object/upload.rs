//! Uploads a file. It goes to a local scratch file first, so that its size is known and it can be sent again.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use futures::future::{FutureExt, ready};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{Error, MultipartUpload, ObjectStore as Client, ObjectStoreExt};

use crate::model::path::MANIFEST;

use super::super::{FileWriter, Store, StoreError, Verb};
use super::ObjectStore;
use super::names::LedgerFile;

/// Larger files are uploaded in parts of this size.
const PART_BYTES: u64 = 16 << 20;
const PARTS_AT_ONCE: usize = 4;

pub(super) struct Upload {
    store: ObjectStore,
    scratch: BufWriter<File>,
}

impl Upload {
    pub(super) fn begin(store: ObjectStore) -> Result<Self, StoreError> {
        let scratch = tempfile::tempfile().map_err(|e| StoreError::io(Verb::Create, "a scratch file", e))?;
        Ok(Self { store, scratch: BufWriter::new(scratch) })
    }
}

impl Write for Upload {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.scratch.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.scratch.flush()
    }
}

impl FileWriter for Upload {
    fn finish(self: Box<Self>, path: &str) -> Result<(), StoreError> {
        let fail = |e: io::Error| StoreError::io(Verb::Write, path, e);
        let Self { store, scratch } = *self;
        let file = scratch.into_inner().map_err(|e| fail(e.into_error()))?;
        let size = file.metadata().map_err(fail)?.len();
        let bucket = store.bucket();
        if size > PART_BYTES {
            let sent = bucket.run(in_parts(bucket.client.clone(), bucket.key(path), Arc::new(file), size));
            sent.map_err(|e| bucket.fail(Verb::Write, path, &e))?;
        } else {
            let content = read_at(&file, 0, size).map_err(fail)?;
            // No lock keeps two processes apart that create an archive at the same time: the first manifest remains.
            let is_once = path == MANIFEST;
            (if is_once { store.create_new(path, &content) } else { bucket.put(path, content.into()) })?;
        }
        if let Some(day) = LedgerFile::parse(path) {
            store.journal(day).lock().forget();
        }
        Ok(())
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
    let starts = (0..size).step_by(usize::try_from(PART_BYTES).expect("BUG: a part fits the memory"));
    let parts = starts.map(|at| match read_at(file, at, PART_BYTES.min(size - at)) {
        Ok(content) => upload.put_part(content.into()),
        Err(e) => ready(Err(Error::Generic { store: "scratch file", source: e.into() })).boxed(),
    });
    stream::iter(parts).buffer_unordered(PARTS_AT_ONCE).try_collect::<()>().await?;
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
