//! Completion, highlighting and validation for the line editor.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use super::catalog::{Catalog, Relation};
use super::command;
use crate::report::lexer::{self, Kind};
use crate::report::printable;

const BOLD: &str = "\x1b[1m";
const GREEN: &str = "\x1b[32m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Shares the catalog with the shell, which renews it.
pub struct SqlHelper {
    catalog: Rc<RefCell<Catalog>>,
    files: FilenameCompleter,
}

impl SqlHelper {
    pub fn new(catalog: Rc<RefCell<Catalog>>) -> Self {
        Self { catalog, files: FilenameCompleter::new() }
    }
}

impl Helper for SqlHelper {}

impl Hinter for SqlHelper {
    type Hint = String;
}

impl Validator for SqlHelper {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        Ok(if is_whole(context.input()) { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

/// Whether Enter runs the input; else Enter begins another line.
pub fn is_whole(input: &str) -> bool {
    if command::is_command(input) {
        return true;
    }
    let (_, rest) = lexer::statements(input);
    let is_open = lexer::tokens(&input[rest..]).iter().any(|token| token.is_open);
    !is_open && lexer::statement(input, rest..input.len()).is_none()
}

impl Completer for SqlHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..at];
        if let Some((name, _)) = before.trim_start().split_once(' ')
            && matches!(name, ".read" | ".output")
        {
            return self.files.complete_path(line, at);
        }
        let (start, names) = candidates(&self.catalog.borrow(), line, at);
        // Users and the service choose these names: remove control characters before the terminal shows them.
        let pair = |name: String| Pair { display: printable(&name), replacement: name };
        Ok((start, names.into_iter().map(pair).collect()))
    }
}

/// The start of the word at the cursor, and its completions.
fn candidates(catalog: &Catalog, line: &str, at: usize) -> (usize, Vec<String>) {
    let before = &line[..at];
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let start = before.char_indices().rev().take_while(|(_, c)| is_name(*c)).last().map_or(at, |(found, _)| found);
    let (typed, earlier) = (&before[start..], &before[..start]);
    let fits = |name: &str| {
        name.len() >= typed.len()
            && name.is_char_boundary(typed.len())
            && name[..typed.len()].eq_ignore_ascii_case(typed)
    };
    let words: Vec<String> = words(earlier);
    if earlier.trim() == "." && words.is_empty() {
        let dotted = command::NAMES.iter().filter(|name| fits(&name[1..]));
        return (start, dotted.map(|name| name[1..].to_owned()).collect());
    }
    let relations = || catalog.relations.iter().map(|relation| quoted(&relation.name));
    let is_dot = |name: &str| words.first().is_some_and(|word| word == name) && earlier.trim_start().starts_with('.');
    let last = words.last().map(String::as_str);
    let mut names: Vec<String> = if let Some(qualifier) = earlier.strip_suffix('.') {
        columns_of(catalog, line, qualifier)
    } else if is_dot("schema") || matches!(last, Some("from" | "join" | "table" | "describe" | "summarize")) {
        relations().collect()
    } else if is_dot("format") {
        crate::report::Format::ALL.iter().map(|format| format.as_str().to_owned()).collect()
    } else if is_dot("timer") || is_dot("pager") {
        ["on", "off"].map(str::to_owned).into()
    } else if typed.is_empty() {
        named_columns(catalog, line)
    } else {
        let like = |names: &[String]| names.iter().map(|name| cased(name, typed)).collect::<Vec<_>>();
        let all = [like(&catalog.keywords), like(&catalog.functions)];
        named_columns(catalog, line).into_iter().chain(relations()).chain(all.into_iter().flatten()).collect()
    };
    names.retain(|name| fits(name.trim_start_matches('"')));
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    (start, names)
}

/// Words and names, in lower case.
fn words(text: &str) -> Vec<String> {
    let is_word = |token: &lexer::Token| matches!(token.kind, Kind::Word | Kind::Name);
    let tokens = lexer::tokens(text).into_iter().filter(is_word);
    tokens.map(|token| text[token.range].trim_matches('"').to_ascii_lowercase()).collect()
}

/// Columns of the relations that the line names; of all relations if it names none.
fn named_columns(catalog: &Catalog, line: &str) -> Vec<String> {
    let words = words(line);
    let is_named = |relation: &&Relation| words.iter().any(|word| relation.name.eq_ignore_ascii_case(word));
    let named: Vec<&Relation> = catalog.relations.iter().filter(is_named).collect();
    let all = || catalog.relations.iter().collect();
    let relations: Vec<&Relation> = if named.is_empty() { all() } else { named };
    relations.into_iter().flat_map(|relation| relation.columns.iter()).map(|(name, _)| quoted(name)).collect()
}

/// Columns of the name before the dot: a relation or its alias.
fn columns_of(catalog: &Catalog, line: &str, before: &str) -> Vec<String> {
    let Some(qualifier) = words(before).pop() else { return Vec::new() };
    let words = words(line);
    let aliased = words.iter().enumerate().filter(|(_, word)| **word == qualifier).find_map(|(at, _)| {
        let of = at.checked_sub(1).map(|at| words[at].as_str())?;
        let of = if of == "as" { words[at.checked_sub(2)?].as_str() } else { of };
        catalog.relation(of)
    });
    let relation = catalog.relation(&qualifier).or(aliased);
    relation.map_or_else(Vec::new, |relation| relation.columns.iter().map(|(name, _)| quoted(name)).collect())
}

/// A keyword in the case of the typed text.
fn cased(name: &str, typed: &str) -> String {
    if typed.chars().any(char::is_lowercase) { name.to_owned() } else { name.to_ascii_uppercase() }
}

/// Quotes a name that SQL needs in quotes.
fn quoted(name: &str) -> String {
    let is_plain =
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

impl Highlighter for SqlHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if command::is_command(line) {
            return Cow::Borrowed(line);
        }
        let catalog = self.catalog.borrow();
        let mut shown = String::with_capacity(line.len() + 32);
        for token in lexer::tokens(line) {
            let text = &line[token.range];
            let style = match token.kind {
                Kind::Word if catalog.keywords.binary_search(&text.to_ascii_lowercase()).is_ok() => BOLD,
                Kind::Text => GREEN,
                Kind::Comment => DIM,
                _ => "",
            };
            if style.is_empty() {
                shown.push_str(text);
            } else {
                shown.extend([style, text, PLAIN]);
            }
        }
        Cow::Owned(shown)
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(format!("{BOLD}{prompt}{PLAIN}"))
    }

    fn highlight_char(&self, line: &str, _: usize, kind: CmdKind) -> bool {
        kind != CmdKind::MoveCursor && !line.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let relation = |name: &str, columns: &[&str]| Relation {
            name: name.into(),
            columns: columns.iter().map(|column| ((*column).into(), "VARCHAR".into())).collect(),
        };
        Catalog {
            relations: vec![
                relation("connections", &["device_id", "peer_email", "odd name"]),
                relation("coverage", &["window_start", "state"]),
            ],
            functions: vec!["date_trunc".into(), "first".into()],
            keywords: ["from", "group", "select", "where"].map(String::from).into(),
        }
    }

    fn complete(line: &str) -> Vec<String> {
        candidates(&catalog(), line, line.len()).1
    }

    #[test]
    fn completion_depends_on_the_position() {
        for (line, expected) in [
            ("select * from co", &["connections", "coverage"][..]),
            ("select * from con", &["connections"]),
            ("SELECT * FROM connections c JOIN cov", &["coverage"]),
            ("select * from connections where pe", &["peer_email"]),
            ("select count(*) from connections where ", &["device_id", "peer_email", "\"odd name\""]),
            ("select * from connections where od", &["\"odd name\""]),
            ("select * from connections c where c.d", &["device_id"]),
            ("select * from connections as c where c.d", &["device_id"]),
            ("select connections.p", &["peer_email"]),
            ("select nothing.p", &[]),
            ("sel", &["select"]),
            ("SEL", &["SELECT"]),
            ("select date_", &["date_trunc"]),
            (".sch", &["schema"]),
            (".schema cov", &["coverage"]),
            (".format nd", &["ndjson"]),
            (".timer o", &["on", "off"]),
        ] {
            assert_eq!(complete(line), expected, "{line}");
        }
        let line = "select d from connections";
        assert_eq!(candidates(&catalog(), line, 8), (7, vec!["device_id".to_owned(), "date_trunc".to_owned()]));
    }

    #[test]
    fn enter_runs_only_complete_statements() {
        for (input, expected) in [
            ("select 1;", true),
            ("select 1", false),
            ("select 1; select 2", false),
            ("select 1;\n", true),
            ("select ';", false),
            (".tables", true),
            ("exit", true),
            ("", true),
            ("-- nothing", true),
            ("/* open", false),
        ] {
            assert_eq!(is_whole(input), expected, "{input}");
        }
    }
}
