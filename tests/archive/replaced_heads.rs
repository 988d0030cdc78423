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
    // A file without heads proves nothing.
    put(&world.path("later"), b"notes");
    assert_eq!(world.run(&["anchor", "-o", "later"]).0, 0);
    assert_eq!(fs::read_to_string(world.path("later")).unwrap(), cut);
}
