//! The limits of the SQL engine, and the removal of its spill files.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::common;

use common::query_archive::Place;
use common::wait::wait_for;

/// A sort that needs far more than its memory.
const SPILLS: &str =
    "SELECT max(h), count(*) FROM (SELECT hash(i) AS h, i FROM range(12000000) t(i) ORDER BY h LIMIT 11000000)";
/// The same sort, without an end.
const SPILLS_ON: &str =
    "SELECT max(h), count(*) FROM (SELECT hash(i) AS h, i FROM range(3000000000) t(i) ORDER BY h LIMIT 2900000000)";
const SMALL: [&str; 4] = ["--memory", "64MiB", "--threads", "1"];

fn spill_place(place: &Place) -> PathBuf {
    let path = place.directory.path().join("spill");
    std::fs::create_dir_all(&path).expect("a directory");
    path
}

fn entries(path: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(path).expect("readable").map(|entry| entry.expect("readable").path()).collect()
}

fn start(place: &Place, spill: &Path, sql: &str) -> Child {
    let spill = spill.to_str().expect("UTF-8");
    let arguments = [&["sql", sql, "--temp-directory", spill][..], &SMALL].concat();
    let mut command = place.command(&arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs")
}

/// Waits until the engine has spilled, and returns how much.
fn wait_for_spill(spill: &Path, child: &mut Child) -> usize {
    wait_for("a spill file", || {
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended before it spilled");
        let files: usize = entries(spill).iter().filter(|path| path.is_dir()).map(|path| entries(path).len()).sum();
        (files > 0).then_some(files)
    })
}

fn signal(child: &Child, name: &str) {
    let status = std::process::Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill runs");
    assert!(status.success());
}

#[test]
fn a_spilling_query_answers_and_leaves_nothing() {
    let place = Place::new();
    let spill = spill_place(&place);
    let mut child = start(&place, &spill, SPILLS);
    assert!(wait_for_spill(&spill, &mut child) > 0);
    let output = child.wait_with_output().expect("it ends");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && stdout.contains("11000000"), "{output:?}");
    assert_eq!(entries(&spill), Vec::<PathBuf>::new());
}

#[test]
fn a_spilling_query_that_fails_leaves_nothing() {
    let place = Place::new();
    let spill = spill_place(&place);
    let sql = format!("SELECT CASE WHEN n > 0 THEN error('stopped here') END FROM ({SPILLS}) t(m, n)");
    let mut child = start(&place, &spill, &sql);
    assert!(wait_for_spill(&spill, &mut child) > 0);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("stopped here"), "{output:?}");
    assert_eq!(entries(&spill), Vec::<PathBuf>::new());
}

#[test]
fn a_signal_ends_the_program_and_leaves_nothing() {
    for (name, number) in [("-TERM", 15), ("-INT", 2), ("-HUP", 1)] {
        let place = Place::new();
        let spill = spill_place(&place);
        let target = place.directory.path().join("out.csv");
        let spill_text = spill.to_str().expect("UTF-8");
        let arguments = [&["sql", SPILLS_ON, "--temp-directory", spill_text, "-o", "out.csv"][..], &SMALL].concat();
        let mut child = place.command(&arguments).stdin(Stdio::null()).spawn().expect("the program runs");
        wait_for_spill(&spill, &mut child);
        signal(&child, name);
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(number), "{name}: {status}");
        assert_eq!(entries(&spill), Vec::<PathBuf>::new(), "{name}");
        assert!(!target.try_exists().expect("readable"), "{name}");
        let left = entries(place.directory.path()).into_iter().filter(|path| path.ends_with(".annals-"));
        assert_eq!(left.count(), 0, "{name}");
    }
}

#[test]
fn the_next_process_removes_the_files_of_a_killed_one() {
    let place = Place::new();
    let spill = spill_place(&place);
    let mut killed = start(&place, &spill, SPILLS_ON);
    wait_for_spill(&spill, &mut killed);
    let mut living = start(&place, &spill, SPILLS_ON);
    wait_for("the directory of the other", || {
        assert!(living.try_wait().expect("it can be asked").is_none(), "it ended");
        (entries(&spill).len() == 2).then_some(())
    });
    killed.kill().expect("killed");
    killed.wait().expect("it ends");
    assert_eq!(entries(&spill).len(), 2);
    let spill_text = spill.to_str().expect("UTF-8");
    let answer = place.answer(&["sql", "select 1 as a", "--format", "csv", "--temp-directory", spill_text]);
    assert_eq!(answer, "a\n1\n");
    assert_eq!(entries(&spill).len(), 1, "only a running process keeps its directory");
    signal(&living, "-TERM");
    living.wait().expect("it ends");
    assert_eq!(entries(&spill), Vec::<PathBuf>::new());
}

#[test]
fn limits_come_from_flag_environment_and_file_in_that_order() {
    let place = Place::new();
    let toml = b"[sql]\nmemory = \"100MiB\"\nthreads = 3\ntemp_directory = \"spill\"\n";
    let file = std::fs::File::create(place.directory.path().join("annals.toml"));
    std::io::Write::write_all(&mut file.expect("a file"), toml).expect("written");
    spill_place(&place);
    let sql = "SELECT value FROM duckdb_settings() WHERE name IN ('max_memory', 'threads') ORDER BY name";
    let ask = |arguments: &[&str], environment: &[(&str, &str)]| {
        let mut command = place.command(&[&["sql", sql, "--format", "csv"], arguments].concat());
        let output = command.envs(environment.iter().copied()).output().expect("the program runs");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(ask(&[], &[]), "value\n100.0 MiB\n3\n");
    let environment = [("ANNALS_SQL_MEMORY", "2GiB"), ("ANNALS_SQL_THREADS", "1")];
    assert_eq!(ask(&[], &environment), "value\n2.0 GiB\n1\n");
    assert_eq!(ask(&["--memory", "512MiB", "--threads", "2"], &environment), "value\n512.0 MiB\n2\n");
    for arguments in [["--memory", "1KiB"], ["--memory", "much"], ["--threads", "0"], ["--temp-directory", "nowhere"]] {
        let (code, _, stderr) = place.run(&["sql", "select 1", arguments[0], arguments[1]]);
        assert!(code == if arguments[1] == "nowhere" { 1 } else { 2 }, "{arguments:?}: {stderr}");
        assert!(stderr.contains(arguments[1]), "{arguments:?}: {stderr}");
    }
}
