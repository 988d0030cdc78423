//! Circles of imports: a reader cannot understand files one at a time if they import each other in a loop.
//!
//! A name that a module re-exports with `pub use` counts as an import of the file that defines it. Imports from the
//! modules around a file do not count, and tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::source::{blank, is_word, places_of, skip_space, word_at};

/// A module's path from the crate's root.
type Module = Vec<String>;

/// A file of the library.
struct Source {
    path: String,
    /// The source without comments, literals and tests.
    code: Vec<u8>,
    /// The re-exported names, and the origin of each.
    handed_on: BTreeMap<String, Module>,
}

#[derive(Default)]
struct Library(BTreeMap<Module, Source>);

impl Library {
    fn add(&mut self, path: &str, text: &str) {
        let module = module_of(path);
        let mut code = without_tests(blank(text));
        let mut handed_on = BTreeMap::new();
        for start in places_of(&code, "pub") {
            let at = skip_space(&code, start + 3);
            if word_at(&code, at) != "use" {
                continue;
            }
            let mut paths = Vec::new();
            let end = tree(&code, at + 3, &mut Vec::new(), &mut paths);
            for (path, new_name) in paths {
                let name = new_name.or_else(|| path.last().cloned()).unwrap_or_default();
                handed_on.insert(name, from_root(&path, &module));
            }
            code[start..end].fill(b' ');
        }
        self.0.insert(module, Source { path: path.to_owned(), code, handed_on });
    }

    /// The file that defines what `path` names.
    fn home(&self, path: &[String], depth: usize) -> Option<&Module> {
        let length = (0..=path.len()).rev().find(|length| self.0.contains_key(&path[..*length]))?;
        let (module, source) = self.0.get_key_value(&path[..length])?;
        let handed_on = path.get(length).and_then(|name| source.handed_on.get(name));
        match handed_on.filter(|_| depth < 8) {
            Some(from) => self.home(&[from, &path[length + 1..]].concat(), depth + 1),
            None => Some(module),
        }
    }

    /// The files of the same room that each file imports.
    fn imports(&self) -> Imports<'_> {
        let mut imports = Imports::new();
        for (module, source) in &self.0 {
            let of_room = |other: &&Module| other.first() == module.first() && !module.starts_with(other.as_slice());
            let children = self.0.keys().filter(|other| other.split_last().is_some_and(|(_, above)| above == module));
            let roots = children.filter_map(|child| child.last()).map(String::as_str).chain(["crate", "super", "self"]);
            let named: Vec<Module> = roots.flat_map(|root| paths_from(&source.code, root, module)).collect();
            let homes = named.iter().filter_map(|path| self.home(path, 0)).filter(of_room);
            imports.insert(source.path.as_str(), homes.map(|home| self.0[home].path.as_str()).collect());
        }
        imports
    }
}

/// The imports of each file.
type Imports<'l> = BTreeMap<&'l str, BTreeSet<&'l str>>;

/// All files that `file` imports directly or indirectly; `file` itself only if a circle leads back to it.
fn reached<'l>(file: &str, imports: &Imports<'l>) -> BTreeSet<&'l str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = imports[file].iter().copied().collect();
    while let Some(file) = next.pop() {
        if reached.insert(file) {
            next.extend(&imports[file]);
        }
    }
    reached
}

/// The files of each circle.
fn circles<'l>(imports: &Imports<'l>) -> BTreeSet<Vec<&'l str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = imports.keys().map(|file| (*file, reached(file, imports))).collect();
    let in_circles = reached.iter().filter(|(file, all)| all.contains(*file));
    in_circles.map(|(file, all)| all.iter().filter(|other| reached[*other].contains(file)).copied().collect()).collect()
}

fn module_of(path: &str) -> Module {
    let path = path.strip_prefix("src/").unwrap_or(path).trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    path.split('/').filter(|name| !matches!(*name, "lib")).map(str::to_owned).collect()
}

/// The code without the test modules at the end of a file.
fn without_tests(mut code: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8_lossy(&code).into_owned();
    if let Some(at) = text.find("#[cfg(test)]\nmod tests {") {
        code.truncate(at);
    }
    code
}

/// Whether only tests compile the modules under this path.
fn is_of_tests(path: &str, test_modules: &BTreeSet<Module>) -> bool {
    let module = module_of(path);
    module.iter().any(|name| name == "tests")
        || (0..=module.len()).any(|length| test_modules.contains(&module[..length]))
}

/// Every path in the code that begins with `root`, written from the crate's root.
fn paths_from(code: &[u8], root: &str, module: &Module) -> Vec<Module> {
    let mut found = Vec::new();
    for at in places_of(code, root) {
        let is_first = at < 2 || &code[at - 2..at] != b"::";
        if is_first && code[at + root.len()..].starts_with(b"::") {
            tree(code, at, &mut Vec::new(), &mut found);
        }
    }
    found.into_iter().map(|(path, _)| from_root(&path, module)).collect()
}

/// A path in `module`, written from the crate's root.
fn from_root(path: &[String], module: &Module) -> Module {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let above = &module[..module.len().saturating_sub(ups)];
    match path.first().map(String::as_str) {
        Some("crate") => path[1..].to_vec(),
        Some("self") => [module, &path[1..]].concat(),
        _ => [above, &path[ups..]].concat(),
    }
}

/// Parses one use tree and returns its end.
fn tree(code: &[u8], mut at: usize, prefix: &mut Module, found: &mut Vec<(Module, Option<String>)>) -> usize {
    let depth = prefix.len();
    loop {
        at = skip_space(code, at);
        match code.get(at) {
            Some(b'{') => {
                at = group(code, at + 1, prefix, found);
                break;
            }
            Some(byte) if is_word(*byte) => {
                let word = word_at(code, at);
                at += word.len();
                if !(word == "self" && prefix.len() > depth.max(1)) {
                    prefix.push(word.to_owned());
                }
                if code[at..].starts_with(b"::") {
                    at += 2;
                    continue;
                }
                let after = skip_space(code, at);
                let new_name = (word_at(code, after) == "as").then(|| skip_space(code, after + 2));
                found.push((prefix.clone(), new_name.map(|at| word_at(code, at).to_owned())));
                at = new_name.map_or(at, |name| name + word_at(code, name).len());
                break;
            }
            _ => {
                found.push((prefix.clone(), None));
                at += 1;
                break;
            }
        }
    }
    prefix.truncate(depth);
    at
}

/// Parses the use trees of a group and returns its end.
fn group(code: &[u8], mut at: usize, prefix: &mut Module, found: &mut Vec<(Module, Option<String>)>) -> usize {
    loop {
        at = skip_space(code, at);
        match code.get(at) {
            Some(b'}') => return at + 1,
            Some(b',') => at += 1,
            Some(_) => at = tree(code, at, prefix, found),
            None => return at,
        }
    }
}

/// The modules that only tests compile.
fn test_modules(path: &str, code: &[u8]) -> Vec<Module> {
    let text = String::from_utf8_lossy(code);
    let declared = text.match_indices("#[cfg(test)]\nmod ").map(|(at, found)| at + found.len());
    let name = |at: usize| word_at(code, at).to_owned();
    declared.map(|at| [module_of(path), vec![name(at)]].concat()).collect()
}

fn library(files: &[(String, String)]) -> Library {
    let tests: BTreeSet<Module> = files.iter().flat_map(|(path, text)| test_modules(path, &blank(text))).collect();
    let mut library = Library::default();
    for (path, text) in files.iter().filter(|(path, _)| !is_of_tests(path, &tests)) {
        library.add(path, text);
    }
    library
}

#[test]
fn the_files_of_a_room_have_no_import_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    super::walk(&root.join("src"), &mut paths);
    let read = |path: &Path| {
        let name = path.strip_prefix(root).expect("BUG: walked from the root").to_string_lossy().replace('\\', "/");
        (name, fs::read_to_string(path).unwrap_or_default())
    };
    let files: Vec<_> = paths.iter().filter(|path| path.extension().is_some_and(|end| end == "rs")).collect();
    let files: Vec<_> = files.into_iter().map(|path| read(path)).collect();
    let library = library(&files);
    assert!(library.0.len() > 10, "only {} source files were found", library.0.len());
    let list: String = circles(&library.imports()).iter().map(|circle| format!("\n  {circle:?}")).collect();
    assert!(list.is_empty(), "circles of imports:{list}");
}

#[test]
fn only_a_planted_circle_is_found() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let found = |files: &[(&str, &str)]| {
        let files: Vec<_> = files.iter().map(|(path, text)| file(path, text)).collect();
        circles(&library(&files).imports()).into_iter().map(|circle| circle.join(" ")).collect::<Vec<_>>()
    };
    let door = ("src/room/mod.rs", "mod a;\nmod b;\npub use b::{Thing as Other, self};\npub struct Own;\n");
    for (case, a, b, expected) in [
        ("siblings", "use super::b::Thing;", "use super::a::Else;", vec!["src/room/a.rs src/room/b.rs"]),
        ("one way", "use super::b::Thing;", "use crate::model::Range;", vec![]),
        ("a group", "use crate::room::{b::{Thing}, c};", "use super::{a};", vec!["src/room/a.rs src/room/b.rs"]),
        ("through a door", "use super::Other;", "use super::a::Else;", vec!["src/room/a.rs src/room/b.rs"]),
        (
            "in an expression",
            "fn f() { super::b::g() }",
            "fn g() { crate::room::a::f() }",
            vec!["src/room/a.rs src/room/b.rs"],
        ),
        ("in a test", "use super::b::Thing;", "#[cfg(test)]\nmod tests {\n use super::super::a::Else;\n}", vec![]),
        ("in a comment", "use super::b::Thing;", "//! See `super::a::Else`.", vec![]),
    ] {
        let files = [door, ("src/room/a.rs", a), ("src/room/b.rs", b)];
        assert_eq!(found(&files), expected, "{case}");
    }
    let with_parent = [door, ("src/room/a.rs", "use super::Own;"), ("src/room/b.rs", "")];
    assert_eq!(found(&with_parent), Vec::<String>::new(), "items of the parent module");
}
