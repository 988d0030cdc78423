//! The style sheet, script and icon of the page, under names that contain a digest of their content.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::model::Digest;

const STYLE: &str =
    concat!(include_str!("../../../templates/page.css"), include_str!("../../../templates/web/page.css"));
const SCRIPT: &str = include_str!("../../../templates/web/page.js");
const ICON: &str = include_str!("../../../templates/web/icon.svg");
/// Number of digits of the digest in a name.
const DIGITS: usize = 12;
const A_YEAR: &str = "public, max-age=31536000, immutable";

static NAMES: LazyLock<[String; 2]> = LazyLock::new(|| [named(STYLE, "css"), named(SCRIPT, "js")]);

fn named(text: &str, ending: &str) -> String {
    format!("page-{}.{ending}", &Digest::of(text.as_bytes()).to_string()[..DIGITS])
}

/// The name of the style sheet.
pub fn style() -> &'static str {
    &NAMES[0]
}

/// The name of the script.
pub fn script() -> &'static str {
    &NAMES[1]
}

pub async fn asset(Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        name if name == style() => ("text/css; charset=utf-8", STYLE),
        name if name == script() => ("text/javascript; charset=utf-8", SCRIPT),
        "icon.svg" => ("image/svg+xml", ICON),
        _ => return (StatusCode::NOT_FOUND, "not found\n").into_response(),
    };
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, A_YEAR)], text).into_response()
}
