//! Just enough HTTP/1.1 to serve, and to cause faults.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// The decoded query, in order.
    pub query: Vec<(String, String)>,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Request {
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.param(name)?.parse().ok()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether the request is for a page of a history.
    pub fn is_history(&self) -> bool {
        self.path.ends_with("/history") || self.path.ends_with("/history/devices")
    }

    pub fn is_connections(&self) -> bool {
        self.path.ends_with("/history/devices")
    }

    pub fn is_activity(&self) -> bool {
        self.path.ends_with("/history") && !self.path.contains("/device/")
    }

    pub fn is_billing(&self) -> bool {
        self.path.ends_with("/billing/events")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn of(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: vec![("Content-Type".into(), "application/json".into())], body: body.into() }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn html() -> Self {
        let page = "<!DOCTYPE html><html><body><h1>Please wait</h1></body></html>";
        Self { status: 200, headers: vec![("Content-Type".into(), "text/html".into())], body: page.into() }
    }

    /// The head and the body; with `cut`, a shorter body than the head announces.
    pub fn bytes(&self, date: Option<&str>, cut: Option<usize>) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Status\r\nContent-Length: {}\r\n", self.status, self.body.len());
        if let Some(date) = date {
            head.push_str(&format!("Date: {date}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body[..cut.unwrap_or(self.body.len()).min(self.body.len())]);
        bytes
    }
}

/// The next request of a connection; `None` at its end.
pub fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let first = line(reader)?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let header = line(reader)?;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    Some(Request { method, path: path.to_owned(), query, headers })
}

fn line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut text = String::new();
    let length = reader.read_line(&mut text).ok()?;
    (length > 0).then(|| text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Returns false when the peer is gone.
pub fn write(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).and_then(|()| stream.flush()).is_ok()
}
