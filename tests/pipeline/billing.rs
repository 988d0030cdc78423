//! Rounds over a small team in virtual time: the ten billing entries that the service shows.

use annals::archive::WindowState;
use annals::model::Stream;

use crate::common::team_world::{World, at, entry};
use crate::gaps::{NOON, gaps, intervals, settings};

/// Billing has whole seconds, so lost entries can have the second of the oldest shown one.
#[tokio::test]
async fn a_gap_of_billing_includes_the_seconds_at_its_ends() {
    let world = World::new("2026-11-20T12:00:00.044Z");
    world.team().billing = vec![entry("b0", "2026-11-20T11:00:00Z")];
    world.sync(&settings()).await;
    world.team().billing = (1..13).rev().map(|n| entry(&format!("b{n}"), "2026-11-20T12:10:00Z")).collect();
    world.set_now("2026-11-20T12:20:00Z");
    world.sync(&settings()).await;
    let gap = ("billing".to_owned(), at("2026-11-20T11:55:00Z"), at("2026-11-20T12:10:01Z"));
    assert_eq!(intervals(&world), [gap]);
}

/// The service's `Date` may be wrong by a few minutes.
#[tokio::test]
async fn a_gap_of_billing_includes_lost_entries_although_the_date_was_ahead() {
    let entries = |minute: &str| -> Vec<_> {
        let of = |n: u32| entry(&format!("b{n}"), &format!("2026-11-20T12:{minute}:{:02}Z", 5 * n));
        (1..12).rev().map(of).collect()
    };
    for (minute, end) in [("01", "2026-11-20T12:01:11Z"), ("30", "2026-11-20T12:30:11Z")] {
        // It is 12:01.
        let world = World::new("2026-11-20T12:04:00Z");
        world.team().billing = vec![entry("first", "2026-11-20T11:00:00Z")];
        world.sync(&settings()).await;
        // The newest entries have seconds 10 to 55. The one of second 5 is lost.
        world.team().billing = entries(minute);
        world.set_now("2026-11-20T12:40:00Z");
        world.sync(&settings()).await;
        assert_eq!(intervals(&world), [("billing".to_owned(), at("2026-11-20T11:59:00Z"), at(end))]);
    }
}

#[tokio::test]
async fn one_short_billing_answer_loses_nothing() {
    let world = World::new(NOON);
    let ledger: Vec<_> = (10..26).rev().map(|n| entry(&format!("b{n}"), "2026-11-20T11:00:00Z")).collect();
    world.team().billing = ledger[6..].to_vec();
    world.sync(&settings()).await;
    for shown in [&[][..], &ledger[6..], &ledger[4..7], &ledger[2..12]] {
        world.team().billing = shown.to_vec();
        world.sync(&settings()).await;
        assert!(gaps(&world).is_empty(), "{:?}", gaps(&world));
    }
    assert_eq!(world.held(Stream::Billing).len(), 14);
}

#[tokio::test]
async fn the_record_of_an_open_window_counts_its_billing_entries() {
    let world = World::new(NOON);
    let (yesterday, today) = ("2026-11-19T00:00:00Z", "2026-11-20T00:00:00Z");
    let shown = [("b3", "2026-11-20T11:30:00Z"), ("b2", "2026-11-20T10:00:00Z"), ("b1", "2026-11-19T20:00:00Z")];
    world.team().billing = shown.map(|(id, time)| entry(id, time)).to_vec();
    world.sync(&settings()).await;
    let counts = |start| {
        let window = world.window(Stream::Billing, start);
        (window.state, window.events, window.late)
    };
    assert_eq!(counts(yesterday), (WindowState::Settled, 1, 0));
    let open = |events| (WindowState::Provisional, events, 0);
    assert_eq!(counts(today), open(2));
    world.team().billing.insert(0, entry("b4", "2026-11-20T11:58:00Z"));
    world.set_now("2026-11-20T12:05:00Z");
    world.sync(&settings()).await;
    assert_eq!(counts(today), open(3));
    // Without new entries, an open window makes no commit.
    let seq = world.state().seq;
    world.set_now("2026-11-20T12:10:00Z");
    world.sync(&settings()).await;
    assert_eq!((counts(today), world.state().seq), (open(3), seq));
    world.set_now("2026-11-21T00:20:00Z");
    world.sync(&settings()).await;
    assert_eq!(counts(today), (WindowState::Settled, 3, 0));
}
