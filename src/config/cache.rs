//! The settings of the cache of files from buckets.

use std::path::{Path, PathBuf};

use super::{ConfigError, file};

/// The directory of the cache, and its maximum size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    pub directory: PathBuf,
    pub bytes: u64,
}

impl CacheSettings {
    /// `directory` is the configuration file's; paths in the file are relative to it. The default is the user's cache directory.
    /// A user without a home gets a directory beside the file, because other users can plant files in a shared directory.
    pub(super) fn of_file(
        section: &file::CacheSection,
        directory: &Path,
        place: &impl Fn(&str) -> String,
    ) -> Result<Self, ConfigError> {
        let of_user = || {
            let variable = |name| std::env::var_os(name).filter(|text| !text.is_empty()).map(PathBuf::from);
            let base = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
            base.map_or_else(|| directory.join("annals-cache"), |base| base.join("annals/files"))
        };
        let bytes = parse_bytes(&section.size).map_err(|message| ConfigError::invalid(place("cache.size"), message))?;
        Ok(Self { directory: section.directory.as_ref().map_or_else(of_user, |path| directory.join(path)), bytes })
    }
}

/// Parses an amount such as `10 GB` or `512 MiB` to bytes.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let unit: u64 = match text[digits..].trim_start().to_ascii_lowercase().as_str() {
        "mb" => 1_000_000,
        "mib" => 1 << 20,
        "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        "tb" => 1_000_000_000_000,
        "tib" => 1 << 40,
        _ => return Err(format!("{text:?} is not an amount such as 10 GB or 512 MiB")),
    };
    let bytes =
        text[..digits].parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| format!("{text:?} is not an amount such as 10 GB or 512 MiB"))
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn amounts_have_a_number_and_a_unit() {
        for (text, bytes) in
            [("10 GB", 10_000_000_000), ("512MiB", 536_870_912), ("1 tib", 1 << 40), ("3 mb", 3_000_000)]
        {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "10", "GB", "0 GB", "-1 GB", "1.5 GB", "10 KB", "99999999999999 TB"] {
            assert!(parse_bytes(text).unwrap_err().contains("is not an amount"), "{text}");
        }
    }
}
