//! What of its type a parameter may be: so that a threshold which makes no sense is refused in words, before any query.

use std::cmp::Ordering;
use std::fmt;

use jiff::civil::Date;

use super::{ParamKind, ParamValue};

/// The values that a parameter takes, as the header says them after the type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Allowed {
    /// All of the type.
    #[default]
    Any,
    /// `from 1 to 100`, both ends included; one of them may be left out. As one would type them.
    Range { least: Option<String>, most: Option<String> },
    /// `of mon,tue`: a text, or each item of a list, is one of these, in any case.
    Choice(Vec<String>),
    /// `of dates`: each item of a list is a day, as `2026-12-25`.
    Days,
}

impl Allowed {
    /// # Errors
    /// A sentence: what was expected after the type.
    pub(super) fn parse<'a>(kind: ParamKind, mut words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut allowed = Allowed::Any;
        while let Some(word) = words.next() {
            let said = words.next().ok_or_else(|| format!("nothing follows {word:?}"))?;
            allowed = allowed.and(kind, word, said)?;
        }
        if let Allowed::Range { least: Some(least), most: Some(most) } = &allowed
            && order(&kind.plain(least)?, &kind.plain(most)?) == Some(Ordering::Greater)
        {
            return Err(format!("no {kind} lies from {least} to {most}"));
        }
        Ok(allowed)
    }

    fn and(self, kind: ParamKind, word: &str, said: &str) -> Result<Self, String> {
        let has_order = matches!(kind, ParamKind::Integer | ParamKind::Number | ParamKind::Duration);
        let has_choice = matches!(kind, ParamKind::Text | ParamKind::List);
        match (word, self) {
            ("from" | "to", _) if !has_order => Err("a range is for integer, number and duration alone".to_owned()),
            ("from" | "to", _) if kind.plain(said).is_err() => Err(format!("{word} {said}: that is no {kind}")),
            ("from", Allowed::Any) => Ok(Allowed::Range { least: Some(said.to_owned()), most: None }),
            ("to", Allowed::Any) => Ok(Allowed::Range { least: None, most: Some(said.to_owned()) }),
            ("to", Allowed::Range { least, most: None }) => Ok(Allowed::Range { least, most: Some(said.to_owned()) }),
            ("of", _) if !has_choice => Err("a choice is for text and list alone".to_owned()),
            ("of", Allowed::Any) if said == "dates" && kind == ParamKind::List => Ok(Allowed::Days),
            ("of", Allowed::Any) => Ok(Allowed::Choice(said.split(',').map(str::to_owned).collect())),
            _ => Err(format!("{word:?} after the type: expected from MIN to MAX, or of A,B,C")),
        }
    }

    /// # Errors
    /// A sentence that names the value and what it may be.
    pub(super) fn check(&self, kind: ParamKind, text: &str, value: &ParamValue) -> Result<(), String> {
        let is_one = |item: &str| match self {
            Allowed::Choice(choices) => choices.iter().any(|choice| choice.eq_ignore_ascii_case(item)),
            // The day as it is compared, and no other spelling of it.
            Allowed::Days => item.parse::<Date>().is_ok_and(|day| day.to_string() == item),
            Allowed::Any | Allowed::Range { .. } => true,
        };
        let is_beyond = |end: &Option<String>, beyond: Ordering| {
            let end = end.as_ref().and_then(|end| kind.plain(end).ok());
            end.is_some_and(|end| order(value, &end) == Some(beyond))
        };
        let wrong = match (self, value) {
            (Allowed::Range { least, most }, _) => {
                (is_beyond(least, Ordering::Less) || is_beyond(most, Ordering::Greater)).then_some(text)
            }
            (_, ParamValue::List(items)) => items.iter().map(String::as_str).find(|item| !is_one(item)),
            _ => Some(text).filter(|text| !is_one(text)),
        };
        match (wrong, self) {
            (None, _) => Ok(()),
            (Some(wrong), Allowed::Range { .. }) => Err(format!("{wrong:?} is outside its range: {self}")),
            (Some(wrong), _) => Err(format!("{wrong:?} is not {self}")),
        }
    }

    /// The range, if there is one: its least and its greatest.
    pub fn ends(&self) -> (Option<&str>, Option<&str>) {
        match self {
            Allowed::Range { least, most } => (least.as_deref(), most.as_deref()),
            Allowed::Any | Allowed::Choice(_) | Allowed::Days => (None, None),
        }
    }

    /// The choice, if there is one.
    pub fn choices(&self) -> Option<&[String]> {
        match self {
            Allowed::Choice(choices) => Some(choices),
            Allowed::Any | Allowed::Range { .. } | Allowed::Days => None,
        }
    }
}

/// `from 0 to 1`, `one of mon, tue`; nothing where all is allowed.
impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::Any | Allowed::Range { least: None, most: None } => Ok(()),
            Allowed::Range { least: Some(least), most: Some(most) } => write!(f, "from {least} to {most}"),
            Allowed::Range { least: Some(least), most: None } => write!(f, "{least} or more"),
            Allowed::Range { least: None, most: Some(most) } => write!(f, "{most} or less"),
            Allowed::Choice(choices) => write!(f, "one of {}", choices.join(", ")),
            Allowed::Days => f.write_str("a day such as 2026-12-25"),
        }
    }
}

/// Of two values of one kind that has an order.
fn order(one: &ParamValue, other: &ParamValue) -> Option<Ordering> {
    match (one, other) {
        (ParamValue::Integer(one), ParamValue::Integer(other)) => Some(one.cmp(other)),
        (ParamValue::Number(one), ParamValue::Number(other)) => one.partial_cmp(other),
        (ParamValue::Seconds(one), ParamValue::Seconds(other)) => Some(one.cmp(other)),
        _ => None,
    }
}
