//! Kills the program at each request of a commit to the bucket, before and after the store carries it out, twice at
//! the same place. The next run continues: no event is lost or doubled, and the archive verifies.
#![allow(
    clippy::print_stdout,
    reason = "a failed test shows the place of the kill; a run on request prints the counts"
)]

use crate::bucket_scene;
use crate::faulty_service;

use bucket_scene::{FIRST, Scene, is_long};
use faulty_service::chance::Chance;
use faulty_service::{DAY, HOUR, Kind, SINCE, events};
use object_server::{Effect, Rule, Stored};

/// When to kill: before or after the store carries the request out.
const MOMENTS: [(&str, Effect); 2] =
    [("before it is carried out", Effect::Unanswered), ("after it was carried out", Effect::AppliedUnanswered)];
/// The usual run tries one place in this many, alternating between the two moments.
const STRIDE: usize = 5;

/// A scene for kills, and the bucket's content before.
struct Killing {
    scene: Scene,
    before: Stored,
    /// The number of requests of an undisturbed `sync`.
    requests: Vec<String>,
}

impl Killing {
    fn of(scene: Scene) -> Self {
        let before = scene.server.stored();
        scene.server.forget_requests();
        scene.sync().ended(0);
        let requests = scene.server.requests();
        scene.holds_and_rests();
        Self { scene, before, requests }
    }

    /// Kills `sync` at its `place`th request, from 1. Returns false if it ended before.
    fn kill_at(&self, place: usize, effect: &Effect) -> bool {
        let server = &self.scene.server;
        server.heal();
        server.fail(Rule::new(effect.clone()).nth(place as u64));
        let run = self.scene.program.start_sync(&SINCE).kill_when(|| server.struck() > 0);
        server.heal();
        assert!(matches!(run.code, None | Some(0)), "{run:?}");
        run.code.is_none()
    }

    /// Kills `sync` twice at the same place, then lets it finish. Returns the number of kills.
    fn twice_at(&self, place: usize, (moment, effect): &(&str, Effect)) -> usize {
        println!("killed at request {place} of {}, {moment}", self.requests.len());
        self.scene.server.restore(&self.before);
        let kills = (0..2).filter(|_| self.kill_at(place, effect)).count();
        self.scene.sync().ended(0);
        self.scene.holds_and_rests();
        self.scene.is_signed();
        assert_eq!(self.scene.server.open_uploads(), 0);
        kills
    }

    /// Every place at both moments in a long run; otherwise one place in [`STRIDE`] at one moment.
    fn at_each_place(&self) {
        let places = 1..=self.requests.len();
        let stride = if is_long() { 1 } else { STRIDE };
        let (mut tried, mut kills) = (0, 0);
        for (nth, place) in places.step_by(stride).enumerate() {
            let moments = if is_long() { &MOMENTS[..] } else { &MOMENTS[nth % 2..=nth % 2] };
            for moment in moments {
                kills += self.twice_at(place, moment);
                tried += 1;
            }
        }
        println!("{} requests, {tried} places and moments, {kills} kills", self.requests.len());
        assert!(kills > tried, "only {kills} kills in {tried} places");
    }
}

/// An archive a day later, with new events in old and new windows.
fn events_wait(scene: Scene) -> Killing {
    scene.service.world().fill(DAY, 0..3);
    scene.sync().ended(0);
    for n in 0..9 {
        let mut world = scene.service.world();
        world.connection(FIRST + 2 * HOUR + n * 4_000, n);
        world.activity(FIRST + 2 * HOUR + n * 3_000, n);
        world.billing(FIRST + HOUR + n * 60);
    }
    scene.service.world().connection(DAY + 70 * HOUR, 77);
    scene.service.set_clock(FIRST + 26 * HOUR);
    Killing::of(scene)
}

#[test]
fn kills_at_each_request_of_a_commit_lose_and_double_nothing() {
    let killing = events_wait(Scene::signed(""));
    let asked = |kind: &str, part: &str| {
        assert!(
            killing.requests.iter().any(|line| line.starts_with(kind) && line.contains(part)),
            "no {kind} of {part}: {:#?}",
            killing.requests
        );
    };
    for (kind, part) in [
        ("Put", "/tables/activity/"),
        ("Put", "/tables/connections/"),
        ("Put", "/tables/sessions/"),
        ("Put", "/line/"),
        ("Put", "/head/"),
        ("List", "/line"),
    ] {
        asked(kind, part);
    }
    killing.at_each_place();
}

#[test]
fn kills_at_each_request_that_begins_an_archive_leave_one_archive() {
    let scene = Scene::signed("");
    scene.service.world().fill(DAY, 0..2);
    Killing::of(scene).at_each_place();
}

#[test]
fn kills_with_the_ledger_elsewhere_lose_and_double_nothing() {
    events_wait(Scene::with_ledger_elsewhere("")).at_each_place();
    let scene = Scene::with_ledger_elsewhere("");
    scene.service.world().fill(DAY, 0..2);
    let killing = Killing::of(scene);
    killing.at_each_place();
    let others = killing.scene.server.keys().into_iter().filter(|key| key.starts_with("some/archive/ledger"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<String>::new());
}

/// Text that hardly compresses.
fn noise(chance: &mut Chance, length: usize) -> String {
    let digit = |_| char::from(b'0' + u8::try_from(chance.below(64)).unwrap()).to_string().replace('\\', "~");
    (0..length).map(digit).collect()
}

/// One file of more than 16 MiB, which the program uploads in parts.
#[test]
fn a_kill_during_a_multipart_upload_starts_the_upload_again() {
    let scene = Scene::new();
    scene.service.world().fill(DAY, 0..2);
    scene.sync().ended(0);
    let mut chance = Chance::of(5);
    for n in 0..90 {
        let at = (FIRST + 60 * n) * 1_000_000_000;
        let payload = format!("{{\"note\":\"{}\"}}", noise(&mut chance, 300_000));
        let text = events::activity_event("teamSettingsChangedEvent", at, &payload);
        scene.service.world().add(Kind::Activity, i128::from(at), None, text);
    }
    scene.service.world().behaviour.cap = Some(10);
    scene.service.set_clock(FIRST + 2 * HOUR);
    let killing = Killing::of(scene);
    let at = |kind: &str| killing.requests.iter().position(|line| line.starts_with(kind)).map(|at| at + 1);
    let (start, complete) = (at("Start").expect("an upload in parts"), at("Complete").unwrap());
    assert!(killing.requests.iter().filter(|line| line.starts_with("Part")).count() >= 2);
    let server = &killing.scene.server;
    for (place, effect, left) in [
        (start, Effect::Unanswered, 0),
        (start, Effect::AppliedUnanswered, 1),
        (start + 1, Effect::AppliedUnanswered, 1),
        (complete, Effect::Unanswered, 1),
        (complete, Effect::AppliedUnanswered, 0),
    ] {
        println!("killed at request {place}: {}", killing.requests[place - 1]);
        server.restore(&killing.before);
        assert!(killing.kill_at(place, &effect));
        // A killed process cannot abort its upload; a rule of the bucket removes unfinished uploads.
        assert_eq!(server.open_uploads(), left);
        killing.scene.sync().ended(0);
        killing.scene.holds();
        assert_eq!(server.open_uploads(), left, "the continued upload left an unfinished upload");
    }
    // A living process aborts a failed upload.
    server.restore(&killing.before);
    server.fail(Rule::new(Effect::Refused(403, None)).on(object_server::Kind::Part).from(2));
    killing.scene.sync().ended(1);
    assert_eq!(server.open_uploads(), 0);
    server.heal();
    killing.scene.sync().ended(0);
    killing.scene.holds();
}
