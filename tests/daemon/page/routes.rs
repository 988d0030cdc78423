//! Every path of the page and of the API, from the routers: each refuses a misspelled parameter.

use std::collections::BTreeSet;

use super::http::ask;
use super::world::Lonely;

const PAGE: &str = include_str!("../../../src/web/page/mod.rs");
const API: &str = include_str!("../../../src/web/api/mod.rs");
/// Assets, whose names change with their content.
const ASSETS: &str = "/assets/{name}";

/// The paths in a router's source, each with its methods.
fn places(text: &str, under: &str) -> Vec<(String, Vec<&'static str>)> {
    let found = text.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")).map(|rest| {
        let (path, handlers) = rest.split_once("\", ").unwrap();
        let methods = [("get(", "GET"), ("post(", "POST")];
        let methods = methods.into_iter().filter(|(verb, _)| handlers.contains(verb)).map(|(_, method)| method);
        (format!("{under}{path}"), methods.collect::<Vec<_>>())
    });
    found.filter(|(path, _)| path != ASSETS).collect()
}

/// All paths, and the index, which has no router of its own.
fn all() -> Vec<(String, Vec<&'static str>)> {
    let mut all = places(PAGE, "");
    all.extend(places(API, "/api"));
    all.extend(["/api", "/api/"].map(|path| (path.to_owned(), vec!["GET"])));
    all
}

#[test]
fn the_paths_are_read_from_the_routers_source() {
    let all = all();
    let paths: BTreeSet<&str> = all.iter().map(|(path, _)| path.as_str()).collect();
    assert!(all.len() > 25 && all.iter().all(|(_, methods)| !methods.is_empty()), "{all:?}");
    for known in ["/", "/session", "/reports/{name}/file", "/sql", "/zone", "/sign-in", "/api/session", "/api/sql"] {
        assert!(paths.contains(known), "{known}: {paths:?}");
    }
}

#[test]
fn a_misspelled_parameter_is_refused_everywhere() {
    let world = Lonely::new("sql = true\n");
    for (path, methods) in all() {
        for method in methods {
            // Send the required parameters too, so that only the misspelled one causes the refusal.
            let place = path.replace("{name}", "r01");
            let asked = format!("{place}?id=a&tema=x");
            let asked = if place.ends_with("session") { asked } else { asked.replace("id=a&", "") };
            let body = if place == "/api/sql" { "{\"query\":\"SELECT 1\"}" } else { "" };
            let answer = ask(&world.daemon.address, method, &asked, &[], body);
            assert_eq!(answer.status, 400, "{method} {asked}: {}", answer.body);
            assert!(answer.body.contains("tema"), "{method} {asked} does not name it: {}", answer.body);
            assert!(answer.body.contains("unknown parameter"), "{method} {asked}: {}", answer.body);
        }
    }
    world.daemon.stop();
}

#[test]
fn a_misspelled_field_of_a_form_is_refused() {
    let world = Lonely::new("sql = true\n");
    for (path, form) in [
        ("/sql", &[("query", "SELECT 1"), ("tema", "x")][..]),
        ("/zone", &[("tz", "UTC"), ("tema", "x")]),
        ("/sign-in", &[("token", "none"), ("tema", "x")]),
        ("/sign-out", &[("tema", "x")]),
    ] {
        let answer = world.post(path, form);
        assert!(answer.status == 400 && answer.body.contains("tema"), "{path}: {} {}", answer.status, answer.body);
    }
    let body = "{\"query\":\"SELECT 1\",\"tema\":\"x\"}";
    let answer = ask(&world.daemon.address, "POST", "/api/sql", &[], body);
    assert!(answer.status == 400 && answer.body.contains("tema"), "{}", answer.body);
    world.daemon.stop();
}
