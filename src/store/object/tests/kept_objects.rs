//! Ledger lines and snapshots that a question keeps on this machine.

use object_server::Kind;

use super::*;

/// The requests of another process that lists a team's ledger and reads it.
fn asked(server: &ObjectServer, directory: &std::path::Path) -> (Vec<u64>, u64, u64) {
    server.forget_requests();
    let store = s3(server).with_object_cache(directory);
    let listed = store.list(TEAM).unwrap();
    let read = |of: &super::super::super::Listed| {
        let content = store.read_listed(of).unwrap().to_bytes().unwrap();
        let lines: Vec<&[u8]> = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        lines.into_iter().map(|line| super::super::names::number_in_line(line).unwrap()).collect::<Vec<_>>()
    };
    let numbers = listed.iter().flat_map(read).collect();
    (numbers, server.count(Kind::Get), server.count(Kind::List))
}

#[test]
fn a_second_process_fetches_only_new_lines() {
    let (server, kept) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    let (store, mut end) = (s3(&server), End::default());
    fill(&store, &mut end, 20, 120);
    fill(&store, &mut end, 21, 130);
    let all: Vec<u64> = (1..=250).collect();
    let (numbers, gets, lists) = asked(&server, kept.path());
    assert!(numbers == all && gets > 20, "{gets}");
    assert_eq!(asked(&server, kept.path()), (all, 0, lists));
    fill(&store, &mut end, 21, 1);
    assert_eq!(asked(&server, kept.path()), ((1..=251).collect(), 1, lists));
}

#[test]
fn a_changed_object_and_a_damaged_kept_one_are_fetched_again() {
    let (server, kept) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    fill(&s3(&server), &mut End::default(), 20, 3);
    let _ = asked(&server, kept.path());
    let key = format!("an/archive/{TEAM}/line/{:012}.jsonl", 2);
    let same_size = String::from_utf8(server.object(&key).unwrap().to_vec()).unwrap().replace("\"seq\":2", "\"seq\":7");
    server.tamper(&key, Some(same_size.into()));
    assert_eq!(asked(&server, kept.path()).0, [1, 7, 3]);
    for file in std::fs::read_dir(kept.path()).unwrap() {
        std::fs::File::options().write(true).open(file.unwrap().path()).unwrap().set_len(70).unwrap();
    }
    let (numbers, gets, _) = asked(&server, kept.path());
    assert_eq!((numbers, gets), (vec![1, 7, 3], 3));
}

/// `verify` must see the bytes in the bucket.
#[test]
fn a_store_without_kept_objects_reads_the_bucket_again() {
    let (server, kept) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    fill(&s3(&server), &mut End::default(), 20, 3);
    let store = s3(&server).with_object_cache(kept.path());
    assert_eq!(numbers(&store, 20), [1, 2, 3]);
    server.forget_requests();
    store.forget();
    assert_eq!((numbers(&store, 20), server.count(Kind::Get)), (vec![1, 2, 3], 3));
}
