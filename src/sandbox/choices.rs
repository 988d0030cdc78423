//! The switches for the points that the document leaves open.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One choice for each point that the document leaves open. The table in `mod.rs` explains them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choices {
    pub bounds: Bounds,
    /// Events in a page if the request has no `limit`.
    pub default_limit: usize,
    /// Order of `history` and `history/devices` if the request has no `desc`.
    pub default_desc: bool,
    /// The sandbox refuses a larger `limit` with 400.
    pub limit_max: usize,
    /// The same for the deprecated per-computer history.
    pub device_limit_max: usize,
    /// The largest page, whatever `limit` says. The answer does not mention it.
    pub page_cap: Option<usize>,
    pub has_more: HasMore,
    pub next_offset: NextOffset,
    pub order: Order,
    pub error_shape: ErrorShape,
    /// The status for a missing or wrong token.
    pub unauthorized_status: u16,
    /// The status for a valid token without the right.
    pub forbidden_status: u16,
    /// The status for a body or query that the endpoint does not accept.
    pub invalid_status: u16,
    /// The status for codes whose status the document does not show, and for groups that the identity provider manages.
    pub rule_status: u16,
    /// The body of "OK" and "Created".
    pub created_body: CreatedBody,
    /// Whether answers include empty lists or omit them.
    pub empty_lists: bool,
    /// Whether members who are no admins may read more than the limited team view.
    pub members_read: bool,
    /// Whether the sandbox refuses a body with a field that the endpoint does not have.
    pub refuse_unknown_fields: bool,
    /// Whether the sandbox refuses a body without `Content-Type: application/json`.
    pub require_content_type: bool,
    /// When an admin needs remote access to count as the admin that a team must keep.
    pub admin_needs_access: AdminAccess,
    /// How many days an invite is valid; 0: it never expires.
    pub invite_days: u32,
    /// Whether lists show expired invites and installers.
    pub list_expired: bool,
    /// Whether histories omit connection events older than the plan's span.
    pub enforce_plan_span: bool,
    /// The limit of one token in a minute of the sandbox's clock.
    pub requests_per_minute: Option<u32>,
    /// The delay before the sandbox serves a change's events.
    pub event_delay_ms: u64,
}

/// The largest limit that a switch may set.
const PAGE_EVENTS_MAX: u64 = 100_000;
/// A hundred years.
const INVITE_DAYS_MAX: u64 = 36_600;
/// A year.
const DELAY_MS_MAX: u64 = 366 * 86_400_000;

/// The numeric switches, with their smallest and largest value.
pub(super) const NUMBERS: [(&str, u64, u64); 11] = [
    ("default_limit", 1, PAGE_EVENTS_MAX),
    ("limit_max", 1, PAGE_EVENTS_MAX),
    ("device_limit_max", 1, PAGE_EVENTS_MAX),
    ("page_cap", 1, PAGE_EVENTS_MAX),
    ("unauthorized_status", 400, 499),
    ("forbidden_status", 400, 499),
    ("invalid_status", 400, 499),
    ("rule_status", 400, 499),
    ("invite_days", 0, INVITE_DAYS_MAX),
    ("requests_per_minute", 1, 1_000_000_000),
    ("event_delay_ms", 0, DELAY_MS_MAX),
];
/// The numeric switches that may be null, which means no limit.
pub(super) const NULLABLE: [&str; 2] = ["page_cap", "requests_per_minute"];

impl Choices {
    /// Reads switches from pairs `name=value`; the value is JSON or a bare word.
    ///
    /// # Errors
    /// When a pair has an unknown switch or an invalid value: the pair and the reason.
    pub fn from_pairs(pairs: &[String]) -> Result<Self, (String, String)> {
        let mut fields = Map::new();
        for pair in pairs {
            let Some((name, value)) = pair.split_once('=') else {
                return Err((pair.clone(), "the form is name=value".to_owned()));
            };
            let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
            let alone = Map::from_iter([(name.to_owned(), value.clone())]);
            Self::default().with(alone).map_err(|reason| (pair.clone(), reason))?;
            fields.insert(name.to_owned(), value);
        }
        Self::default().with(fields).map_err(|reason| (pairs.join(" "), reason))
    }

    /// The switches with new values for the named ones.
    ///
    /// # Errors
    /// When a name or a value is invalid: the reason.
    pub(super) fn with(self, fields: Map<String, Value>) -> Result<Self, String> {
        let Value::Object(mut all) = json!(self) else { return Ok(self) };
        all.extend(fields);
        for (name, least, most) in NUMBERS {
            let sent = all.get(name).and_then(Value::as_u64);
            if let Some(sent) = sent.filter(|sent| !(least..=most).contains(sent)) {
                return Err(format!("{name} {sent} is not from {least} to {most}"));
            }
        }
        serde_json::from_value(Value::Object(all)).map_err(|error| error.to_string())
    }
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            bounds: Bounds::WHOLE_SECOND,
            default_limit: 100,
            default_desc: true,
            limit_max: 1001,
            device_limit_max: 100,
            page_cap: None,
            has_more: HasMore::Honest,
            next_offset: NextOffset::Honest,
            order: Order::ByTime,
            error_shape: ErrorShape::Detail,
            unauthorized_status: 401,
            forbidden_status: 403,
            invalid_status: 400,
            rule_status: 400,
            created_body: CreatedBody::Object,
            empty_lists: false,
            members_read: true,
            refuse_unknown_fields: false,
            require_content_type: true,
            admin_needs_access: AdminAccess::WhenChanged,
            invite_days: 30,
            list_expired: false,
            enforce_plan_span: false,
            requests_per_minute: None,
            event_delay_ms: 0,
        }
    }
}

/// How the sandbox rounds an event's time to whole seconds before it compares it with `startTime` and `stopTime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// No rounding: only an event at exactly x.000 is in the last second.
    Exact,
    Down,
    Up,
    Nearest,
}

/// One interpretation of "inclusive".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    pub rounding: Rounding,
    /// The range excludes an event at `startTime` itself.
    pub start_open: bool,
    /// The range excludes an event at `stopTime` itself.
    pub stop_open: bool,
}

impl Bounds {
    /// The range includes the whole last second: x.999 too.
    pub const WHOLE_SECOND: Bounds = Bounds { rounding: Rounding::Down, start_open: false, stop_open: false };
    /// For tests: the range includes only x.000 of the last second.
    pub const EXACT: Bounds = Bounds { rounding: Rounding::Exact, start_open: false, stop_open: false };

    /// The first nanosecond that a range from `start` includes.
    pub(super) fn first_nano(self, start: i64) -> i64 {
        self.reaching(start, self.start_open)
    }

    /// The first nanosecond after a range that ends at `stop`.
    pub(super) fn end_nano(self, stop: i64) -> i64 {
        self.reaching(stop, !self.stop_open)
    }

    /// The first nanosecond whose rounded time is at least (`past`: more than) `second`.
    fn reaching(self, second: i64, past: bool) -> i64 {
        let nanos = |seconds: i64| seconds.saturating_mul(1_000_000_000);
        let next = second.saturating_add(i64::from(past));
        match self.rounding {
            Rounding::Exact => nanos(second).saturating_add(i64::from(past)),
            Rounding::Down => nanos(next),
            Rounding::Up => nanos(next.saturating_sub(1)).saturating_add(1),
            Rounding::Nearest => nanos(next).saturating_sub(500_000_000),
        }
    }
}

/// The value of `hasMoreEvents`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HasMore {
    Honest,
    AlwaysTrue,
    AlwaysFalse,
    Missing,
}

/// The value of `nextOffset`. The honest one occurs only beside a true `hasMoreEvents`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextOffset {
    Honest,
    Missing,
    Zero,
    /// The requested offset: a client that trusts it makes no progress.
    Stuck,
    Backwards,
}

/// The order of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    ByTime,
    /// Each pair of neighbours is swapped: the list is stable, but not in time order.
    NeighboursSwapped,
}

/// Whether an admin without remote access counts as the admin that a team must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdminAccess {
    /// Yes: a change of remote access can never leave a team without an admin.
    Never,
    /// Yes; but a request that turns an admin's remote access off must leave an admin with remote access.
    WhenChanged,
    /// No: changes of roles and removals must also leave an admin with remote access.
    Always,
}

/// The fields of an error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorShape {
    /// `code` and `detail`.
    Detail,
    /// `code` and `message`.
    Message,
    /// `error` with `code` and `message`.
    Nested,
    /// Only `code`.
    Code,
    /// `errors`, a list of one with `code`, `detail` and `status`.
    Errors,
    /// RFC 9457, with `code`.
    Problem,
}

/// The body of an answer for which the document shows none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreatedBody {
    Empty,
    /// `OK` or `Created` as plain text.
    Text,
    /// `{}`
    Object,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule in its simplest form: round, then compare.
    fn includes(bounds: Bounds, start: i64, stop: i64, nanos: i64) -> bool {
        const S: i64 = 1_000_000_000;
        let (at, unit) = match bounds.rounding {
            Rounding::Exact => (nanos, S),
            Rounding::Down => (nanos.div_euclid(S), 1),
            Rounding::Up => ((nanos + S - 1).div_euclid(S), 1),
            Rounding::Nearest => ((nanos + S / 2).div_euclid(S), 1),
        };
        let after = if bounds.start_open { at > start * unit } else { at >= start * unit };
        let before = if bounds.stop_open { at < stop * unit } else { at <= stop * unit };
        after && before
    }

    #[test]
    fn all_sixteen_interpretations_equal_rounding_and_comparing() {
        let steps = [0, 1, 499_999_999, 500_000_000, 500_000_001, 999_000_000, 999_999_999];
        for rounding in [Rounding::Exact, Rounding::Down, Rounding::Up, Rounding::Nearest] {
            for (start_open, stop_open) in [(false, false), (false, true), (true, false), (true, true)] {
                let bounds = Bounds { rounding, start_open, stop_open };
                for nanos in (8..14).flat_map(|second| steps.map(|step| second * 1_000_000_000 + step)) {
                    let range = bounds.first_nano(10)..bounds.end_nano(12);
                    assert_eq!(range.contains(&nanos), includes(bounds, 10, 12, nanos), "{bounds:?} {nanos}");
                }
            }
        }
    }

    #[test]
    fn the_stop_time_includes_its_whole_second_or_only_its_start() {
        let late = 12_999_000_000;
        assert!(late < Bounds::WHOLE_SECOND.end_nano(12) && late >= Bounds::EXACT.end_nano(12));
    }

    #[test]
    fn pairs_set_switches_and_an_invalid_pair_is_named_in_the_error() {
        let from =
            |pairs: &[&str]| Choices::from_pairs(&pairs.iter().map(|pair| (*pair).to_owned()).collect::<Vec<_>>());
        let choices = from(&["default_limit=7", "error_shape=nested", "requests_per_minute=null"]).unwrap();
        assert_eq!((choices.default_limit, choices.error_shape), (7, ErrorShape::Nested));
        assert_eq!(from(&[]).unwrap(), Choices::default());
        for wrong in
            ["default_limit", "limit=7", "default_limit=many", "rule_status=200", "limit_max=0", "error_shape=loud"]
        {
            assert_eq!(from(&["default_desc=false", wrong]).unwrap_err().0, wrong);
        }
    }
}
