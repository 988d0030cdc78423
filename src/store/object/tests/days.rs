//! The store presents lines as day files.

use std::collections::BTreeSet;
use std::thread::scope;

use super::*;

#[test]
fn lines_are_objects_and_days_are_files() {
    for (server, open) in both() {
        let store = open(&server);
        let mut end = End::default();
        fill(&store, &mut end, 20, 3);
        fill(&store, &mut end, 22, 2);
        let parts: Vec<String> = (1..=5).map(|n| key(&format!("{TEAM}/line/{n:012}.jsonl"))).collect();
        assert_eq!(server.keys(), [vec![key(&day(20))], parts].concat(), "a past day is written as a whole");
        for store in [store, open(&server)] {
            assert_eq!((numbers(&store, 20), numbers(&store, 22)), (vec![1, 2, 3], vec![4, 5]));
            let listed = store.list("ledger").unwrap();
            let sizes: Vec<(&str, u64)> = listed.iter().map(|entry| (entry.path.as_str(), entry.bytes)).collect();
            let size = |of: u32| store.read(&day(of)).unwrap().size();
            assert_eq!(sizes, [(day(20).as_str(), size(20)), (&day(22), size(22))]);
            assert!(store.read(&day(21)).unwrap_err().is_not_found());
            assert!(store.list(&format!("{TEAM}/line")).unwrap().is_empty());
        }
    }
}

#[test]
fn a_line_belongs_to_the_later_day_of_itself_and_the_line_before() {
    let server = ObjectServer::start();
    let store = s3(&server);
    let mut end = End::default();
    end.append(&store, 22, "first").unwrap();
    let early = line(2, 20, "a clock that went back");
    store.append(&day(22), Tail { keep: end.length, torn: 0 }, &early).unwrap();
    assert_eq!(numbers(&s3(&server), 22), [1, 2]);
    let wrong = store.append(&day(23), Tail::default(), &line(3, 24, "of another day")).unwrap_err();
    assert!(matches!(wrong, StoreError::Irregular { .. }), "{wrong}");
}

#[test]
fn copies_are_written_removed_and_optional() {
    for (server, open) in both() {
        let store = open(&server);
        let mut end = End::default();
        fill(&store, &mut end, 20, 2);
        fill(&store, &mut end, 21, 230);
        let copies = || server.keys().into_iter().filter(|key| key.contains("/copy/")).count();
        assert_eq!(copies(), 2);
        let whole = read(&store, &day(21));
        assert_eq!(numbers(&open(&server), 21), (3..=232).collect::<Vec<_>>());
        server.forget_requests();
        assert_eq!(read(&open(&server), &day(21)), whole);
        assert!(server.count(object_server::Kind::Get) < 40, "{:?}", server.counts());
        // Without any copy, the lines give the same content.
        let derived: Vec<String> = server.keys().into_iter().filter(|key| !key.contains("/line/")).collect();
        let kept: Vec<(String, Bytes)> = derived.iter().map(|key| (key.clone(), server.object(key).unwrap())).collect();
        derived.iter().for_each(|key| server.tamper(key, None));
        let bare = open(&server);
        assert_eq!((read(&bare, &day(21)), numbers(&bare, 20)), (whole.clone(), vec![1, 2]));
        assert_eq!(read(&store, &day(21)), whole, "a reader that used the copies continues");
        // A copy that does not continue where the files end is useless.
        kept.iter()
            .filter(|(key, _)| key.contains("/copy/"))
            .for_each(|(key, copy)| server.tamper(key, Some(copy.clone())));
        assert_eq!(read(&open(&server), &day(21)), whole);
        // The next day's first line writes the missing objects.
        end.append(&bare, 22, "first").unwrap();
        assert_eq!(copies(), 0);
        assert_eq!((read(&open(&server), &day(21)), numbers(&open(&server), 22)), (whole, vec![233]));
    }
}

#[test]
fn signatures_are_presented_in_the_same_way() {
    for (server, open) in both() {
        let store = open(&server);
        let path = |day: u32| format!("{TEAM}/2026-11-{day}.heads");
        let append = |store: &ObjectStore, of: u32, keep: u64, text: &str| {
            store.append(&path(of), Tail { keep, torn: 0 }, text.as_bytes())
        };
        append(&store, 20, 0, "one\n").unwrap();
        append(&store, 20, 4, "two\n").unwrap();
        append(&store, 21, 0, "three\n").unwrap();
        append(&store, 21, 0, "three\n").unwrap();
        let other = open(&server);
        append(&other, 21, 6, "four\n").unwrap();
        assert!(matches!(append(&store, 21, 6, "five\n").unwrap_err(), StoreError::Conflict { found: 11, .. }));
        assert!(matches!(append(&store, 20, 8, "five\n").unwrap_err(), StoreError::Later { .. }));
        for store in [store, other, open(&server)] {
            assert_eq!(
                (read(&store, &path(20)), read(&store, &path(21))),
                ("one\ntwo\n".into(), "three\nfour\n".into())
            );
            let listed: Vec<u64> = store.list(TEAM).unwrap().into_iter().map(|entry| entry.bytes).collect();
            assert_eq!(listed, [8, 11]);
        }
    }
}

#[test]
fn appends_continue_a_day_that_has_a_day_file() {
    let server = ObjectServer::start();
    let store = s3(&server);
    let lines = [line(1, 20, "first"), line(2, 20, "first")].concat();
    super::super::super::put(&store, &day(20), &lines).unwrap();
    let mut end = End { number: 2, day: 20, length: lines.len() as u64 };
    fill(&store, &mut end, 20, 120);
    assert_eq!(numbers(&s3(&server), 20), (1..=122).collect::<Vec<_>>());
    fill(&s3(&server), &mut end, 21, 1);
    assert_eq!(numbers(&s3(&server), 20), (1..=122).collect::<Vec<_>>());
    let heads = format!("{TEAM}/2026-11-20.heads");
    super::super::super::put(&store, &heads, b"one\n").unwrap();
    store.append(&heads, Tail { keep: 4, torn: 0 }, b"two\n").unwrap();
    assert_eq!(read(&s3(&server), &heads), "one\ntwo\n");
}

#[test]
fn one_of_two_concurrent_appends_wins_each_number() {
    for (server, open) in both() {
        let hands = [open(&server), open(&server)];
        let mut end = End::default();
        for round in 0..20 {
            // Every fifth number begins a day, and one of the two writers learns it earlier.
            let of = 10 + round / 5;
            let tries = scope(|threads| {
                let tries = ["one", "two"].into_iter().zip(&hands).map(|(writer, hand)| {
                    threads.spawn(move || {
                        let mut end = end;
                        end.append(hand, of, writer).map(|()| end)
                    })
                });
                tries.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            let won: Vec<End> = tries.iter().filter_map(|tried| tried.as_ref().ok().copied()).collect();
            assert_eq!(won.len(), 1, "round {round}");
            assert!(tries.iter().filter_map(|tried| tried.as_ref().err()).all(StoreError::is_fenced));
            end = won[0];
        }
        let all: Vec<u64> = (10..14).flat_map(|of| numbers(&open(&server), of)).collect();
        assert_eq!(all, (1..=20).collect::<Vec<_>>());
    }
}

#[test]
fn a_writer_that_sleeps_past_midnight_is_fenced() {
    for (server, open) in both() {
        let (zombie, owner) = (open(&server), open(&server));
        let mut end = End::default();
        fill(&zombie, &mut end, 20, 2);
        let mut slept = end;
        fill(&owner, &mut end, 21, 1);
        let refused = slept.append(&zombie, 20, "zombie").unwrap_err();
        assert!(refused.is_fenced(), "{refused}");
        assert_eq!((numbers(&zombie, 20), numbers(&zombie, 21)), (vec![1, 2], vec![3]));
    }
}

#[test]
fn a_missing_line_is_an_error_and_its_number_is_not_reused() {
    let server = ObjectServer::start();
    let mut end = End::default();
    fill(&s3(&server), &mut end, 20, 5);
    server.tamper(&key(&format!("{TEAM}/line/000000000003.jsonl")), None);
    let store = s3(&server);
    let gone = format!("{TEAM}/line/000000000003.jsonl");
    let [listed] = store.list("ledger").unwrap().try_into().unwrap();
    assert_eq!((&listed.path, listed.irregular.is_some()), (&gone, true));
    for refused in [store.read(&day(20)).unwrap_err(), end.append(&store, 20, "x").unwrap_err()] {
        let text = refused.to_string();
        assert!(text.contains(&gone) && text.contains("is missing"), "{text}");
    }
    let all: BTreeSet<String> = server.keys().into_iter().collect();
    assert_eq!(all.len(), 4);
}
