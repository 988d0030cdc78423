//! Limits of a parameter's values, so that a nonsensical threshold is refused before any query runs.

use std::cmp::Ordering;
use std::fmt;

use jiff::civil::Date;

use super::{ParamKind, ParamValue};

/// The allowed values of a parameter, from the header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AllowedValues {
    /// All values of the type.
    #[default]
    Any,
    /// `from 1 to 100`, both ends included; one end can be missing. The ends are kept as typed.
    Range { least: Option<String>, most: Option<String> },
    /// `of mon,tue`: a text, or each item of a list, is one of these, in any case.
    Choice(Vec<String>),
    /// `of dates`: each item of a list is a day, such as `2026-12-25`.
    Days,
}

impl AllowedValues {
    /// # Errors
    /// A sentence that names the expected words after the type.
    pub(super) fn parse<'a>(kind: ParamKind, mut words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut allowed = AllowedValues::Any;
        while let Some(word) = words.next() {
            let bound = words.next().ok_or_else(|| format!("a value is missing after {word:?}"))?;
            allowed = allowed.and(kind, word, bound)?;
        }
        if let AllowedValues::Range { least: Some(least), most: Some(most) } = &allowed
            && order(&kind.plain(least)?, &kind.plain(most)?) == Some(Ordering::Greater)
        {
            return Err(format!("the range from {least} to {most} is empty"));
        }
        Ok(allowed)
    }

    fn and(self, kind: ParamKind, word: &str, bound: &str) -> Result<Self, String> {
        let has_order = matches!(kind, ParamKind::Integer | ParamKind::Number | ParamKind::Duration);
        let has_choice = matches!(kind, ParamKind::Text | ParamKind::List);
        match (word, self) {
            ("from" | "to", _) if !has_order => Err("only integer, number and duration can have a range".to_owned()),
            ("from" | "to", _) if kind.plain(bound).is_err() => {
                Err(format!("{word} {bound}: {bound:?} is not of type {kind}"))
            }
            ("from", AllowedValues::Any) => Ok(AllowedValues::Range { least: Some(bound.to_owned()), most: None }),
            ("to", AllowedValues::Any) => Ok(AllowedValues::Range { least: None, most: Some(bound.to_owned()) }),
            ("to", AllowedValues::Range { least, most: None }) => {
                Ok(AllowedValues::Range { least, most: Some(bound.to_owned()) })
            }
            ("of", _) if !has_choice => Err("only text and list can have a choice".to_owned()),
            ("of", AllowedValues::Any) if bound == "dates" && kind == ParamKind::List => Ok(AllowedValues::Days),
            ("of", AllowedValues::Any) => Ok(AllowedValues::Choice(bound.split(',').map(str::to_owned).collect())),
            _ => Err(format!("{word:?} after the type: expected from MIN to MAX, or of A,B,C")),
        }
    }

    /// # Errors
    /// A sentence that names the value and the allowed values.
    pub(super) fn check(&self, kind: ParamKind, text: &str, value: &ParamValue) -> Result<(), String> {
        let is_one = |item: &str| match self {
            AllowedValues::Choice(choices) => choices.iter().any(|choice| choice.eq_ignore_ascii_case(item)),
            // Accept only the canonical spelling of a day, because days are compared as text.
            AllowedValues::Days => item.parse::<Date>().is_ok_and(|day| day.to_string() == item),
            AllowedValues::Any | AllowedValues::Range { .. } => true,
        };
        let is_beyond = |end: &Option<String>, beyond: Ordering| {
            let end = end.as_ref().and_then(|end| kind.plain(end).ok());
            end.is_some_and(|end| order(value, &end) == Some(beyond))
        };
        let wrong = match (self, value) {
            (AllowedValues::Range { least, most }, _) => {
                (is_beyond(least, Ordering::Less) || is_beyond(most, Ordering::Greater)).then_some(text)
            }
            (_, ParamValue::List(items)) => items.iter().map(String::as_str).find(|item| !is_one(item)),
            _ => Some(text).filter(|text| !is_one(text)),
        };
        match (wrong, self) {
            (None, _) => Ok(()),
            (Some(wrong), AllowedValues::Range { .. }) => Err(format!("{wrong:?} is outside its range: {self}")),
            (Some(wrong), _) => Err(format!("{wrong:?} is not {self}")),
        }
    }

    /// The smallest and largest value of a range.
    pub fn ends(&self) -> (Option<&str>, Option<&str>) {
        match self {
            AllowedValues::Range { least, most } => (least.as_deref(), most.as_deref()),
            AllowedValues::Any | AllowedValues::Choice(_) | AllowedValues::Days => (None, None),
        }
    }

    /// The values of a choice.
    pub fn choices(&self) -> Option<&[String]> {
        match self {
            AllowedValues::Choice(choices) => Some(choices),
            AllowedValues::Any | AllowedValues::Range { .. } | AllowedValues::Days => None,
        }
    }
}

/// `from 0 to 1`, `one of mon, tue`; empty without limits.
impl fmt::Display for AllowedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllowedValues::Any | AllowedValues::Range { least: None, most: None } => Ok(()),
            AllowedValues::Range { least: Some(least), most: Some(most) } => write!(f, "from {least} to {most}"),
            AllowedValues::Range { least: Some(least), most: None } => write!(f, "{least} or more"),
            AllowedValues::Range { least: None, most: Some(most) } => write!(f, "{most} or less"),
            AllowedValues::Choice(choices) => write!(f, "one of {}", choices.join(", ")),
            AllowedValues::Days => f.write_str("a day such as 2026-12-25"),
        }
    }
}

/// Compares two values of one ordered type.
fn order(one: &ParamValue, other: &ParamValue) -> Option<Ordering> {
    match (one, other) {
        (ParamValue::Integer(one), ParamValue::Integer(other)) => Some(one.cmp(other)),
        (ParamValue::Number(one), ParamValue::Number(other)) => one.partial_cmp(other),
        (ParamValue::Seconds(one), ParamValue::Seconds(other)) => Some(one.cmp(other)),
        _ => None,
    }
}
