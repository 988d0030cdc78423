//! The document does not define fractions of a second of `startTime` and `stopTime`: the archive is the same for
//! every interpretation.
#![allow(clippy::print_stdout, reason = "a failed test shows the scenario")]

use crate::awkward;

use awkward::{Bound, DAY, Edge, HOUR, Kind, SINCE, Service, World, hold, scene};

const SECOND: i64 = 1_000_000_000;

/// Events at, just before and just after every bound at which interpretations differ.
fn borders(world: &mut World) {
    for border in [DAY + 24 * HOUR, DAY + 48 * HOUR, DAY + 72 * HOUR] {
        for step in [-1_500, -1_000, -999, -501, -500, -499, -1, 0, 1, 499, 500, 501, 999, 1_000, 1_500] {
            world.connection(border, step);
            world.activity(border, step * 1_000_000);
        }
        for nanos in [-SECOND - 1, -1, 1, SECOND - 1, SECOND + 1, SECOND / 2 - 1] {
            world.activity(border, nanos);
        }
    }
    world.connection(DAY, 0);
    world.activity(DAY, 0);
}

fn readings() -> impl Iterator<Item = (Bound, Bound)> {
    let bounds: Vec<Bound> = Bound::all().collect();
    let same_edge = |start: &Bound, stop: &Bound| start.edge == stop.edge;
    bounds.clone().into_iter().flat_map(move |start| {
        let others = bounds.clone().into_iter().filter(move |stop| same_edge(&start, stop));
        others.map(move |stop| (start, stop)).collect::<Vec<_>>()
    })
}

#[test]
fn every_interpretation_of_the_bounds_gives_the_same_archive() {
    let mut readings: Vec<(Bound, Bound)> = readings().collect();
    assert_eq!(readings.len(), 16);
    // And a mix of two interpretations, which one service may have.
    let (exact, whole) = (Bound::EXACT, Bound { edge: Edge::Floor, inclusive: true });
    readings.extend([(exact, whole), (Bound { edge: Edge::Exact, inclusive: false }, whole)]);
    for (start, stop) in readings {
        println!("start {start}, stop {stop}");
        let (service, program) = scene();
        borders(&mut service.world());
        (service.world().habits.start, service.world().habits.stop) = (start, stop);
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
    }
}

#[test]
fn no_event_is_archived_twice_when_the_clock_is_at_a_window_s_end() {
    for seconds in [-1, 0, 1, 899, 900, 901] {
        let service = Service::at(DAY + 24 * HOUR + seconds);
        let program = awkward::Program::of(&service);
        service.world().connection(DAY + 24 * HOUR, -1);
        service.world().connection(DAY + 24 * HOUR + seconds, 0);
        service.world().connection(DAY + 24 * HOUR + seconds, 999);
        service.world().activity(DAY + 24 * HOUR, 0);
        program.sync(&SINCE).ended(0);
        service.set_clock(DAY + 24 * HOUR + seconds + 60);
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
        assert_eq!(service.world().teams[0].events.iter().filter(|event| event.kind == Kind::Connections).count(), 3);
    }
}
