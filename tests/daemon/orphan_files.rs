//! The daemon's scheduled check reports orphan files.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::Archive;
use annals::config::Schedule;
use annals::model::Instant;
use annals::store::{MemoryStore, Store};

use super::fleet::FleetWorld;
use super::virtual_time::{START, schedule};

const DAY: Duration = Duration::from_secs(86_400);
/// A file of a team that this daemon neither reads nor vacuums.
const ORPHAN: &str = "tables/activity/team=other/month=2026-11/20261101t000000z-part-0123456789abcdef.parquet";

/// An orphan file of three days is a fault if the grace is a day, but not if it is a week, as in a bucket.
#[test]
fn the_scheduled_check_uses_the_archive_s_grace() {
    let start: Instant = START.parse().unwrap();
    for (grace, faults) in [(DAY, 1), (DAY * 7, 0)] {
        let store = MemoryStore::new();
        let archive = Archive::open_or_create(Arc::new(store.clone()), || "test".to_owned()).unwrap().with_grace(grace);
        store.set_now(start.minus(DAY * 3));
        let mut file = store.create().unwrap();
        file.write_all(b"x").unwrap();
        file.finish(ORPHAN).unwrap();
        store.set_now(start);
        let hourly = Schedule { verify: "0 * * * *".parse().unwrap(), ..schedule() };
        let world = Arc::new(FleetWorld::new(START, 1, 50.0));
        let live = world.run_on(Arc::new(archive), &hourly, Duration::from_secs(2 * 3_600));
        let verified = live.snapshot().verified.unwrap();
        assert_eq!(verified.faults, faults, "{:?}", verified.named);
        assert!(faults == 0 || verified.named[0].contains(ORPHAN));
    }
}
