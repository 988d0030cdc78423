//! The chart of a report: its kind, and the role of each column.

use std::collections::BTreeMap;
use std::str::FromStr;

/// The kinds of chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    None,
}

impl ChartKind {
    pub const ALL: [ChartKind; 13] = [
        ChartKind::Columns,
        ChartKind::Bars,
        ChartKind::Line,
        ChartKind::Step,
        ChartKind::Area,
        ChartKind::Area100,
        ChartKind::Heatmap,
        ChartKind::Dots,
        ChartKind::Histogram,
        ChartKind::Timeline,
        ChartKind::Strip,
        ChartKind::Punchcard,
        ChartKind::None,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            ChartKind::Columns => "columns",
            ChartKind::Bars => "bars",
            ChartKind::Line => "line",
            ChartKind::Step => "step",
            ChartKind::Area => "area",
            ChartKind::Area100 => "area100",
            ChartKind::Heatmap => "heatmap",
            ChartKind::Dots => "dots",
            ChartKind::Histogram => "histogram",
            ChartKind::Timeline => "timeline",
            ChartKind::Strip => "strip",
            ChartKind::Punchcard => "punchcard",
            ChartKind::None => "none",
        }
    }

    /// The roles that the chart requires.
    pub const fn required(self) -> &'static [ChartRole] {
        match self {
            ChartKind::Columns
            | ChartKind::Bars
            | ChartKind::Line
            | ChartKind::Step
            | ChartKind::Area
            | ChartKind::Area100
            | ChartKind::Dots => &[ChartRole::X, ChartRole::Y],
            ChartKind::Heatmap | ChartKind::Punchcard => &[ChartRole::X, ChartRole::Y, ChartRole::Value],
            ChartKind::Histogram | ChartKind::Strip => &[ChartRole::X],
            ChartKind::Timeline => &[ChartRole::Start, ChartRole::End, ChartRole::Lane],
            ChartKind::None => &[],
        }
    }
}

/// The role of a column in a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChartRole {
    X,
    Y,
    Series,
    Value,
    Start,
    End,
    Lane,
}

impl ChartRole {
    pub const ALL: [ChartRole; 7] = [
        ChartRole::X,
        ChartRole::Y,
        ChartRole::Series,
        ChartRole::Value,
        ChartRole::Start,
        ChartRole::End,
        ChartRole::Lane,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            ChartRole::X => "x",
            ChartRole::Y => "y",
            ChartRole::Series => "series",
            ChartRole::Value => "value",
            ChartRole::Start => "start",
            ChartRole::End => "end",
            ChartRole::Lane => "lane",
        }
    }
}

/// A chart from the header: `columns x=hour y=failures series=reason | Failures an hour`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    pub kind: ChartKind,
    /// The column of each role.
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
        let name = words.next().unwrap_or_default();
        let kind = ChartKind::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or_else(|| {
            let known = ChartKind::ALL.map(ChartKind::as_str).join(", ");
            format!("unknown chart {name:?}: expected one of {known}")
        })?;
        let mut chart = Chart { kind, columns: BTreeMap::new(), is_log: false, title: title.trim().to_owned() };
        for word in words {
            match word.split_once('=') {
                None if word == "log" => chart.is_log = true,
                Some((role, column)) if !column.is_empty() => {
                    let known = ChartRole::ALL.into_iter().find(|known| known.as_str() == role);
                    let role = known.ok_or_else(|| {
                        let known = ChartRole::ALL.map(ChartRole::as_str).join(", ");
                        format!("unknown chart role {role:?}: expected one of {known}")
                    })?;
                    if chart.columns.insert(role, column.to_owned()).is_some() {
                        return Err(format!("chart role {} occurs twice", role.as_str()));
                    }
                }
                _ => return Err(format!("{word:?} is neither role=column nor log")),
            }
        }
        match kind.required().iter().find(|role| !chart.columns.contains_key(role)) {
            Some(role) => Err(format!("chart {} needs {}=COLUMN", kind.as_str(), role.as_str())),
            None => Ok(chart),
        }
    }
}
