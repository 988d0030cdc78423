//! The comparison of a ledger's objects with its days as readers see them.

use super::super::names;
use super::super::names::Extension;
use super::*;

fn altered(server: &ObjectServer, open: Open) -> Vec<(String, bool)> {
    let found = open(server).altered_parts().unwrap();
    found.into_iter().map(|found| (found.path, found.what.contains("is missing"))).collect()
}

#[test]
fn an_altered_or_missing_object_is_reported_although_copies_hide_it() {
    for (server, open) in both() {
        let store = open(&server);
        let mut end = End::default();
        fill(&store, &mut end, 20, 3);
        // The newest day has a copy of its first lines.
        fill(&store, &mut end, 21, 150);
        let days = [20, 21].map(|of| format!("2026-11-{of}T00:00:00Z").parse().unwrap());
        for day in days {
            let path = names::file(TEAM, Extension::Heads, day);
            store.append(&path, Tail::default(), b"one\n").unwrap();
            store.append(&path, Tail { keep: 4, torn: 0 }, b"two\n").unwrap();
        }
        assert_eq!(altered(&server, open), []);
        let flip = |path: &str| {
            let mut content = server.object(&key(path)).unwrap().to_vec();
            content[2] ^= 1;
            server.tamper(&key(path), Some(content.into()));
        };
        let lines = [1, 2, 10].map(|number| names::line(TEAM, number));
        let heads = [1, 2].map(|number| names::head(TEAM, days[0], number));
        server.tamper(&key(&lines[0]), None);
        flip(&lines[1]);
        server.tamper(&key(&lines[2]), Some("{}".into()));
        server.tamper(&key(&heads[0]), None);
        flip(&heads[1]);
        let reader = open(&server);
        assert_eq!((numbers(&reader, 20).len(), numbers(&reader, 21).len()), (3, 150), "readers see the copies");
        let expected: Vec<(String, bool)> =
            lines.into_iter().chain(heads).zip([true, false, false, true, false]).collect();
        let mut found = altered(&server, open);
        found.sort_by_key(|(path, _)| expected.iter().position(|(other, _)| other == path));
        assert_eq!(found, expected);
    }
}
