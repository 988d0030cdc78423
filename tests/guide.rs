//! Checks the guide against the program: its links exist, the program accepts its commands and settings, and its
//! queries run.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;
#[path = "guide/lists.rs"]
mod lists;
#[path = "guide/markdown.rs"]
mod markdown;
#[path = "guide/shell.rs"]
mod shell;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use annals::cli::Arguments;
use annals::config::Config;
use clap::Parser;
use clap::error::ErrorKind;

use common::query_archive::Place;
use markdown::{Fence, anchors, code_spans, split, targets};

const README_LINES_MAX: usize = 150;
/// Folders and files whose pages are checked.
const PAGES: [&str; 9] = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "deploy",
    "docs",
    "queries",
    "clients",
    ".github",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page, by its path in the checkout.
fn pages() -> Vec<(PathBuf, String)> {
    let mut waiting: Vec<PathBuf> = PAGES.iter().map(PathBuf::from).collect();
    let mut found = Vec::new();
    while let Some(path) = waiting.pop() {
        let full = root().join(&path);
        if full.is_dir() {
            waiting.extend(fs::read_dir(full).unwrap().map(|entry| path.join(entry.unwrap().file_name())));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push((path, fs::read_to_string(full).unwrap()));
        }
    }
    found.sort();
    assert!(found.len() > 25, "only {} pages were found", found.len());
    found
}

/// Every fenced block of one of these languages, with its page.
fn fences(languages: &[&str]) -> Vec<(PathBuf, Fence)> {
    let all = pages().into_iter().flat_map(|(path, text)| {
        let fences = split(&text).1;
        fences.into_iter().map(move |fence| (path.clone(), fence)).collect::<Vec<_>>()
    });
    all.filter(|(_, fence)| languages.contains(&fence.language.as_str())).collect()
}

/// `a/b/../c` as `a/c`; `None` above the checkout.
fn resolved(page: &Path, link: &str) -> Option<PathBuf> {
    let mut path = page.parent().unwrap().to_path_buf();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => path.pop().then_some(())?,
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    Some(path)
}

/// The fault of one link of a page, if there is one.
fn link_fault(page: &Path, own: &str, link: &str) -> Option<String> {
    if link.starts_with("https://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let Some(target) = (if file.is_empty() { Some(page.to_path_buf()) } else { resolved(page, file) }) else {
        return Some("leads out of the checkout".into());
    };
    if !root().join(&target).try_exists().unwrap() {
        return Some("leads nowhere".into());
    }
    if page.starts_with("docs") && !target.starts_with("docs") {
        return Some("leads out of the guide, and would be broken on its site".into());
    }
    let text = if file.is_empty() {
        own.to_owned()
    } else {
        anchor.map_or_else(String::new, |_| fs::read_to_string(root().join(&target)).unwrap())
    };
    let is_there = anchor.is_none_or(|anchor| anchors(&split(&text).0).iter().any(|known| known == anchor));
    (!is_there).then(|| "names no heading".into())
}

#[test]
fn every_link_and_anchor_has_a_target() {
    let (mut faults, mut links) = (Vec::new(), 0);
    for (page, text) in pages() {
        let (blanked, _) = code_spans(&split(&text).0);
        for (line, link) in targets(&blanked) {
            links += 1;
            let fault = link_fault(&page, &text, &link);
            faults.extend(fault.map(|fault| format!("{}:{line}: {link} {fault}", page.display())));
        }
    }
    assert!(links > 60, "only {links} links were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_summary_lists_every_page_of_the_guide_once() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let mut listed: Vec<PathBuf> =
        targets(&summary).into_iter().map(|(_, link)| Path::new("docs").join(link)).collect();
    listed.sort();
    let there = pages().into_iter().map(|(path, _)| path);
    let there: Vec<PathBuf> = there.filter(|path| path.starts_with("docs") && !path.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, there);
}

#[test]
fn the_readme_is_short() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= README_LINES_MAX, "{lines} lines, at most {README_LINES_MAX}");
}

/// The program's error for these arguments. With `mentions`, a code span may name a verb without its arguments.
fn arguments_fault(words: &[String], mentions: bool) -> Option<String> {
    let error = Arguments::try_parse_from(words).err()?;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => None,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            if mentions =>
        {
            None
        }
        _ => Some(error.to_string().lines().next().unwrap_or_default().to_owned()),
    }
}

/// The fault of one command, if it is one of ours and has a fault.
fn command_fault(words: &[String], mentions: bool) -> Option<String> {
    let is_there = |path: String| root().join(path).try_exists().unwrap();
    match words.first()?.as_str() {
        "annals" | "target/release/annals" => arguments_fault(words, mentions),
        "make" => {
            let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
            let mut targets = words[1..].iter().filter(|word| !word.contains('='));
            let missing = targets.find(|target| !makefile.contains(&format!("\n{target}:")));
            missing.map(|target| format!("the Makefile has no target {target}"))
        }
        "cargo" => words.windows(2).find_map(|pair| {
            let folder =
                [("--test", "tests"), ("--bench", "benches")].into_iter().find(|(flag, _)| *flag == pair[0])?.1;
            let target = format!("{folder}/{}", pair[1]);
            let paths = [format!("{target}.rs"), format!("{target}/main.rs")];
            (!paths.into_iter().any(is_there)).then(|| format!("neither {target}.rs nor {target}/main.rs is there"))
        }),
        script if script.starts_with("scripts/") || script.starts_with(".ci/") => {
            (!is_there(script.to_owned())).then(|| format!("{script} is not there"))
        }
        _ => None,
    }
}

#[test]
fn the_program_accepts_every_command() {
    let (mut faults, mut ours) = (Vec::new(), 0);
    let mut check = |place: String, script: &str, mentions: bool| {
        for words in shell::commands(script) {
            ours += usize::from(words[0] == "annals");
            let fault = command_fault(&words, mentions);
            faults.extend(fault.map(|fault| format!("{place}: `{}`: {fault}", words.join(" "))));
        }
    };
    for (page, fence) in fences(&["sh"]) {
        check(format!("{}:{}", page.display(), fence.line), &fence.text, false);
    }
    let starts = ["annals ", "make ", "cargo ", "scripts/", ".ci/"];
    // The texts of hashes and signatures look like commands there.
    for (page, text) in pages().into_iter().filter(|(page, _)| !page.ends_with("format.md")) {
        for span in code_spans(&split(&text).0).1 {
            if starts.iter().any(|start| span.starts_with(start) && span.len() > start.len()) {
                check(page.display().to_string(), &span, true);
            }
        }
    }
    assert!(ours > 80, "only {ours} commands of ours were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The program's error for a configuration file.
fn settings_fault(text: &str) -> Option<String> {
    Config::of_text(Path::new("annals.toml"), text).err().map(|error| error.to_string())
}

/// The file with its commented keys in force.
fn uncommented(text: &str) -> String {
    let is_key = |rest: &str| {
        rest.split_once(" = ")
            .is_some_and(|(key, _)| !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
    };
    let lines = text.lines().map(|line| {
        let rest = line.strip_prefix('#').map(|rest| rest.strip_prefix(' ').unwrap_or(rest));
        rest.filter(|rest| is_key(rest)).unwrap_or(line)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether the program knows the key, for any value.
fn is_known(section: &str, key: &str) -> bool {
    let header = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
    // No key accepts a list of lists.
    settings_fault(&format!("{header}{key} = [[]]")).is_none_or(|fault| !fault.contains("unknown key"))
}

#[test]
fn the_program_accepts_every_setting() {
    let blocks = fences(&["toml"]);
    assert!(blocks.len() >= 2);
    for (page, fence) in blocks {
        let place = format!("{}:{}", page.display(), fence.line);
        assert_eq!(settings_fault(&fence.text), None, "{place}");
        let fault = settings_fault(&uncommented(&fence.text)).unwrap_or_default();
        assert!(!fault.contains("unknown key"), "{place}: {fault}");
    }
}

/// The section and the key of each setting that the page on configuration explains.
fn explained() -> BTreeSet<(String, String)> {
    let page = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let (mut section, mut found) = (String::new(), BTreeSet::new());
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading.trim_matches(['`', '[', ']']).to_owned();
        } else if let Some((key, _)) = line.strip_prefix("| `").and_then(|rest| rest.split_once("` |")) {
            found.insert((section.clone(), key.to_owned()));
        }
    }
    found.retain(|(section, _)| section != "Environment");
    found.into_iter().map(|(section, key)| (section.replace("At the top", ""), key)).collect()
}

#[test]
fn the_page_on_configuration_explains_exactly_the_keys() {
    let explained = explained();
    for (section, key) in &explained {
        assert!(is_known(section, key), "[{section}] {key} is no key");
    }
    assert!(!is_known("api", "nonsense"));
    let example = uncommented(&fs::read_to_string(root().join("deploy/annals.toml")).unwrap());
    let (mut section, mut there) = (String::new(), BTreeSet::new());
    for line in example.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_owned();
        } else if let Some((key, _)) = line.split_once(" = ").filter(|(key, _)| !key.contains([' ', '#'])) {
            there.insert((section.clone(), key.to_owned()));
        }
    }
    assert_eq!(explained, there, "docs/configuration.md and deploy/annals.toml");
}

#[test]
fn every_query_runs() {
    let place = Place::new();
    let queries = fences(&["sql"]);
    assert!(queries.len() > 10);
    for (nth, (page, fence)) in queries.into_iter().enumerate() {
        let at = format!("{}:{}", page.display(), fence.line);
        // A report needs parameters, so the program only shows it.
        let (code, _, said) = match fence.text.strip_prefix("-- id: ").and_then(|rest| rest.lines().next()) {
            Some(id) => {
                let folder = format!("reports-{nth}");
                fs::create_dir(place.directory.path().join(&folder)).unwrap();
                put(&place.directory.path().join(&folder).join(format!("{id}-example.sql")), &fence.text);
                place.run(&["report", "show", id, "--queries", &folder])
            }
            None => place.run(&["sql", fence.text.trim_end().trim_end_matches(';')]),
        };
        assert_eq!(code, 0, "{at}: {said}");
    }
}

fn put(path: &Path, text: &str) {
    fs::File::create(path).and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes())).unwrap();
}
