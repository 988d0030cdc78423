//! The bytes of an event in sealed files, with its raw text, on the sandbox's data. Runs a real backfill, then reads
//! the sizes of the month files from the ledger.
//!
//! `--events` and `--days` change the sizes.

#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use annals::archive::FileEntry;
use annals::model::{Dataset, FileRole};
use parquet::file::reader::{FileReader, SerializedFileReader};
use support::{Failure, World, number, print_ratio};

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> Result<(), Failure> {
    let world = World::start(number("--events", 300_000)?, number("--days", 90)?).await?;
    let done = world.backfill().await?;
    let reader = done.archive.read(world.team())?;
    let files: Vec<&FileEntry> = reader.state().files_of(Dataset::Connections).collect();
    let of = |role| files.iter().copied().filter(move |file| file.role == role).collect::<Vec<_>>();
    let months = of(FileRole::Month);
    let (rows, bytes) = sum(&months);
    let (recent_rows, recent_bytes) = sum(&of(FileRole::Window));
    let mut columns: BTreeMap<String, u64> = BTreeMap::new();
    for file in &months {
        add_columns(&done.directory.path().join(&file.path), &mut columns)?;
    }
    let text = columns.remove(" text").unwrap_or(0) as f64 / rows as f64;
    println!("{} month files of {rows} events, {text:.0} bytes of JSON each", months.len());
    for (column, bytes) in columns.iter().filter(|(_, bytes)| **bytes * 5 > rows) {
        println!("  {column:<22} {:>6.2} bytes an event", *bytes as f64 / rows as f64);
    }
    println!("  settled, not yet sealed: {:.2} bytes an event", recent_bytes as f64 / recent_rows.max(1) as f64);
    print_ratio("bytes an event in sealed files", bytes as f64 / rows as f64, 70, 45);
    world.sandbox.shutdown().await;
    Ok(())
}

fn sum(files: &[&FileEntry]) -> (u64, u64) {
    files.iter().fold((0, 0), |(rows, bytes), file| (rows + file.rows, bytes + file.bytes))
}

/// The compressed bytes of each column, and under ` text` the JSON before encoding.
fn add_columns(path: &Path, columns: &mut BTreeMap<String, u64>) -> Result<(), Failure> {
    let file = SerializedFileReader::new(File::open(path)?)?;
    for group in file.metadata().row_groups() {
        for column in group.columns() {
            let name = column.column_path().string();
            if name == "raw" {
                let lengths = 4 * u64::try_from(group.num_rows())?;
                *columns.entry(" text".to_owned()).or_default() +=
                    u64::try_from(column.uncompressed_size())?.saturating_sub(lengths);
            }
            *columns.entry(name).or_default() += u64::try_from(column.compressed_size())?;
        }
    }
    Ok(())
}
