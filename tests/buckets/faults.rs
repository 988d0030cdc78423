//! A bucket that fails while the program commits to it: busy, silent, slow, cut off, late. The program retries or
//! reports each fault; no event is lost or doubled.
#![allow(clippy::print_stdout, reason = "a failed test shows the fault")]

use crate::awkward;
use crate::bucket_scene;

use std::time::Duration;

use awkward::{DAY, HOUR, SINCE};
use bucket_scene::{FIRST, Scene};
use object_server::{Effect, Kind, Rule};

/// A scene with an archive and new events.
fn events_wait() -> Scene {
    let scene = Scene::new();
    scene.service.world().fill(DAY, 0..3);
    scene.sync().ended(0);
    more_events(&scene, 0);
    scene
}

/// Events of the `nth` hour after the backfill.
fn more_events(scene: &Scene, nth: i64) {
    for n in 0..5 {
        scene.service.world().connection(FIRST + nth * HOUR + n * 60, n);
        scene.service.world().activity(FIRST + nth * HOUR + n * 60, n);
    }
    scene.service.set_clock(FIRST + (nth + 1) * HOUR);
}

/// `sync` retries each fault and ends normally.
#[test]
fn sync_succeeds_on_a_busy_or_slow_bucket() {
    let scene = events_wait();
    let before = scene.server.stored();
    let rules: [(&str, &dyn Fn() -> Rule); 13] = [
        ("a burst of 503", &|| Rule::new(Effect::Refused(503, None)).first(4)),
        ("a burst of 503 to writes", &|| Rule::new(Effect::Refused(503, None)).on(Kind::Put).first(3)),
        ("429 with a wait", &|| Rule::new(Effect::Refused(429, Some(1))).on(Kind::Put).first(2)),
        ("409 to a line", &|| Rule::new(Effect::Refused(409, None)).on(Kind::Put).key("/line/").first(2)),
        ("500 after a write was done", &|| Rule::new(Effect::AppliedThenRefused(500)).on(Kind::Put).first(5)),
        ("an answer to a line is lost", &|| Rule::new(Effect::AnswerLost).on(Kind::Put).key("/line/").first(1)),
        ("uploads are cut", &|| Rule::new(Effect::CutUpload(100)).on(Kind::Put).key("/tables/").first(3)),
        ("the upload of a line is cut", &|| Rule::new(Effect::CutUpload(10)).on(Kind::Put).key("/line/").first(2)),
        ("downloads are cut", &|| Rule::new(Effect::CutDownload(50)).on(Kind::Get).first(3)),
        ("lists are slow", &|| Rule::new(Effect::Slow(Duration::from_millis(300))).on(Kind::List)),
        ("lists come in short pages", &|| Rule::new(Effect::ShortPages(2)).on(Kind::List)),
        ("every third answer is lost", &|| Rule::new(Effect::AnswerLost).chance(33, 8)),
        ("every third request is refused", &|| Rule::new(Effect::Refused(503, None)).chance(33, 9)),
    ];
    for (name, rule) in rules {
        println!("{name}");
        scene.server.restore(&before);
        scene.server.fail(rule());
        scene.sync().ended(0);
        assert!(scene.server.struck() > 0, "{name}: the rule matched nothing");
        scene.server.heal();
        scene.holds_and_rests();
    }
}

/// A write that the client gave up arrives late: after the client repeated it, or although the client never repeated
/// it.
#[test]
fn a_file_that_arrives_late_changes_nothing() {
    let scene = events_wait();
    scene.server.fail(Rule::new(Effect::Late).on(Kind::Put).key("/tables/").first(2));
    scene.sync().ended(0);
    assert_eq!(scene.server.struck(), 2);
    scene.server.heal();
    more_events(&scene, 1);
    scene.sync().ended(0);
    assert_eq!(scene.server.land().len(), 2);
    scene.holds_and_rests();
}

/// A killed writer's line arrives late. Before the next writer continues, it becomes the next line; afterwards its
/// number is taken.
#[test]
fn a_line_that_arrives_late_is_the_next_line_or_nothing() {
    for lands_first in [true, false] {
        println!("the write arrives {} another writer continues", if lands_first { "before" } else { "after" });
        let scene = events_wait();
        let lines = scene.ledger_lines().len();
        scene.server.fail(Rule::new(Effect::Late).on(Kind::Put).key("/line/"));
        let killed = scene.program.start_sync(&SINCE).kill_when(|| scene.server.struck() > 0);
        assert_eq!(killed.code, None);
        scene.server.heal();
        more_events(&scene, 1);
        let mut landed = Vec::new();
        if lands_first {
            landed = scene.server.land();
            assert!(landed[0] && scene.ledger_lines().len() == lines + 1);
        }
        scene.sync().ended(0);
        if !lands_first {
            landed = scene.server.land();
        }
        // The client may have sent the line several times: at most one of these writes is the line.
        assert_eq!(landed.iter().filter(|won| **won).count(), usize::from(lands_first));
        scene.holds_and_rests();
    }
}

/// `sync` reports a fault that lasts longer than its retries in one line, and the next `sync` continues.
#[test]
fn a_refusing_bucket_is_reported_and_the_next_sync_continues() {
    let scene = events_wait();
    for (name, rule, said) in [
        ("no right to write", Rule::new(Effect::Refused(403, None)).on(Kind::Put), "403"),
        ("no right to list", Rule::new(Effect::Refused(403, None)).on(Kind::List), "403"),
        ("no right to read", Rule::new(Effect::Refused(403, None)).on(Kind::Get), "403"),
        ("lines are refused", Rule::new(Effect::Refused(403, None)).on(Kind::Put).key("/line/"), "/line/"),
    ] {
        println!("{name}");
        scene.server.fail(rule);
        scene.sync().ended(1).says(&[said]);
        scene.server.heal();
        scene.run(&["verify"]).ended(0);
    }
    scene.sync().ended(0);
    scene.holds_and_rests();
}
