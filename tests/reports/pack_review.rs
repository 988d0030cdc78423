//! Reviews of evidence packs, through the command line: the ledger keeps each review, and only an unchanged pack can be reviewed.

use crate::reporting;

use std::fs;
use std::io::Write as _;

use annals::model::{Stream, TeamId};
use reporting::{Day, HOUR, Outcome, Place};

fn pack(place: &Place, output: &str) -> Outcome {
    place.run(&[
        "report",
        "pack",
        "-o",
        output,
        "--from",
        "2026-10-01",
        "--to",
        "2026-11-01",
        "--made-at",
        "2026-11-20T12:00:00Z",
    ])
}

#[test]
fn a_review_is_recorded_and_the_archive_still_verifies() {
    let place = Place::month_with_a_gap();
    assert_eq!(pack(&place, "out").code, 3);
    assert_eq!(pack(&place, "out.zip").code, 3);
    let sign = |pack: &str, more: &[&str]| {
        place.run(&[&["review", "sign", "--pack", pack, "--reviewer", "R. Viewer", "--outcome"], more].concat())
    };
    let first = sign("out", &["followed-up", "--ticket", "SEC-7"]);
    assert_eq!(first.code, 0, "{first:?}");
    let second = sign("out.zip", &["accepted"]);
    assert_eq!(second.code, 0, "{second:?}");
    let sums = annals::model::Digest::of(&fs::read(place.path().join("out/SHA256SUMS")).unwrap()).to_string();
    assert!(first.text().contains(&sums) && second.text().contains(&sums), "{first:?} {second:?}");
    let sql = "SELECT team_id, reviewer, pack_sha256, period_from, outcome, ticket, ledger_seq, findings > 0 AS found, \
               json_array_length(reports) > 0 AS named FROM reviews ORDER BY ledger_seq";
    let shown = place.run(&["sql", sql, "--format", "csv"]);
    let row = |rest: &str| format!("O'Brien & söhne,R. Viewer,{sums},2026-10-01T00:00:00,{rest}");
    let expected = [row("followed-up,SEC-7,2,"), row("accepted,,3,")];
    for (line, expected) in shown.text().lines().skip(1).zip(expected) {
        assert!(line.starts_with(&expected), "{line}");
    }
    assert_eq!(shown.text().lines().count(), 3, "{shown:?}");
    assert_eq!(place.run(&["verify"]).code, 0);
    let mut text = String::new();
    for day in fs::read_dir(place.archive().join("ledger")).unwrap() {
        for file in fs::read_dir(day.unwrap().path()).unwrap() {
            text.push_str(&fs::read_to_string(file.unwrap().path()).unwrap());
        }
    }
    assert!(text.contains("\"reviewer\":\"R. Viewer\"") && !text.contains("://"));
}

/// A ledger line is permanent, so the repeated command must not record the review of the first team again.
#[test]
fn an_interrupted_review_continues_where_it_stopped() {
    let place = Place::one_event();
    place.commit_whole("beta", vec![Day::new(Stream::Connections, "2026-10-10").with(1, 12 * HOUR)], Vec::new());
    let _ = pack(&place, "out");
    let sign = |outcome: &str| {
        place.run(&["review", "sign", "--pack", "out", "--reviewer", "R. Viewer", "--outcome", outcome])
    };
    let reviews = || {
        let sql = "SELECT team_id, outcome, count(*) AS n FROM reviews GROUP BY ALL ORDER BY 1, 2";
        place.run(&["sql", sql, "--format", "csv"]).text().to_owned()
    };
    let lock = place.opened().writer(&TeamId::from("beta")).unwrap();
    let refused = sign("accepted");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_eq!(reviews(), "team_id,outcome,n\nacme,accepted,1\n");
    drop(lock);
    let repeated = sign("accepted");
    assert!(repeated.code == 0 && repeated.stderr.contains("already records this review"), "{repeated:?}");
    assert_eq!(reviews(), "team_id,outcome,n\nacme,accepted,1\nbeta,accepted,1\n");
    // Another outcome is another review.
    assert_eq!(sign("rejected").code, 0);
    assert_eq!(reviews().lines().count(), 5);
}

#[test]
fn a_changed_pack_is_not_signed() {
    let place = Place::one_event();
    assert_eq!(pack(&place, "out").code, 0);
    let sign = |pack: &str, more: &[&str]| {
        place.run(&[&["review", "sign", "--pack", pack, "--outcome", "accepted", "--reviewer"], more].concat())
    };
    sign("nowhere", &["R"]).is_wrong_use("nowhere");
    sign("it's [an] archive", &["R"]).is_wrong_use("not a pack");
    sign("out", &["https://me.example"]).is_wrong_use("URL");
    sign("out", &["R", "--ticket", "a\u{7}b"]).is_wrong_use("U+0007");
    sign("out", &["R\u{202e}reweiV"]).is_wrong_use("the invisible character U+202E");
    let hold = ["hold", "add", "--id", "CASE-7", "--reason"];
    place.run(&[hold.as_slice(), &["a\u{2066}case"]].concat()).is_wrong_use("the invisible character U+2066");
    place.run(&[hold.as_slice(), &["a case", "--by", "R\u{200b}"]].concat()).is_wrong_use("U+200B");
    place.run(&["hold", "release", "CASE-7", "--reason", "\u{feff}over"]).is_wrong_use("U+FEFF");
    let stray = place.path().join("out/reports/more.csv");
    fs::File::create(&stray).unwrap();
    let outcome = sign("out", &["R"]);
    assert!(outcome.code == 1 && outcome.stderr.contains("SHA256SUMS does not name this file"), "{outcome:?}");
    fs::remove_file(stray).unwrap();
    let empty = place.path().join("out/reports/more");
    fs::create_dir(&empty).unwrap();
    let outcome = sign("out", &["R"]);
    assert!(outcome.code == 1 && outcome.stderr.contains("reports/more/: SHA256SUMS does not name"), "{outcome:?}");
    fs::remove_dir(empty).unwrap();
    // The digest of the list identifies the pack, so the list has one form.
    let sums = read(&place, "SHA256SUMS");
    let reversed: String = sums.lines().rev().map(|line| format!("{line}\n")).collect();
    for text in [reversed, sums.replace('\n', "\r\n"), sums.trim_end().to_owned()] {
        write(&place, "SHA256SUMS", &text);
        sign("out", &["R"]).is_wrong_use("is not as Annals writes it");
    }
    write(&place, "SHA256SUMS", &sums);
    fs::OpenOptions::new().write(true).open(place.path().join("out/verify.json")).unwrap().set_len(3).unwrap();
    let outcome = sign("out", &["R"]);
    assert!(outcome.code == 1 && outcome.stderr.contains("verify.json: its SHA-256 is"), "{outcome:?}");
    fs::remove_file(place.path().join("out/verify.json")).unwrap();
    let outcome = sign("out", &["R"]);
    assert!(outcome.code == 1 && outcome.stderr.contains("but it is missing"), "{outcome:?}");
    let rows = place.run(&["sql", "SELECT count(*) AS n FROM reviews", "--format", "csv"]);
    assert_eq!(rows.text(), "n\n0\n");
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path().join("out").join(name)).unwrap()
}

fn write(place: &Place, name: &str, text: &str) {
    fs::File::create(place.path().join("out").join(name)).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Changes the manifest of a pack, makes the list of hashes fit, and signs the pack.
fn sign_forged(place: &Place, change: impl FnOnce(&str) -> String) -> Outcome {
    let (manifest, sums) = (read(place, "manifest.json"), read(place, "SHA256SUMS"));
    let digest = |text: &str| annals::model::Digest::of(text.as_bytes()).to_string();
    let altered = change(&manifest);
    assert!(altered != manifest && sums.contains(&digest(&manifest)));
    write(place, "manifest.json", &altered);
    write(place, "SHA256SUMS", &sums.replace(&digest(&manifest), &digest(&altered)));
    let signed = place.run(&["review", "sign", "--pack", "out", "--reviewer", "R", "--outcome", "accepted"]);
    write(place, "manifest.json", &manifest);
    write(place, "SHA256SUMS", &sums);
    signed
}

#[test]
fn a_pack_with_another_ledger_head_is_not_signed() {
    let place = Place::one_event();
    assert_eq!(pack(&place, "out").code, 0);
    let head = place.head("acme");
    sign_forged(&place, |manifest| manifest.replace(&head, &"0".repeat(64)))
        .is_wrong_use("this archive has another line there");
}

/// A ledger line is permanent, so a forged pack must not bring its own texts into it.
#[test]
fn a_forged_manifest_puts_nothing_of_its_own_into_the_ledger() {
    let place = Place::one_event();
    assert_eq!(pack(&place, "out").code, 0);
    for id in ["ann@own.example", "\\u001b[2J", "", &"R".repeat(17)] {
        sign_forged(&place, |manifest| manifest.replacen("\"id\": \"R00\"", &format!("\"id\": \"{id}\""), 1))
            .is_wrong_use("the id of a report");
    }
    let most = u64::MAX;
    let counts = format!("\"detections\": {{ \"high\": {most}, \"low\": {most} }}");
    let signed = sign_forged(&place, |manifest| manifest.replacen("\"detections\": null", &counts, 1));
    assert!(signed.code == 0 && signed.text().contains(&most.to_string()), "{signed:?}");
}

#[test]
fn a_pack_of_another_archive_is_not_signed_here() {
    let (place, other) = (Place::one_event(), Place::month_with_a_gap());
    assert_eq!(pack(&other, "out").code, 3);
    let pack = other.path().join("out");
    let outcome =
        place.run(&["review", "sign", "--pack", pack.to_str().unwrap(), "--reviewer", "R", "--outcome", "accepted"]);
    outcome.is_wrong_use("this archive does not hold team");
}
