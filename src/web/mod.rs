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
mod guard;
mod health;
mod human;
mod input;
mod metrics;
pub mod names;
mod page;
mod problem;
mod queue;
mod visitors;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::IntoMakeServiceWithConnectInfo;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::channel::oneshot;
use tokio::net::TcpListener;

use crate::clock::Clock;
use crate::config::TeamMetrics;
use crate::pipeline::Live;

pub use asking::{Asking, EngineLimits};
pub use guard::{Guard, GuardError};
pub use human::plural;
pub use metrics::Metrics;
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
        self.guard().admits(headers, self.clock.now())
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
        let theirs = shown.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let served = axum::serve(listener, service(theirs)).with_graceful_shutdown(async {
                let _ = stopped.await;
            });
            if let Err(error) = served.await {
                tracing::error!(%error, "the port answers no more");
            }
        });
        Ok(Self { address, shown, _stop: stop })
    }

    /// From now on requests must pass another guard, and are answered by other settings.
    pub fn regard(&self, guard: Guard, settings: Settings, limits: EngineLimits) {
        *self.shown.guard.write().unwrap_or_else(PoisonError::into_inner) = guard;
        *self.shown.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
        self.shown.asking.limit(limits);
    }
}

fn service(shown: Arc<Shown>) -> IntoMakeServiceWithConnectInfo<Router, SocketAddr> {
    router(shown).into_make_service_with_connect_info()
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
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .merge(page::open_routes())
        .layer(middleware::from_fn(page::harden))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .with_state(shown)
}

async fn scrape(State(shown): State<Arc<Shown>>) -> Response {
    let text = shown.metrics.render(&shown.live, &shown.settings(), shown.clock.now());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
