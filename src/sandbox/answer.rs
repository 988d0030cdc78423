//! Answers: JSON bodies, and refusals in the shape that the switches select.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::choices::{Choices, CreatedBody, ErrorShape};

/// The kind of a refusal whose status the document leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The token is missing or wrong.
    Unknown,
    /// The token is valid but lacks the right.
    Forbidden,
    /// The request does not have the form that its endpoint accepts.
    Invalid,
    /// A rule or a limit of the team forbids it.
    Rule,
    /// The document gives the status.
    Given(u16),
}

/// A refusal: its kind, a code for programs, and a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub kind: Kind,
    pub code: &'static str,
    pub detail: String,
    pub retry_after_seconds: Option<i64>,
}

impl Refusal {
    fn new(kind: Kind, code: &'static str, detail: impl Into<String>) -> Self {
        Self { kind, code, detail: detail.into(), retry_after_seconds: None }
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(Kind::Unknown, "unauthorized", "a valid bearer token is needed")
    }

    pub(super) fn forbidden(detail: &str) -> Self {
        Self::new(Kind::Forbidden, "forbidden", detail)
    }

    pub(super) fn not_found(what: &'static str) -> Self {
        let code = match what {
            "team" => "team-not-found",
            "computer" => "device-not-found",
            "user" => "user-not-found",
            "group" => "group-not-found",
            _ => "not-found",
        };
        Self::new(Kind::Given(404), code, format!("no such {what}"))
    }

    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, "invalid-parameter", detail)
    }

    pub(super) fn unreadable(detail: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, "invalid-request", detail)
    }

    pub(super) fn media_type() -> Self {
        Self::new(Kind::Given(415), "unsupported-media-type", "the body must come as Content-Type: application/json")
    }

    pub(super) fn limit_too_large(limit: u64, most: usize) -> Self {
        Self::new(Kind::Invalid, "limit-too-large", format!("limit {limit} is over the maximum of {most}"))
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(Kind::Given(405), "method-not-allowed", "this path does not answer this method")
    }

    pub(super) fn too_many_requests(seconds: i64) -> Self {
        let refusal = Self::new(Kind::Given(429), "rate-limited", "too many requests with this token");
        Self { retry_after_seconds: Some(seconds), ..refusal }
    }

    /// A refusal with a code whose status the document does not show.
    pub(super) fn rule(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(Kind::Rule, code, detail)
    }

    pub(super) fn already_there(code: &'static str, detail: &str) -> Self {
        Self::new(Kind::Given(409), code, detail)
    }

    pub(super) fn invite_limit(most: usize) -> Self {
        Self::new(Kind::Given(400), "invite-limit-reached", format!("the team may have {most} installers"))
    }

    pub(super) fn invite_not_found(what: &str) -> Self {
        Self::new(Kind::Given(404), "invite-not-found", format!("no such {what}, or it has expired"))
    }

    /// The answer with the status and the shape that the switches select.
    pub(super) fn answer(&self, choices: &Choices) -> Response {
        let status = match self.kind {
            Kind::Unknown => choices.unauthorized_status,
            Kind::Forbidden => choices.forbidden_status,
            Kind::Invalid => choices.invalid_status,
            Kind::Rule => choices.rule_status,
            Kind::Given(status) => status,
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        let mut response = error_body(choices.error_shape, status, self.code, &self.detail);
        if let Some(value) = self.retry_after_seconds.and_then(|wait| HeaderValue::from_str(&wait.to_string()).ok()) {
            response.headers_mut().insert(header::RETRY_AFTER, value);
        }
        if self.kind == Kind::Unknown {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The middleware later gives the refusal the shape that the switches select.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = StatusCode::BAD_REQUEST.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

pub(super) fn error_body(shape: ErrorShape, status: StatusCode, code: &str, detail: &str) -> Response {
    let body = match shape {
        ErrorShape::Detail => json!({"code": code, "detail": detail}),
        ErrorShape::Message => json!({"code": code, "message": detail}),
        ErrorShape::Nested => json!({"error": {"code": code, "message": detail}}),
        ErrorShape::Code => json!({"code": code}),
        ErrorShape::Errors => json!({"errors": [{"code": code, "detail": detail, "status": status.as_u16()}]}),
        ErrorShape::Problem => json!({
            "type": "about:blank", "title": status.canonical_reason().unwrap_or("Error"), "status": status.as_u16(),
            "code": code, "detail": detail,
        }),
    };
    let mut response = json_text(body.to_string().into_bytes());
    if shape == ErrorShape::Problem {
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    *response.status_mut() = status;
    response
}

/// The answer of an endpoint for which the document shows no body.
pub(super) fn done(status: StatusCode, body: CreatedBody) -> Response {
    let mut response = match body {
        CreatedBody::Empty => status.into_response(),
        CreatedBody::Text => status.canonical_reason().unwrap_or_default().into_response(),
        CreatedBody::Object => json_value(&json!({})),
    };
    *response.status_mut() = status;
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
