//! Wrong arguments: exit code 2, and a message that names the right thing.

use std::fs::File;
use std::io::Write as _;
use std::net::TcpListener;

use crate::common;

use common::is_linux;
use common::query_archive::Place;

#[test]
fn wrong_arguments_are_named() {
    let place = Place::new();
    let key = "example.com/annals+00000000+AAAA";
    for (arguments, expected) in [
        (&["sync", "--since", "2090-01-01"][..], "--since 2090-01-01T00:00:00Z is in the future"),
        (&["plan", "--since", "2090-01-01"], "--since 2090-01-01T00:00:00Z is in the future"),
        (&["sandbox", "--choice", "foo=bar"], "foo=bar"),
        (&["sandbox", "--fault", "xx"], "--fault"),
        (&["sandbox", "--load", "nofile"], "cannot read the saved sandbox nofile"),
        (&["sandbox", "--save", "/nosuch/x"], "--save <FILE>': cannot write this file"),
        (&["plan", "--base-url", "http://127.0.0.1:1/v1"], "leave out /v1"),
        (&["plan", "--base-url", "nonsense"], "--base-url or ANNALS_BASE_URL: the address must begin with https://"),
        (&["init", "--base-url", "nonsense"], "the service's address: the address must begin with https://"),
        (&["verify", "--key", key], "neither a public key nor a readable file"),
        (&["verify", "--head", "nothing"], "neither a head nor a readable file"),
    ] {
        let mut command = place.command(arguments);
        let output = command.env("ANNALS_TOKEN", "hunter2").output().expect("the program runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("annals.toml"), "{arguments:?}: {stderr}");
    }
}

/// A refused argument can come from a ticket, and its marks would change what the terminal shows.
#[test]
fn a_refused_argument_is_printed_without_marks() {
    let place = Place::new();
    let odd = "x\u{202e}y\nz\u{7}";
    for arguments in [
        &["erase", "--order", odd, "--subject", "u-1"][..],
        &["hold", "release", odd],
        &["hold", "add", "--id", "A", "--reason", "r", "--from", odd],
        &["erase", &format!("--{odd}")],
        &[odd],
    ] {
        let (code, _, stderr) = place.run(arguments);
        assert!(code == 2 && stderr.contains("xy z'"), "{arguments:?}: {stderr}");
        assert!(!stderr.contains(['\u{202e}', '\u{7}']), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_failed_output_is_named() {
    if !is_linux("an output on a full disk", "only Linux has /dev/full") {
        return;
    }
    let place = Place::new();
    let (code, _, stderr) = place.run(&["sql", "select 1", "-o", "/dev/full"]);
    assert!(code == 1 && stderr.starts_with("annals: cannot write /dev/full: "), "{code}: {stderr}");
}

#[test]
fn no_statement_reaches_the_network() {
    let place = Place::new();
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    server.set_nonblocking(true).expect("a socket");
    let address = format!("http://{}", server.local_addr().expect("an address"));
    let exported = place.directory.path().join("exported");
    std::fs::create_dir(&exported).expect("a new directory");
    let mut schema = File::create(exported.join("schema.sql")).expect("a file");
    writeln!(schema, "FORCE INSTALL httpfs FROM '{address}';").expect("written");
    File::create(exported.join("load.sql")).expect("a file");
    for sql in [
        "IMPORT DATABASE 'exported'".to_owned(),
        "PRAGMA import_database('exported')".to_owned(),
        format!("INSTALL httpfs FROM '{address}'"),
        format!("select 1; EXPLAIN ANALYZE INSTALL httpfs FROM '{address}'"),
        "LOAD httpfs".to_owned(),
        "SET autoload_known_extensions = true".to_owned(),
    ] {
        let (code, _, stderr) = place.run(&["sql", &sql]);
        assert!(code == 2 && stderr.contains("no query reaches the network"), "{sql}: {code} {stderr}");
    }
    let (code, _, _) = place.run(&["sql", &format!("FROM '{address}/x.csv'")]);
    assert_ne!(code, 0);
    let mut attach = place.command(&["sql", "ATTACH 'x.db' AS x (TYPE sqlite)"]);
    let output = attach.env("HOME", place.directory.path()).output().expect("the program runs");
    assert_ne!(output.status.code(), Some(0));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("/.duckdb/"), "the engine looks for extensions in the user's directory: {stderr}");
    let asked = server.accept().map(|_| ()).map_err(|error| error.kind());
    assert_eq!(asked, Err(std::io::ErrorKind::WouldBlock));
}
