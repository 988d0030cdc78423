//! Parses a request's head.

use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Method, Uri};
use percent_encoding::percent_decode_str;

use crate::Kind;

pub(crate) struct RequestHead {
    pub(crate) kind: Kind,
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
}

impl RequestHead {
    /// `None` for an unknown request.
    pub(crate) fn of(parts: Parts) -> Option<Self> {
        let Parts { method, uri, headers, .. } = parts;
        let path = uri.path().strip_prefix('/')?;
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let decoded = |text: &str| percent_decode_str(text).decode_utf8().ok().map(|text| text.into_owned());
        let (bucket, key) = (decoded(bucket)?, decoded(key)?);
        let query: Vec<(String, String)> =
            form_urlencoded::parse(uri.query().unwrap_or("").as_bytes()).into_owned().collect();
        let has = |name: &str| query.iter().any(|(found, _)| found == name);
        let kind = match method.as_str() {
            "PUT" if has("partNumber") => Kind::Part,
            "PUT" => Kind::Put,
            "POST" if has("uploads") => Kind::Start,
            "POST" if has("uploadId") => Kind::Complete,
            "POST" if has("delete") => Kind::Delete,
            "GET" if key.is_empty() => Kind::List,
            "GET" => Kind::Get,
            "HEAD" => Kind::Head,
            "DELETE" if has("uploadId") => Kind::Abort,
            "DELETE" => Kind::Delete,
            _ => return None,
        };
        Some(Self { kind, method, uri, bucket, key, query, headers })
    }

    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The key, or a list's prefix.
    pub(crate) fn subject(&self) -> &str {
        if self.kind == Kind::List { self.param("prefix").unwrap_or("") } else { &self.key }
    }

    /// Whether the client uses Google Cloud Storage.
    pub(crate) fn is_google(&self) -> bool {
        self.header("authorization").is_some_and(|text| text.starts_with("Bearer "))
    }

    /// Whether the object must not exist yet.
    pub(crate) fn is_create(&self) -> bool {
        self.header("if-none-match") == Some("*") || self.header("x-goog-if-generation-match") == Some("0")
    }
}
