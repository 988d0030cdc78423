//! `annals files`: the exact list of live files, for other engines.

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;

use crate::error::{Error, Exit};
use crate::model::Dataset;

use super::{Global, output, query};

/// List the live files of a dataset, one absolute path a line
#[derive(Debug, Args)]
pub struct FilesArgs {
    /// The name of the dataset
    #[arg(value_parser = PossibleValuesParser::new(Dataset::ALL.map(Dataset::as_str)).map(|name| dataset(&name)))]
    dataset: Dataset,
}

fn dataset(name: &str) -> Dataset {
    Dataset::named(name).expect("BUG: the argument is one of the datasets' names")
}

pub fn run(global: &Global, args: &FilesArgs) -> Result<Exit, Error> {
    let data = query::view_data(&global.load()?)?;
    let files = data.files.get(&args.dataset).map_or(&[][..], Vec::as_slice);
    let lines: String = files.iter().map(|file| format!("{}\n", file.path)).collect();
    output::print(lines.as_bytes())?;
    Ok(Exit::Done)
}
