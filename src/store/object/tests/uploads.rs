//! Uploads that a killed process left unfinished.

use object_store::ObjectStoreExt;

use super::*;

/// A store with an upload that nobody ends: its process was killed.
fn left_unfinished(store: &ObjectStore, path: &str) {
    let (client, key) = (store.bucket().client.clone(), store.bucket().key(path));
    store.bucket().run(async move { drop(client.put_multipart(&key).await.unwrap()) });
}

/// Leaves an upload, and aborts it twice.
pub(super) fn are_named_and_aborted(store: &ObjectStore) {
    assert_eq!(store.unfinished_uploads().unwrap(), []);
    left_unfinished(store, "tables/a");
    let found = store.unfinished_uploads().unwrap();
    assert!(found.len() == 1 && found[0].path == "tables/a", "{found:?}");
    for _ in 0..2 {
        store.abort_upload(&found[0]).unwrap();
        assert_eq!(store.unfinished_uploads().unwrap(), []);
    }
}

#[test]
fn an_unfinished_upload_is_listed_and_aborted() {
    let server = ObjectServer::start();
    // Another archive's, and another program's.
    server.leave_upload("an/archive-of-others/tables/a");
    server.leave_upload("an/archive/foreign");
    are_named_and_aborted(&s3(&server));
    assert_eq!(server.open_uploads(), 2);
}

#[test]
fn a_bucket_that_hides_its_uploads_is_reported() {
    let server = ObjectServer::start();
    let store = s3(&server);
    server.fail(object_server::Rule::new(object_server::Effect::Refused(403, None)).on(object_server::Kind::List));
    let refused = store.unfinished_uploads().unwrap_err().to_string();
    assert!(refused.contains("the store answered 403") && !refused.contains("Signature"), "{refused}");
    server.heal();
    server.fail(object_server::Rule::new(object_server::Effect::Refused(501, None)).on(object_server::Kind::List));
    assert_eq!(store.unfinished_uploads().unwrap(), []);
}
