//! Compares pages of a stream with a simple model: keep every event in a list, filter, sort, cut.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const COMPUTERS: u16 = 4;

/// A test record: its time in seconds, and its computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Dot {
    second: i64,
    number: u64,
}

impl Record for Dot {
    fn at(self) -> Instant {
        Instant::from_seconds(self.second)
    }

    fn name(self) -> u64 {
        self.number
    }
}

/// A change of the stream; its first field is the second at which it happens.
#[derive(Debug, Clone)]
enum Act {
    Insert { at: i64, computer: u16, delay: i64 },
    Remove { computer: u16 },
    Withdraw { from: i64, length: i64 },
}

/// An event of the simple model.
#[derive(Debug, Clone)]
struct Known {
    second: i64,
    /// Generated events first, then inserted events, each in order.
    order: (u8, u64),
    computer: u16,
    born: Instant,
    gone: bool,
}

fn device(computer: u16) -> DeviceId {
    DeviceId::new(format!("computer-{computer}"))
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..60i64, 0..COMPUTERS, 0..20i64).prop_map(|(at, computer, delay)| Act::Insert { at, computer, delay }),
        (0..COMPUTERS).prop_map(|computer| Act::Remove { computer }),
        (0..60i64, 0..15i64).prop_map(|(from, length)| Act::Withdraw { from, length }),
    ]
}

fn shelf_of(dots: &[(Dot, u16)], lateness: Lateness) -> StreamStore<Dot> {
    let places = dots.iter().map(|(_, computer)| *computer).collect();
    let base = dots.iter().map(|(dot, _)| *dot).collect();
    StreamStore::new(base, ByComputer::new(places, usize::from(COMPUTERS)), lateness, 3)
}

fn apply(store: &StreamStore<Dot>, known: &mut Vec<Known>, act: &Act, now: Instant) {
    match *act {
        Act::Insert { at, computer, delay } => {
            let (born, serial) = (now.plus(Duration::from_secs(delay.unsigned_abs())), known.len() as u64);
            let raw = serial.to_string();
            store.insert(TextEvent::new(raw, Instant::from_seconds(at), Some(device(computer)), born));
            known.push(Known { second: at, order: (1, serial), computer, born, gone: false });
        }
        Act::Remove { computer } => {
            if store.remove_computer(u32::from(computer), &device(computer), now) {
                known.iter_mut().filter(|event| event.computer == computer).for_each(|event| event.gone = true);
            }
        }
        Act::Withdraw { from, length } => {
            let range = from..from + length;
            let whole = |known: &[Known]| plain(known, now, i64::MIN, i64::MAX, None).len() as u64;
            let before = whole(known);
            let taken = store.withdraw(Instant::from_seconds(range.start), Instant::from_seconds(range.end), now);
            for event in known.iter_mut().filter(|event| range.contains(&event.second)) {
                // A deletion affects inserted events of the future, but not records of the future.
                event.gone |= event.order.0 == 1 || event.second <= now.seconds();
            }
            assert_eq!(taken, before - whole(known));
        }
    }
}

/// The whole listing by the simple model: the numbers of its events, oldest first.
fn plain(known: &[Known], now: Instant, from: i64, end: i64, computers: Option<&[u16]>) -> Vec<u64> {
    let mut seen: Vec<&Known> = known
        .iter()
        .filter(|event| !event.gone && event.born <= now && (event.order.0 == 1 || event.second <= now.seconds()))
        .filter(|event| (from..end).contains(&event.second))
        .filter(|event| computers.is_none_or(|computers| computers.contains(&event.computer)))
        .collect();
    seen.sort_by_key(|event| (event.second, event.order));
    seen.iter().map(|event| event.order.1).collect()
}

fn numbers(items: Vec<Item<Dot>>) -> Vec<u64> {
    let number = |item: Item<Dot>| match item {
        Item::Record(dot) => dot.number,
        Item::Text(raw) => String::from_utf8(raw.to_vec()).unwrap().parse().unwrap(),
    };
    items.into_iter().map(number).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_page_equals_the_simple_model(
        dots in vec((0..60i64, 0..COMPUTERS), 0..60),
        acts in vec((0..60i64, act()), 0..8),
        late in prop_oneof![Just(0u32), Just(300_000)],
        (from, length) in (0..60i64, 0..70i64),
        asked in proptest::option::of(vec(0..COMPUTERS + 1, 0..4)),
        last in 0..90i64,
    ) {
        let mut dots: Vec<i64> = dots.iter().map(|&(second, computer)| second * 10 + i64::from(computer)).collect();
        dots.sort_unstable();
        let dots: Vec<(Dot, u16)> = (0u64..).zip(dots)
            .map(|(number, coded)| (Dot { second: coded / 10, number }, u16::try_from(coded % 10).unwrap()))
            .collect();
        let store = shelf_of(&dots, Lateness { per_million: late, longest: Duration::from_secs(20) });
        let mut known: Vec<Known> = dots.iter()
            .map(|&(dot, computer)| Known {
                second: dot.second, order: (0, dot.number), computer, born: store.visible_from(dot), gone: false,
            })
            .collect();
        let mut acts = acts;
        acts.sort_by_key(|(at, _)| *at);
        for (at, act) in &acts {
            apply(&store, &mut known, act, Instant::from_seconds(*at));
        }
        let now = Instant::from_seconds(last.max(acts.last().map_or(0, |(at, _)| *at)));
        let expected = plain(&known, now, from, from + length, asked.as_deref());
        let computers = asked.map(|asked| {
            asked.iter().map(|&number| ((number < COMPUTERS).then_some(u32::from(number)), device(number))).collect()
        });
        let listing = Listing {
            from: Instant::from_seconds(from), end: Instant::from_seconds(from + length), computers,
        };
        for (limit, newest_first) in [(1, false), (3, true), (7, false), (1001, true)] {
            let mut read = Vec::new();
            loop {
                let cut = Cut { offset: read.len() as u64, limit, newest_first, neighbours_swapped: false };
                let (items, total) = store.page(now, &listing, cut);
                prop_assert_eq!(total, expected.len() as u64);
                if items.is_empty() {
                    break;
                }
                prop_assert!(items.len() <= limit);
                read.extend(numbers(items));
            }
            if newest_first {
                read.reverse();
            }
            prop_assert_eq!(&read, &expected);
        }
    }
}

#[test]
fn a_computer_is_removed_once() {
    let store = shelf_of(&[(Dot { second: 1, number: 0 }, 2)], Lateness::default());
    let now = Instant::from_seconds(5);
    assert_eq!(store.visible(now), 1);
    assert!(store.remove_computer(2, &device(2), now));
    assert!(!store.remove_computer(2, &device(2), now));
    assert_eq!((store.visible(now), store.withdraw(now.minus(Duration::from_secs(9)), now, now)), (0, 0));
}
