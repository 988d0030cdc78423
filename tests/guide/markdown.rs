//! The part of Markdown that our pages use.

use std::collections::BTreeMap;

/// A fenced block, such as ```` ```sh ````.
pub struct Fence {
    pub language: String,
    pub text: String,
    /// The line number of its first line of text, from 1.
    pub line: usize,
}

/// A page without its fenced blocks, and these blocks. Lines keep their numbers.
pub fn split(text: &str) -> (String, Vec<Fence>) {
    let (mut prose, mut fences) = (String::new(), Vec::<Fence>::new());
    let mut open: Option<String> = None;
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        match &open {
            None if trimmed.starts_with("```") => {
                open = Some(line[..line.len() - trimmed.len()].to_owned());
                let language = trimmed.trim_matches('`').trim().to_owned();
                fences.push(Fence { language, text: String::new(), line: at + 2 });
            }
            None => prose.push_str(line),
            Some(_) if trimmed.starts_with("```") => open = None,
            Some(indent) => {
                let fence = fences.last_mut().expect("a block is open");
                fence.text.push_str(line.strip_prefix(indent.as_str()).unwrap_or(line));
                fence.text.push('\n');
            }
        }
        prose.push('\n');
    }
    assert!(open.is_none(), "a block is not closed");
    (prose, fences)
}

/// The code spans of a page's prose, each on one line, and the prose with these spans blanked.
pub fn code_spans(prose: &str) -> (String, Vec<String>) {
    let (mut blanked, mut spans) = (String::new(), Vec::new());
    for paragraph in prose.split_inclusive("\n\n") {
        let parts: Vec<&str> = paragraph.split('`').collect();
        assert!(parts.len() % 2 == 1, "an odd number of backticks in:\n{paragraph}");
        for (at, part) in parts.iter().enumerate() {
            if at % 2 == 0 {
                blanked.push_str(part);
            } else {
                spans.push(part.split_whitespace().collect::<Vec<_>>().join(" "));
                blanked.extend(part.chars().map(|c| if c == '\n' { c } else { ' ' }));
            }
        }
    }
    (blanked, spans)
}

/// The targets of links and pictures in prose, with their lines.
pub fn targets(blanked: &str) -> Vec<(usize, String)> {
    let line_of = |at: usize| 1 + blanked[..at].matches('\n').count();
    let mut found = Vec::new();
    for (opening, closing) in [("](", ')'), ("src=\"", '"'), ("srcset=\"", '"'), ("href=\"", '"')] {
        for (at, _) in blanked.match_indices(opening) {
            let rest = &blanked[at + opening.len()..];
            let end = rest.find(closing).unwrap_or_else(|| panic!("line {}: a link has no end", line_of(at)));
            found.push((line_of(at), rest[..end].to_owned()));
        }
    }
    found
}

/// The anchors of a page's headings, in the form of GitHub and mdbook.
pub fn anchors(prose: &str) -> Vec<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let headings = prose.lines().filter_map(|line| {
        let rest = line.trim_start_matches('#');
        (rest.len() < line.len() && rest.starts_with(' ')).then(|| rest.trim())
    });
    let mut made = Vec::new();
    for heading in headings {
        let kept = heading.chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
            _ => None,
        });
        let anchor: String = kept.collect();
        let times = seen.entry(anchor.clone()).or_default();
        made.push(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
        *times += 1;
    }
    made
}
