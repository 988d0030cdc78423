//! Open tables of an archive in a bucket: interrupted publications, several publishers, and engines that read the bucket.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use object_server::{ACCESS_KEY, BUCKET, Effect, REGION, Rule, SECRET_KEY};
use serde_json::{Value, json};

use super::bucket_scene::{FIRST, Scene, is_long};
use super::faulty_service::{DAY, HOUR, Program, SINCE};
use super::readers::Readers;
use super::tables::DATASETS;
use crate::common::third_party::missing;
use crate::common::third_party_server::Server;
use crate::common::wait::{note, wait_for};

const READERS: [&str; 3] = ["pyiceberg", "duckdb", "clickhouse"];
/// ClickHouse has no setting for the region of a server without a name.
const OF_ANY_REGION: [&str; 2] = ["pyiceberg", "duckdb"];
/// The usual run kills at one in this many requests.
const STRIDE: usize = 11;

/// Access to a bucket, in the form that the readers accept.
struct Bucket<'a> {
    program: &'a Program,
    location: &'a str,
    access: Value,
}

impl<'a> Bucket<'a> {
    fn of(scene: &'a Scene) -> Self {
        let endpoint = scene.server.endpoint();
        let access = json!({"endpoint": endpoint, "key": ACCESS_KEY, "secret": SECRET_KEY, "region": REGION});
        Self { program: &scene.program, location: &scene.location, access }
    }

    fn publish(&self) -> Vec<Value> {
        let run = self.program.run(&["publish", "--format", "json"]).ended(0);
        serde_json::from_str(&run.stdout).unwrap()
    }

    /// Every engine reads exactly the rows of the live files, from the version that `publish` printed.
    fn is_read(&self, readers: &mut Readers, by: &[&str], when: &str) {
        let published = self.publish();
        for (dataset, time) in DATASETS {
            let version = &published.iter().find(|row| row["table"] == dataset.as_str()).unwrap()["version"];
            let schema = annals::archive::schema_of(dataset);
            let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let files = self.program.run(&["files", dataset.as_str()]).ended(0).stdout;
            let files: Vec<&str> = files.lines().collect();
            let metadata = format!("{}/tables/{dataset}/metadata/v{version}.metadata.json", self.location);
            readers.agree(
                &json!({
                    "metadata": metadata, "files": files, "snapshot": null, "table": dataset.as_str(), "time": time,
                    "columns": columns, "readers": by, "s3": self.access,
                }),
                when,
            );
        }
    }
}

/// Two readings, so a publication after the second removes files from tables. Returns the paths of the files that the first
/// publication names.
fn read_twice(scene: &Scene) -> Vec<String> {
    scene.service.world().fill(DAY, 0..3);
    scene.sync().ended(0);
    scene.run(&["publish"]).ended(0);
    let live = scene.run(&["sql", "SELECT path FROM archive_files", "--format", "csv"]).ended(0);
    let published = live.stdout.lines().skip(1).map(str::to_owned).collect();
    for n in 0..5 {
        let mut world = scene.service.world();
        world.connection(FIRST + 2 * HOUR + n * 60, n);
        world.activity(FIRST + 2 * HOUR + n * 60, n);
        world.billing(FIRST + HOUR + n * 60);
    }
    scene.service.set_clock(FIRST + 30 * HOUR);
    scene.sync().ended(0);
    published
}

/// Each version of a table continues the version before it: no publisher overwrote the work of another.
fn is_one_history(scene: &Scene) {
    for table in annals::lake::TableId::all() {
        let key = |version| {
            let archive = scene.location.strip_prefix(&format!("s3://{BUCKET}/")).unwrap();
            format!("{archive}/tables/{}/metadata/v{version}.metadata.json", table.as_str())
        };
        let mut parent = Value::Null;
        for version in 1.. {
            let Some(bytes) = scene.server.object(&key(version)) else { break };
            let metadata: Value = serde_json::from_slice(&bytes).unwrap();
            let current = metadata["snapshots"].as_array().unwrap().last().unwrap();
            assert_eq!(current["parent-snapshot-id"], parent, "{table:?}, version {version}");
            parent = current["snapshot-id"].clone();
        }
        assert!(!parent.is_null(), "{table:?} was published");
    }
}

#[test]
fn the_next_publication_finishes_one_that_was_killed_at_any_request() {
    let scene = Scene::new();
    read_twice(&scene);
    let before = scene.server.stored();
    scene.server.forget_requests();
    scene.run(&["publish"]).ended(0);
    let requests = scene.server.requests().len();
    assert!(requests > 60, "{requests} requests");
    let stride = if is_long() { 1 } else { STRIDE };
    let mut kills = 0;
    for (nth, place) in (1..=requests).step_by(stride).enumerate() {
        let effect = if nth % 2 == 0 { Effect::Unanswered } else { Effect::AppliedUnanswered };
        scene.server.restore(&before);
        for _ in 0..2 {
            scene.server.heal();
            scene.server.fail(Rule::new(effect.clone()).nth(place as u64));
            let run = scene.program.start(&["publish"]).kill_when(|| scene.server.struck() > 0);
            kills += usize::from(run.code.is_none());
            scene.server.heal();
            // At any moment every table is complete: in its old version or in its new one.
            scene.run(&["publish", "--check"]).ended(0);
        }
        scene.run(&["publish"]).ended(0);
        scene.run(&["publish", "--check"]).ended(0);
        scene.run(&["verify"]).ended(0);
        is_one_history(&scene);
    }
    assert!(kills > requests / stride, "{kills} kills");
    if let Some(mut readers) = Readers::start("other engines on a table in a bucket") {
        Bucket::of(&scene).is_read(&mut readers, &OF_ANY_REGION, "after the kills");
    }
}

/// A daemon of each shard publishes all tables every second. The test kills one of them from time to time.
#[test]
fn two_shards_that_publish_at_once_lose_and_double_no_row() {
    let scene = Scene::new();
    for team in 1..6 {
        scene.service.world().add_team(&format!("team-{team}"));
    }
    scene.service.world().fill(DAY, 0..2);
    let schedule = "[http]\nlisten = \"127.0.0.1:0\"\n[store]\ncommit_every = \"1s\"\n[publish]\nschedule = \"* * * * * *\"\n\
        [schedule]\nconnections = \"* * * * * *\"\nactivity = \"* * * * * *\"\n[cache]\ndirectory = \"cache\"\n";
    scene.program.configure(schedule);
    let start = |shard: &str| scene.program.start(&["run", "--shard", shard]);
    let mut daemons = [start("1/2"), start("2/2")].map(Some);
    let mut clock = scene.service.world().now;
    let rounds = if is_long() { 60 } else { 8 };
    let mut round = 0;
    // Go on until the publishers have met: both tried to create the same version.
    while round < rounds || lost_version_creates(&scene) == 0 {
        assert!(round < 40 * rounds, "the publishers never met");
        // The daemons may commit and publish the new events at once.
        let (lines, versions) = (scene.ledger_lines().len(), versions(&scene));
        clock += 600;
        for team in 0..6 {
            scene.service.world().connection_of(team, round % 3, clock - 100, 1);
        }
        scene.service.set_clock(clock);
        wait_for("a commit", || {
            note("lines", &format!("{} after {lines}", scene.ledger_lines().len()));
            (scene.ledger_lines().len() > lines).then_some(())
        });
        if round % 4 == 3 {
            let at = round / 4 % 2;
            let run = daemons[at].take().unwrap().kill_after(Duration::ZERO);
            assert!(run.code.is_none() && !run.stderr.contains("BUG"), "{run:?}");
            daemons[at] = Some(start(["1/2", "2/2"][at]));
        }
        wait_for("a version of a table", || (self::versions(&scene) > versions).then_some(()));
        round += 1;
    }
    for daemon in daemons.into_iter().flatten() {
        let run = daemon.kill_after(Duration::ZERO);
        assert!(!run.stderr.contains("BUG"), "{run:?}");
    }
    scene.sync().ended(0);
    scene.run(&["publish"]).ended(0);
    scene.run(&["publish", "--check"]).ended(0);
    is_one_history(&scene);
    scene.holds();
    if let Some(mut readers) = Readers::start("other engines on a table of two publishers") {
        Bucket::of(&scene).is_read(&mut readers, &OF_ANY_REGION, "after the race");
    }
}

fn is_version(key: &str) -> bool {
    key.ends_with(".metadata.json")
}

fn versions(scene: &Scene) -> usize {
    scene.server.keys().iter().filter(|key| is_version(key)).count()
}

/// Requests that created a version which another publisher had already created.
fn lost_version_creates(scene: &Scene) -> usize {
    let requests = scene.server.requests();
    let tried: Vec<&str> =
        requests.iter().filter_map(|line| line.strip_prefix("Put ")).filter(|key| is_version(key)).collect();
    tried.len() - tried.iter().collect::<BTreeSet<_>>().len()
}

/// In a bucket the grace is seven days, by the bucket's own clock.
#[test]
fn vacuum_keeps_the_tables_files_in_a_bucket_while_publishing_is_paused() {
    let scene = Scene::new();
    let published = read_twice(&scene);
    let has_published = || {
        let keys = scene.server.keys();
        published.iter().all(|path| keys.iter().any(|key| key.ends_with(path.as_str())))
    };
    assert!(published.len() > 5 && has_published());
    scene.server.set_clock_ahead(20 * 24 * HOUR);
    scene.run(&["vacuum"]).ended(0);
    assert!(has_published(), "the tables name the lines of the backfill");
    scene.run(&["publish", "--check"]).ended(0);
    scene.run(&["verify"]).ended(0);
    scene.run(&["publish"]).ended(0);
    scene.run(&["vacuum"]).ended(0);
    assert!(has_published(), "readers of the previous version can finish");
    scene.run(&["publish", "--check"]).ended(0);
    scene.server.set_clock_ahead(40 * 24 * HOUR);
    scene.run(&["vacuum"]).ended(0);
    assert!(!has_published());
    scene.run(&["publish", "--check"]).ended(0);
    scene.run(&["verify"]).ended(0);
}

#[test]
fn engines_read_the_tables_from_an_independent_object_server() {
    let Some(mut readers) = Readers::start("other engines on tables on MiniStack") else { return };
    let Some(server) = Server::ministack("annals") else {
        return missing("ministack", "open tables on MiniStack", "run scripts/object-stores.sh install");
    };
    let (service, program) = super::faulty_service::scene();
    let endpoint = server.endpoint();
    let location = "s3://annals/some/archive";
    let program = [
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("ANNALS_ARCHIVE", location),
    ]
    .into_iter()
    .fold(program, |program, (name, value)| program.with_variable(name, PathBuf::from(value)));
    program.configure("[cache]\ndirectory = \"cache\"\n");
    service.world().fill(DAY, 0..3);
    program.sync(&SINCE).ended(0);
    let access = json!({"endpoint": endpoint, "key": "test", "secret": "test", "region": "us-east-1"});
    let bucket = Bucket { program: &program, location, access };
    bucket.is_read(&mut readers, &READERS, "a backfill");
    service.world().connection(FIRST + 2 * HOUR, 1);
    service.set_clock(FIRST + 30 * HOUR);
    program.sync(&SINCE).ended(0);
    bucket.is_read(&mut readers, &READERS, "a second reading");
    program.run(&["publish", "--check"]).ended(0);
}
