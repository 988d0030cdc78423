//! A pack in a real browser: it draws every chart, sends no request and reports no error; in light and dark mode, on a
//! phone and on paper. `scripts/browser.sh install` installs the browser; without one the test fails, or
//! `ANNALS_WITHOUT=browser` skips it.

use crate::demanded::missing;
use crate::reporting;

use std::path::Path;
use std::process::Command;

use reporting::Place;
use serde_json::Value;

/// A chart of each kind, over untrusted texts and over a month.
const KINDS: [(&str, &str); 12] = [
    (
        "columns x=day y=n series=reason",
        "SELECT date_trunc('day', event_time) AS day, failure_reason AS reason, count(*) AS n",
    ),
    ("bars x=host y=n", "SELECT computer_host_name AS host, count(*) AS n"),
    ("line x=day y=n", "SELECT date_trunc('day', event_time) AS day, count(*) AS n"),
    ("step x=day y=n", "SELECT date_trunc('day', event_time) AS day, count(*) AS n"),
    (
        "area x=day y=n series=hour",
        "SELECT date_trunc('day', event_time) AS day, hour(event_time) AS hour, count(*) AS n",
    ),
    (
        "area100 x=day y=n series=hour",
        "SELECT date_trunc('day', event_time) AS day, hour(event_time) AS hour, count(*) AS n",
    ),
    (
        "heatmap x=day y=host value=n",
        "SELECT date_trunc('day', event_time) AS day, computer_host_name AS host, count(*) AS n",
    ),
    ("dots x=at y=hour series=host", "SELECT event_time AS at, hour(event_time) AS hour, computer_host_name AS host"),
    ("histogram x=wait_ms log", "SELECT (day(event_time) * day(event_time) * 900)::BIGINT AS wait_ms"),
    (
        "timeline start=at end=until lane=host",
        "SELECT event_time AS at, event_time + INTERVAL 5 HOUR AS until, computer_host_name AS host",
    ),
    ("strip x=at y=host", "SELECT event_time AS at, computer_host_name AS host"),
    (
        "punchcard x=hour y=weekday value=n",
        "SELECT hour(event_time) AS hour, dayofweek(event_time) AS weekday, count(*) AS n",
    ),
];

fn pack_of_every_kind() -> Place {
    let place = Place::month_with_a_gap();
    for (at, (chart, select)) in KINDS.iter().enumerate() {
        let kind = chart.split(' ').next().unwrap();
        let grouped = if select.contains("count(*)") { "GROUP BY ALL ORDER BY ALL" } else { "ORDER BY ALL" };
        let sql = format!(
            "-- id: K{at:02}\n-- title: Drawn as {kind}\n-- question: Is it drawn?\n-- chart: {chart} | A chart of kind {kind}\n\
             {select}\nFROM connections WHERE event_time >= $from AND event_time < $to {grouped};\n"
        );
        place.own_report(&format!("k{at:02}-{kind}.sql"), &sql);
    }
    let arguments = [
        "report",
        "pack",
        "-o",
        "out",
        "--from",
        "2026-10-01",
        "--to",
        "2026-11-01",
        "--tz",
        "Europe/Berlin",
        "--queries",
        "own",
    ];
    let outcome = place.run(&arguments);
    assert_eq!(outcome.code, 3, "{outcome:?}");
    place
}

/// The browser's path, or the reason why there is none.
fn browser() -> Result<Vec<String>, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/browser.sh");
    let found = Command::new(script).arg("find").output().map_err(|e| e.to_string())?;
    if found.status.success() {
        return Ok(String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect());
    }
    Err(String::from_utf8_lossy(&found.stderr).trim().to_owned())
}

#[test]
fn a_pack_is_read_in_a_browser() {
    let browser = match browser() {
        Ok(browser) => browser,
        Err(reason) => {
            missing("browser", "a pack in a browser", &reason);
            return;
        }
    };
    let place = pack_of_every_kind();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/pages.mjs");
    let mut command = Command::new("node");
    command.arg(script).args(browser).arg(place.path().join("out")).args(std::env::var_os("ANNALS_SHOTS"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let pages = seen["pages"].as_array().unwrap();
    assert!(pages.len() >= 4 * (1 + KINDS.len()), "{} pages were opened", pages.len());
    for page in pages {
        check(page, &place.path().join("out"));
    }
    for page in pages.iter().filter(|page| page["look"] == "light") {
        assert_eq!(page["lost"], serde_json::json!([]), "{}: columns beyond the edge of the paper", page["path"]);
    }
    let index = |look: &str| pages.iter().find(|page| page["path"] == "index.html" && page["look"] == look).unwrap();
    assert_ne!(index("light")["paper"], index("dark")["paper"]);
    assert_ne!(index("light")["ink"], index("dark")["ink"]);
    assert_eq!(index("light")["focus"], "skip", "the keyboard begins with the way to the reports");
    let pdf = &index("dark")["pdf"];
    assert_eq!(pdf["head"], "%PDF-");
    let bytes = pdf["bytes"].as_u64().unwrap();
    assert!((20_000..4_000_000).contains(&bytes) && pdf["pages"].as_u64().unwrap() > KINDS.len() as u64, "{pdf}");
    for look in ["light", "dark", "phone", "small phone"] {
        let charts = index(look)["charts"].as_array().unwrap();
        assert!(charts.len() > KINDS.len(), "{look}: {} charts", charts.len());
    }
}

fn check(page: &Value, pack: &Path) {
    let what = format!("{} ({})", page["path"], page["look"]);
    let nothing = |member: &str| assert_eq!(page[member], serde_json::json!([]), "{member} of {what}");
    for member in ["foreign", "console", "twice", "dangling"] {
        nothing(member);
    }
    assert_eq!((page["dialogs"].as_u64(), page["active"].as_u64()), (Some(0), Some(0)), "{what}");
    assert_eq!(page["overflow"], 0, "{what} is wider than its window");
    assert!(page["text"].as_u64().unwrap() > 500, "{what}");
    let charts = page["charts"].as_array().unwrap();
    assert!(!charts.is_empty(), "{what}");
    for chart in charts {
        assert!(
            chart["width"].as_f64().unwrap() > 200.0 && chart["height"].as_f64().unwrap() > 30.0,
            "{what}: {chart}"
        );
        assert!(chart["drawn"].as_u64().unwrap() > 0, "{what}: {chart}");
        assert!(chart["label"].as_str().unwrap().len() > 20, "{what}: {chart}");
        assert_eq!(chart["outside"], serde_json::json!([]), "{what}: text outside of its picture");
    }
    let from = pack.join(page["path"].as_str().unwrap());
    for link in page["links"].as_array().unwrap() {
        let target = from.parent().unwrap().join(link.as_str().unwrap());
        assert!(target.is_file(), "{what}: {link} leads nowhere");
    }
}
