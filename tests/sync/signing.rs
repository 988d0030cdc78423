//! Lines that a sync cannot sign.

use crate::faulty_service;
use crate::retention;

use faulty_service::laws::verified;
use faulty_service::{DAY, HOUR, Program, SINCE, Service, hold};

const NOON: i64 = DAY + 84 * HOUR;

#[test]
fn a_sync_that_leaves_lines_unsigned_is_weaker_than_asked() {
    let service = Service::at(NOON);
    service.world().fill(DAY, 0..3);
    let program = Program::of(&service);
    program.sync(&SINCE).ended(0);
    service.world().connection(NOON + 60, 1);
    service.set_clock(NOON + HOUR);
    program.sync(&SINCE).ended(0);
    program.run(&["anchor", "--keygen", "signing.key"]).ended(0);
    program.configure("[signing]\nkey_file = \"signing.key\"\n");
    for round in 2..4 {
        service.world().connection(NOON + round * HOUR - 60, round);
        service.set_clock(NOON + round * HOUR);
        let run = program.sync(&SINCE).ended(3);
        let lines = program.ledger_lines();
        let said =
            format!(": {lines} ledger lines without a signature, and Annals signs no later line: check that only");
        assert!(lines > 1 && run.stderr.contains(&said), "{said}: {run:?}");
        assert!(run.stderr.contains("run `annals anchor --sign`"), "{run:?}");
    }
    program.run(&["anchor", "--sign"]).ended(0);
    let run = program.sync(&SINCE).ended(0);
    assert!(!run.stderr.contains("signature"), "{run:?}");
    hold(&service, &program, &SINCE);
}

#[test]
fn an_order_an_expiry_and_a_review_that_leave_lines_unsigned_are_weaker_than_asked() {
    let (_service, program) = retention::read();
    let pack = ["report", "pack", "-o", "pack", "--reports", "R01", "--from", "2025-02-01", "--to", "2025-02-08"];
    program.run(&pack).ended(0);
    program.run(&["anchor", "--keygen", "signing.key"]).ended(0);
    program.configure(&format!("{}[signing]\nkey_file = \"signing.key\"\n", retention::POLICY));
    let verbs = [
        &["review", "sign", "--pack", "pack", "--reviewer", "R. Viewer", "--outcome", "accepted"][..],
        &["erase", "--order", "DPO-1", "--subject", "p3@example.com"],
        &["retention", "apply", "--trust-clock"],
    ];
    for verb in verbs {
        let before = program.ledger_lines();
        let run = program.run(verb).ended(3);
        let lines = program.ledger_lines();
        let said = format!(": {lines} ledger lines without a signature, and Annals signs no later line: check that");
        assert!(lines > before && run.stderr.contains(&said), "{verb:?}: {said}: {run:?}");
    }
    program.run(&["anchor", "--sign"]).ended(0);
    // A review that is recorded already writes no line. Nothing else is weak.
    let run = program.run(verbs[0]).ended(0);
    assert!(!run.stderr.contains("signature"), "{run:?}");
    verified(&program);
}
