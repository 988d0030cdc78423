//! The chart of a report: its kind, and the role of each column.

use std::collections::BTreeMap;
use std::str::FromStr;

use strum::{EnumString, IntoStaticStr, VariantNames};

/// The kinds of chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase", const_into_str, parse_err_ty = String, parse_err_fn = unknown_kind)]
pub enum ChartKind {
    /// Stacked columns.
    Columns,
    /// Horizontal bars.
    Bars,
    Line,
    /// A line that keeps its value until the next point.
    Step,
    /// Stacked areas.
    Area,
    /// Stacked areas of shares.
    Area100,
    /// `value` at `x` and `y`.
    Heatmap,
    /// Points at `x` and `y`.
    Dots,
    /// Counts `x` in bins.
    Histogram,
    /// Bars from `start` to `end`, in the lane of `lane`.
    Timeline,
    /// Marks at `x`.
    Strip,
    /// `x` an hour of the day, `y` a weekday.
    Punchcard,
}

impl ChartKind {
    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }

    fn required(self) -> &'static [ChartRole] {
        match self {
            ChartKind::Heatmap | ChartKind::Punchcard => &[ChartRole::X, ChartRole::Y, ChartRole::Value],
            ChartKind::Histogram | ChartKind::Strip => &[ChartRole::X],
            ChartKind::Timeline => &[ChartRole::Start, ChartRole::End, ChartRole::Lane],
            ChartKind::Columns
            | ChartKind::Bars
            | ChartKind::Line
            | ChartKind::Step
            | ChartKind::Area
            | ChartKind::Area100
            | ChartKind::Dots => &[ChartRole::X, ChartRole::Y],
        }
    }
}

/// The role of a column in a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase", const_into_str, parse_err_ty = String, parse_err_fn = unknown_role)]
pub enum ChartRole {
    X,
    Y,
    Series,
    Value,
    Start,
    End,
    Lane,
}

/// A chart from the header: `columns x=hour y=failures series=reason | Failures an hour`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    pub kind: ChartKind,
    pub columns: BTreeMap<ChartRole, String>,
    /// Whether the value axis is logarithmic.
    pub is_log: bool,
    /// Empty if the header has no title.
    pub title: String,
}

impl Chart {
    pub fn column(&self, role: ChartRole) -> Option<&str> {
        self.columns.get(&role).map(String::as_str)
    }
}

impl FromStr for Chart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (shape, title) = text.split_once('|').unwrap_or((text, ""));
        let mut words = shape.split_whitespace();
        let kind: ChartKind = words.next().unwrap_or_default().parse()?;
        let mut chart = Chart { kind, columns: BTreeMap::new(), is_log: false, title: title.trim().to_owned() };
        for word in words {
            match word.split_once('=') {
                None if word == "log" => chart.is_log = true,
                Some((role, column)) if !column.is_empty() => {
                    if chart.columns.insert(role.parse()?, column.to_owned()).is_some() {
                        return Err(format!("chart role {role} occurs twice"));
                    }
                }
                _ => return Err(format!("{word:?} is neither role=column nor log")),
            }
        }
        match kind.required().iter().find(|role| !chart.columns.contains_key(*role)) {
            Some(role) => Err(format!("chart {} needs {}=COLUMN", kind.as_str(), role.into_str())),
            None => Ok(chart),
        }
    }
}

fn unknown_kind(text: &str) -> String {
    format!("unknown chart {text:?}: expected one of {}", ChartKind::VARIANTS.join(", "))
}

fn unknown_role(text: &str) -> String {
    format!("unknown chart role {text:?}: expected one of {}", ChartRole::VARIANTS.join(", "))
}
