//! The memory of an open team: counts its allocations, and compares them with the daemon's estimate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::Archive;
use annals::daemon::weight;
use annals::store::MemoryStore;

use super::fleet::FleetWorld;
use super::virtual_time::schedule;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with a count for each thread.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: usize, sign: isize) {
    // An ending thread has no counter any more.
    let _ = HELD.try_with(|held| held.set(held.get() + sign * isize::try_from(bytes).unwrap_or(0)));
}

#[expect(unsafe_code, reason = "the interface of allocators; everything is passed on to the system's")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(layout.size(), -1);
        count(size, 1);
        unsafe { System.realloc(at, layout, size) }
    }
}

#[test]
fn an_open_team_takes_about_the_estimated_memory() {
    let mut figures = Vec::new();
    for days in [0_u64, 1, 5, 20] {
        let world = Arc::new(FleetWorld::new("2026-08-20T08:00:00Z", 1, 50.0));
        let archive = Arc::new(Archive::open_or_create(Arc::new(MemoryStore::new()), || "test".to_owned()).unwrap());
        world.run_on(archive.clone(), &schedule(), Duration::from_secs(600 + days * 86_400));
        let team = &world.teams()[0];
        let before = HELD.get();
        let writer = archive.writer(team).unwrap();
        let held = usize::try_from(HELD.get() - before).unwrap();
        let state = writer.state();
        let records = state.windows.len() + state.files.len() + state.findings.len() + state.devices.len();
        figures.push((days, records, held, weight(state)));
    }
    assert!(figures[3].1 > figures[1].1 + 20, "a long history has more records: {figures:?}");
    for (_, _, held, believed) in &figures {
        assert!(believed * 10 >= held * 9 && believed * 10 <= held * 15, "{figures:?}");
    }
}
