//! One request to the port, and its whole answer.

use std::io::{Read, Write};

use serde_json::Value;

use crate::program::PATIENCE;

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    /// The values of a header, in order.
    pub fn headers(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(held, _)| held == name).map(|(_, value)| value.as_str()).collect()
    }

    /// The only value of a header.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers(name);
        assert_eq!(found.len(), 1, "{name}: {:?}", self.headers);
        found[0]
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), "application/json", "{}", self.body);
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// The code of a refusal. Asserts that the refusal has a message.
    #[track_caller]
    pub fn refusal(&self) -> String {
        let json = self.json();
        assert!(json["error"]["message"].as_str().is_some_and(|message| message.len() > 10), "{json}");
        json["error"]["code"].as_str().unwrap().to_owned()
    }
}

/// Sends a request with HTTP/1.0, so the answer comes in one piece.
pub fn ask(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let has_host = headers.iter().any(|(name, _)| *name == "Host");
    let host = if has_host { String::new() } else { format!("Host: {address}\r\n") };
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.0\r\n{host}{more}Content-Length: {length}\r\n\r\n{body}").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let answer = String::from_utf8_lossy(&bytes);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.map(|line| line.split_once(": ").unwrap());
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    Answer { status, headers, body: body.to_owned() }
}

pub fn get(address: &str, path: &str) -> Answer {
    ask(address, "GET", path, &[], "")
}

pub fn post(address: &str, path: &str, form: &[(&str, &str)]) -> Answer {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    ask(address, "POST", path, &[("Content-Type", "application/x-www-form-urlencoded")], &body)
}
