//! An erasure in a bucket that keeps versions: no object, no older version and no cached file holds the subject afterwards.

use std::fs;
use std::path::PathBuf;

use crate::bucket_scene::Scene;
use crate::faulty_service::program::{files_below, put};
use crate::faulty_service::subject_search::{EMAIL, ORDER, SINCE, USER, late, trace, years};
use crate::faulty_service::{DAY, HOUR};

const TABLES: &str = "some/archive/tables/";

/// The traces of the subject in all objects, and in all files of this machine.
fn traces(scene: &Scene) -> Vec<String> {
    let objects = scene.server.keys().into_iter();
    let objects = objects.filter_map(|key| trace(&key, scene.server.object(&key).unwrap().to_vec()));
    let files = files_below(scene.program.home()).into_iter();
    objects.chain(files.filter_map(|path| trace(path.to_str().unwrap(), fs::read(&path).unwrap()))).collect()
}

#[test]
fn no_object_no_version_and_no_cached_file_holds_the_subject() {
    let scene = Scene::new();
    scene.server.keep_versions();
    erase(&scene);
}

/// Nobody can remove a version of the ledger, and the erasure needs none of it.
#[test]
fn an_erasure_is_whole_although_the_ledger_is_locked() {
    let scene = Scene::with_ledger_elsewhere("");
    erase(&scene);
    scene.is_signed();
}

fn erase(scene: &Scene) {
    years(&mut scene.service.world());
    scene.program.sync(&SINCE).ended(0);
    scene.run(&["publish"]).ended(0);
    late(&mut scene.service.world());
    scene.program.sync(&[&SINCE[..], &["--rescan"]].concat()).ended(0);
    scene.service.set_clock(DAY + 200 * HOUR);
    scene.program.sync(&SINCE).ended(0);
    scene.run(&["publish"]).ended(0);
    let count = || scene.sql("select count(*)::int as n, count(distinct peer_email)::int as p from connections");
    let counted = count();
    let cached = |found: &String| found.contains("/cache/");
    let before = traces(scene);
    assert!(before.iter().any(cached) && before.iter().any(|found| !cached(found)), "{before:#?}");

    // A process was killed while it sent a file.
    let keys = scene.server.keys();
    scene.server.leave_upload(keys.iter().find(|key| key.contains("/tables/connections/team=")).unwrap());
    // No lock keeps another writer out of a bucket.
    scene.run(&ORDER).ended(3).says(&["another process wrote the team at", "give the order again"]);
    assert_eq!(scene.server.open_uploads(), 0);
    scene.run(&ORDER).ended(0);
    assert_eq!(traces(scene), Vec::<String>::new());
    assert_eq!(count(), counted);
    // The bucket keeps no older version of a data file, and no marker of its deletion.
    for dataset in ["activity", "connections", "sessions", "quarantine"] {
        let prefix = format!("some/archive/tables/{dataset}/team=");
        let live = scene.server.keys().into_iter().filter(|key| key.starts_with(&prefix)).count();
        assert_eq!((scene.server.versions(&prefix), live > 0), (live, true), "{dataset}");
    }
    scene.run(&["verify"]).ended(0);
    scene.run(&["publish", "--check"]).ended(0);
    scene.program.sync(&[&SINCE[..], &["--rescan"]].concat()).ended(0);
    assert_eq!(traces(scene), Vec::<String>::new());
    assert_eq!(count(), counted);
}

/// The cache still holds files of the subject, and no row of the archive holds the subject any more.
#[test]
fn every_order_vacuum_and_expiry_leaves_only_live_files_in_the_cache() {
    let scene = Scene::new();
    scene.server.keep_versions();
    years(&mut scene.service.world());
    scene.program.sync(&SINCE).ended(0);
    let _ = scene.sql("select count(distinct peer_email)::int as p from connections");
    let cached: Vec<(PathBuf, Vec<u8>)> = files_below(&scene.program.home().join("cache"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "parquet"))
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    scene.run(&ORDER).ended(3);
    let other = ["erase", "--order", "DPO-2", "--subject", EMAIL, "--subject", USER];
    for arguments in [&other[..], &["vacuum"], &["retention", "apply"]] {
        cached.iter().for_each(|(path, bytes)| put(path, bytes));
        assert_ne!(traces(&scene), Vec::<String>::new());
        scene.run(arguments).ended(0);
        assert_eq!(traces(&scene), Vec::<String>::new(), "{arguments:?}");
    }
}

/// `vacuum` removed files that the bucket keeps as older versions. They may hold the subject, although no row does.
#[test]
fn an_order_without_rows_erases_the_older_versions_of_removed_files() {
    let scene = Scene::new();
    scene.server.keep_versions();
    years(&mut scene.service.world());
    scene.sync().ended(0);
    late(&mut scene.service.world());
    scene.program.sync(&[&SINCE[..], &["--rescan"]].concat()).ended(0);
    scene.server.set_clock_ahead(8 * DAY);
    scene.run(&["vacuum"]).ended(0);
    let live = || scene.server.keys().into_iter().filter(|key| key.starts_with(TABLES)).count();
    assert!(scene.server.versions(TABLES) > live(), "the bucket keeps removed files");
    let order = ["erase", "--order", "DPO-9", "--subject", "nobody@own.example"];
    let removes = "that no ledger line names, and that may hold the subject";
    scene.run(&[&order[..], &["--dry-run"]].concat()).ended(0).says(&[removes]);
    scene.run(&order).ended(3).says(&["no row holds the subject", removes, "another process wrote the team at"]);
    assert_eq!((scene.server.versions(TABLES), live() > 0), (live(), true));
    scene.run(&order).ended(0).says(&["nothing is written"]);
    scene.run(&["verify"]).ended(0);
}
