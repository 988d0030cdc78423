//! A second implementation of the documented service. It shares no code with the program, keeps unusual histories,
//! causes scripted faults, and knows the truth of every event that ever existed. This folder also runs the real
//! binary against it, and checks the laws on the files that the binary leaves.
#![allow(dead_code, reason = "each test program uses its own part")]
#![allow(unused_imports, reason = "each test program uses its own part")]

pub mod chance;
pub mod events;
pub mod behaviour;
pub mod http;
pub mod laws;
pub mod parquet_files;
pub mod program;
pub mod serve;
pub mod service;
pub mod subject_search;
pub mod world;

pub use behaviour::{Behaviour, Bound, Dates, Edge, More, Next, Order};
pub use chance::Chance;
pub use http::{Answer, Request};
pub use laws::{Expected, hold, hold_with};
pub use program::{Program, Run};
pub use service::{Action, Gate, Service};
pub use world::{Event, Kind, Team, World};

/// 2026-11-10T00:00:00Z.
pub const DAY: i64 = 1_794_268_800;
pub const HOUR: i64 = 3_600;
/// The arguments of a sync from [`DAY`] on.
pub const SINCE: [&str; 2] = ["--since", "2026-11-10"];

/// A service whose clock shows noon, three days after [`DAY`]: two windows are past their second last re-scan, one is
/// settled, one is open. The archive is empty.
pub fn scene() -> (Service, Program) {
    let service = Service::at(DAY + 84 * HOUR);
    let program = Program::of(&service);
    (service, program)
}

/// Some days of events, one of them busy, on small pages: the reading makes many requests and several commits.
pub fn busy(world: &mut World) {
    world.fill(DAY, 0..4);
    for n in 0..600 {
        world.connection_of(0, usize::try_from(n % 3).unwrap(), DAY + 10 * HOUR + n * 300, n);
        world.activity(DAY + 10 * HOUR + n * 300, n);
    }
    world.behaviour.cap = Some(100);
}
