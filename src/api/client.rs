//! The event source that speaks to the service over HTTP.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use governor::DefaultDirectRateLimiter;
use reqwest::header::{ACCEPT, CACHE_CONTROL, HeaderMap, HeaderValue};
use reqwest::{Client, Url};
use tokio::sync::Semaphore;

use crate::http_client;
use crate::model::{Stream, TeamId};

use super::contract::{
    Answer, ApiError, BillingSnapshot, Computers, EventSource, Page, PageComparison, PageQuery, Served, TeamView,
    UnfilteredJson,
};
use super::freshness::Freshness;
use super::network_error::{CONNECT_TIMEOUT, is_loopback};
use super::pause::Pause;
use super::rate::{rate_limiter, scans_per_second};
use super::roster;
use super::setup_error::SetupError;
use super::token::{Credential, CurrentToken, TokenSource};
use super::transport::{Reply, Transport};
use super::wire::{self, WireError};

/// The total time of one request, its body included.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(60);
/// The maximum size of a body after decompression: a page of 1001 events of 64 KB each fits.
pub const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
pub const REQUESTS_PER_SECOND: f64 = 5.0;
pub const REQUESTS_AT_ONCE: usize = 4;
/// A longer body is parsed on a thread for blocking work, so that it does not delay other requests.
const PARSE_INLINE_BYTES_MAX: usize = 64 * 1024;

/// The service's address, and the limits for requests.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// `http` or `https`, with or without a path and a trailing slash.
    pub base_url: String,
    pub token: TokenSource,
    /// `None` or 0: no limit.
    pub requests_per_second: Option<f64>,
    pub concurrency: NonZeroUsize,
    /// The total time of one request, its body included.
    pub deadline: Duration,
    /// The maximum size of a body after decompression.
    pub body_bytes_max: usize,
    pub user_agent: String,
}

impl HttpOptions {
    /// The defaults for a service at `base_url`.
    pub fn new(base_url: impl Into<String>, token: TokenSource) -> Self {
        Self {
            base_url: base_url.into(),
            token,
            requests_per_second: Some(REQUESTS_PER_SECOND),
            concurrency: NonZeroUsize::new(REQUESTS_AT_ONCE).expect("BUG: the default is not zero"),
            deadline: REQUEST_DEADLINE,
            body_bytes_max: BODY_BYTES_MAX,
            user_agent: concat!("annals/", env!("CARGO_PKG_VERSION")).into(),
        }
    }
}

/// The service over HTTP. Each token has one source, which holds the limits for all requests of the token.
pub struct HttpSource {
    base: Url,
    transport: Transport,
    /// An additional limit for requests about people.
    scans: Option<DefaultDirectRateLimiter>,
}

impl HttpSource {
    /// # Errors
    /// When the URL, the token or the machine's certificates are invalid. Sends no request yet.
    pub fn new(options: HttpOptions) -> Result<Self, SetupError> {
        let base = base_url(&options.base_url)?;
        let transport = Transport {
            client: client(&base, &options)?,
            credential: Arc::new(Credential::new(options.token)?),
            rate: options.requests_per_second.and_then(rate_limiter),
            pause: None,
            at_once: Semaphore::new(options.concurrency.get().min(Semaphore::MAX_PERMITS)),
            freshness: Freshness::default(),
            deadline: options.deadline,
            body_bytes_max: options.body_bytes_max,
        };
        let scans = options.requests_per_second.map(scans_per_second).and_then(rate_limiter);
        Ok(Self { base, transport, scans })
    }

    /// Uses a shared pause: a request that already waits for its turn also obeys a pause that begins meanwhile.
    #[must_use]
    pub fn with_pause(mut self, pause: Arc<Pause>) -> Self {
        self.transport.pause = Some(pause);
        self
    }

    /// The token, which can change while this source works.
    pub fn token(&self) -> CurrentToken {
        CurrentToken(self.transport.credential.clone())
    }

    /// Like [`Self::get`], at the rate of requests about people: these wait here before they take a place among all requests.
    async fn get_at_scan_rate<T, R>(&self, segments: &[&str], read: R) -> Result<Served<T>, ApiError>
    where
        T: Send + 'static,
        R: FnOnce(&Bytes) -> Result<T, WireError> + Send + 'static,
    {
        if let Some(scans) = &self.scans {
            scans.until_ready().await;
        }
        self.get(segments, &[], read).await
    }

    /// GETs the path of `segments`, each percent-encoded, and parses the body with `read`. The body no longer contains the token.
    async fn get<T, R>(&self, segments: &[&str], query: &[(&str, String)], read: R) -> Result<Served<T>, ApiError>
    where
        T: Send + 'static,
        R: FnOnce(&Bytes) -> Result<T, WireError> + Send + 'static,
    {
        let (what, reply) = self.reply(segments, query).await?;
        let known = self.transport.credential.known();
        let body = read_body(&what, reply.body, move |body| read(&known.cleaned(body))).await?;
        Ok(Served { body, at: reply.at })
    }

    /// GETs the path of `segments`, each percent-encoded. Returns the request's name for errors, and the answer.
    async fn reply(&self, segments: &[&str], query: &[(&str, String)]) -> Result<(String, Reply), ApiError> {
        let mut url = self.base.clone();
        url.path_segments_mut().expect("BUG: an http URL has a path").pop_if_empty().extend(segments);
        let what = self.transport.credential.known().scrubbed(format!("GET {}", url.path()));
        // Clients and servers remove such segments and characters from a path, which would then name another id.
        let is_unusable = |segment: &str| matches!(segment, "" | "." | "..") || segment.contains(char::is_control);
        if segments.iter().any(|segment| is_unusable(segment)) {
            return Err(ApiError::UnusableId { what });
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let reply = self.transport.get(&what, url).await?;
        Ok((what, reply))
    }

    async fn page_reply(&self, team: &TeamId, query: &PageQuery) -> Result<(String, Reply), ApiError> {
        let (team, device) = (team.as_str(), query.device.as_ref());
        let segments = match (query.stream, device) {
            (Stream::Billing, _) => vec!["v1", "team", team, "billing", "events"],
            (Stream::Activity, _) => vec!["v1", "team", team, "history"],
            (Stream::Connections, None) => vec!["v1", "team", team, "history", "devices"],
            (Stream::Connections, Some(device)) => vec!["v1", "team", team, "device", device.as_str(), "history"],
        };
        self.reply(&segments, &page_query(query)).await
    }

    async fn read_page(&self, what: &str, query: &PageQuery, body: Bytes) -> Result<Page, ApiError> {
        let (stream, device) = (query.stream, query.device.clone().filter(|_| query.stream == Stream::Connections));
        let known = self.transport.credential.known();
        read_body(what, body, move |body| wire::page_redacted(&known, stream, device.as_ref(), body)).await
    }
}

async fn read_body<T, R>(what: &str, body: Bytes, read: R) -> Result<T, ApiError>
where
    T: Send + 'static,
    R: FnOnce(&Bytes) -> Result<T, WireError> + Send + 'static,
{
    let answer = if body.len() <= PARSE_INLINE_BYTES_MAX {
        read(&body)
    } else {
        match tokio::task::spawn_blocking(move || read(&body)).await {
            Ok(answer) => answer,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(WireError("the program is shutting down".into())),
            },
        }
    };
    answer.map_err(|e| ApiError::Unexpected { what: what.to_owned(), detail: e.to_string() })
}

impl EventSource for HttpSource {
    fn teams(&self) -> Answer<'_, Vec<TeamId>> {
        Box::pin(self.get(&["v1", "user", "teams"], &[], |body| wire::teams(body)))
    }

    fn team<'a>(&'a self, team: &'a TeamId) -> Answer<'a, TeamView> {
        Box::pin(async move { self.get(&["v1", "team", team.as_str()], &[], |body| wire::team(body)).await })
    }

    fn devices<'a>(&'a self, team: &'a TeamId) -> Answer<'a, Computers> {
        let segments = ["v1", "team", team.as_str(), "devices"];
        Box::pin(async move { self.get(&segments, &[], |body| wire::devices(body)).await })
    }

    fn page<'a>(&'a self, team: &'a TeamId, query: &'a PageQuery) -> Answer<'a, Page> {
        Box::pin(async move {
            let (what, reply) = self.page_reply(team, query).await?;
            Ok(Served { body: self.read_page(&what, query, reply.body).await?, at: reply.at })
        })
    }

    fn page_again<'a>(
        &'a self,
        team: &'a TeamId,
        query: &'a PageQuery,
        former: &'a Bytes,
    ) -> Answer<'a, PageComparison> {
        Box::pin(async move {
            let (what, reply) = self.page_reply(team, query).await?;
            if reply.body == *former {
                return Ok(Served { body: PageComparison::Same, at: reply.at });
            }
            Ok(Served { body: PageComparison::Changed(self.read_page(&what, query, reply.body).await?), at: reply.at })
        })
    }

    fn billing<'a>(&'a self, team: &'a TeamId) -> Answer<'a, BillingSnapshot> {
        let segments = ["v1", "team", team.as_str(), "billing", "events"];
        Box::pin(async move {
            let (what, reply) = self.reply(&segments, &[]).await?;
            let known = self.transport.credential.known();
            let body = read_body(&what, reply.body, move |body| wire::billing_redacted(&known, body)).await?;
            Ok(Served { body, at: reply.at })
        })
    }

    fn users<'a>(&'a self, team: &'a TeamId) -> Answer<'a, UnfilteredJson> {
        let segments = ["v1", "team", team.as_str(), "users"];
        Box::pin(async move { self.get_at_scan_rate(&segments, |body| roster::users(body)).await })
    }

    fn sso_users<'a>(&'a self, team: &'a TeamId) -> Answer<'a, UnfilteredJson> {
        let segments = ["v1", "team", team.as_str(), "saml", "users"];
        Box::pin(async move { self.get_at_scan_rate(&segments, |body| roster::sso_users(body)).await })
    }

    fn user_info<'a>(&'a self, team: &'a TeamId, user: &'a str) -> Answer<'a, UnfilteredJson> {
        let segments = ["v1", "team", team.as_str(), "user", user, "info"];
        Box::pin(async move { self.get_at_scan_rate(&segments, |body| roster::user_info(body)).await })
    }
}

/// Sends every parameter, because the document does not give all defaults.
fn page_query(query: &PageQuery) -> [(&'static str, String); 5] {
    [
        ("desc", "false".to_owned()),
        ("limit", query.limit.to_string()),
        ("offset", query.offset.to_string()),
        ("startTime", query.start.to_string()),
        ("stopTime", query.stop.to_string()),
    ]
}

fn base_url(text: &str) -> Result<Url, SetupError> {
    let fault = |reason: String| SetupError::BaseUrl { reason };
    // Do not repeat the text: it can contain a password.
    let url = Url::parse(text.trim()).map_err(|error| fault(format!("cannot be read: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(fault("must start with http:// or https:// and name a host".into()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fault("holds a user name or password; the token is given separately".into()));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(fault("holds a query or a fragment; only scheme, host, port and path are used".into()));
    }
    Ok(url)
}

fn client(base: &Url, options: &HttpOptions) -> Result<Client, SetupError> {
    let headers = HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ]);
    let mut builder = Client::builder()
        .default_headers(headers)
        .user_agent(&options.user_agent)
        .timeout(options.deadline)
        .connect_timeout(CONNECT_TIMEOUT)
        .retry(reqwest::retry::never())
        .tcp_nodelay(true)
        .gzip(true);
    if is_loopback(base) {
        builder = builder.no_proxy();
    }
    http_client::start(builder, base.as_str()).map_err(|reason| SetupError::Client { reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_has_no_query_fragment_or_credentials() {
        for text in ["http://h", "https://h/", "http://127.0.0.1:8080/api/", " https://h/a \n"] {
            assert!(base_url(text).is_ok(), "{text}");
        }
        for text in ["", "h", "ftp://h", "https://", "https://u:p4ss@h", "https://h?x=1", "https://h#x", "file:///x"] {
            let error = base_url(text).unwrap_err().to_string();
            assert!(!error.contains("p4ss"), "{error}");
        }
    }
}
