//! `annals anchor -o FILE` keeps older heads that prove the loss of ledger lines.

use std::fs;

use crate::damage::tampering::{file_with, put};
use crate::damage::world::{HONEST, World, key};

#[test]
fn new_heads_do_not_replace_the_proof_of_a_lost_line() {
    let world = World::new(&HONEST);
    put(&world.path("signing.key"), key(1).to_file().as_bytes());
    world.take_head();
    let heads = fs::read_to_string(world.path("head")).unwrap();
    // Heads that still hold are replaced.
    world.take_head();
    for part in ["2026-11-03.jsonl", "2026-11-03.heads"] {
        fs::remove_file(file_with(&world.archive(), part)).unwrap();
    }
    let (exit, _, stderr) = world.run(&["anchor", "-o", "head"]);
    assert!(exit == 1 && stderr.contains("somebody cut off its end") && stderr.contains("--head head"), "{stderr}");
    assert_eq!(fs::read_to_string(world.path("head")).unwrap(), heads);
    let (exit, _, stderr) = world.run(&["anchor", "-o", "later"]);
    assert_eq!(exit, 0, "{stderr}");
    // The line of these heads was another one.
    let (number, line) = (heads.lines().nth(1).unwrap(), heads.lines().nth(2).unwrap());
    let cut = fs::read_to_string(world.path("later")).unwrap();
    assert_ne!(cut.lines().nth(1), Some(number));
    let forked = cut.replace(cut.lines().nth(2).unwrap(), line);
    put(&world.path("later"), forked.as_bytes());
    let (exit, _, stderr) = world.run(&["anchor", "-o", "later"]);
    assert!(exit == 1 && stderr.contains("but now it is"), "{stderr}");
    assert_eq!(fs::read_to_string(world.path("later")).unwrap(), forked);
    // An empty file holds no heads.
    put(&world.path("later"), b"");
    assert_eq!(world.run(&["anchor", "-o", "later"]).0, 0);
    assert_eq!(fs::read_to_string(world.path("later")).unwrap(), cut);
}

#[test]
fn new_heads_replace_nothing_but_heads_of_this_archive() {
    let world = World::new(&HONEST);
    put(&world.path("signing.key"), key(1).to_file().as_bytes());
    world.take_head();
    let heads = fs::read(world.path("head")).unwrap();
    let id = String::from_utf8(heads.clone()).unwrap().split('/').nth(1).unwrap().to_owned();
    let of_another = String::from_utf8(heads.clone()).unwrap().replace(&id, &"0".repeat(id.len())).into_bytes();
    let half = heads[..heads.len() - 20].to_vec();
    let large = [heads.as_slice(), &vec![b'\n'; 16 << 20]].concat();
    for (case, content, why) in [
        ("notes", b"notes\n".to_vec(), "something else than heads"),
        ("half a head", half, "something else than heads"),
        ("no text", vec![0xff, 0xfe], "not UTF-8"),
        ("a large file", large, "larger than"),
        ("heads of another archive", of_another, "the head belongs to another archive"),
    ] {
        put(&world.path("kept"), &content);
        let (exit, _, stderr) = world.run(&["anchor", "-o", "kept"]);
        let is_said = stderr.contains("kept: ") && stderr.contains(why) && stderr.contains("choose another file");
        assert!(exit == 1 && is_said, "{case}: {exit}: {stderr}");
        assert!(fs::read(world.path("kept")).unwrap() == content, "{case}: the file changed");
    }
    // The head of another team would be lost.
    put(&world.path("kept"), &heads);
    let (exit, _, stderr) = world.run(&["anchor", "-o", "kept", "--team", "other"]);
    assert!(exit == 1 && stderr.contains("also holds a head of team="), "{exit}: {stderr}");
    assert!(fs::read(world.path("kept")).unwrap() == heads);
    assert_eq!(world.run(&["anchor", "-o", "one", "--team", "other"]).0, 0);
    assert_eq!(world.run(&["anchor", "-o", "one", "--team", "other"]).0, 0);
    // The refusal comes before the signing.
    put(&world.path("kept"), b"notes\n");
    let signatures = file_with(&world.archive(), "2026-11-03.heads");
    fs::remove_file(&signatures).unwrap();
    assert_eq!(world.run(&["anchor", "--sign", "-o", "kept"]).0, 1);
    assert!(!signatures.try_exists().unwrap(), "the lines were signed");
    // A device is no file that could be lost.
    assert_eq!(world.run(&["anchor", "-o", "/dev/null"]).0, 0);
}
