//! Reads the archive's files without the program, like any other engine.

use std::fs::File;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

use super::program::{Program, files_below};

fn rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

fn text(field: &Field) -> Option<String> {
    match field {
        Field::Str(text) => Some(text.clone()),
        Field::Bytes(bytes) => Some(String::from_utf8_lossy(bytes.data()).into_owned()),
        _ => None,
    }
}

/// The `raw` of every row of the live files of a dataset, as `annals files` lists them.
pub fn raw_of(program: &Program, dataset: &str) -> Vec<String> {
    let listed = program.run(&["files", dataset]).ended(0).stdout;
    let mut all = Vec::new();
    for path in listed.lines() {
        assert!(Path::new(path).is_absolute(), "{path}");
        for row in rows(Path::new(path)) {
            all.extend(row.get_column_iter().find(|(name, _)| *name == "raw").and_then(|(_, field)| text(field)));
        }
    }
    all
}

/// Every text in every Parquet file of the archive, live or not.
pub fn all_texts(program: &Program) -> Vec<String> {
    let mut all = Vec::new();
    for path in files_below(&program.archive()) {
        if path.extension().is_some_and(|extension| extension == "parquet") {
            for row in rows(&path) {
                all.extend(row.get_column_iter().filter_map(|(_, field)| text(field)));
            }
        }
    }
    all
}
