//! One GET: waits for the limits, sends the request, and reads the whole body, or returns the reason of the failure.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use governor::DefaultDirectRateLimiter;
use reqwest::header::{AGE, AUTHORIZATION, DATE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use crate::model::{Instant, TimeUnit};

use super::contract::ApiError;
use super::freshness::Freshness;
use super::json::Object;
use super::network_error;
use super::pause::Pause;
use super::token::Credential;

/// Maximum number of redirects within the service for one request.
const REDIRECTS_MAX: u32 = 3;
/// A longer `Retry-After` is treated as this wait.
pub const RETRY_AFTER_SECONDS_MAX: u64 = 15 * 60;
/// Maximum bytes that are read of an error's body, which matters only for its `code`.
const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;
const ERROR_CODE_BYTES_MAX: usize = 64;
/// Maximum memory that a `Content-Length` reserves before the first byte arrives.
const BODY_RESERVE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A body and its `Date`.
pub(super) struct Reply {
    pub body: Bytes,
    pub at: Option<Instant>,
}

pub(super) struct Transport {
    pub client: Client,
    pub credential: Arc<Credential>,
    pub rate: Option<DefaultDirectRateLimiter>,
    pub pause: Option<Arc<Pause>>,
    pub at_once: Semaphore,
    pub freshness: Freshness,
    pub deadline: Duration,
    pub body_bytes_max: usize,
}

impl Transport {
    /// `what` names the request in errors. No error contains the token.
    pub async fn get(&self, what: &str, url: Url) -> Result<Reply, ApiError> {
        self.ask(what, url).await.map_err(|error| self.credential.known().scrubbed_error(error))
    }

    async fn ask(&self, what: &str, url: Url) -> Result<Reply, ApiError> {
        let _permit = self.at_once.acquire().await.expect("BUG: the semaphore is never closed");
        let header = self.credential.header();
        match self.follow(what, url.clone(), &header).await {
            Err(ApiError::Refused { what, status: 401 }) => match self.credential.renewed(&header) {
                Some(header) => self.follow(&what, url, &header).await,
                None => Err(ApiError::Refused { what, status: 401 }),
            },
            answer => answer,
        }
    }

    /// The answer after redirects. Never follows a redirect to another host, scheme or port, which would receive the token.
    async fn follow(&self, what: &str, mut url: Url, token: &HeaderValue) -> Result<Reply, ApiError> {
        for _ in 0..=REDIRECTS_MAX {
            let response = self.send(what, &url, token).await?;
            if !response.status().is_redirection() {
                return self.read(what, response).await;
            }
            let target = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let target = target.and_then(|location| url.join(location).ok());
            let target = target.ok_or_else(|| unexpected(what, format!("status {}", response.status().as_u16())))?;
            if target.origin() != url.origin() {
                let to = target.origin().ascii_serialization();
                return Err(unexpected(
                    what,
                    format!("a redirect to another address, {to}, which Annals does not follow"),
                ));
            }
            url = target;
        }
        Err(unexpected(what, format!("more than {REDIRECTS_MAX} redirects")))
    }

    async fn send(&self, what: &str, url: &Url, token: &HeaderValue) -> Result<Response, ApiError> {
        if let Some(rate) = &self.rate {
            rate.until_ready().await;
        }
        if let Some(pause) = &self.pause {
            let _ = pause.over().await;
        }
        let request = self.client.get(url.clone()).header(AUTHORIZATION, token.clone());
        request.send().await.map_err(|error| self.network(what, url, &error))
    }

    fn network(&self, what: &str, url: &Url, error: &reqwest::Error) -> ApiError {
        let detail = network_error::describe(error, &url.origin().ascii_serialization(), self.deadline);
        let what = what.to_owned();
        match network_error::is_unreachable(error) {
            true => ApiError::Unreachable { what, detail },
            false => ApiError::Unavailable { what, detail, retry_after: None },
        }
    }

    async fn read(&self, what: &str, response: Response) -> Result<Reply, ApiError> {
        let status = response.status();
        let at = date(response.headers(), DATE.as_str());
        if status != StatusCode::OK {
            return Err(self.refusal(what, response, at).await);
        }
        let age = response.headers().get(AGE).and_then(|age| age.to_str().ok()?.trim().parse().ok());
        self.freshness.check(age, at).map_err(|detail| unexpected(what, detail))?;
        let body = self.body(what, response, self.body_bytes_max).await?;
        Ok(Reply { body, at })
    }

    /// The whole body after decompression, in its own memory: a slice of it would keep the connection's buffer alive. Stops at the
    /// limit.
    async fn body(&self, what: &str, mut response: Response, bytes_max: usize) -> Result<Bytes, ApiError> {
        let length = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        let url = response.url().clone();
        let mut whole = Vec::with_capacity(length.min(BODY_RESERVE_BYTES_MAX).min(bytes_max));
        while let Some(chunk) = response.chunk().await.map_err(|error| self.network(what, &url, &error))? {
            if whole.len() + chunk.len() > bytes_max {
                return Err(ApiError::TooLong { what: what.to_owned(), bytes_max });
            }
            whole.extend_from_slice(&chunk);
        }
        // Without a known length, the buffer can have twice the needed size.
        whole.shrink_to_fit();
        Ok(whole.into())
    }

    /// The error for a status other than 200.
    async fn refusal(&self, what: &str, response: Response, at: Option<Instant>) -> ApiError {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers(), at);
        let what = what.to_owned();
        match status {
            401 | 403 => ApiError::Refused { what, status },
            404 | 410 => ApiError::NotFound { what, status },
            429 => ApiError::Throttled { what, retry_after },
            408 | 425 | 500..=599 => {
                ApiError::Unavailable { what, detail: format!("the service failed (status {status})"), retry_after }
            }
            400..=499 => {
                let body = self.body(&what, response, ERROR_BODY_BYTES_MAX).await.unwrap_or_default();
                ApiError::Rejected { what, status, code: error_code(&body) }
            }
            _ => unexpected(&what, format!("status {status}")),
        }
    }
}

fn unexpected(what: &str, detail: String) -> ApiError {
    ApiError::Unexpected { what: what.to_owned(), detail }
}

/// The `code` of an error's body, if it looks like a code: messages show it, and a body can contain anything. The body's form is
/// not documented, so this searches the top level, `error`, and the list `errors`.
fn error_code(body: &[u8]) -> Option<String> {
    let body = Object::parse(std::str::from_utf8(body).ok()?)?;
    let errors = body.get("errors").and_then(|text| serde_json::from_str::<Vec<&RawValue>>(text).ok());
    let listed = errors.iter().flatten().filter_map(|error| Object::parse(error.get())?.string("code"));
    let alone = [body.string("code"), body.object("error").and_then(|error| error.string("code"))];
    alone.into_iter().flatten().chain(listed).find(|code| is_code(code)).map(Cow::into_owned)
}

fn is_code(text: &str) -> bool {
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    is_plain && (1..=ERROR_CODE_BYTES_MAX).contains(&text.len())
}

fn date(headers: &HeaderMap, name: &str) -> Option<Instant> {
    http_date(headers.get(name)?.to_str().ok()?)
}

fn http_date(text: &str) -> Option<Instant> {
    let since = httpdate::parse_http_date(text.trim()).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Instant::from_unit(i64::try_from(since.as_secs()).ok()?, TimeUnit::Seconds).ok()
}

/// Seconds, or a date relative to the answer's own `Date`; from zero to the limit.
fn retry_after(headers: &HeaderMap, at: Option<Instant>) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse::<f64>() {
        Ok(seconds) if seconds.is_nan() => return None,
        Ok(seconds) => seconds.max(0.0).min(RETRY_AFTER_SECONDS_MAX as f64),
        Err(_) => http_date(text)?.since(at?).as_secs_f64(),
    };
    Some(Duration::from_secs_f64(wait.min(RETRY_AFTER_SECONDS_MAX as f64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_retry_after_is_read_and_limited() {
        let at = http_date("Fri, 20 Nov 2026 08:00:00 GMT");
        let limit = Some(RETRY_AFTER_SECONDS_MAX);
        for (text, seconds) in [
            ("0", Some(0)),
            (" 7 ", Some(7)),
            ("-1", Some(0)),
            ("1000000000", limit),
            ("999999999999999999999999999999", limit),
            ("inf", limit),
            ("NaN", None),
            ("soon", None),
            ("", None),
            ("Fri, 20 Nov 2026 08:00:30 GMT", Some(30)),
            ("Fri, 20 Nov 2026 07:00:00 GMT", Some(0)),
            ("Fri, 20 Nov 2099 08:00:00 GMT", limit),
            ("Fri, 20 Nov 2026 25:00:00 GMT", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_str(text).unwrap())]);
            assert_eq!(retry_after(&headers, at), seconds.map(Duration::from_secs), "{text:?}");
        }
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("Fri, 20 Nov 2026 08:00:30 GMT"))]);
        assert_eq!(retry_after(&headers, None), None, "a date means nothing without the service's own");
    }

    #[test]
    fn an_error_code_is_found_at_any_place_and_shown_if_it_looks_like_a_code() {
        let long = "a".repeat(ERROR_CODE_BYTES_MAX + 1);
        for (body, code) in [
            (r#"{"code":"limit-too-large"}"#, Some("limit-too-large")),
            (r#"{"detail":"no","code":"a.b_c-1"}"#, Some("a.b_c-1")),
            (r#"{"errors":[{"code":"invite-not-found","detail":"no"}]}"#, Some("invite-not-found")),
            (r#"{"errors":[{"detail":"no"},"text",7,null,{"code":"second"}]}"#, Some("second")),
            (r#"{"errors":[{"code":"two words"},{"code":"second"},{"code":"third"}]}"#, Some("second")),
            (r#"{"error":{"code":"limit-too-large","message":"no"}}"#, Some("limit-too-large")),
            (r#"{"code":"at-the-top","error":{"code":"inside"},"errors":[{"code":"listed"}]}"#, Some("at-the-top")),
            (r#"{"code":400,"errors":[{"code":"listed"}]}"#, Some("listed")),
            (r#"{"code":12}"#, None),
            (r#"{"code":"two words"}"#, None),
            (r#"{"code":"\u001b[2J"}"#, None),
            (r#"{"code":""}"#, None),
            (r#"{"errors":[]}"#, None),
            (r#"{"errors":{"code":"no-list"}}"#, None),
            (r#"{"errors":"text","error":"text"}"#, None),
            (r#"{"errors":[[{"code":"deeper"}]]}"#, None),
            (r#"{"errors":[{"code":["listed"]}]}"#, None),
            (r#"[{"code":"no-object"}]"#, None),
            ("<html>", None),
            ("", None),
            (format!(r#"{{"code":"{long}"}}"#).as_str(), None),
            (format!(r#"{{"errors":[{{"code":"{long}"}}]}}"#).as_str(), None),
            (format!(r#"{{"errors":{}{}}}"#, "[".repeat(30_000), "]".repeat(30_000)).as_str(), None),
        ] {
            assert_eq!(error_code(body.as_bytes()).as_deref(), code, "{body}");
        }
    }
}
