//! Third-party object servers. `scripts/object-stores.sh` installs and runs them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::free_port::free_port;
use super::wait::wait_for;

/// The script's exit code for a server that is not installed.
const NOT_HERE: i32 = 3;

/// A server in a process of its own, which ends with this value.
pub struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// MiniStack with a bucket. `None`: it is not installed.
    pub fn ministack(bucket: &str) -> Option<Self> {
        Self::start("ministack", |server| server.make_bucket(bucket) == Some(200))
    }

    /// Starts a server, and waits until `is_ready`. `None`: it is not installed.
    pub fn start(name: &str, is_ready: impl Fn(&Self) -> bool) -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/object-stores.sh");
        let port = free_port();
        let mut command = Command::new(script);
        command.args([name, &port.to_string()]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self { process: command.spawn().expect("the script starts"), port };
        let is_here = wait_for(&format!("{name} on port {port}"), || {
            // Another server can answer on the port of a server that has ended.
            if let Some(status) = server.process.try_wait().expect("the process is ours") {
                assert_eq!(status.code(), Some(NOT_HERE), "{name} ended before it was ready on port {port}: {status}");
                return Some(false);
            }
            is_ready(&server).then_some(true)
        });
        is_here.then_some(server)
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The status of an unsigned request that makes a bucket.
    fn make_bucket(&self, bucket: &str) -> Option<u16> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let host = format!("127.0.0.1:{}", self.port);
        write!(stream, "PUT /{bucket} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.split(' ').nth(1)?.parse().ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
