//! A port for a server that a test starts later.

use std::net::{TcpListener, UdpSocket};
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Systems give out ports from 32768 (Linux) or 49152 (macOS) when a program asks for any port. So no other server takes these.
pub const PORTS: Range<u16> = 10_000..32_000;
/// Processes with neighbouring numbers begin this many ports apart.
const PORTS_A_PROCESS: u32 = 64;

static GIVEN: AtomicU32 = AtomicU32::new(0);

/// A port of 127.0.0.1 on which nobody listens. No test gets it again while this process lives.
pub fn free_port() -> u16 {
    let count = u32::from(PORTS.end - PORTS.start);
    let first = process::id() % count * PORTS_A_PROCESS;
    loop {
        let given = GIVEN.fetch_add(1, Ordering::Relaxed);
        assert!(given < count, "this process has tried every port of {PORTS:?}");
        let offset = u16::try_from((first + given) % count).expect("BUG: the range has fewer ports");
        let place = ("127.0.0.1", PORTS.start + offset);
        // A socket on the UDP port of the same number claims the port until the server has started, also among processes.
        if let (Ok(claim), Ok(_)) = (UdpSocket::bind(place), TcpListener::bind(place)) {
            std::mem::forget(claim);
            return place.1;
        }
    }
}
