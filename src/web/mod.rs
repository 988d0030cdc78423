//! The daemon's port: health probes, metrics, the page for people, and the read-only API for programs.
//!
//! On a loopback address, everybody on the machine can use the port. Elsewhere it needs a bearer token, which a browser
//! user enters once in a form. Without the token, `/healthz` and `/readyz` answer only their status, so that probes need no
//! secret.
//!
//! `answer` finds the data, `page` shows it to people, and `api` to programs. The daemon answers from its memory what it knows
//! itself; queries on the archive go through [`QueryService`].

mod answer;
mod api;
mod connections;
mod format;
mod guard;
mod iceberg;
mod input;
mod metrics;
mod probes;
mod query_service;
mod team_name_cache;
pub mod metric_names;
mod page;
mod problem;
mod queue;
mod serve;
mod sign_ins;
mod visitors;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::FutureExt as _;
use futures::channel::oneshot;
use parking_lot::RwLock;
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpListener;

use crate::clock::Clock;
use crate::config::TeamMetrics;
use crate::daemon::Live;
use crate::lake::Catalog;
use crate::model::Digest;
use crate::report::{Limits, SnapshotSource};

use connections::Bounds;
use guard::{SESSION_COOKIE, cookie};
use serve::{read_body, serve};

pub use guard::{Guard, GuardError};
pub use metrics::Metrics;
pub use query_service::QueryService;
pub use sign_ins::SignIns;
pub use visitors::Visitors;

/// The maximum size of a form.
const FORM_BYTES_MAX: usize = 256 << 10;

/// The shared state of the port.
pub struct AppState {
    pub live: Arc<Live>,
    pub clock: Arc<dyn Clock>,
    pub metrics: Arc<Metrics>,
    pub guard: RwLock<Guard>,
    pub queries: QueryService,
    /// The open tables.
    pub catalog: Arc<Catalog>,
    pub settings: RwLock<Settings>,
    /// Visitors with a running query.
    pub visitors: Visitors,
    /// The browsers that are signed in, and the sign-in attempts.
    pub sign_ins: SignIns,
}

/// The settings of the page and the metrics.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder of the user's own reports.
    pub queries: Option<PathBuf>,
    /// Whether visitors may use SQL.
    pub sql: bool,
    /// The deadline of an SQL query.
    pub sql_time: Duration,
    /// Whether each team has its own metric series.
    pub team_metrics: TeamMetrics,
    /// With less time than this left until a loss, a stream is short of time.
    pub time_left: Duration,
}

impl AppState {
    fn guard(&self) -> Guard {
        self.guard.read().clone()
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        self.guard().admits(headers) || self.signed_in(headers).is_some()
    }

    /// The sign-in of the browser that sends these headers.
    fn signed_in(&self, headers: &HeaderMap) -> Option<Digest> {
        let (token, cookie) = (self.guard().token()?, cookie(headers, SESSION_COOKIE)?);
        self.sign_ins.find(token, cookie, self.clock.now())
    }

    fn needs_token(&self) -> bool {
        self.guard().needs_token()
    }

    fn settings(&self) -> Settings {
        self.settings.read().clone()
    }
}

/// A port that serves until it is dropped.
pub struct Port {
    pub address: SocketAddr,
    state: Arc<AppState>,
    _stop: oneshot::Sender<()>,
}

impl Port {
    /// Binds `address` and serves on it.
    pub async fn open(address: SocketAddr, state: Arc<AppState>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let bounds = Bounds::of(getrlimit(Resource::Nofile).current);
        tokio::spawn(serve(listener, router(state.clone()), state.clock.clone(), bounds, stopped.map(drop)));
        Ok(Self { address, state, _stop: stop })
    }

    /// Replaces the guard, the settings, and the source of queries, for all later requests.
    pub fn reconfigure(&self, guard: Guard, settings: Settings, source: SnapshotSource, limits: Limits) {
        *self.state.guard.write() = guard;
        *self.state.settings.write() = settings;
        self.state.queries.reconfigure(source, limits);
    }
}

fn router(state: Arc<AppState>) -> Router {
    Router::new()
        .route("/metrics", get(scrape))
        .merge(page::routes(&state))
        .route("/api", get(api::index).layer(middleware::from_fn(api::documented)))
        .route("/api/", get(api::index).layer(middleware::from_fn(api::documented)))
        .nest("/api", api::routes())
        .nest("/iceberg", iceberg::routes())
        .layer(middleware::from_fn_with_state(state.clone(), guard::require_token))
        .merge(page::open_routes(&state))
        .layer(middleware::from_fn_with_state(state.clone(), read_body))
        .route("/healthz", get(probes::healthz))
        .route("/readyz", get(probes::readyz))
        .layer(middleware::from_fn(guard::check_host))
        .layer(middleware::from_fn(page::add_security_headers))
        .with_state(state)
}

async fn scrape(State(state): State<Arc<AppState>>) -> Response {
    let text = state.metrics.render(&state.live, &state.settings(), state.clock.now());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
