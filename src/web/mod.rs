//! The daemon's port: whether it lives, whether every stream is within its lag, its metrics, the page for people, and the
//! read-only API for programs.
//!
//! On a loopback address the port is open to whoever is on the machine. Elsewhere it demands a bearer token, which a browser
//! gives once by a form; without one, `/healthz` and `/readyz` answer their status and nothing else, so that probes need no
//! secret.
//!
//! `answer` finds what there is to show, `page` shows it to people and `api` to programs. What the daemon knows by itself is
//! answered from that; what is asked of the archive goes through [`Asking`].

mod answer;
mod api;
mod asking;
mod callings;
mod connections;
mod guard;
mod health;
mod human;
mod input;
mod metrics;
pub mod names;
mod page;
mod problem;
mod queue;
mod serve;
mod sign_ins;
mod visitors;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::FutureExt as _;
use futures::channel::oneshot;
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpListener;

use crate::clock::Clock;
use crate::config::TeamMetrics;
use crate::model::Digest;
use crate::pipeline::Live;

use connections::Bounds;
use guard::{SESSION_COOKIE, cookie};
use serve::{read_body, serve};

pub use asking::{Asking, EngineLimits};
pub use guard::{Guard, GuardError};
pub use human::plural;
pub use metrics::Metrics;
pub use sign_ins::SignIns;
pub use visitors::Visitors;

/// Bytes of a form that is sent to the port.
const FORM_BYTES_MAX: usize = 256 << 10;

/// What the port shows.
pub struct Shown {
    pub live: Arc<Live>,
    pub clock: Arc<dyn Clock>,
    pub metrics: Arc<Metrics>,
    pub guard: RwLock<Guard>,
    pub asking: Asking,
    pub settings: RwLock<Settings>,
    /// Who has a query of their own running.
    pub visitors: Visitors,
    /// Which browsers are signed in, and who tries to.
    pub sign_ins: SignIns,
}

/// What of the configuration the page and the metrics need.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A folder of the user's own reports.
    pub queries: Option<PathBuf>,
    /// Whether visitors may ask in SQL.
    pub sql: bool,
    /// and how long an answer may take.
    pub sql_time: Duration,
    /// Where files are made that are taken away.
    pub spill_parent: PathBuf,
    /// Whether each team has series of its own in the metrics.
    pub team_metrics: TeamMetrics,
    /// With less left until a loss a stream is short of time.
    pub time_left: Duration,
}

impl Shown {
    fn guard(&self) -> Guard {
        self.guard.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        self.guard().admits(headers) || self.signed_in(headers).is_some()
    }

    /// The sign-in of the browser that sends these headers.
    fn signed_in(&self, headers: &HeaderMap) -> Option<Digest> {
        let (token, cookie) = (self.guard().token()?, cookie(headers, SESSION_COOKIE)?);
        self.sign_ins.find(token, cookie, self.clock.now())
    }

    fn is_closed(&self) -> bool {
        self.guard().is_closed()
    }

    fn settings(&self) -> Settings {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A port that answers until it is dropped.
pub struct Port {
    pub address: SocketAddr,
    shown: Arc<Shown>,
    _stop: oneshot::Sender<()>,
}

impl Port {
    /// Binds `address` and answers on it.
    ///
    /// # Errors
    /// When the address is taken or not ours.
    pub async fn open(address: SocketAddr, shown: Arc<Shown>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let bounds = Bounds::of(getrlimit(Resource::Nofile).current);
        tokio::spawn(serve(listener, router(shown.clone()), shown.clock.clone(), bounds, stopped.map(drop)));
        Ok(Self { address, shown, _stop: stop })
    }

    /// From now on requests must pass another guard, and are answered by other settings.
    pub fn regard(&self, guard: Guard, settings: Settings, limits: EngineLimits) {
        *self.shown.guard.write().unwrap_or_else(PoisonError::into_inner) = guard;
        *self.shown.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
        self.shown.asking.limit(limits);
    }
}

fn router(shown: Arc<Shown>) -> Router {
    Router::new()
        .route("/metrics", get(scrape))
        .merge(page::routes())
        .route("/api", get(api::index))
        .route("/api/", get(api::index))
        .nest("/api", api::routes())
        .fallback(page::not_found)
        .layer(middleware::from_fn_with_state(shown.clone(), guard::demand))
        .merge(page::open_routes())
        .layer(middleware::from_fn_with_state(shown.clone(), read_body))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .layer(middleware::from_fn(guard::check_host))
        .layer(middleware::from_fn(page::harden))
        .with_state(shown)
}

async fn scrape(State(shown): State<Arc<Shown>>) -> Response {
    let text = shown.metrics.render(&shown.live, &shown.settings(), shown.clock.now());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
