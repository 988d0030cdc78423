//! The pages as documents: their content, and untrusted text as plain text.

use annals::archive::{Body, Draft, HoldAdded, HoldRecord, HoldScope};
use annals::model::{Stream, TeamId};
use annals::sandbox::Fault;

use super::world::{HOSTILE, Lonely, with_strangers};
use crate::program::{Scene, wait_for};
use crate::reporting::{Day, HOUR, Place, at};

const OCTOBER: &str = "from=2026-10-01&to=2026-11-01";

/// The targets of a page's links to other pages.
fn links(page: &str) -> Vec<String> {
    let targets = page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let own = targets.filter(|target| target.starts_with('/') && !target.starts_with("/assets/"));
    own.map(|target| target.replace("&#38;", "&").replace("&amp;", "&").replace("&#39;", "'")).collect()
}

/// The page without its tags.
fn words(page: &str) -> String {
    page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect()
}

#[test]
fn the_page_explains_that_the_service_is_down() {
    let world = Lonely::new("");
    // Before the first reading of the archive, the page says nothing about its content.
    let has_counted = |page: &str| page.contains("no loss is known");
    wait_for("the words", || {
        let page = world.page("/");
        assert!(!has_counted(&page), "there is a gap: {page}");
        page.contains("tries again by itself").then_some(())
    });
    wait_for("the gap", || {
        world
            .page("/")
            .contains("<dd class=\"value\">1</dd><dd class=\"detail\"><a href=\"/findings?kind=gap\">")
            .then_some(())
    });
    let page = world.page("/");
    assert!(page.contains("O&#39;Brien &#38; söhne"), "{page}");
    assert!(page.contains("127.0.0.1:1") || page.contains("connect"), "the reason: {page}");
    assert!(page.contains("kind=gap"), "the gap leads to its record: {page}");
    world.daemon.stop();
}

#[test]
fn every_page_says_that_the_archive_is_empty() {
    let world = Lonely::over(Place::empty(), "sql = true\n");
    for (path, words) in [
        ("/", "The service does not answer"),
        ("/coverage", "The archive is empty"),
        ("/sessions", "The archive holds no sessions yet"),
        ("/day", "No session was open on this day"),
        ("/findings", "There are no such findings"),
        ("/quarantine", "The quarantine is empty"),
        ("/reports/r01", "No rows."),
    ] {
        wait_for(path, || world.page(path).contains(words).then_some(()));
    }
    world.daemon.stop();
}

#[test]
fn a_calendar_names_its_days_and_links_to_the_gap_s_record() {
    let world = Lonely::new("");
    let page = world.page("/coverage?stream=connections&until=2026");
    assert!(page.contains("28 days complete, 1 day provisional, 1 day with a gap"), "{page}");
    assert!(page.contains("Oct 2026: 28 days complete"), "{page}");
    assert!(page.contains("aria-label=\"2026-10-14: a gap is recorded\""), "{page}");
    assert!(words(&page).contains("2026-10-20 00:00 to 2026-10-21 00:00"), "the day that was never read: {page}");
    let record = links(&page).into_iter().find(|link| link.contains("seq=1")).expect("a link to the record");
    let record = world.page(&record);
    assert!(
        record.contains("computer removed") && words(&record).contains("2026-10-14 10:00 to 2026-10-14 12:30"),
        "{record}"
    );
    assert!(world.page("/coverage?stream=activity").contains("Annals recorded no gap"));
    world.daemon.stop();
}

#[test]
fn every_link_of_every_page_has_a_target() {
    let world = Lonely::new("sql = true\n");
    let mut open = vec!["/".to_owned(), format!("/sessions?{OCTOBER}"), "/day?day=2026-10-15&by=user".to_owned()];
    let mut seen = std::collections::BTreeSet::new();
    while let Some(path) = open.pop() {
        // The links to other days never end, and sessions look alike, so follow only some.
        let is_far = path.starts_with("/day") && !path.contains("2026-10-15");
        let is_one_more = path.contains("/session?") && !path.contains("2026-10-15T06");
        if is_far || is_one_more || path.contains("/file?") || !seen.insert(path.clone()) {
            continue;
        }
        assert!(seen.len() < 300, "the pages have no end: {seen:?}");
        let answer = world.get(&path);
        assert!(matches!(answer.status, 200 | 303), "{path}: {} {}", answer.status, answer.body);
        if answer.header("content-type").starts_with("text/html") {
            open.extend(links(&answer.body));
        }
    }
    for needed in ["/coverage", "/reports/session-register", "/session?", "/api/", "/sql"] {
        assert!(seen.iter().any(|path| path.starts_with(needed)), "{needed} was not reached: {seen:?}");
    }
    world.daemon.stop();
}

#[test]
fn an_invalid_request_is_explained_beside_the_form() {
    let world = Lonely::new("");
    for (path, named) in [
        ("/sessions?from=2026-10-02&to=2026-10-01", "the period ends before it begins"),
        ("/sessions?outcome=good", "outcome"),
        ("/sessions?from=1800-01-01", "is outside the years 2000 to 2099"),
        ("/sessions?usr=ada", "unknown parameter"),
        ("/sessions?after=x", "leave the parameter out to start"),
        ("/findings?stream=x", "stream"),
        ("/findings?seq=first", "seq: &#34;first&#34; is not a whole number"),
        ("/quarantine?stream=x", "stream"),
        ("/reports/r02?run=1&param.burst_count=many", "burst_count"),
        ("/reports/r18?run=1&param.percentile=1.5", "outside its range: from 0 to 1"),
        ("/reports/r21?run=1", "subject is missing"),
        ("/day?day=tomorrow", "2026-11-20"),
        ("/day?by=colour", "expected computer or user"),
        ("/day?usr=ada", "unknown parameter"),
    ] {
        let answer = world.get(path);
        let page = &answer.body;
        assert_eq!(answer.status, 400, "{path}: {page}");
        assert!(page.contains("role=\"alert\"") && page.contains(named) && page.contains("<form"), "{path}: {page}");
    }
    for (path, named) in [
        ("/?page=x", "page: &#34;x&#34; is not a whole number"),
        ("/?pgae=1", "unknown parameter"),
        ("/coverage?stream=x", "activity, connections or billing"),
        ("/coverage?until=-5", "until: &#34;-5&#34; is not a whole number"),
        ("/coverage?steram=x", "unknown parameter"),
    ] {
        let answer = world.get(path);
        assert!(answer.status == 400 && answer.body.contains(named), "{path}: {}", answer.body);
        assert!(answer.body.contains("aria-label=\"Places\""), "{path}: the page has no navigation: {}", answer.body);
    }
    for path in ["/?page=99999999999999999999999", "/coverage?until=99999", "/findings?seq=99999999999999999999999"] {
        world.page(path);
    }
    for path in ["/sessions?team=other", "/session?id=none", "/reports/none", "/nowhere"] {
        let answer = world.get(path);
        assert!(answer.status == 404 && answer.body.contains("<nav"), "{path}: {}", answer.body);
    }
    world.daemon.stop();
}

#[test]
fn a_report_page_shows_its_chart_and_its_files() {
    let world = Lonely::new("");
    let page = world.page(&format!("/reports/r02?{OCTOBER}&run=1&param.burst_count=2"));
    assert!(page.contains("A gap is recorded inside the period"), "{page}");
    assert!(page.contains("<svg class=\"chart\"") && page.contains("name=\"param.burst_count\" value=\"2\""), "{page}");
    let file = links(&page).into_iter().find(|link| link.contains("format=csv")).expect("a file");
    assert!(file.contains("param.burst_count=2") && file.contains("from=2026-10-01"), "{file}");
    assert_eq!(world.get(&file).status, 200);
    let verify = world.page("/reports/r24");
    assert!(verify.contains("This report runs only when you ask for it") && !verify.contains("<svg class=\"chart\""));
    assert!(world.page("/reports/r24?run=1").contains("As of ledger line 1"));
    let dossier = world.page("/reports/r21");
    assert!(dossier.contains("It needs a value for: subject.") && !dossier.contains("No rows"), "{dossier}");
    assert!(world.page("/reports/r21?param.subject=d1").contains("As of ledger line 1"));
    assert!(world.page("/reports/r18").contains("(from 0 to 1)"), "the range of a threshold is shown");
    world.daemon.stop();
}

#[test]
fn times_are_shown_in_the_zone_that_was_chosen() {
    let world = Lonely::new("");
    let chosen = world.post("/zone", &[("tz", "Asia/Kathmandu"), ("back", "/sessions")]);
    assert_eq!((chosen.status, chosen.header("location")), (303, "/sessions"));
    let cookie = chosen.header("set-cookie").split(';').next().unwrap().to_owned();
    let asked = |cookie: &str| {
        let path = format!("/sessions?{OCTOBER}");
        super::http::ask(&world.daemon.address, "GET", &path, &[("Cookie", cookie)], "").body
    };
    assert!(asked("a=b").contains("2026-10-31 05:00"));
    let local = asked(&cookie);
    assert!(local.contains("2026-10-31 10:45") && local.contains("Asia/Kathmandu"), "{local}");
    assert_eq!(world.post("/zone", &[("tz", "Mars/Base")]).status, 400);
    world.daemon.stop();
}

#[test]
fn strangers_texts_are_plain_text_on_every_page() {
    let (scene, daemon) = with_strangers();
    let team = scene.team(0);
    let day = scene.sandbox.handle.now().minus(std::time::Duration::from_secs(3_600)).day();
    let get = |path: &str| super::http::get(&daemon.address, path);
    for path in [
        format!("/sessions?team={team}&user=onerror"),
        format!("/session?team={team}&id=hostile-1"),
        format!("/day?team={team}&day={day}"),
        format!("/day?team={team}&day={day}&by=user"),
        format!("/quarantine?team={team}"),
        format!("/findings?team={team}"),
        format!("/reports/r01?team={team}"),
        format!("/reports/r15?team={team}"),
        format!("/sessions?team={team}&user=%3Cscript%3E"),
    ] {
        let answer = get(&path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.body.contains("<script>") && !answer.body.contains("<img"), "{path}: {}", answer.body);
        assert!(!answer.body.contains(['\u{202e}', '\u{1b}']), "{path}");
        assert!(!answer.body.contains(HOSTILE), "{path}");
    }
    let one = get(&format!("/session?team={team}&id=hostile-1")).body;
    assert!(one.contains("&#60;script&#62;alert(&#39;x&#39;)&#60;/script&#62;"), "it is shown: {one}");
    assert!(one.contains("&#34;id&#34;: &#34;h1&#34;"), "with all its raw events: {one}");
    assert!(get(&format!("/quarantine?team={team}")).body.contains("broken"));
    daemon.stop();
}

#[test]
fn an_overview_is_not_green_while_reading_fails() {
    let (scene, daemon) = with_strangers();
    let overview = || super::http::get(&daemon.address, "/").body;
    wait_for("a green page", || overview().contains("Everything is up to date").then_some(()));
    let refused = Fault::Status { status: 401, retry_after: None };
    scene.sandbox.handle.set_faults(Some(std::sync::Arc::new(move |_| Some(refused.clone()))));
    wait_for("a refused token on the page", || overview().contains("refused the token").then_some(()));
    assert!(!overview().contains("Everything is up to date"), "{}", overview());
    daemon.stop();
}

#[test]
fn the_overview_links_to_no_page_of_a_team_that_was_never_read() {
    let scene = Scene::new(2);
    let (team, refused) = (scene.team(1), Fault::Status { status: 500, retry_after: None });
    let unread = team.to_string();
    scene
        .sandbox
        .handle
        .set_faults(Some(std::sync::Arc::new(move |request| request.path.contains(&unread).then(|| refused.clone()))));
    let daemon = scene.start();
    let page = || super::http::get(&daemon.address, "/").body;
    let to = |team: &TeamId| format!("/coverage?team={team}");
    let is_tried = |page: &String| page.contains(&to(&scene.team(0))) && page.contains("status 500");
    let page = wait_for("a read team and a refused one", || Some(page()).filter(is_tried));
    assert!(page.contains("Not read yet"), "{page}");
    for path in links(&page) {
        assert_eq!(super::http::get(&daemon.address, &path).status, 200, "{path}");
    }
    scene.sandbox.handle.set_faults(None);
    wait_for("the links", || super::http::get(&daemon.address, "/").body.contains(&to(&team)).then_some(()));
    daemon.stop();
}

#[test]
fn the_pages_of_sessions_name_a_team_whose_sessions_lack_events() {
    let place = Place::empty();
    let day = || vec![Day::new(Stream::Connections, "2019-01-10").with(2, HOUR)];
    place.commit("behind", day(), Vec::new());
    place.commit_whole("whole", day(), Vec::new());
    // The daemon makes the sessions at its first reading, unless another process writes the team.
    let _writer = place.opened().writer(&TeamId::from("behind")).unwrap();
    let world = Lonely::over(place, "");
    for page in ["/sessions?from=2019-01-01&to=2019-02-01", "/day?day=2019-01-10"] {
        for (team, is_behind) in [("behind", true), ("whole", false)] {
            let shown = world.page(&format!("{page}&team={team}"));
            assert_eq!(shown.contains("sessions are not complete: behind: "), is_behind, "{page} {team}: {shown}");
        }
    }
    world.daemon.stop();
}

#[test]
fn a_report_of_one_team_knows_a_hold_that_only_another_ledger_records() {
    let place = Place::empty();
    let day = Day::new(Stream::Connections, "2019-01-10").with(2, HOUR).sealed();
    place.commit_whole("later", vec![day], Vec::new());
    let added_at = at("2019-01-01");
    let (id, reason) = ("CASE-7".to_owned(), "a claim".to_owned());
    let (by, from, to, subject) = (None, None, None, None);
    let hold = HoldAdded { id, reason, by, at: added_at, from, to, scope: HoldScope::All, subject };
    let draft = Draft::from(Body { holds: vec![HoldRecord::Add(hold)], ..Body::default() });
    let _ = place.opened().writer(&TeamId::from("earlier")).unwrap().commit(draft, added_at).unwrap();
    let world = Lonely::over(place, "[retention]\nconnections = \"30d\"\n");
    let report = world.get("/api/reports/r25?team=later&from=2019-10-01&to=2019-11-01").json();
    let rows = report["rows"].as_array().unwrap();
    let of = |class: &str| rows.iter().find(|row| row["class"] == class).unwrap();
    assert_eq!(
        (&of("connections")["state"], &of("connections")["kept_by"]),
        (&"held".into(), &"held by CASE-7".into()),
        "{report}"
    );
    assert!(rows.iter().all(|row| row["team_id"] == "later"), "{report}");
    world.daemon.stop();
}
