//! Many connections that send half a request: the daemon keeps working.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use super::program::{Running, Scene, get, put, wait_for};

const TOKEN: &str = "a-token-for-the-port";
const DESCRIPTORS: u32 = 128;
/// Far more than the daemon's descriptors.
const CROWD: usize = 400;

fn guarded() -> (Scene, Running) {
    let scene = Scene::new(1);
    put(&scene.path("port-token"), TOKEN);
    let http = "[http]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"port-token\"\n";
    scene.configure(&format!("{http}{}", super::program::POLLS));
    let daemon = scene.start_within(DESCRIPTORS);
    wait_for("readiness", || daemon.is_ready().then_some(()));
    (scene, daemon)
}

fn send(address: &str, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nonblocking(true).unwrap();
    let _ = stream.write_all(text.as_bytes());
    stream
}

fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 512]) {
        Ok(0) => true,
        Ok(_) => false,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// Asserts that the daemon answers probes and pages, and commits new events.
fn assert_works(scene: &Scene, daemon: &Running, mark: &str) {
    let address = &daemon.address;
    assert_eq!(get(address, "/healthz", None).0, 200);
    // On a busy machine a stream can be late for a while.
    wait_for("readiness", || (get(address, "/readyz", None).0 == 200).then_some(()));
    let team = scene.team(0);
    scene.connect(&team, mark);
    wait_for("the event", || {
        assert_eq!(get(address, "/healthz", None).0, 200);
        (scene.count(&format!("connections where event_id = '{mark}'")) == 1).then_some(())
    });
    wait_for("the metrics", || (get(address, "/metrics", Some(TOKEN)).0 == 200).then_some(()));
}

#[test]
fn connections_with_half_a_header_block_nothing() {
    let (scene, daemon) = guarded();
    let half = format!("GET /sessions HTTP/1.1\r\nHost: {}\r\nX-Half: ", daemon.address);
    let mut crowd: Vec<TcpStream> = (0..CROWD).map(|_| send(&daemon.address, &half)).collect();
    assert_works(&scene, &daemon, "half-a-header");
    // Connections that send nothing, and connections that stay silent after an answered request.
    crowd.extend((0..CROWD / 2).map(|_| send(&daemon.address, "")));
    let whole = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", daemon.address);
    crowd.extend((0..CROWD / 2).map(|_| send(&daemon.address, &whole)));
    assert_works(&scene, &daemon, "nothing-at-all");
    wait_for("the end of all but a few", || {
        crowd.retain_mut(|stream| !is_closed(stream));
        (crowd.len() <= DESCRIPTORS as usize / 4).then_some(())
    });
    daemon.stop();
}

#[test]
fn requests_without_their_bodies_block_nothing() {
    let (scene, daemon) = guarded();
    let half = format!("POST /sign-in HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n\r\ntoken=", daemon.address);
    let mut crowd: Vec<TcpStream> = (0..CROWD).map(|_| send(&daemon.address, &half)).collect();
    assert_works(&scene, &daemon, "half-a-body");
    wait_for("the end of all", || {
        crowd.retain_mut(|stream| !is_closed(stream));
        crowd.is_empty().then_some(())
    });
    daemon.stop();
}
