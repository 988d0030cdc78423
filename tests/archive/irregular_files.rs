//! Pipes, sockets, links, directories and endless files in place of the program's files. The program ends, names what
//! it found, reads nothing through them, and changes nothing behind them.

use crate::common::wait::PATIENCE;
use crate::reporting;

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use reporting::Place;

const PACK: [&str; 8] =
    ["report", "pack", "--from", "2026-10-01", "--to", "2026-11-01", "--made-at", "2026-11-20T12:00:00Z"];

/// The exit code and all output. A run that hangs is stopped, and fails the test.
fn run(place: &Place, arguments: &[&str], environment: &[(&str, &str)]) -> (i32, String) {
    let mut command = place.command(arguments);
    let command = command.envs(environment.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (ended, end) = std::sync::mpsc::channel();
    let pid = rustix::process::Pid::from_child(&child);
    let watch = std::thread::spawn(move || {
        let hangs = end.recv_timeout(PATIENCE).is_err();
        if hangs {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        hangs
    });
    let mut said = String::new();
    stdout.read_to_string(&mut said).unwrap();
    stderr.read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    let _ = ended.send(());
    assert!(!watch.join().unwrap(), "{arguments:?} hangs: {said}");
    (status.code().unwrap_or_else(|| panic!("{arguments:?} was killed: {said}")), said)
}

/// Asserts that the program fails, explains why, and prints no content of the archive or another file.
fn refuses(place: &Place, arguments: &[&str], words: &str) {
    let (code, said) = run(place, arguments, &[]);
    assert!(matches!(code, 1 | 2), "{arguments:?} ended with {code}: {said}");
    assert!(said.contains(words), "{arguments:?} does not print {words:?}: {said}");
    assert!(!said.contains("SECRET") && !said.contains("panicked"), "{arguments:?}: {said}");
}

fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A sparse file of 3 GB.
fn endless(path: &Path) {
    File::create(path).unwrap().set_len(3 << 30).unwrap();
}

/// The only file under a directory whose path has this ending.
fn file_under(directory: &Path, ending: &str) -> PathBuf {
    let (mut found, mut waiting) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { waiting.push(path) } else { found.push(path) }
        }
    }
    found.retain(|path| path.to_str().unwrap().ends_with(ending));
    found.sort();
    found.into_iter().next().unwrap()
}

fn live_file(place: &Place) -> PathBuf {
    file_under(&place.archive().join("tables/connections"), ".parquet")
}

const QUESTIONS: [&[&str]; 4] = [
    &["sql", "select * from connections"],
    &["sql", "select count(*) from connections where event_time > '2026-10-01'"],
    &["report", "run", "R02", "--from", "2026-10-01", "--to", "2026-11-01"],
    &["verify"],
];

#[test]
fn every_question_refuses_a_live_file_that_is_not_a_regular_file() {
    type Put = fn(&Path, &Path);
    let kinds: [(&str, Put); 4] = [
        ("a pipe", |path, _| pipe(path)),
        ("a symbolic link", |path, moved| symlink(moved, path).unwrap()),
        ("a directory", |path, _| fs::create_dir(path).unwrap()),
        ("a socket", |path, _| drop(UnixListener::bind(path).unwrap())),
    ];
    for (what, put) in kinds {
        let place = Place::one_event();
        let (live, moved) = (live_file(&place), place.path().join("moved"));
        fs::rename(&live, &moved).unwrap();
        // A socket's path must be short, so make the socket elsewhere and move it.
        let made = place.path().join("made");
        put(&made, &moved);
        fs::rename(&made, &live).unwrap();
        for question in QUESTIONS {
            refuses(&place, question, &format!("{what}, not a plain file"));
        }
        refuses(&place, &[&PACK[..], &["-o", "out"]].concat(), "not a plain file");
        assert!(!place.path().join("out").try_exists().unwrap());
    }
}

#[test]
fn a_directory_of_live_files_that_is_a_link_is_not_followed() {
    let place = Place::one_event();
    let (held, moved) = (place.archive().join("tables/connections"), place.path().join("moved"));
    fs::rename(&held, &moved).unwrap();
    symlink(&moved, &held).unwrap();
    for question in QUESTIONS {
        refuses(&place, question, "is a symbolic link");
    }
}

#[test]
fn a_link_to_the_archive_itself_is_the_archive() {
    let place = Place::one_event();
    symlink(place.archive(), place.path().join("link")).unwrap();
    let (code, said) =
        run(&place, &["--archive", "link", "sql", "select count(*) as n from connections", "--format", "csv"], &[]);
    assert_eq!((code, said.as_str()), (0, "n\n1\n"));
}

#[test]
fn readers_and_writers_refuse_a_ledger_or_manifest_that_is_not_a_regular_file() {
    for (what, put) in [("a pipe", true), ("a symbolic link", false)] {
        for file in ["ledger", "archive.json"] {
            let place = Place::one_event();
            assert_eq!(run(&place, &[&PACK[..], &["-o", "out"]].concat(), &[]).0, 0);
            let moved = place.path().join("moved");
            let path = file_under(&place.archive(), if file == "ledger" { ".jsonl" } else { file });
            fs::rename(&path, &moved).unwrap();
            if put {
                pipe(&path);
            } else {
                symlink(&moved, &path).unwrap();
            }
            let before = fs::read(&moved).unwrap();
            let sign = ["review", "sign", "--pack", "out", "--reviewer", "R. Viewer", "--outcome", "accepted"];
            for verb in [&["sql", "select 1"][..], &["status"], &["anchor"], &["files", "connections"], &sign] {
                refuses(&place, verb, &format!("{what}, not a plain file"));
            }
            let (code, said) = run(&place, &["verify"], &[]);
            assert!(code != 0 && said.contains(&format!("{what}, not a plain file")), "{file}: {said}");
            assert_eq!(fs::read(&moved).unwrap(), before, "{file}");
        }
    }
}

#[test]
fn a_user_s_report_that_is_no_file_is_named_and_the_others_work() {
    let place = Place::one_event();
    place.own_report("X1-good.sql", GOOD);
    let own = |name: &str| place.path().join("own").join(name);
    let secret = place.path().join("secret");
    fs::copy(own("X1-good.sql"), &secret).unwrap();
    fs::rename(own("X1-good.sql"), own("inside")).unwrap();
    pipe(&own("X2-pipe.sql"));
    symlink(&secret, own("X3-link.sql")).unwrap();
    drop(UnixListener::bind(own("X4-socket.sql")).unwrap());
    fs::create_dir(own("X5-directory.sql")).unwrap();
    endless(&own("X6-endless.sql"));
    symlink("/dev/zero", own("X7-device.sql")).unwrap();
    symlink("nowhere", own("X8-dangling.sql")).unwrap();
    // Kubernetes places the files of a volume this way.
    symlink("inside", own("X1-good.sql")).unwrap();
    let (code, said) = run(&place, &["report", "list", "--queries", "own", "--format", "csv"], &[]);
    assert_eq!(code, 2, "{said}");
    for (name, words) in [
        ("X2-pipe.sql", "a pipe, not a plain file"),
        ("X3-link.sql", "leads out of the folder"),
        ("X4-socket.sql", "a socket, not a plain file"),
        ("X5-directory.sql", "a directory, not a plain file"),
        ("X6-endless.sql", "larger than"),
        ("X7-device.sql", "leads out of the folder"),
        ("X8-dangling.sql", "No such file"),
    ] {
        let named = said.lines().any(|line| line.contains(&format!("cannot read own/{name}")) && line.contains(words));
        assert!(named, "{name}: {said}");
    }
    assert!(said.contains("good"), "{said}");
    assert_eq!(run(&place, &["report", "run", "good", "--queries", "own"], &[]).0, 0);
    refuses(&place, &["report", "show", "pipe", "--queries", "own"], "a pipe, not a plain file");
    refuses(&place, &["report", "show", "link", "--queries", "own"], "leads out of the folder");
}

const GOOD: &str = "\
-- id: X1
-- title: One
-- question: Is it one?
SELECT 1 AS one
";

#[test]
fn a_pack_that_is_not_a_regular_file_or_holds_one_is_not_signed() {
    let sign = |pack| ["review", "sign", "--pack", pack, "--reviewer", "R. Viewer", "--outcome", "accepted"];
    let place = Place::one_event();
    for output in ["out", "out.zip"] {
        assert_eq!(run(&place, &[&PACK[..], &["-o", output]].concat(), &[]).0, 0);
    }
    let at = |name: &str| place.path().join(name);
    pipe(&at("pipe.zip"));
    refuses(&place, &sign("pipe.zip"), "a pipe, not a plain file");
    symlink("out.zip", at("link.zip")).unwrap();
    refuses(&place, &sign("link.zip"), "a symbolic link, not a plain file");
    endless(&at("endless.zip"));
    refuses(&place, &sign("endless.zip"), "endless.zip");
    pipe(&at("out/stranger"));
    refuses(&place, &sign("out"), "stranger: a pipe, not a plain file");
    fs::remove_file(at("out/stranger")).unwrap();
    fs::rename(at("out/manifest.json"), at("moved")).unwrap();
    symlink(at("moved"), at("out/manifest.json")).unwrap();
    refuses(&place, &sign("out"), "manifest.json: a symbolic link, not a plain file");
    fs::remove_file(at("out/manifest.json")).unwrap();
    fs::rename(at("moved"), at("out/manifest.json")).unwrap();
    endless(&at("out/endless"));
    refuses(&place, &sign("out"), "endless");
    fs::remove_file(at("out/endless")).unwrap();
    assert_eq!(run(&place, &sign("out"), &[]).0, 0);
}

#[test]
fn a_configuration_or_token_may_be_a_file_or_a_link_only() {
    let place = Place::one_event();
    let at = |name: &str| place.path().join(name);
    File::create(at("annals.toml")).unwrap();
    symlink("annals.toml", at("link.toml")).unwrap();
    pipe(&at("pipe"));
    endless(&at("endless"));
    assert_eq!(run(&place, &["--config", "link.toml", "status"], &[]).0, 0);
    refuses(&place, &["--config", "pipe", "status"], "a pipe, not a plain file");
    refuses(&place, &["--config", "/dev/zero", "status"], "a device, not a plain file");
    refuses(&place, &["--config", "endless", "status"], "larger than");
    let base = ("ANNALS_BASE_URL", "http://127.0.0.1:9");
    for (file, words) in
        [("pipe", "a pipe, not a plain file"), ("/dev/zero", "a device, not a plain file"), ("endless", "larger than")]
    {
        let (code, said) = run(&place, &["sync"], &[base, ("ANNALS_TOKEN_FILE", file)]);
        assert!(code != 0 && said.contains(words), "{file}: {said}");
    }
    std::io::Write::write_all(&mut File::create(at("token")).unwrap(), b"SECRET-token-of-a-test").unwrap();
    fs::set_permissions(at("token"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("token", at("token-link")).unwrap();
    let checks = ["doctor", "--format", "csv"];
    let (_, said) = run(&place, &checks, &[base, ("ANNALS_TOKEN_FILE", "token-link")]);
    assert!(said.contains("token,ok") && !said.contains("SECRET"), "{said}");
}
