//! Splits SQL text into statements. It understands only strings, names and comments.

/// One statement: its text without the semicolon, and the file's line where the text begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub text: String,
    /// Counted from 1.
    pub line: usize,
}

/// The statements of `text`, without empty ones. `line` is the number of its first line.
pub fn statements(text: &str, line: usize) -> Vec<Statement> {
    let mut found = Vec::new();
    let (mut start, mut at, mut has_words) = (0, 0, false);
    while at <= text.len() {
        let rest = &text[at..];
        if rest.is_empty() || rest.starts_with(';') {
            if has_words {
                let (start, has) = trimmed(text, start, at);
                let line = line + text[..start].matches('\n').count();
                found.push(Statement { text: has.to_owned(), line });
            }
            (start, at, has_words) = (at + 1, at + 1, false);
            continue;
        }
        let comment = comment_length(rest);
        if comment == 0 && !rest.starts_with(char::is_whitespace) {
            has_words = true;
        }
        at += comment.max(quoted_length(text, at)).max(rest.chars().next().map_or(1, char::len_utf8));
    }
    found
}

fn trimmed(text: &str, start: usize, end: usize) -> (usize, &str) {
    let whole = &text[start..end];
    let lead = whole.len() - whole.trim_start().len();
    (start + lead, whole.trim())
}

/// The length of the comment at the start of `rest`; 0 without one.
fn comment_length(rest: &str) -> usize {
    if rest.starts_with("--") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if !rest.starts_with("/*") {
        return 0;
    }
    // Comments nest, as in the engine's parser.
    let (bytes, mut depth, mut at) = (rest.as_bytes(), 0_usize, 0);
    while at < bytes.len() {
        match &bytes[at..(at + 2).min(bytes.len())] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of the string or quoted name at `at`; 0 without one.
fn quoted_length(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    match rest.as_bytes().first() {
        // Backslash escapes exist only in strings with the prefix E.
        Some(b'\'') => closed_by(rest, '\'', text[..at].ends_with(['e', 'E']) && is_alone(&text[..at])),
        Some(b'"') => closed_by(rest, '"', false),
        Some(b'$') if !ends_a_word(&text[..at]) => dollar_length(rest),
        _ => 0,
    }
}

/// Whether the letter before a quote is a word of its own.
fn is_alone(before: &str) -> bool {
    !ends_a_word(&before[..before.len() - 1])
}

fn ends_a_word(before: &str) -> bool {
    before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

fn closed_by(rest: &str, quote: char, has_escapes: bool) -> usize {
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        // A doubled quote closes the string and opens the next one, which has the same effect.
        if c == quote {
            return at + 1;
        }
        if has_escapes && c == '\\' {
            characters.next();
        }
    }
    rest.len()
}

/// `$$…$$` or `$tag$…$tag$`; `$name` alone is a parameter.
fn dollar_length(rest: &str) -> usize {
    let tag = rest[1..].find(|c: char| !c.is_alphanumeric() && c != '_').map(|at| at + 1);
    match tag {
        Some(end) if rest[end..].starts_with('$') => {
            let mark = &rest[..=end];
            rest[mark.len()..].find(mark).map_or(rest.len(), |at| at + 2 * mark.len())
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(String, usize)> {
        statements(text, 1).into_iter().map(|statement| (statement.text, statement.line)).collect()
    }

    fn one(text: &str, line: usize) -> (String, usize) {
        (text.to_owned(), line)
    }

    #[test]
    fn a_quoted_semicolon_ends_no_statement() {
        for (case, text, expected) in [
            ("none", "SELECT 1", vec![one("SELECT 1", 1)]),
            ("two, with lines", "\nSELECT 1\n;\n\nSELECT 2;\n", vec![one("SELECT 1", 2), one("SELECT 2", 5)]),
            ("in a string", "SELECT ';it''s;' ; x", vec![one("SELECT ';it''s;'", 1), one("x", 1)]),
            ("in a name", "SELECT 1 AS \"a;\"\"b\"", vec![one("SELECT 1 AS \"a;\"\"b\"", 1)]),
            (
                "in comments",
                "SELECT 1 -- a; b\n/* ; /* ; */ ; */;",
                vec![one("SELECT 1 -- a; b\n/* ; /* ; */ ; */", 1)],
            ),
            (
                "in dollars",
                "SELECT $$;$$, $t$ ; $$ $t$, $from; y",
                vec![one("SELECT $$;$$, $t$ ; $$ $t$, $from", 1), one("y", 1)],
            ),
            ("escaped", r"SELECT E'\';', 'e\'; z", vec![one(r"SELECT E'\';', 'e\'", 1), one("z", 1)]),
            ("no words", " ; -- nothing\n; /* here */ ;", vec![]),
            ("not closed", "SELECT ';", vec![one("SELECT ';", 1)]),
            ("awkward letters", "SELECT 'é;' ;ü", vec![one("SELECT 'é;'", 1), one("ü", 1)]),
        ] {
            assert_eq!(cut(text), expected, "{case}");
        }
    }
}
