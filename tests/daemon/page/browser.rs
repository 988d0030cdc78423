//! The pages in a real browser: it reports no error, sends no request elsewhere, and reaches everything by keyboard;
//! in light and dark mode, and on a phone. `scripts/browser.sh install` installs the browser; without one the test
//! fails, or `ANNALS_WITHOUT=browser` skips it.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::world::{Lonely, with_strangers};
use crate::common::demanded::missing;

fn browser() -> Result<Vec<String>, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/browser.sh");
    let found = Command::new(script).arg("find").output().map_err(|e| e.to_string())?;
    if found.status.success() {
        return Ok(String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect());
    }
    Err(String::from_utf8_lossy(&found.stderr).trim().to_owned())
}

/// Opens `paths` in the browser, in every colour scheme and size; `None` without a browser.
fn look(address: &str, paths: &[String], shots: &str) -> Option<Vec<Value>> {
    let browser = match browser() {
        Ok(browser) => browser,
        Err(reason) => {
            missing("browser", "the page in a browser", &reason);
            return None;
        }
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/port.mjs");
    let mut command = Command::new("node");
    command.arg(script).args(browser).arg(format!("http://{address}")).arg(json!(paths).to_string());
    if let Some(folder) = std::env::var_os("ANNALS_SHOTS") {
        command.arg(Path::new(&folder).join(shots));
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let pages = seen["pages"].as_array().unwrap().clone();
    assert_eq!(pages.len(), paths.len() * 4, "every page in every colour scheme and size");
    Some(pages)
}

fn check(page: &Value) {
    let what = format!("{} ({})", page["path"], page["look"]);
    for member in ["foreign", "console", "twice", "dangling", "unnamed", "unlabelled", "outside", "faint", "hidden"] {
        assert_eq!(page[member], json!([]), "{member} of {what}");
    }
    assert_eq!((&page["dialogs"], &page["inline"]), (&json!(0), &json!(0)), "{what}");
    assert_eq!(page["overflow"], 0, "{what} is wider than its window");
    assert_eq!(page["headings"], 1, "{what}: one heading of the first rank");
    assert_eq!(page["lang"], "en", "{what}");
    assert!(page["title"].as_str().unwrap().ends_with("· Annals"), "{what}");
    assert_eq!(page["first"], "Skip to the content", "{what}: the first focus is the link past the navigation");
    assert_eq!(page["skips"], "main", "{what}: the link leads to the content");
    assert_eq!(page["unseen"], json!([]), "{what}: the focus is visible");
    assert_eq!(page["trapped"], false, "{what}: the focus can leave every element");
}

#[test]
fn the_pages_work_in_a_browser_while_the_service_is_down() {
    let world = Lonely::new("sql = true\n");
    let october = "from=2026-10-01&to=2026-11-01";
    let id = world.get(&format!("/api/sessions?{october}")).json()["sessions"][0]["connection_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let id: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
    let paths = [
        "/".to_owned(),
        "/coverage?stream=connections".to_owned(),
        format!("/sessions?{october}"),
        "/day?day=2026-10-15".to_owned(),
        format!("/session?id={id}"),
        "/reports".to_owned(),
        format!("/reports/r02?{october}&run=1"),
        "/findings".to_owned(),
        "/quarantine".to_owned(),
        "/sql".to_owned(),
        "/nowhere".to_owned(),
        "/sessions?outcome=good".to_owned(),
    ];
    let Some(pages) = look(&world.daemon.address, &paths, "lonely") else { return };
    pages.iter().for_each(check);
    let of = |look: &str| pages.iter().find(|page| page["path"] == "/" && page["look"] == look).unwrap();
    assert_ne!(of("light")["paper"], of("dark")["paper"]);
    assert_ne!(of("light")["ink"], of("dark")["ink"]);
    world.daemon.stop();
}

#[test]
fn the_pages_work_in_a_browser_over_strangers_texts() {
    let (scene, daemon) = with_strangers();
    let team = scene.team(0);
    let day = scene.sandbox.handle.now().minus(std::time::Duration::from_secs(3_600)).day();
    let paths = [
        "/".to_owned(),
        format!("/coverage?team={team}"),
        format!("/sessions?team={team}"),
        format!("/day?team={team}&day={day}"),
        format!("/session?team={team}&id=hostile-1"),
        format!("/reports/r00?team={team}"),
        format!("/findings?team={team}"),
        format!("/quarantine?team={team}"),
        "/sessions".to_owned(),
        "/findings".to_owned(),
    ];
    let Some(pages) = look(&daemon.address, &paths, "strangers") else { return };
    pages.iter().for_each(check);
    daemon.stop();
}
