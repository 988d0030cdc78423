//! Each check of a pack has a pack that only this check refuses.

use std::io::Write as _;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

type NewZip = ZipWriter<io::Cursor<Vec<u8>>>;

fn made(fill: impl FnOnce(&mut NewZip)) -> Vec<u8> {
    let mut zip = ZipWriter::new(io::Cursor::new(Vec::new()));
    fill(&mut zip);
    zip.finish().unwrap().into_inner()
}

fn zip_of(names: &[&str]) -> Vec<u8> {
    made(|zip| {
        for name in names {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(b"text").unwrap();
        }
    })
}

/// Adds to the number of 2 or 4 bytes at `at`.
fn add(text: &mut [u8], at: usize, bytes: usize, more: usize) {
    let mut number = [0; 8];
    number[..bytes].copy_from_slice(&text[at..at + bytes]);
    let sum = u64::from_le_bytes(number) + more as u64;
    text[at..at + bytes].copy_from_slice(&sum.to_le_bytes()[..bytes]);
}

/// Where the directory begins, and where it ends.
fn directory_of(zip: &[u8]) -> (usize, usize) {
    (zip.windows(4).position(|part| part == b"PK\x01\x02").unwrap(), zip.len() - ZIP_END_BYTES)
}

/// The zip with more bytes before the directory. The last record points to the directory.
fn with_bytes(zip: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let (mut text, end) = ([&zip[..at], bytes, &zip[at..]].concat(), zip.len() - ZIP_END_BYTES + bytes.len());
    add(&mut text, end + 16, 4, bytes.len());
    text
}

/// The zip with more bytes behind the last name of its directory, as an attribute (`field` 30) or as a comment (32).
fn with_field(zip: &[u8], field: usize, bytes: &[u8]) -> Vec<u8> {
    let (_, end) = directory_of(zip);
    let last = zip.windows(4).rposition(|part| part == b"PK\x01\x02").unwrap();
    let mut text = [&zip[..end], bytes, &zip[end..]].concat();
    add(&mut text, last + field, 2, bytes.len());
    add(&mut text, end + bytes.len() + 12, 4, bytes.len());
    text
}

#[test]
fn a_zip_with_two_readings_is_refused() {
    let plain = zip_of(&["pack/a", "pack/b"]);
    let (start, end) = directory_of(&plain);
    // The name of the second file stands in its own header, and in the directory.
    let at: Vec<usize> =
        plain.windows(6).enumerate().filter(|(_, part)| *part == b"pack/b").map(|(at, _)| at).collect();
    let with_a = |places: &[usize]| {
        let mut text = plain.clone();
        places.iter().for_each(|at| text[at + 5] = b'a');
        text
    };
    let mut before = with_bytes(&plain, 0, b"PK");
    let entries: Vec<usize> =
        before.windows(4).enumerate().filter(|(_, part)| *part == b"PK\x01\x02").map(|(at, _)| at).collect();
    entries.into_iter().for_each(|entry| add(&mut before, entry + 42, 4, 2));
    let behind = |bytes: usize| [plain.as_slice(), &vec![0; bytes]].concat();
    let mut commented = behind(3);
    add(&mut commented, plain.len() - 2, 2, 3);
    let mut sized = plain.clone();
    add(&mut sized, end + 12, 4, 1);
    let other = zip_of(&["pack/a"]);
    let hidden = with_bytes(&plain, start, &other[..directory_of(&other).0]);
    let between = [&plain[..end], b"PK", &plain[end..]].concat();
    let mut not_text = zip_of(&["pack/\u{e9}"]);
    for at in 0..not_text.len() - 1 {
        if not_text[at..at + 2] == [0xc3, 0xa9] {
            not_text[at] = b'x';
        }
    }
    let linked = made(|zip| zip.add_symlink("pack/a", "/etc/passwd", SimpleFileOptions::default()).unwrap());
    let more = "hold more than Annals writes";
    for (case, text, expected, is_wrong_use) in [
        ("no zip", b"PK".to_vec(), "neither a folder nor a zip file", true),
        ("two files", plain.clone(), "the file SHA256SUMS is missing", true),
        ("a file that the directory does not name", hidden, "local file header missing", false),
        ("one name twice", with_a(&at), "duplicate file names", false),
        ("another name in the header", with_a(&at[..1]), "header inconsistency", false),
        ("bytes at the start", before, "bytes come before the first entry", false),
        ("a byte at the end", behind(1), more, false),
        ("100 bytes at the end", behind(100), more, false),
        ("a comment of the zip", commented, more, false),
        ("another size of the directory", sized, more, false),
        ("two last records", [&plain, &plain[end..]].concat(), more, false),
        ("bytes between the directory and the last record", between, more, false),
        ("a comment of an entry", with_field(&plain, 32, b"note"), more, false),
        ("an attribute of an entry", with_field(&plain, 30, b"\xfe\xca\x02\0ab"), more, false),
        ("a link", linked, "a link", false),
        ("a name that leads out", zip_of(&["../a"]), "a name that some programs change", false),
        ("a name from the root", zip_of(&["/a"]), "a name that some programs change", false),
        ("a name that is not UTF-8", not_text, "a name that some programs change", false),
        ("a name with another letter", zip_of(&["pack/\u{e9}"]), "a name that some programs change", false),
        ("two folders", zip_of(&["pack/a", "other/a"]), "exactly one folder", true),
        ("no folder", zip_of(&["a"]), "exactly one folder", true),
    ] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&text).unwrap();
        let error = check_pack(file.path()).unwrap_err();
        assert!(error.to_string().contains(expected), "{case}: {error}");
        assert_eq!(error.is_wrong_use(), is_wrong_use, "{case}: {error}");
    }
}

#[test]
fn a_path_without_a_pack_is_wrong_use() {
    let place = tempfile::tempdir().unwrap();
    let link = place.path().join("link");
    File::create(place.path().join("a.zip")).unwrap().write_all(&zip_of(&["pack/a"])).unwrap();
    std::os::unix::fs::symlink("a.zip", &link).unwrap();
    for path in [link, place.path().join("nothing")] {
        let error = check_pack(&path).unwrap_err();
        assert!(error.to_string().contains("cannot read") && error.is_wrong_use(), "{error}");
    }
}

/// The end of a zip with so many entries, or so many bytes, has more records.
#[test]
fn the_end_of_a_large_zip_is_known() {
    let names: Vec<String> = (0..=u16::MAX).map(|n| format!("pack/{n}")).collect();
    let zip = zip_of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&zip).unwrap();
    let error = check_pack(file.path()).unwrap_err().to_string();
    assert!(error.contains("the file SHA256SUMS is missing"), "{error}");
    // A file of 5 GiB: its entry states the size as an attribute, and the next entry its place.
    let (start, names, attributes) = (5 << 30, 2 * (ZIP_ENTRY_BYTES + 6), 40);
    let end = *b"PK\x05\x06\0\0\0\0\x02\0\x02\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0";
    let size = |attributes: u64| start + names + attributes + ZIP64_END_BYTES + ZIP_END_BYTES as u64;
    assert!(is_end(2, start, names, size(attributes), end));
    for size in [size(0) - 1, size(2 * ZIP64_ENTRY_BYTES_MAX + 1)] {
        assert!(!is_end(2, start, names, size, end), "{size}");
    }
}

fn manifest() -> String {
    let (digest, day) = ("0".repeat(64), "2026-11-01T00:00:00Z");
    format!(
        r#"{{"format":"{FORMAT}","version":{VERSION},"archive_id":"a","team":null,"from":"{day}","to":"{day}","zone":"UTC",
        "made_at":"{day}","annals_version":"0","verdict":"","faults":0,"gaps":0,"ledger":[],"left_out":{{}},"files":[],
        "reports":[{{"id":"R00","name":"n","title":"t","rows":0,"detections":null,"query_sha256":"{digest}"}}]}}"#
    )
}

fn put(folder: &Path, name: &str, text: &str) {
    let place = folder.join(name);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    File::create(place).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Writes a pack with one report and this manifest.
fn make(folder: &Path, manifest: &str) -> String {
    let files = [(MANIFEST, manifest), ("reports/r00.csv", "n\n")];
    let sums: String = files.map(|(name, text)| sums_line(&Digest::of(text.as_bytes()), name)).concat();
    files.into_iter().chain([(SUMS, sums.as_str())]).for_each(|(name, text)| put(folder, name, text));
    sums
}

#[test]
fn an_altered_folder_is_refused() {
    type Change<'a> = &'a dyn Fn(&Path);
    let manifest = manifest();
    let place = tempfile::tempdir().unwrap();
    let sums = make(place.path(), &manifest);
    assert!(check_pack(place.path()).is_ok());
    let cases: [(&str, Change<'_>, &str, bool); 20] = [
        ("no list", &|at| fs::remove_file(at.join(SUMS)).unwrap(), "the file SHA256SUMS is missing", true),
        ("no list line", &|at| put(at, SUMS, "nonsense\n"), "line 1 is invalid", true),
        ("a name that leads out", &|at| put(at, SUMS, &sums.replace("reports/", "../")), "line 2 is invalid", true),
        ("a name twice", &|at| put(at, SUMS, &format!("{sums}{sums}")), "line 3 is invalid", true),
        ("no last newline", &|at| put(at, SUMS, sums.trim_end()), "is not as Annals writes it", true),
        ("an altered file", &|at| put(at, "reports/r00.csv", "m\n"), "reports/r00.csv: its SHA-256 is", false),
        ("a missing file", &|at| fs::remove_file(at.join("reports/r00.csv")).unwrap(), "but it is missing", false),
        ("another file", &|at| put(at, "reports/r01.csv", ""), "reports/r01.csv: SHA256SUMS does not", false),
        ("another folder", &|at| fs::create_dir(at.join("more")).unwrap(), "more/: SHA256SUMS does not", false),
        ("a file like a folder", &|at| put(at, "report", ""), "report: SHA256SUMS does not", false),
        ("a link", &|at| std::os::unix::fs::symlink(at.join(SUMS), at.join("link")).unwrap(), "cannot read", false),
        (
            "no manifest",
            &|at| {
                fs::remove_file(at.join(MANIFEST)).unwrap();
                put(at, SUMS, sums.split_inclusive('\n').next_back().unwrap());
            },
            "manifest.json: SHA256SUMS names",
            false,
        ),
        ("no JSON", &|at| drop(make(at, "{}")), "is not a manifest", true),
        ("another format", &|at| drop(make(at, &manifest.replace(FORMAT, "f"))), "version 1, but this program", true),
        (
            "another version",
            &|at| drop(make(at, &manifest.replace("\"version\":1", "\"version\":2"))),
            "version 2, but this program",
            true,
        ),
        ("a text as an id", &|at| drop(make(at, &manifest.replace("R00", "a@b"))), "the id of a report", true),
        ("the largest list", &|at| sparse(at, TEXT_BYTES_MAX - 1), "line 1 is invalid", true),
        ("a larger list", &|at| sparse(at, TEXT_BYTES_MAX), "cannot read", false),
        ("as many files as allowed", &|at| many(at, FILES_MAX - 4), "reports/0: SHA256SUMS does not", false),
        ("more files", &|at| many(at, FILES_MAX - 3), "cannot read", false),
    ];
    for (case, change, expected, is_wrong_use) in cases {
        let place = tempfile::tempdir().unwrap();
        make(place.path(), &manifest);
        change(place.path());
        let error = check_pack(place.path()).unwrap_err();
        assert!(error.to_string().contains(expected), "{case}: {error}");
        assert_eq!(error.is_wrong_use(), is_wrong_use, "{case}: {error}");
    }
}

fn sparse(folder: &Path, bytes: u64) {
    File::create(folder.join(SUMS)).unwrap().set_len(bytes).unwrap();
}

fn many(folder: &Path, files: usize) {
    (0..files).for_each(|n| drop(File::create(folder.join(format!("reports/{n}"))).unwrap()));
}

#[test]
fn sums_have_the_format_of_sha256sum_and_stay_in_the_pack() {
    let digest = "0".repeat(64);
    let line = |path: &str| format!("{digest}  {path}\n");
    assert_eq!(parse_sums(&(line("a") + &line("b/c d"))).map(|found| found.len()), Ok(2));
    for path in ["../a", "/etc/passwd", "a/../b", "a//b", ".", "a\\b", ""] {
        assert_eq!(parse_sums(&(line("x") + &line(path))), Err(2), "{path}");
    }
    assert_eq!(parse_sums(&(line("a") + &line("a"))), Err(2), "twice");
    assert_eq!(parse_sums("nonsense\n"), Err(1));
}
