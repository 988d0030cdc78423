//! The commands of a shell script of the guide: words without quotes, redirections, assignments and comments.

use std::iter::Peekable;
use std::str::Chars;

/// The words of each command of the script.
pub fn commands(script: &str) -> Vec<Vec<String>> {
    let script = script.replace("\\\n", " ");
    let mut reader =
        Reader { chars: script.chars().peekable(), commands: Vec::new(), words: Vec::new(), redirects: false };
    reader.read();
    reader.commands.into_iter().map(without_prefix).filter(|words| !words.is_empty()).collect()
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    /// Whether the next word names the file of a redirection.
    redirects: bool,
}

impl Reader<'_> {
    fn read(&mut self) {
        while let Some(&c) = self.chars.peek() {
            match c {
                '#' => while self.chars.next_if(|&c| c != '\n').is_some() {},
                '\n' | ';' | '|' | '&' | '(' | ')' => {
                    self.chars.next();
                    self.end_command();
                }
                '<' | '>' => {
                    self.chars.next();
                    self.redirects = true;
                }
                c if c.is_whitespace() => drop(self.chars.next()),
                _ => {
                    let word = self.word();
                    if !std::mem::take(&mut self.redirects) {
                        self.words.push(word);
                    }
                }
            }
        }
        self.end_command();
    }

    fn end_command(&mut self) {
        self.redirects = false;
        self.commands.push(std::mem::take(&mut self.words));
    }

    fn word(&mut self) -> String {
        let (mut word, mut quote) = (String::new(), None);
        while let Some(&c) = self.chars.peek() {
            match (c, quote) {
                ('\\', None | Some('"')) => {
                    self.chars.next();
                    word.extend(self.chars.next());
                    continue;
                }
                ('"' | '\'', None) => quote = Some(c),
                (c, Some(open)) if c == open => quote = None,
                (c, None) if c.is_whitespace() || ";|&()<>".contains(c) => break,
                _ => word.push(c),
            }
            self.chars.next();
        }
        assert!(quote.is_none(), "a quote is not closed: {word}");
        word
    }
}

/// The words without assignments before the program, and without programs that run another one.
fn without_prefix(words: Vec<String>) -> Vec<String> {
    let is_assignment = |word: &str| {
        word.split_once('=')
            .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    };
    let mut rest = words.as_slice();
    loop {
        match rest {
            [first, tail @ ..] if is_assignment(first) || first == "export" || first == "exec" => rest = tail,
            [first, flag, _, tail @ ..] if first == "sudo" && flag == "-u" => rest = tail,
            [first, tail @ ..] if first == "sudo" => rest = tail,
            _ => return rest.to_vec(),
        }
    }
}

#[test]
fn a_script_is_parsed_like_in_a_shell() {
    for (script, expected) in [
        ("annals sync   # catch up", vec!["annals sync"]),
        ("A=1 annals sql \"a > 'b'\" -o f.csv > out", vec!["annals sql a > 'b' -o f.csv"]),
        (
            "cd /x && annals verify | head -n 1; sudo -u annals annals status &",
            vec!["cd /x", "annals verify", "head -n 1", "annals status"],
        ),
        ("annals sync \\\n  --since -30d", vec!["annals sync --since -30d"]),
        ("export A=… B=2", vec![]),
        ("annals sql < questions.sql", vec!["annals sql"]),
    ] {
        let found: Vec<String> = commands(script).into_iter().map(|words| words.join(" ")).collect();
        assert_eq!(found, expected, "{script}");
    }
}
