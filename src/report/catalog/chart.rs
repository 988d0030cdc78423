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
}

impl ChartKind {
    /// Each kind with its name and the roles that it requires.
    const ALL: [(ChartKind, &str, &[ChartRole]); 12] = [
        (ChartKind::Columns, "columns", &[ChartRole::X, ChartRole::Y]),
        (ChartKind::Bars, "bars", &[ChartRole::X, ChartRole::Y]),
        (ChartKind::Line, "line", &[ChartRole::X, ChartRole::Y]),
        (ChartKind::Step, "step", &[ChartRole::X, ChartRole::Y]),
        (ChartKind::Area, "area", &[ChartRole::X, ChartRole::Y]),
        (ChartKind::Area100, "area100", &[ChartRole::X, ChartRole::Y]),
        (ChartKind::Heatmap, "heatmap", &[ChartRole::X, ChartRole::Y, ChartRole::Value]),
        (ChartKind::Dots, "dots", &[ChartRole::X, ChartRole::Y]),
        (ChartKind::Histogram, "histogram", &[ChartRole::X]),
        (ChartKind::Timeline, "timeline", &[ChartRole::Start, ChartRole::End, ChartRole::Lane]),
        (ChartKind::Strip, "strip", &[ChartRole::X]),
        (ChartKind::Punchcard, "punchcard", &[ChartRole::X, ChartRole::Y, ChartRole::Value]),
    ];

    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).expect("BUG: each kind has a name").1
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
    const ALL: [(ChartRole, &str); 7] = [
        (ChartRole::X, "x"),
        (ChartRole::Y, "y"),
        (ChartRole::Series, "series"),
        (ChartRole::Value, "value"),
        (ChartRole::Start, "start"),
        (ChartRole::End, "end"),
        (ChartRole::Lane, "lane"),
    ];
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
        let found = ChartKind::ALL.into_iter().find(|(_, known, _)| *known == name);
        let (kind, _, required) = found.ok_or_else(|| {
            let known = ChartKind::ALL.map(|(_, known, _)| known).join(", ");
            format!("unknown chart {name:?}: expected one of {known}")
        })?;
        let mut chart = Chart { kind, columns: BTreeMap::new(), is_log: false, title: title.trim().to_owned() };
        for word in words {
            match word.split_once('=') {
                None if word == "log" => chart.is_log = true,
                Some((role, column)) if !column.is_empty() => {
                    let found = ChartRole::ALL.into_iter().find(|(_, known)| *known == role);
                    let (known, _) = found.ok_or_else(|| {
                        let known = ChartRole::ALL.map(|(_, known)| known).join(", ");
                        format!("unknown chart role {role:?}: expected one of {known}")
                    })?;
                    if chart.columns.insert(known, column.to_owned()).is_some() {
                        return Err(format!("chart role {role} occurs twice"));
                    }
                }
                _ => return Err(format!("{word:?} is neither role=column nor log")),
            }
        }
        let lacks = |(role, _): &(ChartRole, &str)| required.contains(role) && !chart.columns.contains_key(role);
        match ChartRole::ALL.into_iter().find(lacks) {
            Some((_, role)) => Err(format!("chart {name} needs {role}=COLUMN")),
            None => Ok(chart),
        }
    }
}
