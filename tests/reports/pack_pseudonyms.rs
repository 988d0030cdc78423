//! `annals report pack --pseudonymise`, through the command line: no file contains an identifier, and all numbers are the same as
//! without the flag.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use crate::golden::world::{World, text_of};

const PERIOD: [&str; 6] = ["--from", "2026-10-12", "--to", "2026-11-09", "--made-at", "2026-11-20T12:00:00Z"];
const SUBJECT: [&str; 2] = ["--param", "R21.subject=anna@alpine.example"];
/// Columns with one identifier in each cell.
const COLUMNS: [&str; 12] = [
    "actor",
    "computer_host_name",
    "computer_name",
    "device_id",
    "email",
    "granted_by",
    "last_used_ip",
    "local_user_name",
    "owner",
    "peer_email",
    "peer_ip",
    "user_id",
];

type Rows = Vec<BTreeMap<String, String>>;

fn annals(world: &World, home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("annals"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANNALS_")) {
        command.env_remove(name);
    }
    command.args(arguments).current_dir(home).env("ANNALS_ARCHIVE", world.path()).output().unwrap()
}

fn pack(world: &World, home: &Path, name: &str, more: &[&str]) {
    let ended = annals(world, home, &[&["report", "pack", "-o", name][..], &PERIOD, &SUBJECT, more].concat());
    assert_eq!(ended.status.code(), Some(3), "{}", String::from_utf8_lossy(&ended.stderr));
}

fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for directory in ["", "reports", "sql"] {
        for entry in fs::read_dir(root.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// The text columns of each report's Parquet file.
fn rows(root: &Path) -> BTreeMap<String, Rows> {
    let mut found = BTreeMap::new();
    for name in files(root).into_keys().filter(|name| name.ends_with(".parquet")) {
        let reader = SerializedFileReader::new(File::open(root.join(&name)).unwrap()).unwrap();
        let cells = |row: parquet::record::Row| {
            let texts = row.get_column_iter().filter_map(|(name, field)| match field {
                Field::Str(text) => Some((name.clone(), text.clone())),
                _ => None,
            });
            texts.collect::<BTreeMap<_, _>>()
        };
        found.insert(name, reader.get_row_iter(None).unwrap().map(|row| cells(row.unwrap())).collect());
    }
    found
}

/// Email addresses, IP addresses, and ids of people and computers, from the service's answers.
fn identifiers() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for team in ["alpine", "hudson"] {
        for entry in fs::read_dir(text_of(&team.into())).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            let words = text.split(|c: char| c.is_whitespace() || "\"\\,:;()<>{}[]".contains(c));
            let is_one = |word: &&str| {
                word.contains("@") && word.ends_with(".example")
                    || word.starts_with("usr-")
                    || word.starts_with("pc-")
                    || word.parse::<std::net::Ipv4Addr>().is_ok()
            };
            found.extend(words.filter(is_one).map(str::to_lowercase));
        }
    }
    assert!(found.len() > 30, "{found:?}");
    found
}

fn manifest(root: &Path) -> Value {
    serde_json::from_slice(&fs::read(root.join("manifest.json")).unwrap()).unwrap()
}

#[test]
fn a_pseudonymised_pack_names_no_person_and_keeps_every_number() {
    let (world, home) = (World::write(), tempfile::tempdir().unwrap());
    pack(&world, home.path(), "plain", &[]);
    pack(&world, home.path(), "named-otherwise", &["--pseudonymise"]);
    let (plain, changed) = (home.path().join("plain"), home.path().join("named-otherwise"));

    let (before, after) = (manifest(&plain), manifest(&changed));
    assert_eq!((&before["pseudonymised"], &after["pseudonymised"]), (&Value::Null, &Value::Bool(true)));
    assert_eq!(before["reports"], after["reports"], "rows, detections and queries");
    assert_eq!(before["gaps"], after["gaps"]);
    assert_eq!(files(&plain).into_keys().collect::<Vec<_>>(), files(&changed).into_keys().collect::<Vec<_>>());

    let (held, shown) = (rows(&plain), rows(&changed));
    let cells = shown.values().flatten().flat_map(BTreeMap::values);
    let texts: Vec<String> =
        files(&changed).into_values().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect();
    let everything: Vec<String> = cells.cloned().chain(texts).map(|text| text.to_lowercase()).collect();
    for one in identifiers() {
        let found = everything.iter().find(|text| text.contains(&one));
        let place = found.and_then(|text| Some((text.find(&one)?, text)));
        let place = place.map(|(at, text)| text.chars().skip(at.saturating_sub(60)).take(160).collect::<String>());
        assert_eq!(place, None, "{one} is left");
    }

    // Row by row, each identifier has one pseudonym, in all reports.
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (report, rows) in &held {
        assert_eq!(rows.len(), shown[report].len(), "{report}");
        for (before, after) in rows.iter().zip(&shown[report]) {
            for column in COLUMNS.iter().filter(|column| before.contains_key(**column)) {
                let text = before[*column].trim().to_lowercase();
                if !text.is_empty() && !text.starts_with('{') {
                    names.entry(text).or_default().insert(after[*column].clone());
                }
            }
        }
    }
    assert!(names.len() > 30, "{names:?}");
    assert!(names.values().all(|names| names.len() == 1), "{names:#?}");
    let of = |text: &str| names[text].first().unwrap().clone();
    assert_eq!(of("usr-anna"), of("anna@alpine.example"), "the roster says that they are one person");
    assert!(of("usr-anna").starts_with("person-") && of("pc-atlas").starts_with("computer-"));
    assert_ne!(of("usr-anna"), of("usr-cleo"));

    // The pack passes its check and can be reviewed like any other. Another pack has other pseudonyms.
    let sums = crate::pack::sha256sum(&changed);
    assert!(sums.status.success(), "{sums:?}");
    let signed = ["review", "sign", "--pack", "named-otherwise", "--reviewer", "R. Viewer", "--outcome", "accepted"];
    let signed = annals(&world, home.path(), &signed);
    assert_eq!(signed.status.code(), Some(0), "{}", String::from_utf8_lossy(&signed.stderr));
    let index = fs::read_to_string(changed.join("index.html")).unwrap();
    assert!(index.contains("Nobody kept the key"));
    pack(&world, home.path(), "again", &["--pseudonymise"]);
    assert!(!fs::read_to_string(home.path().join("again/index.html")).unwrap().contains(&of("usr-anna")));
}

#[test]
fn the_verdict_keeps_its_words_and_names_no_other_team() {
    let (world, home) = (World::write(), tempfile::tempdir().unwrap());
    pack(&world, home.path(), "named", &["--reports", "R01,R21"]);
    pack(&world, home.path(), "one", &["--reports", "R01,R21", "--team", "alpine", "--pseudonymise"]);
    let read = |name: &str| fs::read_to_string(home.path().join(name).join("verify.json")).unwrap();
    let (all, one): (Value, Value) =
        (serde_json::from_str(&read("named")).unwrap(), serde_json::from_str(&read("one")).unwrap());
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!((keys(&all), keys(&all["teams"][0])), (keys(&one), keys(&one["teams"][0])));
    assert!(read("named").contains("hudson") && !read("one").contains("hudson"), "{}", read("one"));
    assert_eq!(one["teams"].as_array().unwrap().len(), 1);
    assert_eq!(one["commits"], one["teams"][0]["commits"]);
    assert_eq!((&one["verdict"], &one["archive_id"]), (&all["verdict"], &all["archive_id"]));
}

#[test]
fn identifiers_inside_a_word_have_pseudonyms_too() {
    let (world, home) = (World::write(), tempfile::tempdir().unwrap());
    fs::create_dir(home.path().join("own")).unwrap();
    let sql = "-- id: X1\n-- title: Own\n-- question: Who?\nSELECT DISTINCT 'peer:' || peer_ip || ':51234' AS reason, \
               'account:' || (SELECT min(user_id) FROM inventory_users) AS what FROM connections WHERE peer_ip <> '';\n";
    File::create(home.path().join("own/x1-own.sql")).unwrap().write_all(sql.as_bytes()).unwrap();
    let arguments = ["report", "pack", "-o", "out", "--pseudonymise", "--queries", "own", "--reports", "X1"];
    let ended = annals(&world, home.path(), &[&arguments[..], &PERIOD].concat());
    assert_eq!(ended.status.code(), Some(3), "{}", String::from_utf8_lossy(&ended.stderr));
    let rows = rows(&home.path().join("out"));
    let rows = &rows["reports/x1-own.parquet"];
    assert!(rows.len() > 1, "{rows:?}");
    for row in rows {
        assert!(row["reason"].starts_with("peer:address-") && row["reason"].ends_with(":51234"), "{row:?}");
        assert!(row["what"].starts_with("account:person-"), "{row:?}");
    }
}

#[test]
fn a_custom_report_with_a_person_s_name_in_its_sql_is_refused() {
    let (world, home) = (World::write(), tempfile::tempdir().unwrap());
    fs::create_dir(home.path().join("own")).unwrap();
    let text = |where_: &str| {
        format!(
            "-- id: X1\n-- title: Own\n-- question: Who?\nSELECT peer_email AS someone FROM connections WHERE {where_};\n"
        )
    };
    for (sql, code) in [("peer_email = 'anna@alpine.example'", 2), ("peer_email IS NOT NULL", 3)] {
        File::create(home.path().join("own/x1-own.sql")).unwrap().write_all(text(sql).as_bytes()).unwrap();
        let arguments = ["report", "pack", "-o", "out", "--pseudonymise", "--queries", "own", "--reports", "X1"];
        let ended = annals(&world, home.path(), &[&arguments[..], &PERIOD].concat());
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(code), "{said}");
        assert_eq!(home.path().join("out").try_exists().unwrap(), code == 3);
        assert_eq!(
            said.contains("x1-own.sql:4: the SQL names \"anna@alpine.example\"") && said.contains("--reports"),
            code == 2,
            "{said}"
        );
        fs::remove_file(home.path().join("own/x1-own.sql")).unwrap();
    }
    let rows = rows(&home.path().join("out"));
    assert!(rows["reports/x1-own.parquet"].iter().all(|row| row["someone"].starts_with("person-")));
}
