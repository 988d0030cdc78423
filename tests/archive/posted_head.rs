//! `annals anchor --post` sends the head that `annals anchor` prints.

use std::fs;

use crate::damage::tampering::put;
use crate::damage::world::{HONEST, World, key};

#[test]
fn a_posted_head_arrives_as_it_was_printed() {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let world = World::new(&HONEST);
    put(&world.path("signing.key"), key(1).to_file().as_bytes());
    world.take_head();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/heads", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let mut taken = Vec::new();
        for status in ["200 OK", "302 Found\r\nlocation: http://127.0.0.1:1/"] {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let (mut head, mut length) = (String::new(), 0);
            while stream.read_line(&mut head).unwrap() > 2 {
                let last = head.lines().last().unwrap().to_ascii_lowercase();
                length = last.strip_prefix("content-length: ").map_or(length, |text| text.parse().unwrap());
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            write!(stream.get_mut(), "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
            taken.push((head.to_ascii_lowercase(), String::from_utf8(body).unwrap()));
        }
        taken
    });
    assert_eq!(world.run(&["anchor", "--post", &address]).0, 0);
    let (exit, _, stderr) = world.run(&["anchor", "--post", &address]);
    assert!(exit == 1 && stderr.contains("302") && !stderr.contains(&address), "{stderr}");
    let taken = server.join().unwrap();
    assert_eq!(taken[0].1, fs::read_to_string(world.path("head")).unwrap());
    assert!(!taken[0].0.contains("authorization"), "{}", taken[0].0);
}
