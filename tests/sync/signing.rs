//! Lines that a sync cannot sign.

use crate::faulty_service;

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
