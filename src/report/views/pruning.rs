//! A query about a range of time needs only the files of that range, but each other file costs a read of its footer. If a query
//! clearly concerns a range, its view is replaced, for this query alone, by one over fewer files.
//!
//! "Clearly" is strict, because a wrong guess would lose rows: one `SELECT` with one of our views as its only relation, named
//! once, and conditions on the time column that `AND` joins at the top of its `WHERE`. Any query that is not understood remains
//! unchanged.

use std::ops::Range;

use crate::model::Dataset;
use crate::model::Instant;

use super::columns::View;
use super::data::{LiveFile, ViewData};
use super::sql_text::over_files;
use crate::report::sql::lexer::{self, Kind};

/// Keywords that end the conditions.
const CLAUSES: [&str; 11] =
    ["group", "having", "window", "qualify", "order", "limit", "offset", "fetch", "using", "sample", "for"];
/// Keywords that make a query too complex, anywhere in it.
const NOT_PLAIN: [&str; 9] = ["union", "intersect", "except", "with", "into", "join", "pivot", "unpivot", "recursive"];
/// Views over files whose rows all have a time, and the time column.
const TIMED: [(View, Dataset, &str); 4] = [
    (View::Activity, Dataset::Activity, "event_time"),
    (View::Connections, Dataset::Connections, "event_time"),
    (View::Billing, Dataset::Billing, "event_time"),
    (View::Sessions, Dataset::Sessions, "first_event_at"),
];
/// Words in a condition that change the meaning of an `AND`, or bind more loosely.
const NOT_SIMPLE: [&str; 7] = ["or", "case", "when", "then", "else", "end", "lambda"];

/// A query over fewer files.
#[derive(Debug, PartialEq, Eq)]
pub struct Pruned {
    pub sql: String,
    /// The view that the query no longer needs.
    pub view: View,
    /// The dataset, and its files that can hold matching rows.
    pub left: (Dataset, Vec<LiveFile>),
}

/// `sql` over only the files that match its conditions; `None` if it remains unchanged.
pub fn pruned(sql: &str, data: &ViewData) -> Option<Pruned> {
    let question = Question::read(sql)?;
    let files = data.files.get(&question.dataset)?;
    let left: Vec<LiveFile> = files.iter().filter(|file| question.may_hold(file)).cloned().collect();
    if left.len() == files.len() {
        return None;
    }
    let body = over_files(question.view, &left);
    let sql = format!("WITH {} AS NOT MATERIALIZED ({body}) {sql}", question.view.as_str());
    Some(Pruned { sql, view: question.view, left: (question.dataset, left) })
}

/// The view and the range of a simple query.
#[derive(Debug, PartialEq, Eq)]
struct Question {
    view: View,
    dataset: Dataset,
    /// The time column of the rows.
    time: &'static str,
    /// The range of matching times, both ends included.
    from: Option<Instant>,
    to: Option<Instant>,
}

impl Question {
    fn read(sql: &str) -> Option<Self> {
        let words = Words::of(sql)?;
        let ((view, dataset, time), at) = words.relation()?;
        let (alias, conditions) = words.conditions(at)?;
        let names = [Some(view.as_str()), alias].into_iter().flatten().collect::<Vec<_>>();
        let mut question = Self { view, dataset, time, from: None, to: None };
        for condition in conditions {
            question.take(&words.0[condition], &names);
        }
        (question.from.is_some() || question.to.is_some()).then_some(question)
    }

    fn may_hold(&self, file: &LiveFile) -> bool {
        file.span.is_none_or(|(first, last)| {
            self.from.is_none_or(|from| from.micros() <= last.micros())
                && self.to.is_none_or(|to| first.micros() <= to.micros())
        })
    }

    /// Applies a condition if it concerns the rows' time.
    fn take(&mut self, condition: &[Word<'_>], names: &[&str]) {
        let column = |words: &[Word<'_>]| match words {
            [column] => column.is_name(self.time),
            [name, dot, column] => {
                dot.is_symbol(".") && column.is_name(self.time) && names.iter().any(|known| name.is_name(known))
            }
            _ => false,
        };
        if let Some(at) = condition.iter().position(|word| word.is("between")) {
            let and = condition[at..].iter().position(|word| word.depth == condition[at].depth && word.is("and"));
            let Some(and) = and.map(|found| at + found) else { return };
            let ends = (constant(&condition[at + 1..and]), constant(&condition[and + 1..]));
            if column(&condition[..at])
                && let (Some(from), Some(to)) = ends
            {
                self.bound(">=", from);
                self.bound("<=", to);
            }
            return;
        }
        let operator = condition.iter().position(Word::is_comparison);
        if let Some(at) = operator {
            let length = condition[at..].iter().take_while(|word| word.is_comparison()).count();
            let sign: String = condition[at..at + length].iter().map(|word| word.text).collect();
            let (left, right) = (&condition[..at], &condition[at + length..]);
            if column(left)
                && let Some(time) = constant(right)
            {
                self.bound(&sign, time);
            } else if column(right)
                && let Some(time) = constant(left)
            {
                let mirrored = match sign.as_str() {
                    "<" => ">",
                    "<=" => ">=",
                    ">" => "<",
                    ">=" => "<=",
                    other => other,
                };
                self.bound(mirrored, time);
            }
        }
    }

    fn bound(&mut self, sign: &str, time: Instant) {
        if matches!(sign, ">" | ">=" | "=") {
            self.from = Some(self.from.map_or(time, |held| held.max(time)));
        }
        if matches!(sign, "<" | "<=" | "=") {
            self.to = Some(self.to.map_or(time, |held| held.min(time)));
        }
    }
}

/// A token that is not space.
#[derive(Debug, Clone, Copy)]
struct Word<'a> {
    kind: Kind,
    text: &'a str,
    /// Number of enclosing parentheses.
    depth: usize,
}

impl Word<'_> {
    fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    fn is_one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    /// Names are compared without case, quoted or not.
    fn is_name(&self, name: &str) -> bool {
        match self.kind {
            Kind::Word => self.text.eq_ignore_ascii_case(name),
            Kind::Name => self.text.trim_matches('"').eq_ignore_ascii_case(name),
            _ => false,
        }
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == Kind::Symbol && self.text == symbol
    }

    fn is_comparison(&self) -> bool {
        self.kind == Kind::Symbol && matches!(self.text, "<" | ">" | "=" | "!")
    }
}

struct Words<'a>(Vec<Word<'a>>);

impl<'a> Words<'a> {
    /// The words of one simple `SELECT`.
    fn of(sql: &'a str) -> Option<Self> {
        let (mut words, mut depth) = (Vec::new(), 0_usize);
        for token in lexer::tokens(sql) {
            if token.is_open {
                return None;
            }
            let text = &sql[token.range];
            if matches!(token.kind, Kind::Space | Kind::Comment) {
                continue;
            }
            if matches!(text, ")" | "]" | "}") {
                depth = depth.checked_sub(1)?;
            }
            words.push(Word { kind: token.kind, text, depth });
            if matches!(text, "(" | "[" | "{") {
                depth += 1;
            }
        }
        while words.last().is_some_and(|word: &Word<'_>| word.is_symbol(";")) {
            words.pop();
        }
        let is_plain = depth == 0
            && words.first().is_some_and(|word| word.is("select"))
            && !words.iter().any(|word| {
                word.is_symbol(";") || word.is_symbol("$") || word.is_symbol("?") || word.is_one_of(&NOT_PLAIN)
            });
        is_plain.then_some(Self(words))
    }

    /// The view after the only top-level `FROM`, and its position, if no other place names a view.
    fn relation(&self) -> Option<((View, Dataset, &'static str), usize)> {
        let named = |view: View| self.0.iter().filter(|word| word.is_name(view.as_str())).count();
        let mut from = (0..self.0.len()).filter(|&at| self.0[at].depth == 0 && self.0[at].is("from"));
        let (at, None) = (from.next()? + 1, from.next()) else { return None };
        let timed =
            TIMED.into_iter().find(|(view, ..)| self.0.get(at).is_some_and(|word| word.is_name(view.as_str())))?;
        (named(timed.0) == 1).then_some((timed, at))
    }

    /// The view's alias, and the conditions that `AND` joins, as ranges of words.
    fn conditions(&self, view: usize) -> Option<(Option<&'a str>, Vec<Range<usize>>)> {
        let words = &self.0;
        let mut at = view + 1;
        let mut alias = None;
        if words.get(at)?.is("as") {
            at += 1;
        }
        if !words.get(at)?.is("where") {
            alias = matches!(words[at].kind, Kind::Word | Kind::Name).then_some(words[at].text.trim_matches('"'));
            alias?;
            at += 1;
        }
        if !words.get(at)?.is("where") {
            return None;
        }
        let start = at + 1;
        let is_end = |word: &Word<'_>| word.depth == 0 && word.is_one_of(&CLAUSES);
        let end = (start..words.len()).find(|&at| is_end(&words[at])).unwrap_or(words.len());
        let part = &words[start..end];
        let is_simple = |word: &Word<'_>| word.depth > 0 || !word.is_one_of(&NOT_SIMPLE);
        if !part.iter().all(is_simple) {
            return None;
        }
        let mut conditions = Vec::new();
        let (mut begin, mut is_between) = (start, false);
        for at in (start..=end).filter(|&at| at == end || words[at].depth == 0) {
            if at < end && words[at].is("between") {
                is_between = true;
            } else if at < end && words[at].is("and") && is_between {
                // The `AND` of a `BETWEEN` joins no conditions.
                is_between = false;
            } else if at == end || words[at].is("and") {
                conditions.push(begin..at);
                begin = at + 1;
            }
        }
        Some((alias, conditions))
    }
}

/// A time literal, with or without a type before it. A date means its first moment.
fn constant(words: &[Word<'_>]) -> Option<Instant> {
    let text = match words {
        [text] => text,
        [kind, text] if kind.is("timestamp") => text,
        [kind, text] if kind.is("date") && text.text.len() == "'2026-11-20'".len() => text,
        _ => return None,
    };
    let text = text.text.strip_prefix('\'')?.strip_suffix('\'').filter(|_| text.kind == Kind::Text)?;
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let full = match shape.split_once(['.']).map_or(shape.as_str(), |(seconds, _)| seconds) {
        "0000-00-00" if shape.len() == 10 => format!("{text}T00:00:00Z"),
        "0000-00-00 00:00:00" | "0000-00-00T00:00:00" => format!("{}Z", text.replace(' ', "T")),
        _ => return None,
    };
    // Do not use times that are finer than those of the files and the engine.
    let fraction = shape.split_once('.').map_or("", |(_, fraction)| fraction);
    if !(fraction.len() <= 6 && fraction.chars().all(|c| c == '0')) || shape.ends_with('.') {
        return None;
    }
    full.parse().ok()
}

#[cfg(test)]
mod tests;
