//! A listener whose connections the server can cut in the middle, like a broken network.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

pub(super) struct CuttableListener(pub TcpListener);

/// Cuts one connection: the server writes nothing more to it, and it ends with a reset.
#[derive(Debug, Clone)]
pub(super) struct Cutter {
    is_cut: Arc<AtomicBool>,
    pub peer: IpAddr,
}

impl Cutter {
    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }
}

pub(super) struct CuttableStream {
    stream: TcpStream,
    cutter: Cutter,
}

impl Listener for CuttableListener {
    type Io = CuttableStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        // Send each page at once. If this option fails, pages are only slower.
        let _ = stream.set_nodelay(true);
        (CuttableStream { stream, cutter: Cutter { is_cut: Arc::default(), peer: address.ip() } }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

impl Connected<IncomingStream<'_, CuttableListener>> for Cutter {
    fn connect_info(stream: IncomingStream<'_, CuttableListener>) -> Self {
        stream.io().cutter.clone()
    }
}

impl CuttableStream {
    fn check(&self) -> io::Result<()> {
        if !self.cutter.is_cut.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.stream.set_zero_linger()?;
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

impl AsyncRead for CuttableStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for CuttableStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
