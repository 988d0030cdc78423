//! Changes the archive's files directly, without the program.

use std::fs;
use std::path::{Path, PathBuf};

use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sha2::{Digest as _, Sha256};

/// Every file below a directory, sorted by path.
pub fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// The first team's first file whose path contains `part`.
pub fn file_with(root: &Path, part: &str) -> PathBuf {
    let holds = |path: &PathBuf| path.to_str().unwrap().contains(part) && path.to_str().unwrap().contains("acme");
    files(root).into_iter().find(holds).unwrap_or_else(|| panic!("no file with {part}"))
}

/// The first sealed file: of a month, or of a day.
pub fn sealed(root: &Path) -> PathBuf {
    let is_by_days = !files(root).iter().any(|path| path.to_str().unwrap().contains("-month-"));
    file_with(root, if is_by_days { "-day-" } else { "-month-" })
}

pub fn put(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::io::Write::write_all(&mut fs::File::create(path).unwrap(), bytes).unwrap();
}

pub fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    put(path, &bytes);
}

pub fn rename(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(from, to).unwrap();
}

/// A path with one part replaced.
pub fn elsewhere(path: &Path, from: &str, to: &str) -> PathBuf {
    let (path, changed) = (path.to_str().unwrap(), path.to_str().unwrap().replace(from, to));
    assert_ne!(path, changed);
    changed.into()
}

pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, target) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).unwrap();
        match path.is_dir() {
            true => copy_tree(&path, &target),
            false => {
                let _ = fs::copy(&path, &target).unwrap();
            }
        }
    }
}

/// Changes the lines of the first team's second newest ledger file, which holds most lines.
pub fn lines(root: &Path, change_lines: impl FnOnce(&mut Vec<String>)) {
    let path = root.join("ledger/team=acme/2026-11-02.jsonl");
    change(&path, |bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change_lines(&mut lines);
        *bytes = lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes();
    });
}

/// The lines with matching numbers, links and hashes. An attacker who knows the format but has no key can make these.
pub fn rechain(lines: &mut [String]) {
    let mut prev = "0".repeat(64);
    for (number, line) in lines.iter_mut().enumerate() {
        let (head, rest) = line.split_once("\"seq\":").unwrap();
        let rest = &rest[rest.find(",\"prev\":\"").unwrap()..];
        let rest = &rest[",\"prev\":\"".len() + 64..rest.rfind(",\"sha256\"").unwrap()];
        let body = format!("{head}\"seq\":{},\"prev\":\"{prev}{rest}", number + 1);
        prev = hex::encode(Sha256::new().chain_update(b"annals ledger line v1\n").chain_update(&body).finalize());
        *line = format!("{body},\"sha256\":\"{prev}\"}}");
    }
}

/// Writes a data file again: with other bytes, and without the last `fewer` rows.
pub fn encode_anew(path: &Path, fewer: usize) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
    let (schema, batches) = (reader.schema().clone(), reader.build().unwrap());
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).unwrap();
    for batch in batches.map(Result::unwrap) {
        writer.write(&batch.slice(0, batch.num_rows() - fewer)).unwrap();
    }
    put(path, &writer.into_inner().unwrap());
}

/// Changes the newest line of the first team: it declares an erasure of fewer rows than it changed. The line can still be unsigned.
pub fn declare_less(root: &Path) {
    let all = files(&root.join("ledger/team=acme"));
    let newest = |ending: &str| all.iter().rfind(|path| path.extension().is_some_and(|e| e == ending)).unwrap();
    fs::remove_file(newest("heads")).unwrap();
    change(newest("jsonl"), |bytes| {
        let line = String::from_utf8(bytes.clone()).unwrap();
        let at = line.find("\"erased_digest\":\"").unwrap() + "\"erased_digest\":\"".len();
        let body = format!("{}{}{}", &line[..at], "0".repeat(64), &line[at + 64..line.rfind(",\"sha256\"").unwrap()]);
        let hash = Sha256::new().chain_update(b"annals ledger line v1\n").chain_update(&body).finalize();
        *bytes = format!("{body},\"sha256\":\"{}\"}}\n", hex::encode(hash)).into_bytes();
    });
}
