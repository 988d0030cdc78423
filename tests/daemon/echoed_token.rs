//! A service that repeats the token in every answer: the daemon never shows it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use super::program::{Scene, get, put, wait_for};

const TOKEN: &str = "t0ken-that-is-echoed";

/// Answers every request with status 400 and the token as the error's code.
fn echoing() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let token = head.iter().find_map(|line| line.split_once("Bearer ")).map_or("none", |(_, token)| token);
            let body = format!("{{\"code\":\"{token}\"}}");
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nX-Token: {token}\r\nContent-Length: {length}\r\n\r\n{body}"
            );
        }
    });
    format!("http://{address}")
}

#[test]
fn no_page_answer_or_log_holds_an_echoed_token() {
    let scene = Scene::new(1);
    scene.set_token(TOKEN);
    let polls = "[schedule]\nconnections = \"*/2 * * * * *\"\nactivity = \"*/2 * * * * *\"\n";
    let api = format!("[api]\nbase_url = \"{}\"\ntoken_file = \"token\"\nrequests_per_second = 0\n", echoing());
    put(&scene.path("annals.toml"), format!("archive = \"archive\"\n{api}[http]\nlisten = \"127.0.0.1:0\"\n{polls}"));
    let daemon = scene.start_with(&[("RUST_LOG", "trace")]);
    let status = wait_for("the error", || {
        let status = daemon.get("/api/status").1;
        status.contains("[redacted]").then_some(status)
    });
    assert!(!status.contains(TOKEN), "{status}");
    for path in ["/", "/readyz", "/healthz", "/metrics", "/coverage", "/findings", "/api/coverage"] {
        let (code, answer) = get(&daemon.address, path, None);
        assert!(code != 0 && !answer.contains(TOKEN), "{path}: {answer}");
    }
    let log = daemon.log.text();
    assert!(log.contains("[redacted]") && !log.contains(TOKEN), "{log}");
    daemon.stop();
}
