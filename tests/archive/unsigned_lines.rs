//! Lines without a signature: `verify` names them until `annals anchor --sign` signs them.

use annals::archive::Body;

use crate::damage::forge;
use crate::damage::tampering::put;
use crate::damage::world::{ArchiveVariant, HONEST, World, key};

/// Two lines that somebody without the key wrote.
fn forged(world: &World) {
    forge::append(&world.archive(), forge::hold());
    forge::append(&world.archive(), Body::default());
}

#[test]
fn a_command_with_the_key_hides_no_unsigned_lines() {
    let public = key(1).public().to_string();
    type Case = (ArchiveVariant, fn(&World), &'static str);
    let cases: [Case; 2] = [
        (HONEST, forged, "lines 7 to 8 are not signed: "),
        (ArchiveVariant { key: None, ..HONEST }, |_| {}, "no line is signed, but a public key was given: "),
    ];
    for (life, damage, named) in cases {
        let world = World::new(&life);
        put(&world.path("signing.key"), key(1).to_file().as_bytes());
        put(&world.path("annals.toml"), b"archive = \"archive\"\n[signing]\nkey_file = \"signing.key\"\n");
        damage(&world);
        let (exit, _, stderr) = world.run(&["hold", "add", "--id", "CASE-8", "--reason", "a claim"]);
        assert!(exit == 3 && stderr.contains("`annals anchor --sign`"), "{named}{exit}: {stderr}");
        let said = world.verify(&["--key", &public]);
        let is_named = said.faults.iter().any(|(code, _, detail)| code == "BAD_SIG" && detail.starts_with(named));
        assert!(said.exit == 1 && is_named, "{named}: {:#?}", said.faults);
        for arguments in [&["hold", "release", "CASE-8"][..], &["quarantine", "retry"], &["vacuum"]] {
            let (exit, _, stderr) = world.run(arguments);
            let is_said = stderr.contains(" ledger lines without a signature, and Annals signs no later line");
            assert!(exit == 3 && is_said, "{named}{arguments:?}: {exit}: {stderr}");
        }
        let (exit, heads, stderr) = world.run(&["anchor", "--sign"]);
        assert!(exit == 0 && heads.contains("annals-test-1"), "{named}{exit}: {stderr}");
        let (exit, _, stderr) = world.run(&["quarantine", "retry"]);
        assert!(exit == 0 && !stderr.contains("without a signature"), "{named}{exit}: {stderr}");
        let said = world.verify(&["--key", &public]);
        assert_eq!((said.exit, said.verdict.as_str()), (0, "SELF_CONSISTENT"), "{named}: {:#?}", said.faults);
    }
}
