//! The daemon's port: whether it lives, whether every stream is within its lag, and its metrics.
//!
//! On a loopback address the port is open to whoever is on the machine. Elsewhere it demands a bearer token; without one,
//! `/healthz` and `/readyz` answer their status and nothing else, so that probes need no secret.

mod guard;
mod health;
mod metrics;
pub mod names;

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::channel::oneshot;
use tokio::net::TcpListener;

use crate::clock::Clock;
use crate::pipeline::Live;

pub use guard::{Guard, GuardError};
pub use metrics::Metrics;

/// What the port shows.
pub struct Shown {
    pub live: Arc<Live>,
    pub clock: Arc<dyn Clock>,
    pub metrics: Arc<Metrics>,
    pub guard: RwLock<Guard>,
}

impl Shown {
    fn admits(&self, headers: &HeaderMap) -> bool {
        self.guard.read().unwrap_or_else(PoisonError::into_inner).admits(headers)
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
            let served = axum::serve(listener, router(theirs)).with_graceful_shutdown(async {
                let _ = stopped.await;
            });
            if let Err(error) = served.await {
                tracing::error!(%error, "the port answers no more");
            }
        });
        Ok(Self { address, shown, _stop: stop })
    }

    /// From now on requests must pass another guard.
    pub fn regard(&self, guard: Guard) {
        *self.shown.guard.write().unwrap_or_else(PoisonError::into_inner) = guard;
    }
}

fn router(shown: Arc<Shown>) -> Router {
    Router::new()
        .route("/metrics", get(scrape))
        .fallback(|| async { (StatusCode::NOT_FOUND, "not found: /healthz, /readyz, /metrics\n") })
        .layer(middleware::from_fn_with_state(shown.clone(), guard::demand))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .with_state(shown)
}

async fn scrape(State(shown): State<Arc<Shown>>) -> Response {
    let text = shown.metrics.render(&shown.live, shown.clock.now());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
