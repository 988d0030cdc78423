//! Answers: JSON bodies, and the one shape of an error body.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// A refusal: status, code for machines, sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub status: StatusCode,
    pub code: &'static str,
    pub detail: String,
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into() }
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "a valid bearer token is needed")
    }

    pub(super) fn forbidden(detail: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(super) fn not_found(what: &'static str) -> Self {
        let code = match what {
            "team" => "team-not-found",
            "computer" => "device-not-found",
            "user" => "user-not-found",
            _ => "not-found",
        };
        Self::new(StatusCode::NOT_FOUND, code, format!("no such {what}"))
    }

    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid-parameter", detail)
    }

    pub(super) fn limit_too_large(limit: u64, most: usize) -> Self {
        let detail = format!("limit {limit} is over the maximum of {most}");
        Self::new(StatusCode::BAD_REQUEST, "limit-too-large", detail)
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "this path answers GET only")
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        error_body(self.status, self.code, &self.detail)
    }
}

pub(super) fn error_body(status: StatusCode, code: &str, detail: &str) -> Response {
    let mut response = json_text(json!({"code": code, "detail": detail}).to_string().into_bytes());
    *response.status_mut() = status;
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

pub(super) fn json_value(value: &Value) -> Response {
    json_text(value.to_string().into_bytes())
}

pub(super) fn json_text(text: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
