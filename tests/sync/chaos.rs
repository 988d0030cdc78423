//! All faults at once, by seed: unusual bounds, false paging data, short pages, no order, failures, kills, changes at
//! every request and late events, over days. After a quiet time the archive equals the truth.
//!
//! `ANNALS_SEEDS` sets the number of seeds, `ANNALS_SEED` a single one.
#![allow(clippy::print_stdout, reason = "a failed test shows the seed")]

use crate::awkward;

use std::time::Duration;

use awkward::chance::times;
use awkward::{
    Action, Answer, Bound, Chance, DAY, Expected, HOUR, Kind, More, Next, Order, Program, SINCE, Service, World,
    hold_with,
};

const AT_ONCE: u64 = 4;
/// The times of readings, in hours after [`DAY`].
const CLOCKS: [i64; 7] = [60, 61, 73, 84, 97, 122, 175];

fn one_of<T: Copy>(chance: &mut Chance, all: &[T]) -> T {
    all[usize::try_from(chance.below(all.len() as u64)).unwrap()]
}

fn odd_habits(world: &mut World, chance: &mut Chance) {
    let bounds: Vec<Bound> = Bound::all().collect();
    let habits = &mut world.habits;
    (habits.start, habits.stop) = (one_of(chance, &bounds), one_of(chance, &bounds));
    habits.cap = one_of(chance, &[None, Some(100), Some(40), Some(12), Some(9)]);
    habits.limit_max = one_of(chance, &[1_001, 1_001, 1_000, 500, 100]);
    habits.more = one_of(chance, &[More::True, More::Always(true), More::Always(false), More::Absent, More::Null]);
    habits.next = one_of(chance, &[Next::True, Next::Stuck, Next::Backwards, Next::Null, Next::Zero, Next::Absurd]);
    habits.order = one_of(chance, &[Order::Time, Order::Time, Order::NewestFirst, Order::Scattered]);
}

/// A moment before `clock`, usually a recent one.
fn moment(clock: i64, chance: &mut Chance) -> i64 {
    let back = one_of(chance, &[60, 3_600, 3_600, 20 * 3_600, 50 * 3_600]);
    (clock - i64::try_from(chance.below(back)).unwrap()).max(DAY)
}

/// A re-scan does not keep events beyond its window, so this test never deletes such events.
fn is_near_a_border(at: i128) -> bool {
    let of_day = at.rem_euclid(86_400 * 1_000_000_000) / 1_000_000_000;
    !(3_700..86_400 - 3_700).contains(&of_day)
}

fn change(world: &mut World, chance: &mut Chance) {
    let at = moment(world.now, chance);
    match chance.below(5) {
        0..2 => _ = world.connection_of(0, one_of(chance, &[0, 1, 2]), at, i64::try_from(chance.below(1_000)).unwrap()),
        2..4 => _ = world.activity(at, i64::try_from(chance.below(1_000_000_000)).unwrap()),
        _ => {
            let alive: Vec<u64> = world.teams[0]
                .events
                .iter()
                .filter(|event| event.alive && event.kind == Kind::Connections && !is_near_a_border(event.at))
                .map(|event| event.number)
                .collect();
            if let Some(number) = alive.get(usize::try_from(chance.below(alive.len() as u64 + 1)).unwrap()) {
                world.delete(*number);
            }
        }
    }
}

/// Adds changes since the last reading: events, twins, a dense second, a billing entry.
fn hours_pass(world: &mut World, clock: i64, chance: &mut Chance) {
    world.now = clock;
    for _ in 0..20 + chance.below(40) {
        change(world, chance);
    }
    let at = moment(clock, chance);
    for _ in 0..chance.below(30) {
        world.connection(at, i64::try_from(chance.below(1_000)).unwrap());
    }
    let number = world.activity(at, 5);
    (0..chance.below(4)).for_each(|_| _ = world.twin(number));
    world.billing(clock - 1);
}

fn failure(chance: &mut Chance) -> Action {
    match chance.below(6) {
        0 => Action::Reset,
        1 => Action::Cut(usize::try_from(chance.below(400)).unwrap()),
        2 => Action::Answer(Answer::html()),
        3 => Action::Answer(Answer::of(503, "")),
        4 => Action::Answer(Answer::of(429, "").with("Retry-After", "0")),
        _ => Action::Answer(Answer::of(200, "null")),
    }
}

fn chaos(seed: u64) {
    println!("seed {seed}: ANNALS_SEED={seed} repeats it");
    let service = Service::at(DAY);
    let program = Program::of(&service);
    let mut chance = Chance::of(seed);
    odd_habits(&mut service.world(), &mut chance);
    for clock in CLOCKS.map(|hours| DAY + hours * HOUR) {
        hours_pass(&mut service.world(), clock, &mut chance);
        let mut inner = Chance::of(chance.next());
        let (mut changes, mut failures) = (0, 0);
        service.on_request(move |_, request, world| {
            if request.is_history() && changes < 30 && inner.below(3) == 0 {
                changes += 1;
                change(world, &mut inner);
            }
            if failures < 2 && inner.below(40) == 0 {
                failures += 1;
                return failure(&mut inner);
            }
            Action::Serve
        });
        for _ in 0..chance.below(3) {
            let before = service.world().served();
            let run = program.start_sync(&SINCE).kill_after(Duration::from_millis(20 + chance.below(200)));
            if run.code.is_none() {
                service.forget_killed_run(&before);
            }
        }
        let run = program.sync(&SINCE);
        assert!(matches!(run.code, Some(0 | 3)), "seed {seed}: {run:?}");
    }
    service.calm();
    for hours in [250, 250, 250] {
        service.set_clock(DAY + hours * HOUR);
        program.sync(&SINCE).ended(0);
    }
    hold_with(&service, &program, &Expected { requests_max: 20_000, arguments: &SINCE, ..Expected::default() });
}

#[test]
fn after_every_fault_the_archive_equals_the_truth() {
    let only = std::env::var("ANNALS_SEED").ok().map(|seed| seed.parse().unwrap());
    let seeds: Vec<u64> = only.map_or_else(|| (0..times("ANNALS_SEEDS", 8)).collect(), |seed| vec![seed]);
    for some in seeds.chunks(usize::try_from(AT_ONCE).unwrap()) {
        // Run in parallel, because the runs mostly wait for retries.
        let broken: Vec<u64> = std::thread::scope(|scope| {
            let all: Vec<_> = some.iter().map(|&seed| (seed, scope.spawn(move || chaos(seed)))).collect();
            all.into_iter().filter_map(|(seed, one)| one.join().is_err().then_some(seed)).collect()
        });
        assert!(broken.is_empty(), "seeds {broken:?}: ANNALS_SEED=<seed> repeats one");
    }
}
