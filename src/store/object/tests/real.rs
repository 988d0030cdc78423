//! Third-party servers: MiniStack for S3, Azurite for Azure. `scripts/object-stores.sh install` installs them. Without a
//! server, its test fails, or `ANNALS_WITHOUT` skips it.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::scope;

use object_store::ClientOptions;
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::azure::{AzureAccessKey, AzureAuthorizer, AzureCredential};
use object_store::client::{HttpConnector, HttpRequest, HttpRequestBody};

#[path = "../../../../tests/common/third_party.rs"]
mod third_party;

use third_party::missing;

use super::super::super::put;
use super::super::bucket_test::test_store;
use super::*;
use crate::clock::wall_clock;

const NOT_HERE: i32 = 3;
const STARTING: Duration = Duration::from_millis(250);
const STARTS_MAX: u32 = 240;
/// Every user of these servers has this key and secret.
const REAL_KEY: &str = "test";
const REAL_REGION: &str = "us-east-1";
const REAL_BUCKET: &str = "annals";
/// The account and public key of every Azurite.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A server in a process of its own.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn endpoint(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a server. Without the server the test fails, or is skipped (`None`).
fn start(name: &str) -> Option<Server> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/object-stores.sh");
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut command = Command::new(script);
    command.args([name, &port.to_string()]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = Server { process: command.spawn().unwrap(), port };
    for _ in 0..STARTS_MAX {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(server);
        }
        if let Some(status) = server.process.try_wait().unwrap() {
            assert_eq!(status.code(), Some(NOT_HERE), "{name} does not start");
            let part = if name == "ceph" { "install-ceph" } else { "install" };
            missing(name, "an archive on it", &format!("run scripts/object-stores.sh {part}"));
            return None;
        }
        wait();
    }
    panic!("{name} does not listen");
}

#[expect(clippy::disallowed_methods, reason = "the test waits for another process")]
fn wait() {
    std::thread::sleep(STARTING);
}

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
    store.remove_all(&missing).unwrap();
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

fn s3_server_holds(server: &Server) {
    let endpoint = server.endpoint("");
    let settings = made(&[
        ("AWS_ENDPOINT_URL", endpoint.trim_end_matches('/')),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", REAL_REGION),
        ("AWS_ACCESS_KEY_ID", REAL_KEY),
        ("AWS_SECRET_ACCESS_KEY", REAL_KEY),
    ]);
    make_bucket(server);
    holds(|archive| open(&format!("s3://{REAL_BUCKET}/archive-{archive}"), &settings).unwrap());
    uploads::are_named_and_aborted(&open(&format!("s3://{REAL_BUCKET}/archive-102"), &settings).unwrap());
    let missing = open("s3://elsewhere/x", &settings).unwrap().list("").unwrap_err().to_string();
    assert!(missing.contains("404 NoSuchBucket"), "{missing}");
}

#[test]
fn ministack_holds_an_archive() {
    if let Some(server) = start("ministack") {
        s3_server_holds(&server);
    }
}

#[test]
#[ignore = "a minute, and a gigabyte of memory: Ceph's gateway"]
fn ceph_holds_an_archive() {
    if let Some(server) = start("ceph") {
        s3_server_holds(&server);
    }
}

/// A signed request that creates a bucket.
fn make_bucket(server: &Server) {
    let mut request = put_request(&server.endpoint(REAL_BUCKET));
    let (key_id, secret_key) = (REAL_KEY.to_owned(), REAL_KEY.to_owned());
    let credential = AwsCredential { key_id, secret_key, token: None };
    AwsAuthorizer::new(&credential, "s3", REAL_REGION).try_authorize(&mut request, None).unwrap();
    assert_eq!(answer(request), 200);
}

fn put_request(address: &str) -> HttpRequest {
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.method_mut() = "PUT".parse().unwrap();
    *request.uri_mut() = address.parse().unwrap();
    request.headers_mut().insert("content-length", 0.into());
    request
}

fn answer(request: HttpRequest) -> u16 {
    let connector = super::super::connection::Connector::default();
    let client = connector.connect(&ClientOptions::new().with_allow_http(true)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(client.execute(request)).unwrap().status().as_u16()
}

#[test]
fn azurite_holds_an_archive() {
    let Some(server) = start("azurite") else { return };
    let endpoint = server.endpoint(ACCOUNT);
    let settings = made(&[
        ("AZURE_STORAGE_ENDPOINT", endpoint.as_str()),
        ("AZURE_ALLOW_HTTP", "true"),
        ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT),
        ("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY),
    ]);
    let missing = open("az://annals/x", &settings).unwrap().list("").unwrap_err().to_string();
    assert!(missing.contains("404 ContainerNotFound"), "{missing}");
    make_container(&server);
    holds(|archive| open(&format!("az://annals/archive-{archive}"), &settings).unwrap());
}

/// A signed request that creates the container.
fn make_container(server: &Server) {
    let mut request = put_request(&format!("{}/annals?restype=container", server.endpoint(ACCOUNT)));
    let credential = AzureCredential::AccessKey(AzureAccessKey::try_new(ACCOUNT_KEY).unwrap());
    AzureAuthorizer::new(&credential, ACCOUNT).try_authorize(&mut request).unwrap();
    assert_eq!(answer(request), 201);
}
