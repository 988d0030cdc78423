//! The reason why a request has no answer, with the same words for people and programs.

use std::io::ErrorKind;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::json;

use crate::report::{CatalogError, ReportError, printable};

/// A request without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub status: StatusCode,
    /// A stable code for programs.
    pub code: &'static str,
    /// The mistake, and what to do.
    pub message: String,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    /// The request is invalid.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// The thing does not exist.
    pub fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// The client has not shown the token.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// The method is not supported.
    pub fn method(message: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
    }

    /// The configuration forbids the request.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// Too many queries run at once.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", message)
    }

    /// Too many requests run at once.
    pub fn overloaded(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    }

    /// The client sent the request too slowly.
    pub fn slow(message: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message)
    }

    /// The request is too large.
    pub fn large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    /// The answer took too long.
    pub fn too_long(seconds: u64) -> Self {
        let message =
            format!("the query took longer than {seconds} seconds, so Annals stopped it: choose a shorter period");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "too_long", message)
    }

    /// The answer exceeds a limit.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "too_large", message)
    }

    /// For programs: `{"error": {"code": …, "message": …}}`.
    pub fn as_json(&self) -> Response {
        let Self { status, code, message } = self;
        (*status, Json(json!({"error": {"code": code, "message": message}}))).into_response()
    }

    /// The server failed; the request is valid.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", message)
    }
}

/// One line of text. The answer carries the problem, so that the layer of the pages or of the API gives it another form.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let text = format!("{}\n", self.message);
        (self.status, Extension(self), text).into_response()
    }
}

impl From<ReportError> for Problem {
    fn from(error: ReportError) -> Self {
        let message = printable(&error.to_string());
        match error {
            ReportError::Interrupted => Self::new(StatusCode::SERVICE_UNAVAILABLE, "too_long", message),
            error if error.is_short_of_memory() => Self::too_large(
                "the query needs more memory than the page may use ([sql] memory): choose a shorter period, or query on the \
                 command line",
            ),
            ReportError::TooLarge(_) => Self::too_large(message),
            ReportError::Output(error) if error.kind() == ErrorKind::FileTooLarge => Self::too_large(error.to_string()),
            error if error.is_wrong_use() => Self::bad(message),
            _ => {
                tracing::warn!(error = message, "cannot answer a query");
                Self::failed(message)
            }
        }
    }
}

impl From<CatalogError> for Problem {
    fn from(error: CatalogError) -> Self {
        let message = printable(&error.to_string());
        match error {
            CatalogError::Unknown { .. } => Self::missing(message),
            CatalogError::Param { .. } => Self::bad(message),
            CatalogError::Unreadable { .. } | CatalogError::Malformed { .. } | CatalogError::Twice { .. } => {
                tracing::warn!(error = message, "cannot load the reports");
                Self::failed(message)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_over_a_limit_is_not_a_server_error() {
        let memory = "Out of Memory Error: failed to allocate data of size 32.0 MiB (516.9 MiB/512.0 MiB used)";
        let file = std::io::Error::new(ErrorKind::FileTooLarge, "the file is larger than the 512 MiB");
        for (error, named) in [
            (ReportError::Engine(memory.to_owned()), "needs more memory than the page may use"),
            (ReportError::Output(file), "larger than the 512 MiB"),
            (ReportError::TooLarge("the cache holds only 1000000".to_owned()), "the cache holds only"),
        ] {
            let problem = Problem::from(error);
            assert_eq!((problem.status, problem.code), (StatusCode::UNPROCESSABLE_ENTITY, "too_large"));
            assert!(problem.message.contains(named) && !problem.message.contains("SET "), "{}", problem.message);
        }
        let other = Problem::from(ReportError::Output(std::io::Error::other("the disk is gone")));
        assert_eq!(other.status, StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_no_fault_of_the_client() {
        let source = std::io::Error::from(ErrorKind::NotFound);
        let unreadable = CatalogError::Unreadable { path: "/nowhere".into(), source };
        let param = CatalogError::Param { report: "R01".to_owned(), message: "no".to_owned() };
        for (error, status) in [(unreadable, StatusCode::INTERNAL_SERVER_ERROR), (param, StatusCode::BAD_REQUEST)] {
            assert_eq!(Problem::from(error).status, status);
        }
    }
}
