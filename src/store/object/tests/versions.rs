//! The report of a versioned bucket about overwritten ledger objects.

use super::super::super::{erase_all, put};
use super::*;

fn rewritten_lines(store: &ObjectStore) -> Vec<(String, String)> {
    store.rewritten().unwrap().into_iter().map(|found| (found.path, found.what)).collect()
}

#[test]
fn a_rewritten_or_deleted_line_is_reported() {
    let server = ObjectServer::start();
    server.keep_versions();
    let store = s3(&server);
    let mut end = End::default();
    // More than one page of versions. Copies of days may be overwritten any number of times.
    fill(&store, &mut end, 20, 1_100);
    fill(&store, &mut end, 21, 2);
    assert_eq!(rewritten_lines(&store), []);
    let key = |number: u64| format!("an/archive/{TEAM}/line/{number:012}.jsonl");
    let same = server.object(&key(1_050)).unwrap();
    server.tamper(&key(1_050), Some(same));
    server.tamper(&key(7), None);
    let found = rewritten_lines(&store);
    let [(deleted, of_deletion), (again, of_versions)] = &found[..] else { panic!("{found:?}") };
    assert!(deleted.ends_with("line/000000000007.jsonl") && of_deletion.contains("was deleted at"), "{found:?}");
    assert!(again.ends_with("line/000000001050.jsonl") && of_versions.contains("has 2 versions"), "{found:?}");
    // The object was restored, but the deletion remains a fact.
    server.tamper(&key(7), Some("{}".into()));
    assert!(rewritten_lines(&store)[0].1.contains("was deleted at"));
}

#[test]
fn a_bucket_without_versions_reports_nothing_and_a_refusal_is_an_error() {
    let server = ObjectServer::start();
    let store = s3(&server);
    fill(&store, &mut End::default(), 20, 3);
    assert_eq!(rewritten_lines(&store), []);
    server.tamper(&format!("an/archive/{TEAM}/line/{:012}.jsonl", 2), Some("x".into()));
    assert_eq!(rewritten_lines(&store), []);
    server.fail(object_server::Rule::new(object_server::Effect::Refused(403, None)).on(object_server::Kind::List));
    let refused = store.rewritten().unwrap_err().to_string();
    assert!(refused.contains("versions: the store answered 403") && !refused.contains("Signature"), "{refused}");
    // A store without versions.
    server.heal();
    server.fail(object_server::Rule::new(object_server::Effect::Refused(501, None)).on(object_server::Kind::List));
    assert_eq!(rewritten_lines(&store), []);
}

#[test]
fn an_erasure_deletes_every_version_and_names_remaining_ones() {
    let server = ObjectServer::start();
    server.keep_versions();
    let store = s3(&server);
    let versions = || server.versions("an/archive/tables/");
    for content in ["one", "two"] {
        put(&store, "tables/a", content.as_bytes()).unwrap();
        put(&store, "tables/ab", content.as_bytes()).unwrap();
    }
    store.remove(&["tables/a"]).unwrap();
    assert_eq!(versions(), 5);
    assert_eq!(erase_all(&store, &["tables/a", "tables/none"]).unwrap(), []);
    assert_eq!((versions(), store.read("tables/ab").unwrap().size()), (2, 3));
    // Locked, or without the right: the versions stay.
    server.fail(object_server::Rule::new(object_server::Effect::Refused(403, None)).on(object_server::Kind::List));
    let stays = erase_all(&store, &["tables/ab"]).unwrap();
    assert!(stays.len() == 1 && stays[0].path == "tables/ab" && stays[0].why.contains("403"), "{stays:?}");
    server.heal();
    assert_eq!(erase_all(&store, &["tables/ab"]).unwrap(), []);
    assert_eq!(versions(), 0);
}

/// The requests that the client library does not know go by the configured proxy, too.
#[test]
fn requests_for_versions_use_the_proxy() {
    let server = ObjectServer::start();
    server.keep_versions();
    let mut settings = settings(&server);
    settings.retain(|(name, _)| name != "AWS_ENDPOINT_URL");
    settings.push(("AWS_ENDPOINT_URL".to_owned(), "http://bucket.invalid:1".to_owned()));
    settings.push(("AWS_PROXY_URL".to_owned(), server.endpoint()));
    let store = open(&format!("s3://{BUCKET}/an/archive"), &settings).unwrap();
    fill(&store, &mut End::default(), 20, 2);
    server.tamper(&format!("an/archive/{TEAM}/line/{:012}.jsonl", 1), None);
    assert!(rewritten_lines(&store)[0].1.contains("was deleted at"));
}
