//! Starts, runs and stops a sandbox.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, RawPathParams, RawQuery, State};
use axum::http::HeaderMap;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, get, on};
use axum::{Extension, Router};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::model::TeamId;

use super::answer::Refusal;
use super::config::SandboxConfig;
use super::error::SandboxError;
use super::handle::SandboxHandle;
use super::listener::{CuttableListener, Cutter};
use super::routes::{Method, Op, ROUTES, Route};
use super::tokens::{Bearer, Role};
use super::world::World;
use super::{admin_requests, control_requests, history, middleware, team_requests};

/// The largest body: a saved sandbox comes as one body.
const BODY_BYTES_MAX: usize = 256 << 20;
/// How long a stopping sandbox waits for unfinished answers.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(2);

/// The documented interface over synthetic teams.
pub struct Sandbox;

/// A sandbox that serves until a caller shuts it down or drops it.
pub struct RunningSandbox {
    /// The address without `/v1`, with which the documented paths begin.
    pub base_url: String,
    /// The admin token. The seed determines it, and it is worth nothing elsewhere.
    pub admin_token: String,
    /// A token for GET requests only.
    pub read_only_token: String,
    /// The token of a member who is no admin and sees the limited team view.
    pub member_token: String,
    pub teams: Vec<TeamId>,
    pub handle: SandboxHandle,
    stop: watch::Sender<bool>,
    server: Option<JoinHandle<()>>,
}

impl Sandbox {
    /// Makes the data, listens, and serves on the current tokio runtime.
    ///
    /// # Errors
    /// When it cannot listen on the address, or when the configured data is too large or outside the years 2000 to
    /// 2100.
    pub async fn start(config: SandboxConfig) -> Result<RunningSandbox, SandboxError> {
        let address = config.listen;
        let world = tokio::task::spawn_blocking(move || World::generate(config))
            .await
            .expect("BUG: making the sandbox's data does not panic")?;
        let world = Arc::new(world);
        let listen = |source| SandboxError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let bound = listener.local_addr().map_err(listen)?;
        let (stop, stopped) = watch::channel(false);
        let server = tokio::spawn(serve(Arc::clone(&world), listener, stopped));
        Ok(RunningSandbox {
            base_url: base_url(bound),
            admin_token: world.token(Role::Admin),
            read_only_token: world.token(Role::ReadOnly),
            member_token: world.token(Role::Member),
            teams: world.teams.iter().map(|team| team.roster.id.clone()).collect(),
            handle: SandboxHandle::new(world),
            stop,
            server: Some(server),
        })
    }
}

impl RunningSandbox {
    /// Stops the server. Unfinished answers get two seconds.
    pub async fn shutdown(mut self) {
        let _ = self.stop.send(true);
        if let Some(mut server) = self.server.take() {
            let timeout = self.handle.world().clock.sleep(SHUTDOWN_WAIT);
            tokio::select! {
                _ = &mut server => {}
                () = timeout => server.abort(),
            }
        }
    }
}

impl Drop for RunningSandbox {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
    }
}

fn base_url(bound: SocketAddr) -> String {
    format!("http://{bound}")
}

async fn serve(world: Arc<World>, listener: TcpListener, mut stopped: watch::Receiver<bool>) {
    let service = router(world).into_make_service_with_connect_info::<Cutter>();
    let stop = async move {
        // An error means that the owner dropped the sandbox: stop as well.
        let _ = stopped.wait_for(|stop| *stop).await;
    };
    // This never fails: an error of one connection ends only that connection.
    let _ = axum::serve(CuttableListener(listener), service).with_graceful_shutdown(stop).await;
}

fn router(world: Arc<World>) -> Router {
    let routed = ROUTES.iter().fold(Router::new(), |router, route| router.route(route.path, method_router(route)));
    routed
        .fallback(async || Refusal::not_found("path"))
        .method_not_allowed_fallback(async || Refusal::method_not_allowed())
        .layer(from_fn_with_state(Arc::clone(&world), middleware::handle))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(world)
}

fn method_router(route: &'static Route) -> MethodRouter<Arc<World>> {
    match route.op {
        Op::Teams => get(team_requests::teams),
        Op::History => get(history::activity),
        Op::DeviceEvents => get(history::connections),
        Op::DeviceHistory => get(history::computer_connections),
        Op::Billing => get(history::billing),
        Op::Truth => get(team_requests::truth),
        Op::IssueToken
        | Op::Clock
        | Op::SetClock
        | Op::Choices
        | Op::ChangeChoices
        | Op::Faults
        | Op::SetFaults
        | Op::Saved
        | Op::Load
        | Op::OpenApi => {
            let serve =
                async move |State(world): State<Arc<World>>, path: RawPathParams, headers: HeaderMap, body: Bytes| {
                    control_requests::serve(&world, route, &path, &headers, &body)
                };
            on(filter(route.method), serve)
        }
        _ => {
            let serve = async move |State(world): State<Arc<World>>,
                                    Extension(bearer): Extension<Bearer>,
                                    path: RawPathParams,
                                    RawQuery(query): RawQuery,
                                    headers: HeaderMap,
                                    body: Bytes| {
                admin_requests::administer(&world, route, &bearer, &path, query, &headers, &body)
            };
            on(filter(route.method), serve)
        }
    }
}

fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Patch => MethodFilter::PATCH,
        Method::Delete => MethodFilter::DELETE,
    }
}
