//! Back-up and restore by the steps of the operator's guide.

use std::path::Path;
use std::process::Command;

use super::age::age;
use super::program::{Scene, wait_for};

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(done.success());
}

/// A copy that verifies. The first copy beside a running daemon may fail.
fn back_up(scene: &Scene, name: &str) {
    let place = scene.path(name);
    wait_for("a copy that checks", || {
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir(&place).unwrap();
        // Copy the ledgers first: a line's files exist before the line, and stay for the grace.
        for part in ["archive.json", "ledger", "tables", "salts"] {
            copy(&scene.path("archive").join(part), &place.join(part));
        }
        for table in std::fs::read_dir(place.join("tables")).unwrap() {
            // The guide leaves out the open tables: a publication can be newer than the copied ledgers.
            let _ = std::fs::remove_dir_all(table.unwrap().path().join("metadata"));
        }
        let is_done = |command: &str| scene.run(&[command, "--archive", name]).status.success();
        (is_done("vacuum") && is_done("verify")).then_some(())
    });
}

fn restore(scene: &Scene, name: &str) {
    std::fs::remove_dir_all(scene.path("archive")).unwrap();
    copy(&scene.path(name), &scene.path("archive"));
}

#[test]
fn a_lost_archive_continues_from_a_copy_without_loss() {
    let scene = Scene::new(2);
    let daemon = scene.start();
    wait_for("readiness", || daemon.is_ready().then_some(()));
    scene.connect(&scene.team(0), "before-the-copy");
    wait_for("the event", || (scene.count("connections where event_id = 'before-the-copy'") == 1).then_some(()));
    back_up(&scene, "copy");
    for n in 0..2 {
        scene.connect(&scene.team(n), &format!("after-the-copy-{n}"));
    }
    let after = "connections where event_id like 'after-the-copy-%'";
    wait_for("the events", || (scene.count(after) == 2).then_some(()));
    daemon.stop();
    restore(&scene, "copy");
    assert_eq!(scene.count(after), 0, "the copy is older");
    assert_eq!(scene.count("connections where event_id = 'before-the-copy'"), 1);
    // The daemon continues from the copy, and reads the missing events again.
    let daemon = scene.start();
    wait_for("the events that the copy lacked", || (scene.count(after) == 2).then_some(()));
    scene.connect(&scene.team(1), "after-the-restore");
    wait_for("a new event", || (scene.count("connections where event_id = 'after-the-restore'") == 1).then_some(()));
    wait_for("readiness", || daemon.is_ready().then_some(()));
    daemon.stop();
    scene.holds_the_truth();
    assert_eq!(scene.count("findings where kind = 'gap'"), 0);
}

#[test]
fn a_head_that_is_kept_elsewhere_detects_an_old_restored_archive() {
    let scene = Scene::new(1);
    assert!(scene.run(&["sync"]).status.success());
    back_up(&scene, "copy");
    scene.connect(&scene.team(0), "later");
    assert!(scene.run(&["sync"]).status.success());
    let seq = "select max(seq)::int as n from ledger";
    let newest = scene.sql(seq)[0]["n"].as_u64().unwrap();
    restore(&scene, "copy");
    assert!(scene.sql(seq)[0]["n"].as_u64().unwrap() < newest);
    assert!(scene.run(&["sync"]).status.success());
    assert_eq!(scene.count("connections where event_id = 'later'"), 1);
    scene.holds_the_truth();
}

/// A copy beside a daemon also holds files of a commit under way. Days later, a file that no line names is an orphan file.
#[test]
fn a_copy_that_is_checked_days_later_is_vacuumed_first() {
    let scene = Scene::new(1);
    assert!(scene.run(&["sync"]).status.success());
    back_up(&scene, "copy");
    let listed = scene.run(&["files", "connections", "--archive", "copy"]);
    let named = String::from_utf8_lossy(&listed.stdout).lines().next().unwrap().to_owned();
    let (place, _) = named.rsplit_once('-').unwrap();
    std::fs::copy(&named, format!("{place}-0123456789abcdef.parquet")).unwrap();
    age(&scene.path("copy"));
    let old = scene.run(&["verify", "--archive", "copy"]);
    let said = String::from_utf8_lossy(&old.stdout).into_owned();
    assert!(old.status.code() == Some(1) && said.contains("ORPHAN_FILE"), "{said}");
    for command in ["vacuum", "verify"] {
        assert!(scene.run(&[command, "--archive", "copy"]).status.success(), "{command}");
    }
}
