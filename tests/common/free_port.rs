//! A port for a server that a test starts later.

use std::net::TcpListener;
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// Systems give out ports from 32768 (Linux) or 49152 (macOS) when a program asks for any port. So no other server takes these.
pub const PORTS: Range<u16> = 10_000..32_000;
/// Processes with neighbouring numbers begin this many ports apart.
const PORTS_A_PROCESS: u32 = 64;

static GIVEN: AtomicU32 = AtomicU32::new(0);

/// A port of 127.0.0.1 on which nobody listens. A process never gets the same port twice.
pub fn free_port() -> u16 {
    let count = u32::from(PORTS.end - PORTS.start);
    let first = process::id() % count * PORTS_A_PROCESS;
    loop {
        let given = GIVEN.fetch_add(1, Ordering::Relaxed);
        assert!(given < count, "this process has tried every port of {PORTS:?}");
        let offset = u16::try_from((first + given) % count).expect("BUG: the range has fewer ports");
        let port = PORTS.start + offset;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
