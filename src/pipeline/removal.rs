//! Computers that were removed: the service deletes their connection history with them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::archive::{Finding, FindingKind, ReadPoint};
use crate::model::{DeviceId, Instant, Stream};
use crate::planted::{self, Bug};

/// A computer's removal, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    pub device: DeviceId,
    /// When activity says it happened, else when it was noticed.
    pub at: Instant,
    /// Before this moment the computer was surely there: what was read earlier was read with it.
    pub there_until: Instant,
}

/// Whether an activity event of this type tells of a computer's removal. The complete list of types is not documented;
/// `teamDeviceRemovedEvent` is.
pub fn tells_of_removal(event_type: &str) -> bool {
    let name = event_type.to_ascii_lowercase();
    let name = name.strip_prefix("team").unwrap_or(&name);
    let name = name.strip_suffix("event").unwrap_or(name);
    // What is removed from a group, or taken from a computer, leaves the computer where it is.
    ["device", "computer"].iter().any(|what| matches!(name.strip_prefix(what), Some("removed" | "deleted")))
}

/// The known computers whose id stands anywhere in the payload: its shape is not documented.
pub fn devices_in(payload: &str, known: &BTreeSet<DeviceId>) -> Vec<DeviceId> {
    let Ok(value) = serde_json::from_str::<Value>(payload) else { return Vec::new() };
    let mut found = BTreeSet::new();
    let mut rest = vec![&value];
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) => found.extend(known.get(&DeviceId::from(text.as_str())).cloned()),
            Value::Array(items) => rest.extend(items),
            Value::Object(members) => {
                found.extend(members.keys().filter_map(|key| known.get(&DeviceId::from(key.as_str())).cloned()));
                rest.extend(members.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found.into_iter().collect()
}

/// The gap that a removal leaves: from what had been read before it, to the removal itself. `None` where everything up
/// to it had been read, or where it happened before the first reading.
pub fn gap(removal: &Removal, read_points: &[ReadPoint], begins: Instant, found_at: Instant) -> Option<Finding> {
    let first = read_points.first()?;
    let before = read_points.iter().rev().find(|point| point.at < removal.there_until);
    let from = match before {
        Some(point) => point.read_to,
        None if removal.at < first.at => return None,
        None => begins,
    };
    let from = if planted::is(Bug::GapFromBeginning) { begins } else { from };
    (from < removal.at && !planted::is(Bug::NoRemovalGap)).then(|| Finding {
        stream: Some(Stream::Connections),
        kind: FindingKind::Gap,
        subject: removal.device.to_string(),
        from: Some(from),
        to: Some(removal.at),
        reason: "the computer was removed, and with it what it had connected since the last read".to_owned(),
        count: 1,
        found_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Instant {
        Instant::from_seconds(1_700_000_000 + seconds)
    }

    #[test]
    fn a_known_id_anywhere_in_the_payload_counts() {
        let known = BTreeSet::from([DeviceId::from("d1"), DeviceId::from("d2")]);
        for (payload, expected) in [
            (r#"{"deviceID":"d1"}"#, vec!["d1"]),
            (r#"{"a":[{"b":"d2"}],"c":"other"}"#, vec!["d2"]),
            (r#"{"d1":{}}"#, vec!["d1"]),
            (r#"{"deviceID":"d3"}"#, vec![]),
            ("not json", vec![]),
        ] {
            let found: Vec<String> = devices_in(payload, &known).iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{payload}");
        }
    }

    #[test]
    fn the_gap_reaches_from_the_last_read_before_the_removal_to_the_removal() {
        let points = [ReadPoint { at: at(0), read_to: at(0) }, ReadPoint { at: at(60), read_to: at(60) }];
        let removal = |seconds| Removal { device: DeviceId::from("d1"), at: at(seconds), there_until: at(seconds) };
        let interval = |gap: Option<Finding>| gap.map(|gap| (gap.from.unwrap(), gap.to.unwrap()));
        assert_eq!(interval(gap(&removal(90), &points, at(-900), at(120))), Some((at(60), at(90))));
        assert_eq!(interval(gap(&removal(30), &points, at(-900), at(120))), Some((at(0), at(30))));
        assert_eq!(interval(gap(&removal(-30), &points, at(-900), at(120))), None, "before the archive's beginning");
        assert_eq!(interval(gap(&removal(30), &[], at(-900), at(120))), None);
        let unknown = Removal { there_until: at(50), ..removal(90) };
        assert_eq!(
            interval(gap(&unknown, &points, at(-900), at(120))),
            Some((at(0), at(90))),
            "noticed by its absence"
        );
    }

    #[test]
    fn only_removals_of_computers_are_removals() {
        assert!(tells_of_removal("teamDeviceRemovedEvent") && tells_of_removal("teamComputerDeletedEvent"));
        for other in [
            "teamUserRemovedEvent",
            "teamDeviceAddedEvent",
            "teamGroupDeviceRemovedEvent",
            "teamDeviceUserRemovedEvent",
            "teamDeviceAnnotationsDeletedEvent",
            "teamDeviceInviteDeletedEvent",
        ] {
            assert!(!tells_of_removal(other), "{other}");
        }
    }
}
