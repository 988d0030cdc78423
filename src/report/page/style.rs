//! The sheet that stands in every page, and the policy that allows it and nothing else.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::model::Digest;

const SHEET: &str = include_str!("../../../templates/page.css");

/// The text of our own sheet: markup, with nothing of data in it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style;

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SHEET)
    }
}

impl askama::filters::HtmlSafe for Style {}

impl Style {
    /// Nothing is loaded and nothing runs; the one sheet is known by its hash.
    #[expect(clippy::unused_self, reason = "asked in the templates")]
    pub fn policy(&self) -> String {
        let hash = STANDARD.encode(Digest::of(SHEET.as_bytes()).0);
        format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
    }
}
