//! Starting, running and stopping a sandbox.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::model::TeamId;

use super::answer::Refusal;
use super::config::SandboxConfig;
use super::error::SandboxError;
use super::handle::SandboxHandle;
use super::listener::{CuttableListener, Cutter};
use super::world::{Role, World};
use super::{directory, gate, history};

/// How long a stopping sandbox waits for answers under way.
const FAREWELL: Duration = Duration::from_secs(2);

/// The documented service over synthetic teams.
pub struct Sandbox;

/// A sandbox that serves until it is shut down or dropped.
pub struct RunningSandbox {
    /// Without `/v1`: the documented paths begin with it.
    pub base_url: String,
    /// Derived from the seed and worth nothing elsewhere.
    pub admin_token: String,
    /// May make only GET requests.
    pub read_only_token: String,
    /// Belongs to a member who is no admin: the limited team view.
    pub member_token: String,
    pub teams: Vec<TeamId>,
    pub handle: SandboxHandle,
    stop: watch::Sender<bool>,
    server: Option<JoinHandle<()>>,
}

impl Sandbox {
    /// Makes the data and listens. Needs a tokio runtime, on which it then serves.
    ///
    /// # Errors
    /// When the address cannot be had, or the data asked for is too much or lies outside 2000 to 2100.
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
            teams: world.teams.iter().map(|team| team.cast.id.clone()).collect(),
            handle: SandboxHandle::new(world),
            stop,
            server: Some(server),
        })
    }
}

impl RunningSandbox {
    /// Stops serving; answers under way get two seconds.
    pub async fn shutdown(mut self) {
        let _ = self.stop.send(true);
        if let Some(mut server) = self.server.take() {
            let farewell = self.handle.world().clock.sleep(FAREWELL);
            tokio::select! {
                _ = &mut server => {}
                () = farewell => server.abort(),
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
        // An error means that the sandbox was dropped, which is the same wish.
        let _ = stopped.wait_for(|stop| *stop).await;
    };
    // Serving a listener never fails: errors of single connections end those alone.
    let _ = axum::serve(CuttableListener(listener), service).with_graceful_shutdown(stop).await;
}

fn router(world: Arc<World>) -> Router {
    Router::new()
        .route("/v1/user/teams", get(directory::teams))
        .route("/v1/team/{team}", get(directory::team))
        .route("/v1/team/{team}/devices", get(directory::computers))
        .route("/v1/team/{team}/device/{device}", get(directory::computer))
        .route("/v1/team/{team}/device/{device}/history", get(history::computer_connections))
        .route("/v1/team/{team}/users", get(directory::people))
        .route("/v1/team/{team}/saml/users", get(directory::sso_people))
        .route("/v1/team/{team}/user/{user}/info", get(directory::authentication))
        .route("/v1/team/{team}/history", get(history::activity))
        .route("/v1/team/{team}/history/devices", get(history::connections))
        .route("/v1/team/{team}/billing/events", get(history::billing))
        .route("/sandbox/truth/{team}/{stream}", get(directory::truth))
        .fallback(async || Refusal::not_found("path"))
        .method_not_allowed_fallback(async || Refusal::method_not_allowed())
        .layer(from_fn_with_state(Arc::clone(&world), gate::pass))
        .with_state(world)
}
