//! Converts saved sandboxes of earlier formats to this one, one step for each format.
//!
//! | format | differences from the next format |
//! |---|---|
//! | 1 | no `saved_by`, no counters of the rate limit; the data decided whether the plan's span was enforced; the data always had odd events; `admin_needs_access` was true or false; the first builds kept fault rules without counters, and accepted some rules that are invalid now |

use serde_json::{Map, Value, json};

use crate::sandbox::fault_rules::{FAILURES, LATENCY_MS_MAX};

use super::{FORMAT, SavedError, unreadable};

/// # Errors
/// When it has no format, or a later one than this version's.
pub(super) fn upgraded(value: Value) -> Result<Value, SavedError> {
    let Value::Object(mut saved) = value else { return Err(unreadable("it is not a JSON object")) };
    let Some(format) = saved.get("format").and_then(Value::as_u64).filter(|&format| format > 0) else {
        return Err(unreadable("it has no format"));
    };
    if format > FORMAT {
        let saved_by = saved.get("saved_by").and_then(Value::as_str).map(str::to_owned);
        return Err(SavedError::Format { format, saved_by });
    }
    if format == 1 {
        from_first(&mut saved)?;
    }
    Ok(Value::Object(saved))
}

fn from_first(saved: &mut Map<String, Value>) -> Result<(), SavedError> {
    let enforced = saved.get_mut("made_of").and_then(Value::as_object_mut).and_then(|made_of| {
        made_of.insert("odd_events".to_owned(), json!(true));
        made_of.remove("enforce_plan_span")
    });
    if let (Some(enforced), Some(choices)) = (enforced, saved.get_mut("choices").and_then(Value::as_object_mut)) {
        choices.insert("enforce_plan_span".to_owned(), enforced);
    }
    if let Some(held) = saved.get_mut("choices").and_then(|choices| choices.get_mut("admin_needs_access")) {
        *held = json!(if *held == json!(true) { "always" } else { "never" });
    }
    for (number, rule) in saved.get_mut("faults").and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
        count(rule);
        let status = rule.pointer("/rule/fault/status/status").and_then(Value::as_u64);
        if let Some(status) = status.filter(|&status| !u16::try_from(status).is_ok_and(|held| FAILURES.contains(&held)))
        {
            let (rule, least, most) = (number + 1, FAILURES.start(), FAILURES.end());
            return Err(unreadable(format!(
                "fault rule {rule} asks for status {status}, which is no failure ({least} to {most} are): take it out of \
                 \"faults\" in the file"
            )));
        }
    }
    saved.insert("minute".to_owned(), json!({"number": 0, "requests": {}}));
    saved.insert("saved_by".to_owned(), json!("0.1.0"));
    saved.insert("format".to_owned(), json!(2));
    Ok(())
}

/// A rule of the first builds starts with zero counters, because these builds did not save them. An `every` of 0 and
/// a latency over today's maximum become the nearest valid value.
fn count(rule: &mut Value) {
    if rule.get("rule").is_none() {
        *rule = json!({"rule": rule.take(), "fitting": 0, "befallen": 0});
    }
    if let Some(every) = rule.pointer_mut("/rule/every").filter(|every| **every == json!(0)) {
        *every = json!(1);
    }
    let latency = rule.pointer_mut("/rule/fault/latency_ms");
    if let Some(latency) = latency.filter(|latency| latency.as_u64().is_some_and(|millis| millis > LATENCY_MS_MAX)) {
        *latency = json!(LATENCY_MS_MAX);
    }
}
