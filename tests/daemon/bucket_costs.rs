//! The cost of an archive in a bucket: the daemon's requests to the store, counted in virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use annals::archive::Archive;
use annals::cli::BucketRequests;
use annals::model::{BucketLocation, Location};
use annals::store::ObjectStore;
use object_server::{ACCESS_KEY, BUCKET, Kind, ObjectServer, REGION, SECRET_KEY};

use super::fleet::FleetWorld;
use super::virtual_time::{START, schedule};

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);

fn location() -> BucketLocation {
    match format!("s3://{BUCKET}/archive").parse() {
        Ok(Location::Bucket(location)) => location,
        other => panic!("{other:?}"),
    }
}

fn store(server: &ObjectServer) -> ObjectStore {
    let endpoint = server.endpoint();
    let settings = [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    ObjectStore::open_with(&location(), &settings).unwrap()
}

/// The commits, and the requests of each kind, of a daemon that reads one team for `span`.
fn requests(event_every: Duration, span: Duration) -> (BTreeMap<Kind, u64>, u64) {
    let server = ObjectServer::start();
    let mut world = FleetWorld::new(START, 1, 50.0);
    (world.event_every, world.commit_every) = (event_every, MINUTE);
    let world = Arc::new(world);
    let archive = Archive::open_or_create(Arc::new(store(&server)), || "test".to_owned()).unwrap();
    server.forget_requests();
    world.run_on(Arc::new(archive), &schedule(), span);
    let counts = server.counts();
    let reader = Archive::open(Arc::new(store(&server))).unwrap().read(&world.teams()[0]).unwrap();
    (counts, reader.state().seq.0)
}

#[test]
fn an_idle_round_sends_no_request_to_the_store() {
    let never = HOUR * 100_000;
    let after = |minutes| requests(never, MINUTE * minutes);
    assert_eq!(after(5), after(55));
    // Once an hour, a ledger line records how far the streams were read.
    let ((before, lines), (later, more)) = (after(55), after(65));
    assert_eq!(more, lines + 1);
    let sum = |counts: &BTreeMap<Kind, u64>| counts.values().sum::<u64>();
    assert!(sum(&later) <= sum(&before) + 10, "{before:?} {later:?}");
}

/// The figures of the guide. A commit has a bounded number of requests, and there is at most one commit a minute.
#[test]
#[expect(clippy::print_stdout, reason = "a measurement prints its result")]
fn a_day_of_a_team_costs_a_bounded_number_of_requests() {
    /// A backfill has several commits.
    const FIRST_COMMITS: u64 = 10;
    for (name, event_every) in [("quiet, an event an hour", HOUR), ("busy, an event every two seconds", MINUTE / 30)] {
        let (counts, commits) = requests(event_every, HOUR * 24);
        println!("{name}: {commits} commits, {counts:?}");
        let count = |kind| counts.get(&kind).copied().unwrap_or(0);
        assert!(commits <= 24 * 60 + FIRST_COMMITS, "{name}: {commits} commits");
        assert!(count(Kind::List) <= 200, "{name}: {counts:?}");
        assert!(count(Kind::Put) <= 3 * commits, "{name}: {counts:?} for {commits} commits");
        assert!(count(Kind::Get) + count(Kind::Head) <= 7 * commits, "{name}: {counts:?} for {commits} commits");
        // The figures that `annals plan` shows; the counted day begins with a backfill.
        let events = (HOUR * 24).as_secs() / event_every.as_secs();
        let planned = BucketRequests::of_team(events, MINUTE);
        for (planned, counted) in [
            (planned.puts, count(Kind::Put)),
            (planned.gets, count(Kind::Get) + count(Kind::Head)),
            (planned.lists, count(Kind::List)),
        ] {
            assert!(planned.abs_diff(counted) * 4 <= counted, "{name}: {planned} planned, {counted} counted");
        }
    }
}
