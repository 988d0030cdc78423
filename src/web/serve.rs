//! Answers on the port's connections, each within a bounded time.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures::FutureExt as _;
use futures::future::Shared;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};

use crate::clock::Clock;

use super::connections::{Bounds, Connection, Connections, Work};
use super::guard::refusal;
use super::problem::Problem;
use super::{FORM_BYTES_MAX, Shown, page};

/// A connection may wait so long for the whole header of its next request.
const HEADER_TIME: Duration = Duration::from_secs(15);
/// and then for the whole body.
const BODY_TIME: Duration = Duration::from_secs(15);
/// Whoever takes nothing of an answer for so long is not waited for.
const STALL_TIME: Duration = Duration::from_secs(30);
/// Bytes of a header, and of an answer that waits to be sent.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// After a connection could not be taken (no descriptor is left), the next is tried after so long.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// These are answered whatever else is asked.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// Answers with `router` until `stopped`; what is under way then comes to its end.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    clock: Arc<dyn Clock>,
    bounds: Bounds,
    stopped: impl Future<Output = ()> + Send + 'static,
) {
    let stopped = stopped.boxed().shared();
    let connections = Connections::new(bounds);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener, clock.as_ref()) => accepted,
            () = stopped.clone() => return,
        };
        let connection = connections.enter().await;
        tokio::spawn(answer((stream, peer), router.clone(), clock.clone(), connection, stopped.clone()));
    }
}

async fn accept(listener: &TcpListener, clock: &dyn Clock) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => match error.kind() {
                ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset => {}
                _ => {
                    tracing::warn!(%error, "the port cannot take a connection");
                    clock.sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

async fn answer(
    (stream, peer): (TcpStream, SocketAddr),
    router: Router,
    clock: Arc<dyn Clock>,
    connection: Arc<Connection>,
    stopped: Shared<impl Future<Output = ()>>,
) {
    let _ = stream.set_nodelay(true);
    let router = TowerToHyperService::new(router);
    let asked = connection.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        let begun = match asked.begin(PROBES.contains(&request.uri().path())) {
            Some(work) => Ok((work, router.call(request))),
            None => Err(busy(&request)),
        };
        async move {
            match begun {
                Ok((work, answer)) => answer.await.map(|answer| answer.map(|body| Body::new(Counted { body, work }))),
                Err(busy) => Ok::<_, Infallible>(busy),
            }
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).max_buf_size(BUFFER_BYTES_MAX);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let (mut stopped, mut is_stopping, mut frames) = (stopped, false, 0);
    loop {
        tokio::select! {
            // An error is the peer's: it went, or was too slow.
            _ = served.as_mut() => return,
            () = connection.closing() => return,
            () = &mut stopped, if !is_stopping => {
                is_stopping = true;
                served.as_mut().graceful_shutdown();
            }
            () = clock.sleep(STALL_TIME) => {
                let before = std::mem::replace(&mut frames, connection.frames());
                if before != 0 && before == frames {
                    return;
                }
            }
        }
    }
}

fn busy(request: &Request<Incoming>) -> Response {
    let problem = Problem::overloaded("too many requests are in work: try again in a moment");
    page::hardened(refusal(request.uri(), problem))
}

/// The body of an answer, which is in work as long as there is more of it.
struct Counted {
    body: Body,
    work: Work,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.work.advance();
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The whole body of a request is read before it is looked at, within a bounded time.
pub async fn read_body(State(shown): State<Arc<Shown>>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let whole = tokio::select! {
        whole = axum::body::to_bytes(body, FORM_BYTES_MAX) => whole,
        () = shown.clock.sleep(BODY_TIME) => {
            return refusal(&head.uri, Problem::slow("the request's body did not come in time"));
        }
    };
    match whole {
        Ok(whole) => next.run(Request::from_parts(head, Body::from(whole))).await,
        Err(_) => {
            let problem =
                Problem::large(format!("the request's body has more than {FORM_BYTES_MAX} bytes, or broke off"));
            refusal(&head.uri, problem)
        }
    }
}
