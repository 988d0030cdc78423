//! The number of requests of each operation.

use object_server::Kind;

use super::*;

fn asked(server: &ObjectServer, what: impl FnOnce()) -> Vec<(Kind, u64)> {
    server.forget_requests();
    what();
    server.counts().into_iter().collect()
}

#[test]
fn an_append_is_one_put_and_a_refresh_reads_only_new_lines() {
    for (server, open) in both() {
        let (store, reader) = (open(&server), open(&server));
        let mut end = End::default();
        fill(&store, &mut end, 20, 1);
        assert_eq!(asked(&server, || fill(&store, &mut end, 20, 10)), [(Kind::Put, 10)]);
        // Opening a writer needs one list of the directory and one of the lines.
        assert_eq!(asked(&server, || drop(store.list(TEAM).unwrap())), [(Kind::List, 2)]);
        let first = asked(&server, || assert_eq!(numbers(&reader, 20).len(), 11));
        assert_eq!(first, [(Kind::Get, 11), (Kind::List, 2)]);
        assert_eq!(asked(&server, || assert_eq!(numbers(&reader, 20).len(), 11)), [(Kind::List, 1)]);
        fill(&store, &mut end, 20, 2);
        let second = asked(&server, || assert_eq!(numbers(&reader, 20).len(), 13));
        assert_eq!(second, [(Kind::Get, 2), (Kind::List, 1)]);
        // The first line of a day also writes the day before; its reader then fetches one object.
        assert_eq!(asked(&server, || fill(&store, &mut end, 21, 1)), [(Kind::Put, 2)]);
        let over = open(&server);
        drop(over.list(TEAM).unwrap());
        assert_eq!(asked(&server, || assert_eq!(numbers(&over, 20).len(), 13)), [(Kind::Get, 1)]);
    }
}

#[test]
fn a_busy_day_costs_few_copies_and_few_reads() {
    let server = ObjectServer::start();
    let store = s3(&server);
    let mut end = End::default();
    let written = asked(&server, || fill(&store, &mut end, 20, 1440));
    let puts = written.iter().find(|(kind, _)| *kind == Kind::Put).unwrap().1;
    assert!(puts < 1440 + 15 && written.len() <= 3, "{written:?}");
    let read = asked(&server, || assert_eq!(numbers(&s3(&server), 20).len(), 1440));
    let gets = read.iter().find(|(kind, _)| *kind == Kind::Get).unwrap().1;
    assert!(gets < 1440 / 4, "{read:?}");
}

#[test]
fn removing_many_files_is_one_request_to_s3() {
    let server = ObjectServer::start();
    let store = s3(&server);
    let paths: Vec<String> = (0..50).map(|n| format!("tables/{n}")).collect();
    paths.iter().for_each(|path| super::super::super::put(&store, path, b"x").unwrap());
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    for _ in 0..2 {
        assert_eq!(asked(&server, || store.remove(&paths).unwrap()), [(Kind::Delete, 1)]);
    }
    assert!(server.keys().is_empty());
}
