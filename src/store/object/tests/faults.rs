//! Every fault of a store during a write, and the result for the writer.

use std::time::Duration;

use object_server::{Effect, Kind, Rule};

use super::super::super::put;
use super::*;

/// Appends one line to a new ledger, under a rule that hits its creates.
fn under(effect: &Effect, first: u64, check: impl Fn(&ObjectServer, &ObjectStore, Result<End, StoreError>)) {
    for (server, open) in both() {
        let store = open(&server);
        let mut end = End::default();
        fill(&store, &mut end, 20, 1);
        server.fail(Rule::new(effect.clone()).on(Kind::Put).key("/line/").first(first));
        let appended = end.append(&store, 20, "first").map(|()| end);
        assert!(server.struck() > 0);
        check(&server, &store, appended);
    }
}

#[test]
fn a_request_that_took_effect_is_success_after_any_answer() {
    for effect in [
        Effect::AnswerLost,
        Effect::AppliedThenRefused(400),
        Effect::AppliedThenRefused(403),
        Effect::AppliedThenRefused(500),
        Effect::AppliedThenRefused(503),
    ] {
        under(&effect, 1, |server, store, appended| {
            let mut end = appended.unwrap();
            server.heal();
            fill(store, &mut end, 20, 1);
            assert_eq!(numbers(&s3(server), 20), [1, 2, 3], "{effect:?}");
        });
    }
}

#[test]
fn a_request_without_effect_is_retried() {
    let refused = [409, 429, 500, 503].map(|status| Effect::Refused(status, Some(1)));
    for effect in refused.into_iter().chain([Effect::CutUpload(10), Effect::Slow(Duration::from_millis(50))]) {
        under(&effect, 3, |server, _, appended| {
            appended.unwrap();
            server.heal();
            assert_eq!(numbers(&s3(server), 20), [1, 2], "{effect:?}");
        });
    }
}

#[test]
fn a_failing_store_is_named_and_the_writer_continues_later() {
    for (effect, said) in [
        (Effect::Refused(503, None), "the store answered 503 SlowDown: refused by a rule"),
        (Effect::Refused(409, None), "the store answered 409 ConditionalRequestConflict"),
        (Effect::Refused(403, None), "the store answered 403 Refused"),
        (Effect::CutUpload(0), "the store gave no answer: "),
    ] {
        under(&effect, 1000, |server, store, appended| {
            let error = appended.err().expect("nothing came through");
            let text = error.to_string();
            let object = format!("an/archive/{TEAM}/line/000000000002.jsonl");
            assert!(text.contains(said) && text.contains(&object) && text.contains("://bucket/"), "{text}");
            assert!(!error.is_undone() && !text.contains('\n') && !text.contains("127.0.0.1:"), "{text}");
            server.heal();
            assert_eq!(numbers(store, 20), [1]);
            let mut end = End { number: 1, day: 20, length: line(1, 20, "first").len() as u64 };
            fill(store, &mut end, 20, 1);
            assert_eq!(numbers(store, 20), [1, 2]);
        });
    }
}

#[test]
fn a_late_write_is_the_line_or_has_no_effect() {
    // The write lands before another writer appends: repeating it succeeds, and another line is refused.
    under(&Effect::Late, 1000, |server, store, appended| {
        assert!(!appended.err().expect("no answer came").is_undone());
        server.heal();
        let landed = server.land();
        assert!(landed[0] && landed[1..].iter().all(|applied| !applied));
        let one = End { number: 1, day: 20, length: line(1, 20, "first").len() as u64 };
        let refused = { one }.append(&gcs(server), 20, "another").unwrap_err();
        assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
        let mut end = one;
        end.append(store, 20, "first").unwrap();
        fill(store, &mut end, 20, 1);
        assert_eq!(numbers(&s3(server), 20), [1, 2, 3]);
    });
    // The write lands after another writer has appended: it has no effect.
    under(&Effect::Late, 1000, |server, store, appended| {
        assert!(appended.is_err());
        server.heal();
        let mut end = End { number: 1, day: 20, length: line(1, 20, "first").len() as u64 };
        end.append(&s3(server), 20, "another").unwrap();
        end.append(&s3(server), 21, "another").unwrap();
        assert!(server.land().iter().all(|applied| !applied));
        assert!(read(store, &day(20)).ends_with("\"another\"}\n"));
        assert_eq!(numbers(store, 21), [3]);
    });
}

#[test]
fn uploads_survive_faults_and_leave_no_parts() {
    let large: Vec<u8> = (0..33_u32 << 20).map(|n| (n >> 10).to_le_bytes()[0]).collect();
    for (server, open) in both() {
        let store = open(&server);
        for (kind, effect) in [
            (Kind::Start, Effect::Refused(503, None)),
            (Kind::Part, Effect::CutUpload(1 << 20)),
            (Kind::Part, Effect::AnswerLost),
            (Kind::Complete, Effect::AnswerLost),
            (Kind::Complete, Effect::AppliedThenRefused(500)),
        ] {
            server.heal();
            server.fail(Rule::new(effect.clone()).on(kind).nth(1));
            put(&store, "tables/large", &large).unwrap();
            assert!(server.struck() == 1 && server.object(&key("tables/large")).unwrap() == large, "{effect:?}");
            server.tamper(&key("tables/large"), None);
        }
        assert_eq!(server.open_uploads(), 0);
        server.heal();
        server.fail(Rule::new(Effect::Refused(403, None)).on(Kind::Part));
        let error = put(&store, "tables/large", &large).unwrap_err().to_string();
        assert!(error.contains("tables/large: the store answered 403"), "{error}");
        assert_eq!((server.open_uploads(), server.object(&key("tables/large"))), (0, None));
        server.heal();
        for effect in [Effect::CutUpload(100_000), Effect::AnswerLost, Effect::Refused(429, Some(1))] {
            server.fail(Rule::new(effect).on(Kind::Put).nth(1));
            put(&store, "tables/small", &large[..1 << 20]).unwrap();
        }
        assert_eq!(server.object(&key("tables/small")).unwrap(), large[..1 << 20]);
    }
}

#[test]
fn interrupted_reads_continue() {
    for (server, open) in both() {
        let store = open(&server);
        let content: Vec<u8> = (0..3_u32 << 20).map(|n| (n >> 9).to_le_bytes()[0]).collect();
        put(&store, "tables/x", &content).unwrap();
        for (rule, gets) in [
            (Rule::new(Effect::CutDownload(1_000_000)).on(Kind::Get).nth(1), 2),
            (Rule::new(Effect::Refused(503, None)).on(Kind::Get).first(3), 4),
        ] {
            server.heal();
            server.forget_requests();
            server.fail(rule);
            assert_eq!(store.read("tables/x").unwrap().to_bytes().unwrap(), content);
            assert_eq!(server.count(Kind::Get), gets);
        }
    }
}

#[test]
fn short_slow_and_failing_lists_become_complete() {
    for (server, open) in both() {
        let store = open(&server);
        let mut end = End::default();
        (20..23).for_each(|of| fill(&store, &mut end, of, 7));
        (0..7).for_each(|n| put(&store, &format!("tables/d/team=a/{n}"), b"x").unwrap());
        let whole = store.list("").unwrap();
        assert_eq!(whole.len(), 10);
        for effect in [Effect::ShortPages(1), Effect::ShortPages(3), Effect::Slow(Duration::from_millis(20))] {
            server.heal();
            server.fail(Rule::new(effect).on(Kind::List));
            server.fail(Rule::new(Effect::Refused(503, None)).on(Kind::List).chance(20, 7));
            for hand in [&store, &open(&server)] {
                let listed: Vec<_> =
                    hand.list("").unwrap().into_iter().map(|entry| (entry.path, entry.bytes)).collect();
                assert_eq!(listed, whole.iter().map(|entry| (entry.path.clone(), entry.bytes)).collect::<Vec<_>>());
            }
            let again = open(&server);
            assert_eq!((20..23).flat_map(|of| numbers(&again, of)).collect::<Vec<_>>(), (1..=21).collect::<Vec<_>>());
        }
    }
}

#[test]
fn chaos_loses_and_doubles_nothing() {
    for (seed, (server, open)) in (1..).zip(both()) {
        for (n, effect) in (1..).zip([
            Effect::AnswerLost,
            Effect::AppliedThenRefused(500),
            Effect::Refused(503, None),
            Effect::Refused(409, None),
            Effect::CutUpload(20),
            Effect::CutDownload(20),
        ]) {
            server.fail(Rule::new(effect).chance(4, seed * 100 + n));
        }
        server.fail(Rule::new(Effect::ShortPages(2)).on(Kind::List).chance(50, seed));
        let mut end = End::default();
        for n in 0..150 {
            let store = open(&server);
            // A writer with an unclear outcome opens the ledger again, and finds its line or writes it.
            while let Err(error) = end.append(&store, 20 + n / 50, "first") {
                assert!(!error.is_fenced(), "{error}");
            }
        }
        server.heal();
        let store = open(&server);
        assert_eq!((20..23).flat_map(|of| numbers(&store, of)).collect::<Vec<_>>(), (1..=150).collect::<Vec<_>>());
    }
}

#[test]
fn the_clock_comes_from_the_store() {
    for (server, open) in both() {
        let store = open(&server);
        for ahead in [0, 3600, -3600] {
            server.set_clock_ahead(ahead);
            put(&store, "tables/x", b"x").unwrap();
            let (now, modified) = (store.now().unwrap(), store.list("tables").unwrap()[0].modified);
            let ours = crate::clock::wall_clock();
            let beside = |at: crate::model::Instant| at.seconds() - ours.seconds() - ahead;
            assert!(beside(now).abs() <= 60 && beside(modified).abs() <= 60, "{ahead}: {now} {modified} {ours}");
        }
    }
}
