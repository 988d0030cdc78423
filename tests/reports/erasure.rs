//! Compares every report before and after an erasure: other people's rows and numbers stay, and the subject's rows have a pseudonym.

use std::collections::BTreeSet;
use std::path::Path;

use annals::archive::{ErasedPart, Subject, VerifyOptions, verify};
use annals::model::TeamId;
use annals::report::{Catalog, ViewData};
use serde_json::Value;

use crate::golden::answers::{Question, ask, required};
use crate::golden::world::{World, at};

const EMAIL: &str = "cleo@alpine.example";
const USER: &str = "usr-cleo";
const OTHER_EMAIL: &str = "bert@alpine.example";
/// Reports about the archive itself: its lines, files and hashes.
const OF_THE_ARCHIVE: [&str; 2] = ["R24", "R25"];

/// The rows of all reports, in any order, with the subject's names replaced by `mask`.
fn answers(data: &ViewData, mask: &dyn Fn(&str) -> String) -> Vec<(String, Vec<String>)> {
    let catalog = Catalog::embedded();
    let usual = catalog.reports().iter().filter(|report| required(report).next().is_none());
    let asked = usual.filter(|report| !OF_THE_ARCHIVE.contains(&report.id.as_str())).map(|report| {
        let answer = ask(data, report, &Question::usual(report.id.clone().leak()));
        let mut lines: Vec<String> =
            answer.rows.lines().chain(answer.chart.lines()).map(|line| sorted_words(&mask(line))).collect();
        lines.sort();
        (report.id.clone(), lines)
    });
    asked.collect()
}

/// Sorts lists within a cell, because a pseudonym changes their order.
fn sorted_words(line: &str) -> String {
    let words = line.split([' ', '"', ',', '[', ']', '\\']);
    let mut words: Vec<&str> = words.map(|word| if is_hash_id(word) { "an id" } else { word }).collect();
    words.sort_unstable();
    words.join(" ")
}

/// Whether the id is a hash of an event's text. An erasure changes such ids.
fn is_hash_id(word: &str) -> bool {
    let digits = word.split_once('-').map_or("", |(digits, _)| digits);
    digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn erase(data: &ViewData) {
    let subject = Subject::new([EMAIL, USER]).unwrap();
    assert!(!carry_out(data, "DPO-1", &subject, false).is_empty());
}

/// The changed parts of alpine.
fn carry_out(data: &ViewData, order: &str, subject: &Subject, unlinkable: bool) -> Vec<ErasedPart> {
    let archive = data.archive.clone().unwrap();
    let teams: BTreeSet<TeamId> = archive.teams().unwrap().into_iter().collect();
    let (order, pending) = archive.new_order(order, subject, teams.clone());
    let pending = if unlinkable { pending.making_unlinkable() } else { pending };
    let mut parts = Vec::new();
    for team in &teams {
        let erasure = archive.writer(team).unwrap().erase(&order, &pending, at("2026-11-09T00:30:00Z")).unwrap();
        assert_eq!(erasure.seq.is_some(), team.as_str() == "alpine");
        parts.extend(erasure.parts);
    }
    pending.destroy(archive.store().as_ref()).unwrap();
    let report = verify(archive.store().as_ref(), &VerifyOptions::default()).unwrap();
    assert!(report.faults.is_empty(), "{:#?}", report.faults);
    parts
}

/// The pseudonyms of the address and of the id in the answers.
fn masked(text: &str) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("erased-") {
        made.push_str(&rest[..at]);
        rest = &rest[at + "erased-".len() + 32..];
        match rest.strip_prefix("@alpine.example") {
            Some(after) => {
                made.push_str(EMAIL);
                rest = after;
            }
            None => made.push_str(USER),
        }
    }
    made + rest
}

/// A row of a report, as it must be after the order: the roster keeps no name and no IP address of the person.
fn without_details(line: &str) -> String {
    let line = line.replace("Cleo@alpine.example", EMAIL).replace(r#""Cleo Example""#, "null");
    match line.contains(USER) {
        true => line.replace(r#""last_used_ip":"198.51.100.10""#, r#""last_used_ip":null"#),
        false => line,
    }
}

#[test]
fn after_an_erasure_reports_change_only_in_the_subject() {
    let world = World::write();
    let data = world.data();
    let before = answers(&data, &without_details);
    assert!(before.iter().flat_map(|(_, lines)| lines).any(|line| line.contains(EMAIL)));
    erase(&data);
    let data = world.data();
    assert!(Path::new(&data.root).is_dir());
    for (_, lines) in answers(&data, &|line| line.to_owned()) {
        let subject = lines.iter().find(|line| line.contains(EMAIL) || line.contains(USER) || line.contains("Cleo"));
        assert_eq!(subject, None);
    }
    let after = answers(&data, &masked);
    let mut differences = Vec::new();
    for ((id, before), (_, after)) in before.iter().zip(&after).filter(|(before, after)| before != after) {
        let gone = before.iter().find(|line| !after.contains(line));
        let come = after.iter().find(|line| !before.contains(line));
        differences.push(format!("{id}:\n  - {gone:?}\n  + {come:?}"));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_certificate_says_which_order_replaced_salts() {
    let world = World::write();
    let mut expected = Vec::new();
    for (order, email, unlinkable) in [("DPO-1", EMAIL, false), ("DPO-2", OTHER_EMAIL, true)] {
        let parts = carry_out(&world.data(), order, &Subject::new([email]).unwrap(), unlinkable);
        assert!(parts.iter().any(|part| part.dataset.as_str() == "connections"), "{parts:?}");
        let row = |part: &ErasedPart| format!("{order}|alpine|{}|{}|{unlinkable}", part.dataset, part.rows);
        expected.extend(parts.iter().map(row));
    }
    let catalog = Catalog::embedded();
    let report = catalog.reports().iter().find(|report| report.id == "R25").unwrap();
    let period = ("2026-10-12T00:00:00Z", "2026-11-10T00:00:00Z");
    let rows = ask(&world.data(), report, &Question { period, ..Question::usual("R25") }).objects();
    let (erased, others): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(|row| row["state"] == "erased");
    let text = |row: &Value| {
        let [order, team, class] = ["order_id", "team_id", "class"].map(|name| row[name].as_str().unwrap().to_owned());
        assert!(row["ledger_seq"].is_u64() && row["line_sha256"].is_string(), "{row}");
        format!("{order}|{team}|{class}|{}|{}", row["rows"], row["salts_replaced"])
    };
    let mut certified: Vec<String> = erased.into_iter().map(text).collect();
    certified.sort();
    expected.sort();
    assert_eq!(certified, expected);
    assert!(others.iter().all(|row| row["salts_replaced"].is_null()), "{others:?}");
}
