//! The style sheet in every page, and the policy that allows nothing else.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::model::Digest;

const SHEET: &str = include_str!("../../../../templates/page.css");

/// The text of our own style sheet; contains no data.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style;

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SHEET)
    }
}

impl askama::filters::HtmlSafe for Style {}

impl Style {
    /// A content security policy: nothing is loaded and nothing runs; the hash allows the style sheet.
    #[expect(clippy::unused_self, reason = "asked in the templates")]
    pub fn policy(&self) -> String {
        let hash = STANDARD.encode(Digest::of(SHEET.as_bytes()).0);
        format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
    }
}
