//! Checks the code's habits: the length of files and functions, and which room of `src/` may use which other. Files of a
//! room may not import each other in a circle. No tracked file may name a path outside the checkout.

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/source.rs"]
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use source::{blank, is_word, line_of, places_of, skip_space, word_at};

const FILE_LINES_MAX: usize = 400;
/// The rooms that connect the others have shorter files.
const CONNECTING_ROOMS: [&str; 2] = ["src/pipeline/", "src/daemon/"];
const CONNECTING_FILE_LINES_MAX: usize = 300;
const FUNCTION_LINES_MAX: usize = 70;

/// The directories that hold Rust code.
const CODE: [&str; 4] = ["src", "tests", "benches", "scripts"];
/// Files that a build or a run leaves at the top of the checkout.
const SKIPPED: [&str; 4] = [".git", "archive", "node_modules", "target"];

/// Each room of `src/`, and the rooms it may use beside itself. `cli` and `lib` may use every room.
const ROOMS: [(&str, &[&str]); 25] = [
    ("model", &[]),
    ("clock", &["model"]),
    ("files", &[]),
    ("http_client", &["files"]),
    ("planted", &[]),
    ("threads", &[]),
    ("error", &["model", "config", "api", "collect", "normalize", "archive", "lake", "report", "pipeline", "sandbox"]),
    ("config", &["model", "api", "files"]),
    ("api", &["model", "http_client", "clock", "files", "planted"]),
    ("collect", &["model", "clock", "api", "planted"]),
    ("normalize", &["model", "api"]),
    ("store", &["model", "http_client", "clock", "files", "threads"]),
    ("archive", &["model", "clock", "files", "planted", "store", "threads"]),
    ("lake", &["model", "archive", "store"]),
    ("correlate", &["model"]),
    ("inventory", &["model", "api"]),
    ("report", &["model", "archive", "files", "lake", "store"]),
    (
        "pipeline",
        &[
            "model",
            "clock",
            "config",
            "error",
            "api",
            "collect",
            "normalize",
            "archive",
            "lake",
            "store",
            "correlate",
            "inventory",
            "planted",
            "threads",
        ],
    ),
    ("daemon", &["model", "clock", "config", "api", "archive", "lake", "planted", "pipeline", "store"]),
    ("sandbox", &["model", "clock", "api"]),
    ("web", &["model", "clock", "config", "error", "files", "lake", "report", "pipeline", "daemon"]),
    ("alert", &["model", "http_client", "clock", "config", "files", "pipeline", "daemon"]),
    ("main", &["allocator", "cli"]),
    ("allocator", &[]),
    ("cli", &[]),
];

/// Name, line and number of lines of each function with a body.
fn functions(code: &[u8]) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    for start in places_of(code, "fn") {
        let name = word_at(code, skip_space(code, start + 2));
        if name.is_empty() {
            continue;
        }
        if let Some(end) = body_end(code, start) {
            let (first, last) = (line_of(code, start), line_of(code, end));
            found.push((name.to_owned(), first, last - first + 1));
        }
    }
    found
}

/// The brace that closes the body of the function declared at `start`; `None` for a declaration without a body.
fn body_end(code: &[u8], start: usize) -> Option<usize> {
    let (mut nested, mut braces) = (0_i32, 0_i32);
    for (at, byte) in code.iter().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested -= 1,
            b';' if nested == 0 && braces == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces -= 1;
                if braces == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The rooms that the code names, as `crate::room`, in a `crate::{…}` group or by `super::super::room`, with the line.
fn rooms_used(code: &[u8]) -> Vec<(String, usize)> {
    let mut used = Vec::new();
    for root in ["crate", "annals"] {
        for at in places_of(code, root) {
            path_heads(code, at + root.len(), &mut used);
        }
    }
    for at in places_of(code, "super") {
        let prefix = "super::super";
        if code[at..].starts_with(prefix.as_bytes()) {
            path_heads(code, at + prefix.len(), &mut used);
        }
    }
    used
}

/// The names that follow `::` at `at`: one, or those at the top of a group.
fn path_heads(code: &[u8], at: usize, used: &mut Vec<(String, usize)>) {
    if !code[at..].starts_with(b"::") {
        return;
    }
    let mut at = skip_space(code, at + 2);
    if code.get(at) != Some(&b'{') {
        used.push((word_at(code, at).to_owned(), line_of(code, at)));
        return;
    }
    let (mut depth, mut expects_name) = (0, true);
    while at < code.len() {
        match code[at] {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 1 => expects_name = true,
            byte if expects_name && is_word(byte) => {
                used.push((word_at(code, at).to_owned(), line_of(code, at)));
                expects_name = false;
            }
            _ => {}
        }
        if depth == 0 {
            return;
        }
        at += 1;
    }
}

/// The room that a path under the checkout belongs to.
fn room_of(path: &str) -> Option<&str> {
    let first = path.strip_prefix("src/")?.split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first))
}

fn length_faults(path: &str, source: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let lines = source.lines().count();
    let connects = CONNECTING_ROOMS.iter().any(|room| path.starts_with(room));
    let allowed = if connects { CONNECTING_FILE_LINES_MAX } else { FILE_LINES_MAX };
    if lines > allowed {
        faults.push(format!("{path}: {lines} lines, at most {allowed} are allowed"));
    }
    for (name, line, length) in functions(&blank(source)) {
        if length > FUNCTION_LINES_MAX {
            faults.push(format!("{path}:{line}: fn {name} has {length} lines, at most {FUNCTION_LINES_MAX}"));
        }
    }
    faults
}

fn import_faults(path: &str, source: &str) -> Vec<String> {
    let Some(room) = room_of(path).filter(|&room| room != "cli" && room != "lib") else {
        return Vec::new();
    };
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        return vec![format!("{path}: room {room} is not in the table of tests/tidy.rs")];
    };
    let is_room = |name: &str| ROOMS.iter().any(|(room, _)| *room == name);
    rooms_used(&blank(source))
        .into_iter()
        .filter(|(used, _)| is_room(used) && used != room && !allowed.contains(&used.as_str()))
        .map(|(used, line)| format!("{path}:{line}: room {room} may not use {used}"))
        .collect()
}

/// Absolute paths of one machine.
fn place_faults(path: &str, text: &str) -> Vec<String> {
    let place = concat!("/wo", "rk/");
    let holds = |line: &str| {
        line.match_indices(place).any(|(at, _)| {
            !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '}' | '*' | '/'))
        })
    };
    text.lines()
        .enumerate()
        .filter(|(_, line)| holds(line))
        .map(|(at, _)| format!("{path}:{}: names a place outside the checkout", at + 1))
        .collect()
}

fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display())) {
        let path = entry.expect("a directory's entry can be read").path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}

#[test]
fn the_checkout_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for entry in fs::read_dir(root).expect("the checkout can be read") {
        let path = entry.expect("a directory's entry can be read").path();
        match path.file_name().and_then(|name| name.to_str()) {
            Some(name) if SKIPPED.contains(&name) => {}
            _ if path.is_dir() => walk(&path, &mut files),
            _ => files.push(path),
        }
    }
    let (mut faults, mut sources) = (Vec::new(), 0);
    for file in files {
        let path = file.strip_prefix(root).expect("BUG: walked from the root").to_string_lossy().replace('\\', "/");
        let Ok(text) = fs::read_to_string(&file) else { continue };
        faults.extend(place_faults(&path, &text));
        if path.ends_with(".rs") && CODE.iter().any(|place| path.starts_with(place)) {
            sources += 1;
            faults.extend(length_faults(&path, &text));
            faults.extend(import_faults(&path, &text));
        }
    }
    assert!(sources > 10, "only {sources} source files were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_planted_import_is_found_in_every_form() {
    for (case, source, expected) in [
        ("a path", "use crate::archive::Store;", 1),
        ("a path in an expression", "fn f() { crate::pipeline::run() }", 1),
        ("a group", "use crate::{model::{Instant, archive}, clock::Clock, report};", 1),
        ("two in a group", "use crate::{archive::{a, b}, cli};", 2),
        ("through super", "use super::super::archive::Store;", 1),
        ("what is allowed", "use crate::model::Instant; use crate::api::{Page, archive};", 0),
        ("in a comment and in a string", "// crate::archive\n/* crate::cli */ const A: &str = \"crate::archive\";", 0),
        ("in a raw string", "const A: &str = r#\"crate::archive \" \"#; const B: char = '\"';", 0),
        ("after a character and a lifetime", "fn f<'a>(_: &'a str) -> char { '\"' } use crate::archive;", 1),
    ] {
        let faults = import_faults("src/collect/walk.rs", source);
        assert_eq!(faults.len(), expected, "{case}: {faults:?}");
    }
    assert_eq!(import_faults("src/unlisted/mod.rs", "").len(), 1);
    assert_eq!(import_faults("src/cli/sync.rs", "use crate::archive::Store;").len(), 0);
    assert_eq!(import_faults("src/main.rs", "use annals::archive::Store;").len(), 1);
    assert_eq!(import_faults("src/report/mod.rs", "use crate::cli;").len(), 1);
}

#[test]
fn a_planted_length_is_found() {
    let body = |lines: usize| format!("fn long() {{\n{}}}\n", "    step('{', \"}\"); // }\n".repeat(lines));
    assert_eq!(length_faults("src/a.rs", &body(FUNCTION_LINES_MAX - 2)), Vec::<String>::new());
    assert_eq!(length_faults("src/a.rs", &body(FUNCTION_LINES_MAX - 1)).len(), 1);
    let inner = format!("trait T {{ fn a(&self) -> [u8; 4]; }}\nmod tests {{\n#[test]\n{}}}\n", body(80));
    assert_eq!(length_faults("src/a.rs", &inner), ["src/a.rs:4: fn long has 82 lines, at most 70"]);
    assert_eq!(length_faults("src/a.rs", &"\n".repeat(FILE_LINES_MAX + 1)).len(), 1);
    assert_eq!(length_faults("src/a.rs", &"\n".repeat(FILE_LINES_MAX)).len(), 0);
    for path in ["src/pipeline/a.rs", "src/daemon/a.rs"] {
        assert_eq!(length_faults(path, &"\n".repeat(CONNECTING_FILE_LINES_MAX + 1)).len(), 1);
        assert_eq!(length_faults(path, &"\n".repeat(CONNECTING_FILE_LINES_MAX)).len(), 0);
    }
}

#[test]
fn a_planted_place_is_found() {
    let place = concat!("/wo", "rk/");
    assert_eq!(place_faults("README.md", &format!("see\n`{place}main`")).len(), 1);
    assert_eq!(place_faults("README.md", &format!("https://example.com{place}x and .{place}x")).len(), 0);
}
