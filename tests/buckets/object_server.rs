//! The tests' object server, checked with a third-party client.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt, TryStreamExt, stream};
use object_server::{ACCESS_KEY, BEARER_TOKEN, BUCKET, Effect, Kind, ObjectServer, REGION, Rule, SECRET_KEY};
use object_store::aws::{AmazonS3Builder, Checksum};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, Error, ObjectStore, ObjectStoreExt, PutMode, RetryConfig};

type Client = Arc<dyn ObjectStore>;

/// Retries after a short wait, at most `max_retries` times.
fn retries(max_retries: usize) -> RetryConfig {
    let (init_backoff, max_backoff) = (Duration::from_millis(1), Duration::from_millis(5));
    let backoff = BackoffConfig { init_backoff, max_backoff, base: 2.0 };
    RetryConfig { backoff, max_retries, retry_timeout: Duration::from_secs(60) }
}

fn s3_builder(server: &ObjectServer) -> AmazonS3Builder {
    AmazonS3Builder::new()
        .with_endpoint(server.endpoint())
        .with_allow_http(true)
        .with_bucket_name(BUCKET)
        .with_region(REGION)
        .with_access_key_id(ACCESS_KEY)
        .with_secret_access_key(SECRET_KEY)
        .with_retry(retries(5))
}

fn s3(server: &ObjectServer) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Arc::new(s3_builder(server).build().unwrap())
}

fn gcs(server: &ObjectServer) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = GoogleCloudStorageBuilder::new().with_base_url(&server.endpoint()).with_bucket_name(BUCKET);
    Arc::new(builder.with_bearer_token(BEARER_TOKEN).with_retry(retries(5)).build().unwrap())
}

/// Runs each kind of client with its own server.
fn both() -> [(ObjectServer, Client); 2] {
    [s3, gcs].map(|client| {
        let server = ObjectServer::start();
        let client = client(&server);
        (server, client)
    })
}

async fn create(client: &Client, key: &str, content: &str) -> Result<(), Error> {
    client.put_opts(&Path::from(key), content.to_owned().into(), PutMode::Create.into()).await.map(drop)
}

async fn keys(client: &Client, prefix: &str) -> Vec<String> {
    let listed: Vec<_> = client.list(Some(&Path::from(prefix))).try_collect().await.unwrap();
    listed.into_iter().map(|meta| meta.location.to_string()).collect()
}

async fn text(client: &Client, key: &str) -> Result<String, Error> {
    let bytes = client.get(&Path::from(key)).await?.bytes().await?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn objects_are_written_read_listed_and_deleted() {
    for (server, client) in both() {
        for key in ["a/b=1/2.jsonl", "a/b=1/1.jsonl", "a/c", "ab/c"] {
            client.put(&Path::from(key), key.to_owned().into()).await.unwrap();
        }
        assert_eq!(text(&client, "a/c").await.unwrap(), "a/c");
        assert!(matches!(text(&client, "a/d").await, Err(Error::NotFound { .. })));
        let part = client.get_range(&Path::from("a/b=1/2.jsonl"), 2..5).await.unwrap();
        assert_eq!(part, "b=1");
        let meta = client.head(&Path::from("a/c")).await.unwrap();
        assert_eq!((meta.size, meta.e_tag.is_some()), (3, true));
        assert_eq!(keys(&client, "a").await, ["a/b=1/1.jsonl", "a/b=1/2.jsonl", "a/c"]);
        let folded = client.list_with_delimiter(Some(&Path::from("a"))).await.unwrap();
        assert_eq!((folded.objects.len(), folded.common_prefixes), (1, vec![Path::from("a/b=1")]));
        let after: Vec<_> =
            client.list_with_offset(None, &Path::from("a/b=1/2.jsonl")).try_collect::<Vec<_>>().await.unwrap();
        assert_eq!(after.iter().map(|meta| meta.location.as_ref()).collect::<Vec<_>>(), ["a/c", "ab/c"]);
        let gone = ["a/c", "ab/c"].map(|key| Ok(Path::from(key)));
        client.delete_stream(stream::iter(gone).boxed()).try_collect::<Vec<_>>().await.unwrap();
        assert_eq!(server.keys(), ["a/b=1/1.jsonl", "a/b=1/2.jsonl"]);
    }
}

#[tokio::test]
async fn one_of_many_creates_wins_and_overwriting_is_possible() {
    for (server, client) in both() {
        let contents: Vec<String> = (0..24).map(|n| n.to_string()).collect();
        let tries = join_all(contents.iter().map(|content| create(&client, "one", content))).await;
        let won: Vec<usize> = (0..24).filter(|n| tries[*n].is_ok()).collect();
        assert_eq!(won.len(), 1);
        let lost = tries.into_iter().filter_map(Result::err);
        assert!(lost.into_iter().all(|e| matches!(e, Error::AlreadyExists { .. })));
        assert_eq!(server.object("one").unwrap(), contents[won[0]].as_bytes());
        client.put(&Path::from("one"), "another".into()).await.unwrap();
        assert_eq!(text(&client, "one").await.unwrap(), "another");
    }
}

#[tokio::test]
async fn large_objects_are_uploaded_in_parts() {
    for (server, client) in both() {
        let path = Path::from("large");
        let parts = [vec![1_u8; 5 << 20], vec![2; 5 << 20], vec![3; 7]];
        let mut upload = client.put_multipart(&path).await.unwrap();
        join_all(parts.iter().map(|part| upload.put_part(part.clone().into())))
            .await
            .into_iter()
            .for_each(|part| part.unwrap());
        assert_eq!((server.open_uploads(), server.keys().len()), (1, 0));
        upload.complete().await.unwrap();
        assert_eq!(server.object("large").unwrap(), parts.concat());
        let mut upload = client.put_multipart(&path).await.unwrap();
        upload.put_part(vec![1; 10].into()).await.unwrap();
        upload.abort().await.unwrap();
        assert_eq!((server.open_uploads(), server.object("large").unwrap().len()), (0, (10 << 20) + 7));
    }
}

#[tokio::test]
async fn signatures_and_digests_are_checked() {
    let server = ObjectServer::start();
    let refused = |client: AmazonS3Builder| async {
        client.build().unwrap().put(&Path::from("x"), "x".into()).await.unwrap_err().to_string()
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    for (client, said) in [
        (s3_builder(&server).with_secret_access_key("another"), "SignatureDoesNotMatch"),
        (s3_builder(&server).with_access_key_id("another"), "InvalidAccessKeyId"),
        (s3_builder(&server).with_region("elsewhere"), "expecting"),
        (s3_builder(&server).with_bucket_name("another"), "NoSuchBucket"),
        (s3_builder(&server).with_skip_signature(true), "AccessDenied"),
    ] {
        let text = refused(client).await;
        assert!(text.contains(said), "{text}");
    }
    let client = s3_builder(&server).with_checksum_algorithm(Checksum::SHA256).build().unwrap();
    client.put(&Path::from("a b/&=+,"), "x".into()).await.unwrap();
    assert_eq!(server.keys(), ["a b/&=+,"]);
    let unknown = GoogleCloudStorageBuilder::new().with_base_url(&server.endpoint()).with_bucket_name(BUCKET);
    let unknown = unknown.with_bearer_token("another").build().unwrap();
    assert!(matches!(unknown.head(&Path::from("x")).await, Err(Error::Unauthenticated { .. })));
}

#[tokio::test]
async fn a_lost_answer_leaves_what_was_written() {
    for (server, client) in both() {
        server.fail(Rule::new(Effect::AnswerLost).on(Kind::Put).key("line/").nth(1));
        // The client retries by itself, and learns that its own object already exists.
        assert!(matches!(create(&client, "line/1", "x").await, Err(Error::AlreadyExists { .. })));
        assert_eq!((server.object("line/1").unwrap(), server.count(Kind::Put), server.struck()), ("x".into(), 2, 1));
        server.fail(Rule::new(Effect::AppliedThenRefused(400)).on(Kind::Put).nth(1));
        assert!(create(&client, "line/2", "y").await.is_err());
        assert_eq!(server.object("line/2").unwrap(), "y");
    }
}

#[tokio::test]
async fn bursts_of_refusals_end() {
    for (server, client) in both() {
        for status in [503, 429] {
            server.heal();
            server.forget_requests();
            server.fail(Rule::new(Effect::Refused(status, Some(1))).on(Kind::Put).first(3));
            client.put(&Path::from("x"), "x".into()).await.unwrap();
            assert_eq!((server.count(Kind::Put), server.struck()), (4, 3));
        }
        server.fail(Rule::new(Effect::Refused(409, None)).on(Kind::Put).nth(1));
        assert!(matches!(create(&client, "line/1", "x").await, Err(Error::AlreadyExists { .. })));
        assert_eq!(server.object("line/1"), None);
    }
}

#[tokio::test]
async fn a_held_write_is_applied_when_the_test_says_so() {
    for (server, client) in both() {
        for key in ["a", "b"] {
            server.fail(Rule::new(Effect::Late).on(Kind::Put).key(key).nth(1));
            create(&client, key, "first").await.unwrap();
        }
        client.delete(&Path::from("b")).await.unwrap();
        assert_eq!(server.land(), [false, true]);
        assert_eq!(server.object("b").unwrap(), "first");
        assert!(server.land().is_empty());
    }
}

#[tokio::test]
async fn connections_are_cut_within_bodies() {
    for (server, client) in both() {
        let content = vec![7_u8; 1 << 20];
        server.fail(Rule::new(Effect::CutUpload(1000)).on(Kind::Put).nth(1));
        client.put(&Path::from("x"), content.clone().into()).await.unwrap();
        assert_eq!((server.object("x").unwrap(), server.count(Kind::Put)), (content.clone().into(), 2));
        server.fail(Rule::new(Effect::CutDownload(1000)).on(Kind::Get).nth(1));
        assert_eq!(client.get(&Path::from("x")).await.unwrap().bytes().await.unwrap(), content);
        assert_eq!((server.count(Kind::Get), server.struck()), (2, 2));
    }
}

#[tokio::test]
async fn lists_are_truncated_or_stale() {
    for (server, client) in both() {
        let all: Vec<String> = (0..25).map(|n| format!("a/{:02}/{n:02}", n / 5)).collect();
        for key in &all {
            client.put(&Path::from(key.as_str()), "x".into()).await.unwrap();
        }
        for keys_a_page in [1, 2, 7] {
            server.heal();
            server.forget_requests();
            server.fail(Rule::new(Effect::ShortPages(keys_a_page)));
            assert_eq!(keys(&client, "a").await, all);
            assert_eq!(server.count(Kind::List), 25_u64.div_ceil(keys_a_page as u64));
            let folded = client.list_with_delimiter(Some(&Path::from("a"))).await.unwrap();
            assert_eq!((folded.objects.len(), folded.common_prefixes.len()), (0, 5));
        }
        server.fail(Rule::new(Effect::Behind(3)));
        assert_eq!(keys(&client, "a").await, all[..22]);
    }
}

#[tokio::test]
async fn a_server_without_conditions_lets_two_creates_win() {
    for (server, client) in both() {
        server.fail(Rule::new(Effect::ConditionIgnored).on(Kind::Put).nth(2));
        let won = [create(&client, "x", "1").await, create(&client, "x", "2").await, create(&client, "x", "3").await];
        assert_eq!(won.map(|tried| tried.is_ok()), [true, true, false]);
        assert_eq!(server.object("x").unwrap(), "2");
    }
}

#[tokio::test]
async fn the_clock_can_differ_from_ours() {
    for (server, client) in both() {
        client.put(&Path::from("now"), "x".into()).await.unwrap();
        server.set_clock_ahead(-3600);
        client.put(&Path::from("behind"), "x".into()).await.unwrap();
        let time = |key: &'static str| {
            let client = client.clone();
            async move { client.head(&Path::from(key)).await.unwrap().last_modified }
        };
        let minutes = (time("now").await - time("behind").await).num_minutes();
        assert!((59..=60).contains(&minutes), "{minutes}");
    }
}

#[tokio::test]
async fn requests_are_counted_and_random_faults_are_repeatable() {
    let struck = |seed: u64| async move {
        let server = ObjectServer::start();
        let client = s3(&server);
        server.fail(Rule::new(Effect::Refused(503, None)).chance(30, seed));
        for n in 0..20 {
            client.put(&Path::from(format!("a/{n}")), "x".into()).await.unwrap();
        }
        server.requests()
    };
    let (first, again, other) = (struck(1).await, struck(1).await, struck(2).await);
    assert!(first == again && first != other && first.len() > 20, "{first:?}");
    assert_eq!(first[0], "Put a/0");
}
