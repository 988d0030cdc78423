//! Serves the port's connections, with a time limit for every step.

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

use super::connections::{Bounds, Connection, Connections, InFlight};
use super::guard::refusal;
use super::problem::Problem;
use super::{AppState, FORM_BYTES_MAX, page};

/// Time limit for the whole header of the next request.
const HEADER_TIME: Duration = Duration::from_secs(15);
/// Time limit for the whole body.
const BODY_TIME: Duration = Duration::from_secs(15);
/// A client that takes no byte of an answer for this long is disconnected.
const STALL_TIME: Duration = Duration::from_secs(30);
/// Maximum size of a header, and of buffered answer data.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Pause after a failed accept (no descriptor is left).
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// Requests that are always answered.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// Serves with `router` until `stopped`; running requests then finish.
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
                    tracing::warn!(%error, "the port cannot accept a connection");
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
                Ok((work, answer)) => answer
                    .await
                    .map(|answer| answer.map(|body| Body::new(CountedBody { body, rest: Bytes::new(), work }))),
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
            // The peer caused this error: it is gone, or was too slow.
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
    let problem = Problem::overloaded("too many requests are running: try again in a moment");
    page::with_security_headers(refusal(request.uri(), problem))
}

/// The body of an answer, in parts; the request counts as running until the client has taken all of it. The server takes the next
/// part only when its buffer has room, so each part shows that the client reads. Without a part, [`STALL_TIME`] ends the connection.
struct CountedBody {
    body: Body,
    /// The unsent bytes of the last frame.
    rest: Bytes,
    work: InFlight,
}

impl CountedBody {
    fn next_part(&mut self) -> Frame<Bytes> {
        let part = self.rest.split_to(self.rest.len().min(BUFFER_BYTES_MAX));
        Frame::data(part)
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.work.advance();
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.next_part())));
        }
        let frame = match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => frame,
            other => return other,
        };
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(data) => {
                self.rest = data;
                self.next_part()
            }
            Err(trailers) => trailers,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    /// Exact, if the body's is: the answer then has a length.
    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest + body.lower());
        if let Some(upper) = body.upper() {
            hint.set_upper(rest + upper);
        }
        hint
    }
}

/// Reads the whole body of a request, within a time limit, before the request is handled.
pub async fn read_body(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let whole = tokio::select! {
        whole = axum::body::to_bytes(body, FORM_BYTES_MAX) => whole,
        () = state.clock.sleep(BODY_TIME) => {
            return refusal(&head.uri, Problem::slow("the request's body did not arrive in time"));
        }
    };
    match whole {
        Ok(whole) => next.run(Request::from_parts(head, Body::from(whole))).await,
        Err(_) => {
            let problem = Problem::large(format!(
                "the request's body has more than {FORM_BYTES_MAX} bytes, or the connection broke"
            ));
            refusal(&head.uri, problem)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::poll_fn;

    #[tokio::test]
    async fn a_large_answer_leaves_in_parts_and_keeps_its_length() {
        let connections = Connections::new(Bounds::of(None));
        let work = connections.enter().await.begin(false).unwrap();
        let length = 2 * BUFFER_BYTES_MAX + 7;
        let mut body = CountedBody { body: Body::from(vec![7; length]), rest: Bytes::new(), work };
        let (mut left, mut parts) = (length, Vec::new());
        while left > 0 {
            assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(left as u64), false));
            let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.unwrap().unwrap();
            let part = frame.into_data().unwrap().len();
            (left, parts) = (left - part, [parts, vec![part]].concat());
        }
        assert_eq!(parts, [BUFFER_BYTES_MAX, BUFFER_BYTES_MAX, 7]);
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(0), true));
    }
}
