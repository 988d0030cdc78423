//! The limits of the SQL engine.

use std::path::{Path, PathBuf};

use super::{ConfigError, file};

/// The configured limits; `None` if not set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SqlLimits {
    pub memory_mib: Option<u32>,
    pub threads: Option<u32>,
    /// The directory under which queries spill.
    pub temp_directory: Option<PathBuf>,
}

/// With less memory, the engine cannot answer even simple queries.
const MEMORY_MIB_MIN: u32 = 64;
/// A larger value is probably a mistake: 16 TiB.
const MEMORY_MIB_MAX: u32 = 1 << 24;
const THREADS_MAX: u32 = 256;

impl SqlLimits {
    /// `directory` is the configuration file's; paths in the file are relative to it.
    pub(super) fn of_file(
        section: &file::Sql,
        directory: &Path,
        place: &impl Fn(&str) -> String,
    ) -> Result<Self, ConfigError> {
        let invalid = |key: &str| {
            let place = place(key);
            move |message: String| ConfigError::invalid(place, message)
        };
        Ok(Self {
            memory_mib: section.memory.as_deref().map(parse_memory).transpose().map_err(invalid("sql.memory"))?,
            threads: section.threads.map(check_threads).transpose().map_err(invalid("sql.threads"))?,
            temp_directory: section.temp_directory.as_ref().map(|path| directory.join(path)),
        })
    }
}

/// Parses an amount of memory in whole MiB or GiB to MiB (MB and GB mean the same).
///
/// # Errors
/// A sentence that names the text if it is invalid or too small.
pub fn parse_memory(text: &str) -> Result<u32, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let unit: u32 = match text[digits..].trim_start().to_ascii_lowercase().as_str() {
        "mib" | "mb" | "m" => 1,
        "gib" | "gb" | "g" => 1_024,
        _ => return Err(format!("{text:?} is not an amount of memory such as 512MiB or 2GiB")),
    };
    let amount = text[..digits].parse::<u32>().ok().and_then(|number| number.checked_mul(unit));
    amount
        .filter(|mib| (MEMORY_MIB_MIN..=MEMORY_MIB_MAX).contains(mib))
        .ok_or_else(|| format!("{text:?} is not in the range {MEMORY_MIB_MIN}MiB to {}GiB", MEMORY_MIB_MAX / 1_024))
}

/// # Errors
/// A sentence that names the number if it is invalid.
pub fn check_threads(threads: u32) -> Result<u32, String> {
    if (1..=THREADS_MAX).contains(&threads) {
        Ok(threads)
    } else {
        Err(format!("{threads} is not in the range 1 to {THREADS_MAX}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_whole_number_with_a_unit() {
        for (text, mib) in [("64MiB", 64), ("1GiB", 1_024), ("2 gb", 2_048), ("512m", 512), ("16384GiB", 1 << 24)] {
            assert_eq!(parse_memory(text), Ok(mib), "{text}");
        }
        for text in
            ["", "1", "GiB", "63MiB", "16385GiB", "-1GiB", "1.5GiB", "80%", "1TiBs", "99999999999GiB", "1\u{b5}"]
        {
            assert!(parse_memory(text).is_err(), "{text}");
        }
        assert!(check_threads(0).is_err() && check_threads(257).is_err() && check_threads(256) == Ok(256));
    }
}
