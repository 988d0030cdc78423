//! A proxy on loopback between the program and the service. It damages the traffic, on the wire and in TLS.

pub mod fault;
pub mod tls;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

pub use fault::{Fault, Part};

use crate::common::wait::wait_for;

/// Which requests get the fault, counted from the moment at which it was set.
pub type Which = Range<usize>;
pub const ALL: Which = 0..usize::MAX;

struct Spoiling {
    fault: Fault,
    which: Which,
    seen: usize,
    spoiled: usize,
}

pub struct Shared {
    service: SocketAddr,
    spoiling: Mutex<Option<Spoiling>>,
    /// The certificate, if the proxy speaks TLS.
    certificate: Mutex<Option<&'static str>>,
    connections: AtomicUsize,
    over: AtomicBool,
    ended: Mutex<bool>,
    bell: Condvar,
}

pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Passes everything on to the service at `base_url`, until a fault is set.
    pub fn to(base_url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            service: base_url.trim_start_matches("http://").parse().unwrap(),
            spoiling: Mutex::default(),
            certificate: Mutex::default(),
            connections: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            ended: Mutex::new(false),
            bell: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if theirs.over.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), theirs) = (stream, Arc::clone(&theirs)) else { continue };
                theirs.connections.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || theirs.serve(stream));
            }
        });
        Self { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn spoil(&self, fault: Fault, which: Which) {
        *self.shared.spoiling.lock().unwrap() = Some(Spoiling { fault, which, seen: 0, spoiled: 0 });
    }

    /// How many requests got the fault.
    pub fn spoiled(&self) -> usize {
        self.shared.spoiling.lock().unwrap().as_ref().map_or(0, |spoiling| spoiling.spoiled)
    }

    pub fn be_honest(&self) {
        *self.shared.spoiling.lock().unwrap() = None;
    }

    /// Waits until this many connections have come in.
    pub fn wait_for_connections(&self, count: usize) {
        wait_for("so many connections", || (self.shared.connections.load(Ordering::SeqCst) >= count).then_some(()));
    }

    /// Makes the proxy speak TLS with the named certificate.
    pub fn show(&self, certificate: &'static str) {
        *self.shared.certificate.lock().unwrap() = Some(certificate);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        *self.shared.ended.lock().unwrap() = true;
        self.shared.bell.notify_all();
        drop(TcpStream::connect(self.address));
    }
}

/// An answer of the service: head and body.
pub struct Passing {
    pub head: Vec<u8>,
    pub body: Vec<u8>,
}

impl Shared {
    /// A closed peer ends the connection, not the test.
    fn serve(&self, mut stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        if let Some(certificate) = *self.certificate.lock().unwrap() {
            tls::serve(stream, certificate, |request| self.ask(request));
            return;
        }
        if self.is_next(Fault::ResetOnConnect) {
            self.take_fault();
            return;
        }
        while let Some(length) = request_length(&stream) {
            let mut request = vec![0; length];
            if !matches!(stream.peek(&mut request), Ok(n) if n == length) {
                return;
            }
            let fault = self.take_fault();
            let Some(answer) = self.ask(&request) else { return };
            // A socket with unread bytes sends a reset when it closes.
            let resets = matches!(fault, Some(Fault::Reset(_)));
            if !resets && stream.read_exact(&mut request).is_err() {
                return;
            }
            if !fault::pass(&mut stream, answer, fault, &|span| self.wait(span)) {
                return;
            }
        }
    }

    fn is_next(&self, fault: Fault) -> bool {
        let spoiling = self.spoiling.lock().unwrap();
        spoiling.as_ref().is_some_and(|is| is.fault == fault && is.which.contains(&is.seen))
    }

    /// The fault of the next request.
    fn take_fault(&self) -> Option<Fault> {
        let mut spoiling = self.spoiling.lock().unwrap();
        let spoiling = spoiling.as_mut()?;
        spoiling.seen += 1;
        let is_meant = spoiling.which.contains(&(spoiling.seen - 1));
        spoiling.spoiled += usize::from(is_meant);
        is_meant.then_some(spoiling.fault)
    }

    /// Sends a request's bytes to the service and returns its answer.
    fn ask(&self, request: &[u8]) -> Option<Passing> {
        let mut service = TcpStream::connect(self.service).ok()?;
        service.write_all(request).ok()?;
        let head = read_head(&mut service)?;
        let mut body = vec![0; fault::content_length(&head)?];
        service.read_exact(&mut body).ok()?;
        Some(Passing { head, body })
    }

    /// Waits, but at most until the proxy ends.
    fn wait(&self, span: Duration) {
        let ended = self.ended.lock().unwrap();
        drop(self.bell.wait_timeout_while(ended, span, |ended| !*ended).unwrap());
    }
}

/// The bytes up to the empty line, with it.
pub fn read_head(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(head)
}

/// Reads a whole request head and returns its length; `None` at the connection's end.
fn request_length(stream: &TcpStream) -> Option<usize> {
    let mut seen = vec![0; 64 * 1024];
    loop {
        let length = stream.peek(&mut seen).ok().filter(|&length| length > 0)?;
        if let Some(end) = seen[..length].windows(4).position(|four| four == b"\r\n\r\n") {
            return Some(end + 4);
        }
        std::thread::yield_now();
    }
}
