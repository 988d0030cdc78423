//! A small HTTP server on loopback with scripted faults, one for each request.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::time::Duration;

/// The reaction to one request.
#[derive(Debug, Clone)]
pub enum Act {
    /// These bytes; the connection stays open for the next request.
    Answer(Vec<u8>),
    /// The same, once enough requests are here.
    Together(Arc<Barrier>, Vec<u8>),
    /// These bytes, then an orderly close.
    Close(Vec<u8>),
    /// These bytes, then a reset.
    Reset(Vec<u8>),
    /// These bytes; then the server closes its half and reads the other half to its end.
    HalfClose(Vec<u8>),
    /// These bytes one by one, with this pause after each.
    Drip(Vec<u8>, Duration),
    /// These bytes, then silence for as long as the server lives.
    Stall(Vec<u8>),
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The query in order, without decoding.
    pub fn query(&self) -> Vec<(&str, &str)> {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        query.split('&').filter_map(|pair| pair.split_once('=')).collect()
    }
}

pub struct ScriptedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    script: Mutex<VecDeque<Act>>,
    requests: Mutex<Vec<Request>>,
    connections: AtomicU64,
    bytes_written: AtomicU64,
    at_once: AtomicU64,
    at_once_max: AtomicU64,
    over: AtomicBool,
    ended: Mutex<bool>,
    bell: Condvar,
}

impl ScriptedServer {
    /// Starts on a free port. After the end of the script, every request gets 410.
    pub fn start(script: impl IntoIterator<Item = Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { script: Mutex::new(script.into_iter().collect()), ..Shared::default() });
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

    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The largest number of simultaneous requests.
    pub fn at_once_max(&self) -> u64 {
        self.shared.at_once_max.load(Ordering::SeqCst)
    }

    /// How many bytes the peer read.
    pub fn bytes_written(&self) -> u64 {
        self.shared.bytes_written.load(Ordering::SeqCst)
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        *self.shared.ended.lock().unwrap() = true;
        self.shared.bell.notify_all();
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    /// A closed peer ends the connection, not the test.
    fn serve(&self, mut stream: TcpStream) {
        while let Some(length) = request_length(&stream) {
            let mut head = vec![0; length];
            if !matches!(stream.peek(&mut head), Ok(n) if n == length) {
                return;
            }
            self.requests.lock().unwrap().push(parse_request(&head));
            let act = self.script.lock().unwrap().pop_front();
            let act = act.unwrap_or_else(|| Act::Answer(response(410, &[], b"the script is used up")));
            let at_once = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.at_once_max.fetch_max(at_once, Ordering::SeqCst);
            // A socket with unread bytes sends a reset when it closes.
            let resets = matches!(act, Act::Reset(_));
            let goes_on = (resets || stream.read_exact(&mut head).is_ok()) && self.perform(&mut stream, act);
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            if !goes_on {
                return;
            }
        }
    }

    /// Returns false when the connection is over.
    fn perform(&self, stream: &mut TcpStream, act: Act) -> bool {
        match act {
            Act::Answer(bytes) => self.write(stream, &bytes),
            Act::Together(meeting, bytes) => {
                let _ = meeting.wait();
                self.write(stream, &bytes)
            }
            Act::Close(bytes) | Act::Reset(bytes) => {
                self.write(stream, &bytes);
                false
            }
            Act::HalfClose(bytes) => {
                self.write(stream, &bytes);
                let _ = stream.shutdown(Shutdown::Write);
                let _ = std::io::copy(stream, &mut std::io::sink());
                false
            }
            Act::Drip(bytes, pause) => bytes.iter().all(|byte| {
                self.wait(pause);
                self.write(stream, &[*byte])
            }),
            Act::Stall(bytes) => {
                self.write(stream, &bytes);
                self.wait(Duration::from_secs(3_600));
                false
            }
        }
    }

    fn write(&self, stream: &mut TcpStream, bytes: &[u8]) -> bool {
        bytes.chunks(16 * 1024).all(|chunk| {
            let done = stream.write_all(chunk).is_ok();
            self.bytes_written.fetch_add(chunk.len() as u64, Ordering::SeqCst);
            done
        })
    }

    /// Waits, but at most until the server ends.
    fn wait(&self, span: Duration) {
        let ended = self.ended.lock().unwrap();
        drop(self.bell.wait_timeout_while(ended, span, |ended| !*ended).unwrap());
    }
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

fn parse_request(head: &[u8]) -> Request {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines();
    let target = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let headers = lines.filter_map(|line| line.split_once(':'));
    Request { target, headers: headers.map(|(k, v)| (k.to_ascii_lowercase(), v.trim().to_owned())).collect() }
}

/// A complete response with the correct `Content-Length`.
pub fn response(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = head(status, headers, body.len());
    bytes.extend_from_slice(body);
    bytes
}

/// A head that announces `length` bytes of body.
pub fn head(status: u16, headers: &[(&str, &str)], length: usize) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Status\r\nContent-Length: {length}\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}

pub fn ok(body: &str) -> Act {
    Act::Answer(response(200, &[("Content-Type", "application/json")], body.as_bytes()))
}

pub fn status(status: u16, headers: &[(&str, &str)]) -> Act {
    Act::Answer(response(status, headers, b"{}"))
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
