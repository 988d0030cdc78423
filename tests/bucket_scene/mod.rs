//! An archive in a bucket: the service, the program that reads it, and the object server.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use object_server::{ACCESS_KEY, BUCKET, ObjectServer, REGION, SECRET_KEY};
use serde_json::Value;

use crate::faulty_service::{DAY, HOUR, Program, Run, SINCE, Service, laws, scene};

/// When the backfill happens.
pub const FIRST: i64 = DAY + 84 * HOUR;

/// The place of a ledger that lies elsewhere than the archive.
pub const LEDGER: &str = "locked/ledgers";
const CACHE: &str = "[cache]\ndirectory = \"cache\"\n";
/// The file with the private key of [`Scene::signed`].
const KEY: &str = "signing.key";

pub struct Scene {
    pub service: Service,
    pub program: Program,
    pub server: ObjectServer,
    pub location: String,
    /// Empty if nothing is signed.
    pub public_key: String,
}

impl Scene {
    /// One team without events, and an empty bucket.
    pub fn new() -> Self {
        let server = ObjectServer::start();
        let (service, program) = scene();
        let location = format!("s3://{BUCKET}/some/archive");
        let set = |program: Program, name: &'static str, value: &str| program.with_variable(name, PathBuf::from(value));
        let program = set(program, "AWS_ACCESS_KEY_ID", ACCESS_KEY);
        let program = set(program, "AWS_SECRET_ACCESS_KEY", SECRET_KEY);
        let program = set(program, "AWS_REGION", REGION);
        let program = set(program, "AWS_ENDPOINT_URL", &server.endpoint());
        let program = set(program, "AWS_ALLOW_HTTP", "true");
        let program = set(program, "ANNALS_ARCHIVE", &location);
        program.configure(CACHE);
        Self { service, program, server, location, public_key: String::new() }
    }

    /// The same, with signed lines and `more` configuration.
    pub fn signed(more: &str) -> Self {
        let scene = Self::new();
        let made = scene.run(&["anchor", "--keygen", KEY]).ended(0);
        let scene = Self { public_key: made.stdout.trim().to_owned(), ..scene };
        scene.program.configure(&format!("{CACHE}[signing]\nkey_file = \"{KEY}\"\n{more}"));
        scene
    }

    /// Like [`Scene::signed`], with the ledger under an object lock, elsewhere in the bucket.
    pub fn with_ledger_elsewhere(more: &str) -> Self {
        let scene = Self::signed(&format!("[store]\nledger = \"s3://{BUCKET}/{LEDGER}\"\n{more}"));
        scene.server.lock_objects("locked/");
        scene
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        self.program.run(arguments)
    }

    pub fn sync(&self) -> Run {
        self.program.sync(&SINCE)
    }

    pub fn sql(&self, query: &str) -> Vec<Value> {
        self.program.sql(query)
    }

    /// Asserts that every event that ever existed is archived once, without a gap, and that the archive verifies.
    #[track_caller]
    pub fn holds(&self) {
        laws::archive_holds(&self.service, &self.program, &[]);
    }

    /// Like [`Scene::holds`]; also asserts that another `sync` commits nothing.
    #[track_caller]
    pub fn holds_and_rests(&self) {
        self.holds();
        let lines = self.ledger_lines();
        self.sync().ended(0);
        assert_eq!(self.ledger_lines(), lines, "a second sync committed something");
    }

    /// Asserts that each line of an archive of [`Scene::signed`] has a signature of its key.
    #[track_caller]
    pub fn is_signed(&self) {
        let signatures = self.server.keys().iter().filter(|key| key.contains("/head/")).count();
        assert_eq!(signatures, self.ledger_lines().len());
        self.run(&["verify", "--key", &self.public_key]).ended(0);
    }

    /// The keys of all ledger lines.
    pub fn ledger_lines(&self) -> BTreeSet<String> {
        self.server.keys().into_iter().filter(|key| is_line(key)).collect()
    }

    /// How many extra writes to the keys of lines there were since the last reset: races and repeated creates.
    pub fn lost_line_creates(&self) -> usize {
        let requests = self.server.requests();
        let tried = || requests.iter().filter_map(|line| line.strip_prefix("Put ")).filter(|key| is_line(key));
        tried().count() - tried().collect::<BTreeSet<&str>>().len()
    }
}

fn is_line(key: &str) -> bool {
    key.contains("/ledger/team=") && key.contains("/line/")
}

/// Whether this is a long run, which tries everything.
pub fn is_long() -> bool {
    std::env::var_os("ANNALS_LONG").is_some()
}
