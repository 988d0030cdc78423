//! Splits SQL text into tokens, as far as needed to find the end of a statement.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Space,
    Comment,
    /// A name or a keyword.
    Word,
    /// A name in double quotes.
    Name,
    Number,
    /// A string in single quotes or between dollar signs.
    Text,
    /// Any other single character.
    Symbol,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    /// The token's bytes in the text.
    pub range: Range<usize>,
    /// Whether the closing quote or sign is missing.
    pub is_open: bool,
}

/// The tokens of `text`; together they cover all of it.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (kind, length, is_open) = token(text, at);
        tokens.push(Token { kind, range: at..at + length, is_open });
        at += length;
    }
    tokens
}

/// Kind and length of the token at `at`, and whether it is open.
fn token(text: &str, at: usize) -> (Kind, usize, bool) {
    let rest = &text[at..];
    let mut chars = rest.chars();
    let first = chars.next().unwrap_or(' ');
    let second = chars.next();
    let run = |holds: fn(char) -> bool| rest.find(|c| !holds(c)).unwrap_or(rest.len());
    let closed = |kind, end: Option<usize>| (kind, end.unwrap_or(rest.len()), end.is_none());
    match first {
        _ if first.is_whitespace() => (Kind::Space, run(char::is_whitespace), false),
        '-' if second == Some('-') => (Kind::Comment, rest.find('\n').unwrap_or(rest.len()), false),
        '/' if second == Some('*') => closed(Kind::Comment, comment_end(rest)),
        '\'' => closed(Kind::Text, quote_end(rest, 1, '\'', false)),
        'e' | 'E' if second == Some('\'') => closed(Kind::Text, quote_end(rest, 2, '\'', true)),
        '"' => closed(Kind::Name, quote_end(rest, 1, '"', false)),
        '$' => match dollar_tag(rest) {
            Some(tag) => {
                let end = rest[tag.len()..].find(tag).map(|found| found + 2 * tag.len());
                closed(Kind::Text, end)
            }
            None => (Kind::Symbol, 1, false),
        },
        '0'..='9' => (Kind::Number, run(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_'), false),
        _ if is_word_start(first) => (Kind::Word, run(|c| is_word_start(c) || c.is_ascii_digit() || c == '$'), false),
        _ => (Kind::Symbol, first.len_utf8(), false),
    }
}

fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || (!c.is_ascii() && !c.is_whitespace())
}

/// The position after the closing quote; a doubled quote does not close.
fn quote_end(rest: &str, start: usize, quote: char, escapes: bool) -> Option<usize> {
    let mut chars = rest[start..].char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if escapes && c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return Some(start + at + quote.len_utf8());
        }
    }
    None
}

/// The position after the end of a comment; comments nest.
fn comment_end(rest: &str) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    let bytes = rest.as_bytes();
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// `$$` or `$tag$` at the beginning of `rest`.
fn dollar_tag(rest: &str) -> Option<&str> {
    let end = rest[1..].find('$')? + 1;
    let tag = &rest[1..end];
    let is_tag =
        tag.chars().all(|c| is_word_start(c) || c.is_ascii_digit()) && !tag.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| &rest[..=end])
}

/// A statement of a longer text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statement {
    /// Without the semicolon and the surrounding space.
    pub sql: String,
    /// The line of its beginning, counted from the first line of the text, which is 0.
    pub line: usize,
}

/// The statements of `text` that end with a semicolon, and the start of the rest.
pub fn statements(text: &str) -> (Vec<Statement>, usize) {
    let (mut found, mut start) = (Vec::new(), 0);
    for token in tokens(text) {
        if token.kind == Kind::Symbol && &text[token.range.clone()] == ";" {
            found.extend(statement(text, start..token.range.start));
            start = token.range.end;
        }
    }
    (found, start)
}

/// All statements of `text`; the last one needs no semicolon.
pub fn all_statements(text: &str) -> impl Iterator<Item = Statement> {
    let (found, rest) = statements(text);
    found.into_iter().chain(statement(text, rest..text.len()))
}

/// The statement in `range` of `text`, unless it is empty.
pub fn statement(text: &str, range: Range<usize>) -> Option<Statement> {
    let part = &text[range.clone()];
    let first = tokens(part).into_iter().find(|token| !matches!(token.kind, Kind::Space | Kind::Comment))?;
    let line = text[..range.start + first.range.start].matches('\n').count();
    Some(Statement { sql: part[first.range.start..].trim_end().to_owned(), line })
}

/// First words of statements that change nothing.
const READS: [&str; 8] = ["describe", "explain", "from", "select", "show", "summarize", "values", "with"];

/// Whether `sql` is one statement that changes nothing.
pub fn only_reads(sql: &str) -> bool {
    let mut all = all_statements(sql);
    let first = all.next().map_or_else(String::new, |statement| first_word(&statement.sql));
    all.next().is_none() && READS.contains(&first.as_str())
}

/// Whether a statement of `sql` installs or loads an extension, changes a setting of extensions, or runs the statements of a file, which
/// nobody checks. The engine downloads an extension, and an extension can read from the network.
pub fn loads_extension(sql: &str) -> bool {
    all_statements(sql).any(|statement| {
        let all = tokens(&statement.sql).into_iter().filter(|token| matches!(token.kind, Kind::Word | Kind::Name));
        let words: Vec<String> = all.map(|token| statement.sql[token.range].to_ascii_lowercase()).collect();
        let names = |word: &String| {
            word == "install" || word == "load" || word.contains("extension") || word.contains("import_database")
        };
        match words.first().map(String::as_str) {
            Some("install" | "load" | "force" | "import") => true,
            Some("explain" | "pragma" | "reset" | "set" | "update") => words.iter().any(names),
            _ => false,
        }
    })
}

/// The first word of a statement, in lower case.
pub fn first_word(sql: &str) -> String {
    let word = tokens(sql).into_iter().find(|token| token.kind == Kind::Word);
    word.map_or_else(String::new, |word| sql[word.range].to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str) -> (Vec<String>, &str) {
        let (found, rest) = statements(text);
        (found.into_iter().map(|statement| statement.sql).collect(), &text[rest..])
    }

    #[test]
    fn an_unquoted_semicolon_ends_a_statement() {
        for (text, whole, rest) in [
            ("select 1;", &["select 1"][..], ""),
            ("select 1; select 2", &["select 1"], " select 2"),
            ("select ';' ; x", &["select ';'"], " x"),
            ("select 'it''s;' ;", &["select 'it''s;'"], ""),
            (r"select E'\';' ; y", &[r"select E'\';'"], " y"),
            (r"select '\' ; y", &[r"select '\'"], " y"),
            ("select \"a;\"\"b\" ;", &["select \"a;\"\"b\""], ""),
            ("select $$ ; $$ ;", &["select $$ ; $$"], ""),
            ("select $a$ ; $b$ ; $a$ ;", &["select $a$ ; $b$ ; $a$"], ""),
            ("select $1 ; select $2", &["select $1"], " select $2"),
            ("-- a ; b\nselect 1;", &["select 1"], ""),
            ("/* ; /* ; */ ; */ select 1;", &["select 1"], ""),
            ("select 'open ; ", &[], "select 'open ; "),
            ("select /* open ; ", &[], "select /* open ; "),
            (";;  ; -- nothing\n;", &[], ""),
            ("select 'č;ü' ; ž", &["select 'č;ü'"], " ž"),
        ] {
            let expected: Vec<String> = whole.iter().map(|&text| text.to_owned()).collect();
            assert_eq!(split(text), (expected, rest), "{text}");
        }
    }

    #[test]
    fn statements_about_extensions_are_found() {
        for sql in [
            "INSTALL httpfs",
            "select 1; load 'httpfs'",
            "/* x */ force install httpfs from 'http://127.0.0.1'",
            "explain (format json) install httpfs",
            "update extensions",
            "set global autoload_known_extensions = true",
            "reset \"autoload_known_extensions\"",
            "pragma autoload_known_extensions = true",
            "import database 'exported'",
            "PRAGMA \"import_database\"('exported')",
        ] {
            assert!(loads_extension(sql), "{sql}");
        }
        for sql in ["select 'install httpfs'", "set threads = 1", "explain select 1", "update t set a = 1", "load_it()"]
        {
            assert!(!loads_extension(sql), "{sql}");
        }
    }

    #[test]
    fn a_statement_knows_its_line() {
        let (found, _) = statements("-- one\n\nselect 1;\nselect\n2;");
        assert_eq!(found.iter().map(|statement| statement.line).collect::<Vec<_>>(), [2, 3]);
    }

    proptest! {
        #[test]
        fn the_tokens_cover_the_whole_text(text in "[a-z'\"$;/*\\\\ \n-]{0,40}|\\PC{0,20}") {
            let mut at = 0;
            for token in tokens(&text) {
                prop_assert_eq!(token.range.start, at);
                prop_assert!(token.range.end > at);
                at = token.range.end;
            }
            prop_assert_eq!(at, text.len());
        }
    }
}
