//! A pack as one zip file: the same files always make the same bytes.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// Writes the files `paths` under `root` into `out`, below the folder `folder`.
///
/// # Errors
/// When a file cannot be read, or the zip cannot be written.
pub fn zip_tree<'a>(root: &Path, paths: impl Iterator<Item = &'a str>, folder: &str, out: &mut File) -> io::Result<()> {
    let mut zip = ZipWriter::new(BufWriter::new(out));
    for path in paths {
        // Parquet is compressed already.
        let method = if path.ends_with(".parquet") { CompressionMethod::Stored } else { CompressionMethod::Deflated };
        let mut file = File::open(root.join(path))?;
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .compression_level((method == CompressionMethod::Deflated).then_some(6))
            // A real time would make equal packs differ.
            .last_modified_time(DateTime::DEFAULT)
            .unix_permissions(0o644)
            .large_file(file.metadata()?.len() >= u64::from(u32::MAX));
        zip.start_file(format!("{folder}/{path}"), options)?;
        io::copy(&mut file, &mut zip)?;
    }
    zip.finish()?.flush()
}
