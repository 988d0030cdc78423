//! Third-party servers: MiniStack for S3, Azurite for Azure. `scripts/object-stores.sh install` installs them. Without a
//! server, its test fails, or `ANNALS_WITHOUT` skips it.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::thread::scope;

use object_store::ClientOptions;
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::azure::{AzureAccessKey, AzureAuthorizer, AzureCredential};
use object_store::client::{HttpConnector, HttpRequest, HttpRequestBody};

#[path = "../../../../tests/common/free_port.rs"]
mod free_port;
#[path = "../../../../tests/common/third_party.rs"]
mod third_party;
#[path = "../../../../tests/common/third_party_server.rs"]
mod third_party_server;
#[path = "../../../../tests/common/wait.rs"]
#[allow(dead_code, reason = "the tests of the library use its waits alone")]
mod wait;

use free_port::{PORTS, free_port};
use third_party::missing;
use third_party_server::Server;

use super::super::super::put;
use super::super::bucket_test::test_store;
use super::*;
use crate::clock::wall_clock;

/// Every user of these servers has this key and secret.
const REAL_KEY: &str = "test";
const REAL_REGION: &str = "us-east-1";
const REAL_BUCKET: &str = "annals";
/// The account and public key of every Azurite.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The tests that every server must pass: the suite, the test, races, large files, days and signatures.
fn holds(open: impl Fn(u32) -> ObjectStore + Sync) {
    let archives = std::cell::Cell::new(0);
    conforms(|| {
        archives.set(archives.get() + 1);
        [Box::new(open(archives.get())), Box::new(open(archives.get()))]
    });
    for number in 0..5 {
        let test = test_store(&open(100), number, wall_clock()).unwrap();
        assert!(!test.are_clocks_apart());
    }
    races(&open);
    let large: Vec<u8> = (0..40_u32 << 20).map(|n| (n >> 12).to_le_bytes()[0]).collect();
    let store = open(102);
    put(&store, "tables/large", &large).unwrap();
    assert_eq!(store.read("tables/large").unwrap().to_bytes().unwrap(), large);
    let mut end = End::default();
    fill(&store, &mut end, 20, 220);
    fill(&store, &mut end, 21, 3);
    for hand in [&store, &open(102)] {
        assert_eq!(numbers(hand, 20), (1..=220).collect::<Vec<_>>());
        assert_eq!(numbers(hand, 21), [221, 222, 223]);
    }
    let kept = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        assert_eq!(numbers(&open(102).with_object_cache(kept.path()), 21), [221, 222, 223]);
    }
    assert!(kept.path().read_dir().unwrap().count() >= 3, "lists and reads show the same tags");
    assert_eq!(open(102).rewritten().unwrap(), [], "each line was created once");
    let missing: Vec<String> = (0..30).map(|n| format!("tables/{n}")).collect();
    let missing: Vec<&str> = missing.iter().map(String::as_str).chain(["tables/large"]).collect();
    store.remove(&missing).unwrap();
    assert!(store.read("tables/large").unwrap_err().is_not_found());
}

fn races(open: &(impl Fn(u32) -> ObjectStore + Sync)) {
    let mut end = End::default();
    for round in 0..20 {
        let tries: Vec<Result<End, StoreError>> = scope(|threads| {
            let tries = ["one", "two"].map(|writer| {
                threads.spawn(move || {
                    let mut end = end;
                    end.append(&open(101), 10 + round / 5, writer).map(|()| end)
                })
            });
            tries.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let won: Vec<End> = tries.iter().filter_map(|tried| tried.as_ref().ok().copied()).collect();
        assert_eq!(
            won.len(),
            1,
            "round {round}: {tries:?}",
            tries = tries.iter().map(Result::is_ok).collect::<Vec<_>>()
        );
        assert!(tries.iter().filter_map(|tried| tried.as_ref().err()).all(StoreError::is_fenced));
        end = won[0];
    }
    let all: Vec<u64> = (10..14).flat_map(|of| numbers(&open(101), of)).collect();
    assert_eq!(all, (1..=20).collect::<Vec<_>>());
}

fn made(settings: &[(&str, &str)]) -> Settings {
    settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The server. Without it the test fails, or is skipped (`None`).
fn found(name: &str, server: Option<Server>) -> Option<Server> {
    if server.is_none() {
        let part = if name == "ceph" { "install-ceph" } else { "install" };
        missing(name, "an archive on it", &format!("run scripts/object-stores.sh {part}"));
    }
    server
}

fn s3_settings(server: &Server) -> Settings {
    made(&[
        ("AWS_ENDPOINT_URL", &server.endpoint()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", REAL_REGION),
        ("AWS_ACCESS_KEY_ID", REAL_KEY),
        ("AWS_SECRET_ACCESS_KEY", REAL_KEY),
    ])
}

/// A new MiniStack, and a function that makes a new client for an archive there. Without MiniStack the test fails, or is skipped
/// (`None`).
pub(crate) fn ministack() -> Option<(Server, impl Fn() -> ObjectStore)> {
    let server = found("ministack", Server::ministack(REAL_BUCKET))?;
    let settings = s3_settings(&server);
    Some((server, move || open(&format!("s3://{REAL_BUCKET}/archive"), &settings).unwrap()))
}

fn s3_server_holds(server: &Server) {
    let settings = s3_settings(server);
    holds(|archive| open(&format!("s3://{REAL_BUCKET}/archive-{archive}"), &settings).unwrap());
    uploads::are_named_and_aborted(&open(&format!("s3://{REAL_BUCKET}/archive-102"), &settings).unwrap());
    let missing = open("s3://elsewhere/x", &settings).unwrap().list("").unwrap_err().to_string();
    assert!(missing.contains("404 NoSuchBucket"), "{missing}");
}

#[test]
fn ministack_holds_an_archive() {
    if let Some((server, _)) = ministack() {
        s3_server_holds(&server);
    }
}

#[test]
#[ignore = "a minute, and a gigabyte of memory: Ceph's gateway"]
fn ceph_holds_an_archive() {
    if let Some(server) = found("ceph", Server::start("ceph", is_bucket_made)) {
        s3_server_holds(&server);
    }
}

/// Whether a signed request creates the bucket.
fn is_bucket_made(server: &Server) -> bool {
    let mut request = put_request(&format!("{}/{REAL_BUCKET}", server.endpoint()));
    let (key_id, secret_key) = (REAL_KEY.to_owned(), REAL_KEY.to_owned());
    let credential = AwsCredential { key_id, secret_key, token: None };
    AwsAuthorizer::new(&credential, "s3", REAL_REGION).try_authorize(&mut request, None).unwrap();
    answer(request) == Some(200)
}

fn put_request(address: &str) -> HttpRequest {
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.method_mut() = "PUT".parse().unwrap();
    *request.uri_mut() = address.parse().unwrap();
    request.headers_mut().insert("content-length", 0.into());
    request
}

/// The status of the answer. `None`: nobody answers.
fn answer(request: HttpRequest) -> Option<u16> {
    let connector = super::super::connection::Connector::default();
    let client = connector.connect(&ClientOptions::new().with_allow_http(true)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    Some(runtime.block_on(client.execute(request)).ok()?.status().as_u16())
}

#[test]
fn azurite_holds_an_archive() {
    let Some(server) = found("azurite", Server::start("azurite", is_container_made)) else { return };
    let endpoint = format!("{}/{ACCOUNT}", server.endpoint());
    let settings = made(&[
        ("AZURE_STORAGE_ENDPOINT", endpoint.as_str()),
        ("AZURE_ALLOW_HTTP", "true"),
        ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT),
        ("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY),
    ]);
    holds(|archive| open(&format!("az://annals/archive-{archive}"), &settings).unwrap());
    let missing = open("az://elsewhere/x", &settings).unwrap().list("").unwrap_err().to_string();
    assert!(missing.contains("404 ContainerNotFound"), "{missing}");
}

/// Whether a signed request creates the container.
fn is_container_made(server: &Server) -> bool {
    let mut request = put_request(&format!("{}/{ACCOUNT}/annals?restype=container", server.endpoint()));
    let credential = AzureCredential::AccessKey(AzureAccessKey::try_new(ACCOUNT_KEY).unwrap());
    AzureAuthorizer::new(&credential, ACCOUNT).try_authorize(&mut request).unwrap();
    answer(request) == Some(201)
}

/// Another test's server asks for any port. It must not get the port of a third-party server that still starts.
#[test]
fn a_free_port_is_given_once_and_never_to_a_server_that_asks_for_any_port() {
    let ports: Vec<u16> = (0..200).map(|_| free_port()).collect();
    assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), ports.len(), "{ports:?}");
    assert!(ports.iter().all(|port| PORTS.contains(port)), "{ports:?}");
    for _ in 0..200 {
        let any = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        assert!(!PORTS.contains(&any), "{any}");
    }
}
