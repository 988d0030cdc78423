//! The contract of the event source: the requests to the service, and the content of the answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use thiserror::Error;

use crate::model::{DeviceId, Instant, RawEvent, Stream, TeamId};

/// The largest `limit` that the service documents for its team history endpoints.
pub const PAGE_EVENTS_MAX: u32 = 1001;
/// The largest `limit` of the deprecated per-computer history.
pub const DEVICE_PAGE_EVENTS_MAX: u32 = 100;

/// One page of a windowed stream, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageQuery {
    pub stream: Stream,
    /// `startTime`, seconds since the epoch, inclusive as documented.
    pub start: i64,
    /// `stopTime`, seconds since the epoch, inclusive as documented.
    pub stop: i64,
    pub offset: u64,
    pub limit: u32,
    /// If set: the deprecated history of this computer, for services without `history/devices`.
    pub device: Option<DeviceId>,
}

/// An answer, and the service's time when it made the answer.
#[derive(Debug, Clone)]
pub struct Served<T> {
    pub body: T,
    /// The `Date` header; `None` when the service sends none.
    pub at: Option<Instant>,
}

/// One answered page. `has_more` and `next_offset` are claims of the service: Annals counts them and never trusts them.
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub events: Vec<RawEvent>,
    pub has_more: Option<bool>,
    pub next_offset: Option<i64>,
    /// The answer's bytes, for comparison with a later answer; empty if the source has none.
    pub body: Bytes,
}

/// An answer compared with an earlier one.
#[derive(Debug, Clone)]
pub enum PageComparison {
    /// Byte for byte equal.
    Same,
    Changed(Page),
}

/// The newest billing entries, newest first as documented.
#[derive(Debug, Clone, Default)]
pub struct BillingSnapshot {
    pub events: Vec<RawEvent>,
}

/// The facts about a team that reading needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TeamView {
    pub name: Option<String>,
    /// `planFeatures.deviceEventsMaxRetrievalDuration`; `None` in the limited view of callers who are not admins.
    pub plan_span: Option<Duration>,
    /// The whole answer.
    pub whole: UnfilteredJson,
}

/// The JSON text of an answer about people and computers. It can contain secrets of invites and installers. `inventory` takes
/// only the fields of its allow-list, and no message, log or file contains any other part.
#[derive(Clone, PartialEq, Eq)]
pub struct UnfilteredJson(Arc<str>);

impl UnfilteredJson {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

/// An object without fields: the answer says nothing.
impl Default for UnfilteredJson {
    fn default() -> Self {
        Self::new("{}")
    }
}

impl fmt::Debug for UnfilteredJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnfilteredJson({} bytes)", self.0.len())
    }
}

/// The team's computers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Computers {
    pub ids: Vec<DeviceId>,
    /// `{devices: [Computer]}`
    pub whole: UnfilteredJson,
}

impl From<Vec<DeviceId>> for Computers {
    fn from(ids: Vec<DeviceId>) -> Self {
        Self { ids, whole: UnfilteredJson::default() }
    }
}

/// Why a request has no usable answer. No variant carries a token, a URL's query or a response body.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApiError {
    /// 401 or 403: the token is missing, wrong or has too few rights. Not retried.
    #[error("{what}: the service refused the token (status {status}); check that it is current and may read this team")]
    Refused { what: String, status: u16 },
    /// 404 or 410. Not retried.
    #[error("{what}: not found (status {status}); check the service's address, and that the team still exists")]
    NotFound { what: String, status: u16 },
    /// Another 4xx: the service does not accept the request as sent, for example its `limit`. Not retried.
    #[error("{what}: the service rejected the request (status {status}{})", shown(.code.as_deref()))]
    Rejected { what: String, status: u16, code: Option<String> },
    /// A path cannot hold an id of the service. No request was sent.
    #[error(
        "{what}: no request was sent: the service gave an id that is empty, `.` or `..`, or that holds a control character"
    )]
    UnusableId { what: String },
    /// 429: wait, for at least `retry_after` if the service gives it.
    #[error("{what}: the service asked us to slow down (status 429)")]
    Throttled { what: String, retry_after: Option<Duration> },
    /// 5xx, a reset or a deadline: the same request can succeed later.
    #[error("{what}: {detail}")]
    Unavailable { what: String, detail: String, retry_after: Option<Duration> },
    /// Nothing listens at the address, or its host is unknown: the address can be wrong.
    #[error("{what}: {detail}")]
    Unreachable { what: String, detail: String },
    /// The answer does not have the documented form: HTML, truncated JSON, or a missing list. Annals retries the request, and never
    /// treats the answer as an empty window.
    #[error("{what}: the answer does not have the documented form: {detail}")]
    Unexpected { what: String, detail: String },
    /// The body of the answer is too long to keep in memory: a smaller page may fit.
    #[error(
        "{what}: the body is longer than {bytes_max} bytes, the limit, so nothing of it is read; if this repeats, please report it"
    )]
    TooLong { what: String, bytes_max: usize },
}

/// The code of the service, for a message.
fn shown(code: Option<&str>) -> String {
    code.map_or_else(String::new, |code| format!(", code {code}"))
}

impl ApiError {
    /// The pause that the service demands.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            ApiError::Throttled { retry_after, .. } | ApiError::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the same request can succeed later without any change.
    pub fn is_transient(&self) -> bool {
        !matches!(
            self,
            ApiError::Refused { .. }
                | ApiError::NotFound { .. }
                | ApiError::Rejected { .. }
                | ApiError::UnusableId { .. }
        )
    }
}

pub type Answer<'a, T> = BoxFuture<'a, Result<Served<T>, ApiError>>;

/// The edge to the service. Contract: every call only reads, and can be repeated. `Ok` is one atomic snapshot of the service. An
/// answer without the documented form is an error. A source without a list of people answers [`ApiError::NotFound`].
pub trait EventSource: Send + Sync {
    /// `GET /v1/user/teams`: the teams that the token sees.
    fn teams(&self) -> Answer<'_, Vec<TeamId>>;
    /// `GET /v1/team/{teamID}`.
    fn team<'a>(&'a self, team: &'a TeamId) -> Answer<'a, TeamView>;
    /// `GET /v1/team/{teamID}/devices`: the team's computers.
    fn devices<'a>(&'a self, team: &'a TeamId) -> Answer<'a, Computers>;
    /// One page of `history` or `history/devices` (or, with a device, of the deprecated per-computer history).
    fn page<'a>(&'a self, team: &'a TeamId, query: &'a PageQuery) -> Answer<'a, Page>;
    /// Requests a page again. If its bytes equal `former`, the earlier answer, nothing is parsed.
    fn page_again<'a>(
        &'a self,
        team: &'a TeamId,
        query: &'a PageQuery,
        former: &'a Bytes,
    ) -> Answer<'a, PageComparison> {
        Box::pin(async move {
            let Served { body, at } = self.page(team, query).await?;
            let is_same = !former.is_empty() && body.body == *former;
            Ok(Served { body: if is_same { PageComparison::Same } else { PageComparison::Changed(body) }, at })
        })
    }
    /// `GET /v1/team/{teamID}/billing/events`.
    fn billing<'a>(&'a self, team: &'a TeamId) -> Answer<'a, BillingSnapshot>;

    /// `GET /v1/team/{teamID}/users`: `{users: [User]}`, each with an id of its own.
    fn users<'a>(&'a self, team: &'a TeamId) -> Answer<'a, UnfilteredJson> {
        no_list(team)
    }

    /// `GET /v1/team/{teamID}/saml/users`: a list of SSO users, each with an id of its own.
    fn sso_users<'a>(&'a self, team: &'a TeamId) -> Answer<'a, UnfilteredJson> {
        no_list(team)
    }

    /// `GET /v1/team/{teamID}/user/{userID}/info`: an object with at least one of its documented fields.
    fn user_info<'a>(&'a self, team: &'a TeamId, _user: &'a str) -> Answer<'a, UnfilteredJson> {
        no_list(team)
    }
}

fn no_list(team: &TeamId) -> Answer<'_, UnfilteredJson> {
    let what = format!("a list of the people of team {team}");
    Box::pin(std::future::ready(Err(ApiError::NotFound { what, status: 404 })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do_and_prints_the_code_plainly() {
        let rejected = |code: Option<&str>| {
            let code = code.map(str::to_owned);
            ApiError::Rejected { what: "history".to_owned(), status: 400, code }.to_string()
        };
        let plain = "history: the service rejected the request (status 400";
        assert_eq!(rejected(None), format!("{plain})"));
        assert_eq!(rejected(Some("[redacted]")), format!("{plain}, code [redacted])"));
        let missing = ApiError::NotFound { what: "teams".to_owned(), status: 404 };
        assert!(missing.to_string().contains("check the service's address"));
    }
}
