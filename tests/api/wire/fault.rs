//! The faults that the proxy causes in an answer.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use super::Passing;

/// More text than the program reads of any answer, compressed to a hundredth of the bytes.
const BOMB_BYTES: usize = 80 * 1024 * 1024;
const FOR_EVER: Duration = Duration::from_secs(3_600);

/// How much of an answer the proxy passes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Nothing,
    HalfOfTheHead,
    HalfOfTheBody,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection ends before the request.
    ResetOnConnect,
    Reset(Part),
    /// The proxy closes its half in order and reads the other half to its end.
    HalfClose(Part),
    Stall(Part),
    /// One byte a second.
    Drip,
    /// Silence for this many milliseconds, then the whole answer.
    Late(u64),
    /// The head announces more bytes than follow, and the connection ends in order.
    LengthTooLarge,
    /// The head announces fewer bytes than follow.
    LengthTooSmall,
    /// The head says that the body is compressed, but it is not.
    NotGzip,
    GzipCut,
    GzipChecksum,
    /// A small body that becomes far too large when it is unpacked.
    Bomb,
}

/// Passes an answer on. Returns false when the connection is over.
pub fn pass(stream: &mut TcpStream, answer: Passing, fault: Option<Fault>, wait: &dyn Fn(Duration)) -> bool {
    let whole = |answer: &Passing| [answer.head.as_slice(), &answer.body].concat();
    let mut send = |bytes: &[u8]| stream.write_all(bytes).is_ok();
    match fault {
        None => send(&whole(&answer)),
        Some(Fault::ResetOnConnect) => false,
        Some(Fault::Reset(part)) => {
            send(part_of(&whole(&answer), &answer, part));
            false
        }
        Some(Fault::HalfClose(part)) => {
            send(part_of(&whole(&answer), &answer, part));
            end_in_order(stream)
        }
        Some(Fault::Stall(part)) => {
            send(part_of(&whole(&answer), &answer, part));
            wait(FOR_EVER);
            false
        }
        Some(Fault::Drip) => whole(&answer).iter().all(|byte| {
            wait(Duration::from_secs(1));
            send(&[*byte])
        }),
        Some(Fault::Late(millis)) => {
            wait(Duration::from_millis(millis));
            send(&whole(&answer))
        }
        Some(Fault::LengthTooLarge) => {
            let head = with_length(&answer.head, answer.body.len() + 1_000);
            send(&[head, answer.body].concat());
            end_in_order(stream)
        }
        Some(Fault::LengthTooSmall) => {
            let head = with_length(&answer.head, answer.body.len() - 1);
            send(&[head, answer.body].concat())
        }
        Some(Fault::NotGzip) => send(&packed(&answer.head, &answer.body)),
        Some(Fault::GzipCut) => {
            let zipped = gzip(&answer.body);
            send(&packed(&answer.head, &zipped[..zipped.len() / 2]))
        }
        Some(Fault::GzipChecksum) => {
            let mut zipped = gzip(&answer.body);
            let checksum = zipped.len() - 6;
            zipped[checksum] ^= 1;
            send(&packed(&answer.head, &zipped))
        }
        Some(Fault::Bomb) => {
            static BOMB: OnceLock<Vec<u8>> = OnceLock::new();
            send(&packed(&answer.head, BOMB.get_or_init(|| gzip(&vec![b' '; BOMB_BYTES]))))
        }
    }
}

fn part_of<'a>(whole: &'a [u8], answer: &Passing, part: Part) -> &'a [u8] {
    match part {
        Part::Nothing => &[],
        Part::HalfOfTheHead => &whole[..answer.head.len() / 2],
        Part::HalfOfTheBody => &whole[..answer.head.len() + answer.body.len() / 2],
        Part::All => whole,
    }
}

fn end_in_order(stream: &mut TcpStream) -> bool {
    let _ = stream.shutdown(Shutdown::Write);
    let _ = std::io::copy(stream, &mut std::io::sink());
    false
}

fn lines(head: &[u8]) -> Vec<&str> {
    std::str::from_utf8(head).unwrap().trim_end().split("\r\n").collect()
}

fn is_length(line: &str) -> bool {
    line.to_ascii_lowercase().starts_with("content-length:")
}

pub fn content_length(head: &[u8]) -> Option<usize> {
    lines(head).into_iter().find(|line| is_length(line))?.split_once(':')?.1.trim().parse().ok()
}

fn with_length(head: &[u8], length: usize) -> Vec<u8> {
    let kept: Vec<&str> = lines(head).into_iter().filter(|line| !is_length(line)).collect();
    format!("{}\r\nContent-Length: {length}\r\n\r\n", kept.join("\r\n")).into_bytes()
}

/// An answer whose head says that the body is compressed.
fn packed(head: &[u8], body: &[u8]) -> Vec<u8> {
    let mut head = with_length(head, body.len());
    head.truncate(head.len() - 2);
    [head.as_slice(), b"Content-Encoding: gzip\r\n\r\n", body].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
