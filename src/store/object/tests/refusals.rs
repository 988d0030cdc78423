//! The reasons for which a bucket is refused, and their messages.

use std::time::Duration;

use object_server::{Effect, Kind, Rule};

use super::super::bucket_test::test_store;
use super::*;
use crate::clock::wall_clock;

#[test]
fn a_correct_store_passes_the_test() {
    for (server, open) in both() {
        let store = open(&server);
        for number in 0..3 {
            let test = test_store(&store, number, wall_clock()).unwrap();
            assert!(test.to_string().starts_with("of 24 concurrent") && !test.are_clocks_apart());
        }
        assert!(server.keys().is_empty(), "the test leaves nothing");
        // Lost answers do not fail the test.
        server.fail(Rule::new(Effect::AnswerLost).on(Kind::Put).chance(30, 5));
        let _ = test_store(&store, 9, wall_clock()).unwrap();
        server.set_clock_ahead(2 * 3600);
        let apart = test_store(&store, 10, wall_clock()).unwrap();
        assert!(apart.are_clocks_apart() && apart.clocks_apart < Duration::from_secs(7300));
    }
}

#[test]
fn a_store_with_two_winners_is_refused() {
    for (server, open) in both() {
        let store = open(&server);
        let refused = |rule: Rule| {
            server.heal();
            server.fail(rule);
            let error = test_store(&store, 7, wall_clock()).unwrap_err();
            assert!(matches!(error, StoreError::Unfit { .. }), "{error}");
            error.to_string()
        };
        let two = refused(Rule::new(Effect::ConditionIgnored).on(Kind::Put).nth(2));
        assert!(two.contains("is unfit for an archive: of 24 concurrent creates"), "{two}");
        assert!(two.contains("2 won, but only one may win"), "{two}");
        assert!(refused(Rule::new(Effect::ConditionIgnored).on(Kind::Put)).contains("24 won"));
        let behind = refused(Rule::new(Effect::Behind(1)).on(Kind::List));
        assert!(behind.contains("its list does not show scratch/test-0000000000000007"), "{behind}");
    }
}

#[test]
fn an_unreachable_bucket_is_one_clear_line_without_credentials() {
    let server = ObjectServer::start();
    let with = |name: &str, value: &str| {
        let mut settings = settings(&server);
        settings.push((name.to_owned(), value.to_owned()));
        settings
    };
    for (case, location, settings, said) in [
        ("no bucket", "s3://another/x", settings(&server), "404 NoSuchBucket: the specified bucket does not exist"),
        ("no bucket", "gs://another/x", settings(&server), "404 NoSuchBucket"),
        ("region", "s3://bucket/x", with("AWS_REGION", "elsewhere"), "the region 'elsewhere' is wrong; expecting"),
        ("key", "s3://bucket/x", with("AWS_ACCESS_KEY_ID", "unknown-secret"), "403 InvalidAccessKeyId"),
        ("secret", "s3://bucket/x", with("AWS_SECRET_ACCESS_KEY", "a-secret"), "403 SignatureDoesNotMatch"),
        ("token", "gs://bucket/x", with("GOOGLE_BEARER_TOKEN", "a-secret"), "401 AuthenticationRequired"),
        ("no server", "s3://bucket/x", with("AWS_ENDPOINT_URL", "http://127.0.0.1:1"), "the store gave no answer"),
        (
            "plain http",
            "s3://bucket/x",
            with("AWS_ALLOW_HTTP", "false"),
            "the address is plain http: set AWS_ALLOW_HTTP",
        ),
    ] {
        let store = open(location, &settings).unwrap();
        let path = "tables/x";
        let texts = [
            store.read(path).unwrap_err().to_string(),
            store.list("").unwrap_err().to_string(),
            store.remove(&[path]).unwrap_err().to_string(),
            super::super::super::put(&store, path, b"x").unwrap_err().to_string(),
            End::default().append(&store, 20, "first").unwrap_err().to_string(),
            test_store(&store, 7, wall_clock()).unwrap_err().to_string(),
        ];
        for text in texts {
            let is_clean = !text.contains('\n') && !text.contains("secret") && !text.contains("://127");
            assert!(text.contains(said) && text.contains(location) && is_clean, "{case}: {text}");
        }
        assert_eq!(format!("{store:?}"), format!("ObjectStore({location})"));
    }
}

/// With such values, the client library panics.
#[test]
fn a_setting_that_no_client_can_use_is_named_without_its_value() {
    let server = ObjectServer::start();
    let addresses =
        ["", "secret:9000", "//secret", "http://", "http:///secret", "http://a secret", "http://secret:99999"];
    let queries = ["https://host?secret", "https://host#secret", " https://secret", "https://s\u{f6}cret"];
    let mut cases: Vec<(&str, &str, &str, &str)> = Vec::new();
    for (location, name) in [("s3://bucket/x", "AWS_ENDPOINT_URL"), ("gs://bucket/x", "GOOGLE_BASE_URL")] {
        cases.extend(addresses.iter().chain(&queries).map(|value| (location, name, *value, "is not an address")));
    }
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"] {
        cases.push(("s3://bucket/x", name, "secret\n", "holds a line break or another control character"));
    }
    cases.push(("gs://bucket/x", "GOOGLE_BEARER_TOKEN", "secret\n", "holds a line break"));
    cases.push((
        "s3://bucket/x",
        "AWS_SERVER_SIDE_ENCRYPTION",
        "unknown",
        "a setting is invalid: Invalid encryption type",
    ));
    for (location, name, value, said) in cases {
        let mut all = settings(&server);
        all.push((name.to_owned(), value.to_owned()));
        let text = open(location, &all).unwrap_err().to_string();
        assert!(text.contains(said) && !text.contains("secret") && !text.contains('\n'), "{name} {value:?}: {text}");
        assert!(text.starts_with(&format!("cannot open {location}: a setting is invalid: ")), "{text}");
    }
}

#[test]
fn a_bucket_in_another_region_is_reported() {
    let server = ObjectServer::start();
    server.fail(Rule::new(Effect::Refused(301, None)));
    let text = s3(&server).list("").unwrap_err().to_string();
    assert!(text.ends_with("the bucket is in another region: set AWS_REGION to the bucket's region"), "{text}");
}

#[test]
fn ledger_lines_are_never_removed_and_only_ledgers_accept_appends() {
    let server = ObjectServer::start();
    let store = s3(&server);
    fill(&store, &mut End::default(), 20, 1);
    let number = format!("{TEAM}/line/000000000001.jsonl");
    for refused in [
        store.remove(&[&day(20)]).unwrap_err(),
        store.remove(&[&number]).unwrap_err(),
        store.append("tables/x", Tail::default(), b"x").unwrap_err(),
        store.append(&number, Tail::default(), b"x").unwrap_err(),
    ] {
        assert!(matches!(refused, StoreError::Irregular { .. }), "{refused}");
    }
    assert_eq!(numbers(&store, 20), [1]);
}
