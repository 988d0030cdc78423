//! Places that the program refuses, because a command there would break an archive or mix two of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annals::archive::Archive;
use annals::model::path::lock_of;
use annals::model::{TeamId, TeamKey};
use annals::store::{LocalStore, Store as _};

use crate::common;

use common::query_archive::Place;

const ARCHIVE: &str = "it's [an] archive";

/// Every file under `directory` with its bytes, without the locks.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_none_or(|ending| ending != "lock") {
            found.insert(path.clone(), fs::read(&path).expect("readable"));
        }
    }
    found
}

#[test]
fn no_output_goes_into_an_archive() {
    let place = Place::new();
    std::os::unix::fs::symlink(place.archive(), place.directory.path().join("link")).expect("a link");
    let before = files(&place.archive());
    let period = ["--from", "2026-11-18", "--to", "2026-11-20"];
    for (arguments, inside) in [
        (&["sql", "select 1"][..], "archive.json"),
        (&["sql", "select 1"], "tables/x.csv"),
        (&["connect"], "x.sql"),
        (&["status"], "x.json"),
        (&["anchor"], "heads.txt"),
        (&["man"], "tables"),
        (&[&["report", "run", "R24"][..], &period].concat(), "x.csv"),
        (&[&["report", "pack"][..], &period].concat(), "packs/p4"),
        (&[&["report", "pack"][..], &period].concat(), "p4.zip"),
    ] {
        for root in [ARCHIVE, "link"] {
            let (code, stdout, stderr) = place.run(&[arguments, &["-o", &format!("{root}/{inside}")]].concat());
            assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
            assert!(stderr.contains("this place is inside the archive at "), "{arguments:?}: {stderr}");
        }
    }
    let script = place.directory.path().join("script.sql");
    let text = format!(".output \"{ARCHIVE}/archive.json\"\nselect 1;\n");
    std::io::Write::write_all(&mut fs::File::create(&script).expect("a file"), text.as_bytes()).expect("written");
    let input = fs::File::open(&script).expect("the script");
    let output = place.command(&["sql"]).stdin(input).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(files(&place.archive()), before);
    let (code, _, stderr) = place.run(&["sql", "select 1", "-o", "outside.csv"]);
    assert_eq!(code, 0, "{stderr}");
}

/// A copy takes the snapshots and the files first, then the salts, and then the ledger.
#[test]
fn the_place_of_a_first_copy_that_did_not_end_says_so() {
    let place = Place::new();
    let copy = || {
        let (code, stdout, stderr) = place.run(&["copy", ARCHIVE, "copy"]);
        assert_eq!(code, 0, "{stdout}{stderr}");
    };
    copy();
    for later in ["salts", "ledger"] {
        fs::remove_dir_all(place.directory.path().join("copy").join(later)).expect("removed");
    }
    let advice = "no line is there, but a snapshot of line 1 exists: if a copy began here, run annals copy again, else restore the ledger";
    let (code, stdout, _) = place.run(&["verify", "--archive", "copy"]);
    assert!(
        code == 1 && stdout.contains("copy: BROKEN\n") && stdout.contains("SEQ_GAP ledger/team="),
        "{code}: {stdout}"
    );
    assert!(stdout.contains(advice), "{stdout}");
    let hold = ["hold", "add", "--id", "CASE-1", "--reason", "a claim", "--archive", "copy"];
    for arguments in [&["sql", "from connections", "--archive", "copy"][..], &["status", "--archive", "copy"], &hold] {
        let (code, _, stderr) = place.run(arguments);
        assert!(code == 1 && stderr.contains(advice), "{arguments:?}: {code}: {stderr}");
    }
    copy();
    assert!(place.answer(&["verify", "--archive", "copy"]).contains(": SELF-CONSISTENT (unanchored)\n"));
}

/// The copy of the first team has not begun when the copy of the second team ends.
#[test]
fn a_copy_with_one_of_two_teams_is_not_taken_for_whole() {
    let place = Place::new();
    let target = place.directory.path().join("copy");
    fs::create_dir_all(target.join("locks")).expect("a directory");
    let store = LocalStore::new(target);
    let lock = store.lock(&lock_of(&TeamKey::of(&TeamId::from("acme")))).expect("a free lock");
    let (code, stdout, stderr) = place.run(&["copy", ARCHIVE, "copy"]);
    assert!(code == 1 && stderr.contains("team acme: the copy is not complete: "), "{code}: {stderr}");
    assert!(stdout.contains(": BROKEN\n") && stdout.contains("commits 1/1"), "{stdout}");
    drop(lock);
    let advice = "no line is there, but a snapshot of line 1 exists: if a copy began here, run annals copy again";
    let (code, stdout, _) = place.run(&["verify", "--archive", "copy"]);
    let is_named = stdout.contains(&format!("SEQ_GAP ledger/team=acme: {advice}"));
    assert!(code == 1 && is_named && stdout.matches("SEQ_GAP").count() == 1, "{code}: {stdout}");
    let (code, _, stderr) = place.run(&["sql", "from connections", "--archive", "copy"]);
    assert!(code == 1 && stderr.contains(advice), "{code}: {stderr}");
    let (code, stdout, stderr) = place.run(&["copy", ARCHIVE, "copy"]);
    assert!(code == 0 && stdout.contains("commits 2/2"), "{code}: {stdout}{stderr}");
}

#[test]
fn verify_says_that_an_archive_holds_no_commit() {
    let place = Place::new();
    let store = LocalStore::new(place.directory.path().join("new"));
    let _ = Archive::open_or_create(Arc::new(store), || "new".into()).expect("an archive");
    let (code, stdout, stderr) = place.run(&["verify", "--archive", "new"]);
    assert!(
        code == 0 && stdout.contains("checked the whole archive: it holds no commit: "),
        "{code}: {stdout}{stderr}"
    );
}

#[test]
fn a_copy_needs_an_archive_and_a_place_of_its_own() {
    let place = Place::new();
    let inside = |path: &str| place.directory.path().join(path);
    let (code, _, stderr) = place.run(&["copy", "nothing", "copy"]);
    assert!(code == 2 && stderr.contains("no archive exists here"), "{code}: {stderr}");
    let before = files(&place.archive());
    let (code, _, stderr) = place.run(&["copy", ARCHIVE, &format!("{ARCHIVE}/sub")]);
    assert!(code == 2 && stderr.contains("one is inside the other"), "{code}: {stderr}");
    assert_eq!(files(&place.archive()), before);
    for foreign in ["notes.txt", "scratch", "docs"] {
        let target = format!("{foreign} here");
        fs::create_dir_all(inside(&target).join(foreign)).expect("a directory");
        let (code, _, stderr) = place.run(&["copy", ARCHIVE, &target]);
        assert!(code == 2 && stderr.contains(&format!("holds {foreign:?}")), "{code}: {stderr}");
        assert_eq!(fs::read_dir(inside(&target)).expect("a directory").count(), 1);
        let (code, _, stderr) = place
            .command(&["sync", "--archive", &target, "--base-url", "http://127.0.0.1:1"])
            .env("ANNALS_TOKEN", "hunter2")
            .output()
            .map(|output| (output.status.code(), (), String::from_utf8_lossy(&output.stderr).into_owned()))
            .expect("the program runs");
        assert!(code == Some(2) && stderr.contains(&format!("holds {foreign:?}")), "{code:?}: {stderr}");
    }
    // A new file system has lost+found, and a killed first command leaves its lock and its scratch files.
    for left in ["lost+found", "locks", "scratch"] {
        fs::create_dir_all(inside("volume").join(left)).expect("a directory");
    }
    let (code, _, stderr) = place.run(&["copy", ARCHIVE, "volume"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_link_that_leads_nowhere_is_named_with_its_target() {
    let place = Place::new();
    std::os::unix::fs::symlink("nowhere", place.directory.path().join("link")).expect("a link");
    let service: &[&str] = &["--base-url", "http://127.0.0.1:1"];
    for root in ["link", "link/archive"] {
        for verb in [&["status"][..], &["verify"], &[&["sync"], service].concat(), &[&["run"], service].concat()] {
            let mut command = place.command(&[verb, &["--archive", root]].concat());
            let output = command.env("ANNALS_TOKEN", "hunter2").output().expect("the program runs");
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            let said = "/link is a symbolic link to nowhere, which cannot be opened: No such file or directory";
            assert!(output.status.code() == Some(2) && stderr.contains(said), "{verb:?}: {stderr}");
        }
    }
    let (_, stdout, _) = place.run(&["doctor", "--format", "csv", "--archive", "link"]);
    let is_refused = |line: &str| line.starts_with("archive,failed,") && line.contains("is a symbolic link to nowhere");
    assert!(stdout.lines().any(is_refused), "{stdout}");
}

#[test]
fn verify_refuses_a_place_that_holds_no_part_of_an_archive() {
    let place = Place::new();
    let inside = |path: &str| place.directory.path().join(path);
    for directory in ["empty", "foreign/docs"] {
        fs::create_dir_all(inside(directory)).expect("a directory");
    }
    for (name, said) in [
        ("empty", "no archive exists here: `annals sync` creates one"),
        ("foreign", "no archive exists here: this directory holds \"docs\""),
        ("absent", "no archive exists here: `annals sync` creates one"),
    ] {
        let (code, stdout, stderr) = place.run(&["verify", "--archive", name]);
        assert!(code == 2 && stdout.is_empty() && stderr.contains(said), "{name}: {code} {stdout}{stderr}");
        assert!(stderr.contains("--archive names another place"), "{name}: {stderr}");
    }
    // An archive without its manifest is damaged.
    fs::remove_file(place.archive().join("archive.json")).expect("the manifest");
    let (code, stdout, _) = place.run(&["verify"]);
    assert!(code == 1 && stdout.contains("BROKEN") && stdout.contains("MANIFEST"), "{code} {stdout}");
}

/// The target can have erased a person: nothing of the source may come back.
#[test]
fn a_refused_copy_changes_nothing() {
    let place = Place::new();
    let (code, _, stderr) = place.run(&["copy", ARCHIVE, "copy"]);
    assert_eq!(code, 0, "{stderr}");
    let (code, _, stderr) = place.run(&["--archive", "copy", "hold", "add", "--id", "C1", "--reason", "a case"]);
    assert_eq!(code, 0, "{stderr}");
    place.commit_another_day();
    let copy = place.directory.path().join("copy");
    let before = files(&copy);
    let (code, _, stderr) = place.run(&["copy", ARCHIVE, "copy"]);
    assert!(code == 1 && stderr.contains("the target's ledger differs from the source's"), "{code}: {stderr}");
    assert!(stderr.contains("this does not count the teams that failed"), "{stderr}");
    assert_eq!(files(&copy), before);
}

#[test]
fn the_demo_never_joins_another_archive() {
    let place = Place::new();
    let before = files(&place.archive());
    let (code, _, stderr) = place.run(&["demo", "--archive", ARCHIVE]);
    assert!(code == 2 && stderr.contains("this archive holds team "), "{code}: {stderr}");
    // ANNALS_ARCHIVE names the archive of real teams.
    let (code, _, stderr) = place.run(&["demo"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(files(&place.archive()), before);
    let demo = files(&place.directory.path().join("annals-demo"));
    assert!(demo.len() > 20, "{} files", demo.len());
    let (code, _, stderr) = place.run(&["demo", "--seed", "5"]);
    assert!(code == 2 && stderr.contains("this archive holds team "), "{code}: {stderr}");
    assert_eq!(files(&place.directory.path().join("annals-demo")), demo);
}
