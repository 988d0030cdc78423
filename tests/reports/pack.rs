//! Evidence packs, through the command line: complete, checkable, equal each time, and with every fault and gap.

use crate::pages;
use crate::reporting;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use pages::parse_html;
use reporting::{HOSTILE, Outcome, Place};

const OCTOBER: [&str; 6] = ["--from", "2026-10-01", "--to", "2026-11-01", "--made-at", "2026-11-20T12:00:00Z"];
/// A report that shows every untrusted text, in its rows and in its chart.
const STRANGERS: &str = "-- id: X1\n-- title: Strangers\n-- question: What do they write?\n\
    -- chart: bars x=host y=n series=reason | What they write\n-- severity: low\n\
    SELECT computer_host_name AS host, failure_reason AS reason, count(*) AS n, any_value(peer_email) AS peer\n\
    FROM connections WHERE event_time >= $from AND event_time < $to GROUP BY ALL;\n";

fn pack(place: &Place, output: &str, more: &[&str]) -> Outcome {
    place.run(&[&["report", "pack", "-o", output], &OCTOBER[..], more].concat())
}

/// Every file under a folder.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut waiting) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

fn json(files: &BTreeMap<String, Vec<u8>>, name: &str) -> serde_json::Value {
    serde_json::from_slice(&files[name]).unwrap()
}

/// Checks a pack with the system's program.
pub fn sha256sum(folder: &Path) -> std::process::Output {
    let program: &[&str] = if cfg!(target_os = "macos") { &["shasum", "-a", "256"] } else { &["sha256sum"] };
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).args(["--check", "--strict", "--quiet", "SHA256SUMS"]);
    command.current_dir(folder).output().unwrap()
}

#[test]
fn packs_and_reports_expect_the_configured_public_key_like_verify() {
    let place = Place::one_event();
    let public_key = place.run(&["anchor", "--keygen", "key"]);
    let config = format!("[signing]\npublic_key = \"{}\"\n", public_key.text().trim());
    fs::File::create(place.path().join("annals.toml")).unwrap().write_all(config.as_bytes()).unwrap();
    let verified = place.run(&["verify"]);
    assert!(verified.code == 1 && verified.text().contains("BAD_SIG"), "no line is signed: {verified:?}");
    assert_eq!(pack(&place, "out", &[]).code, 1);
    let verdict = json(&files(&place.path().join("out")), "verify.json");
    assert_eq!(verdict["faults"][0]["code"], "BAD_SIG", "{verdict}");
    let integrity = place.run(&["report", "run", "r24", "--from", "2026-10-01", "--to", "2026-11-01"]);
    assert!(integrity.text().contains("BAD_SIG"), "{integrity:?}");
}

#[test]
fn a_pack_is_complete_and_checkable_without_this_program() {
    let place = Place::month_with_a_gap();
    let outcome = pack(&place, "out", &[]);
    assert_eq!(outcome.code, 3, "{outcome:?}");
    assert!(outcome.stderr.contains("recorded inside the period"), "{outcome:?}");
    let held = files(&place.path().join("out"));
    let manifest = json(&held, "manifest.json");
    let reports = manifest["reports"].as_array().unwrap();
    assert!(!reports.is_empty());
    for report in reports {
        let stem = format!("{}-{}", report["id"].as_str().unwrap().to_lowercase(), report["name"].as_str().unwrap());
        let csv = String::from_utf8(held[&format!("reports/{stem}.csv")].clone()).unwrap();
        assert!(csv.lines().count() as u64 > report["rows"].as_u64().unwrap(), "{stem}");
        assert!(held[&format!("reports/{stem}.parquet")].starts_with(b"PAR1"), "{stem}");
        assert!(held.contains_key(&format!("reports/{stem}.html")), "{stem}");
        let sql = annals::model::Digest::of(&held[&format!("sql/{stem}.sql")]).to_string();
        assert_eq!(report["query_sha256"].as_str().unwrap(), sql, "{stem}");
        let index = std::str::from_utf8(&held["index.html"]).unwrap();
        assert!(index.contains(&sql) && index.contains(&format!("reports/{stem}.csv")), "{stem}");
    }
    let named: Vec<&str> = manifest["files"].as_array().unwrap().iter().map(|f| f["path"].as_str().unwrap()).collect();
    let expected: Vec<&str> =
        held.keys().map(String::as_str).filter(|f| !["manifest.json", "SHA256SUMS"].contains(f)).collect();
    assert_eq!(named, expected);
    assert_eq!(manifest["gaps"], 1);
    assert_eq!(json(&held, "ledger.json")["teams"][0]["sha256"], place.head("O'Brien & söhne").as_str());
    assert_eq!(json(&held, "verify.json")["faults"], serde_json::json!([]));
    assert_eq!(json(&held, "about.json").as_array().unwrap().len(), reports.len());
    let coverage = String::from_utf8(held["coverage.csv"].clone()).unwrap();
    assert_eq!(coverage.lines().count(), 1 + 3 * 30, "a window a day and stream but the 20th");
    let checked = sha256sum(&place.path().join("out"));
    assert!(checked.status.success(), "{checked:?}");
    fs::OpenOptions::new().append(true).open(place.path().join("out/coverage.csv")).unwrap().set_len(10).unwrap();
    assert!(!sha256sum(&place.path().join("out")).status.success());
}

#[test]
fn the_same_archive_and_moment_make_the_same_bytes() {
    let place = Place::month_with_a_gap();
    for output in ["one", "two"] {
        assert_eq!(pack(&place, output, &["--tz", "Europe/Berlin"]).code, 3);
    }
    let (one, two) = (files(&place.path().join("one")), files(&place.path().join("two")));
    assert_eq!(one.keys().collect::<Vec<_>>(), two.keys().collect::<Vec<_>>());
    for (name, bytes) in &one {
        assert!(two[name] == *bytes, "{name} differs");
    }
    for output in ["one.zip", "two.zip"] {
        assert_eq!(pack(&place, output, &["--tz", "Europe/Berlin"]).code, 3);
    }
    let zip = |name: &str| fs::read(place.path().join(name)).unwrap();
    assert!(zip("one.zip") == zip("two.zip"), "the zips differ");
    let epoch = place
        .command(&["report", "pack", "-o", "epoch", "--from", "2026-10-01", "--to", "2026-11-01"])
        .args(["--tz", "Europe/Berlin"])
        .env("SOURCE_DATE_EPOCH", "1795176000")
        .output()
        .unwrap();
    assert_eq!(epoch.status.code(), Some(3), "{epoch:?}");
    assert!(files(&place.path().join("epoch")) == one, "SOURCE_DATE_EPOCH is the same moment");
}

#[test]
fn another_tool_opens_the_zip_with_the_same_content() {
    let place = Place::month_with_a_gap();
    assert_eq!(pack(&place, "out", &[]).code, 3);
    assert_eq!(pack(&place, "out.zip", &[]).code, 3);
    let unpacked = place.path().join("unpacked");
    let script =
        "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; z.extractall(sys.argv[2])";
    let by_python =
        Command::new("python3").args(["-c", script]).arg(place.path().join("out.zip")).arg(&unpacked).output();
    let done = match by_python {
        Ok(output) if output.status.success() => output,
        _ => {
            Command::new("unzip").arg("-q").arg(place.path().join("out.zip")).arg("-d").arg(&unpacked).output().unwrap()
        }
    };
    assert!(done.status.success(), "{done:?}");
    let folder: PathBuf = fs::read_dir(&unpacked).unwrap().next().unwrap().unwrap().path();
    assert_eq!(folder.file_name().unwrap(), "annals-pack-2026-10-01-2026-11-01");
    assert!(files(&folder) == files(&place.path().join("out")), "the zip holds other files");
    assert!(sha256sum(&folder).status.success());
}

#[test]
fn an_existing_pack_is_not_overwritten() {
    let place = Place::one_event();
    fs::create_dir(place.path().join("kept")).unwrap();
    fs::File::create(place.path().join("kept/letter.txt")).unwrap();
    pack(&place, "kept", &[]).is_wrong_use("exists already: --force replaces a pack");
    pack(&place, "kept", &["--force"]).is_wrong_use("is not an unchanged pack");
    // The file of another program has the same name.
    let write = |name: &str| fs::File::create(place.path().join(name)).unwrap().write_all(b"{}").unwrap();
    ["kept/manifest.json", "kept.zip"].into_iter().for_each(write);
    for name in ["kept", "kept.zip"] {
        pack(&place, name, &["--force"]).is_wrong_use("is not an unchanged pack");
    }
    assert!(place.path().join("kept/letter.txt").is_file());
    assert_eq!(fs::read(place.path().join("kept.zip")).unwrap(), b"{}");
    fs::create_dir(place.path().join("empty")).unwrap();
    assert_eq!(pack(&place, "empty", &[]).code, 0);
    pack(&place, "empty", &[]).is_wrong_use("--force replaces a pack");
    write("empty/notes.txt");
    pack(&place, "empty", &["--force"]).is_wrong_use("notes.txt: SHA256SUMS does not name this file");
    fs::remove_file(place.path().join("empty/notes.txt")).unwrap();
    assert_eq!(pack(&place, "empty", &["--force", "--reports", "r02"]).code, 0);
    // Neither form can replace a link that leads to nothing.
    for name in ["link", "link.zip"] {
        let link = place.path().join(name);
        std::os::unix::fs::symlink("nothing", &link).unwrap();
        pack(&place, name, &[]).is_wrong_use("this link leads to nothing");
        pack(&place, name, &["--force"]).is_wrong_use("this link leads to nothing");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
    assert_eq!(json(&files(&place.path().join("empty")), "manifest.json")["reports"].as_array().unwrap().len(), 1);
    pack(&place, "new", &["--reports", "r02,nothing-like-it"]).is_wrong_use("nothing-like-it");
    pack(&place, "new", &["--param", "r02.nothing=1"]).is_wrong_use("nothing");
    pack(&place, "new", &["--team", "nobody"]).is_wrong_use("nobody");
    assert!(!place.path().join("new").try_exists().unwrap());
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".annals-pack-")), "{left:?}");
}

#[test]
fn the_remains_of_a_killed_pack_are_removed() {
    let place = Place::month_with_a_gap();
    let (killed, other) = (place.path().join("packs/.annals-pack-killed"), place.path().join("packs/.other"));
    for folder in [&killed, &other] {
        fs::create_dir_all(folder.join("pack/reports")).unwrap();
        fs::File::create(folder.join("pack/reports/r01.csv")).unwrap();
    }
    assert_eq!(pack(&place, "packs/out.zip", &["--reports", "r02"]).code, 3);
    let names = fs::read_dir(place.path().join("packs")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<std::collections::BTreeSet<_>>(), [".other".into(), "out.zip".into()].into());
}

#[test]
fn faults_of_verify_are_red_and_set_the_exit_code() {
    let place = Place::one_event();
    let stray = place.archive().join("tables/connections/team=acme/month=2026-10");
    fs::create_dir_all(&stray).unwrap();
    fs::File::create(stray.join("stray.parquet")).unwrap();
    let outcome = pack(&place, "out", &[]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    let held = files(&place.path().join("out"));
    let index = String::from_utf8(held["index.html"].clone()).unwrap();
    assert!(
        index.contains("verdict bad") && index.contains("differs from its ledger") && index.contains("ORPHAN_FILE")
    );
    assert_eq!(json(&held, "manifest.json")["faults"], 1);
}

#[test]
fn the_verdict_of_a_pack_of_one_team_is_about_that_team_only() {
    let place = Place::one_event();
    for team in ["acme", "other"] {
        let stray = place.archive().join(format!("tables/connections/team={team}/month=2026-10"));
        fs::create_dir_all(&stray).unwrap();
        fs::File::create(stray.join("stray.parquet")).unwrap();
    }
    for (name, more, asked, faults) in
        [("all", &[][..], "whole_archive", 2), ("one", &["--team", "acme"][..], "one_team", 1)]
    {
        assert_eq!(pack(&place, name, more).code, 1);
        let held = files(&place.path().join(name));
        let verdict = json(&held, "verify.json");
        assert_eq!((&verdict["asked"], verdict["faults"].as_array().unwrap().len()), (&asked.into(), faults));
        assert_eq!((&verdict["verdict"], verdict["teams"].as_array().unwrap().len()), (&"BROKEN".into(), 1));
        assert_eq!(json(&held, "manifest.json")["faults"], faults);
        for file in ["verify.json", "reports/r24-integrity.csv", "reports/r24-integrity.html"] {
            let names_other = String::from_utf8_lossy(&held[file]).contains("team=other");
            assert_eq!(names_other, name == "all", "{file}");
        }
    }
}

#[test]
fn strangers_texts_are_harmless_in_html_csv_and_terminal() {
    let place = Place::month_with_a_gap();
    place.own_report("x1-strangers.sql", STRANGERS);
    let outcome = pack(&place, "out", &["--queries", "own", "--reports", "x1"]);
    assert_eq!(outcome.code, 3, "{outcome:?}");
    let held = files(&place.path().join("out"));
    for name in ["index.html", "reports/x1-strangers.html"] {
        let html = String::from_utf8(held[name].clone()).unwrap();
        let texts = parse_html(&html);
        assert!(
            texts.iter().any(|text| text.contains("=HYPERLINK(\"http://x\")|<script>[2J`*")),
            "{name} lost the name"
        );
        assert!(!html.contains('\u{1b}') && !html.contains('\u{202e}'), "{name}");
    }
    let csv = String::from_utf8(held["reports/x1-strangers.csv"].clone()).unwrap();
    let row = csv.lines().nth(1).unwrap();
    assert!(row.starts_with("\"'=HYPERLINK("), "a spreadsheet would run {row:?}");
    assert!(csv.chars().all(|c| matches!(c, '\n' | '\r' | '\t') || !c.is_control()), "{csv:?}");
    let table = place.run_own("x1", &OCTOBER[..4]);
    let shown = [table.text(), &table.stderr, &outcome.stderr].concat();
    assert!(table.text().contains("HYPERLINK"), "{table:?}");
    assert!(shown.chars().all(|c| c == '\n' || (!c.is_control() && c != '\u{202e}')), "{shown:?}");
    assert!(HOSTILE.contains('\u{1b}') && HOSTILE.contains("<script>") && HOSTILE.starts_with('='));
}
