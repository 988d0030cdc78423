//! I13: the archive's sessions equal those that a naive program computes from the archived events.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use annals::archive::Archive;
use annals::model::{ConnectionId, Detail, EventId, EventRow, Instant, SESSION_DETAILS, SessionRow};
use serde_json::{Value, json};

use super::naive_sessions;
use super::run::Run;
use super::world::Team;

pub fn compare(run: &Run, team: &Team, rows: Vec<EventRow>, broken: &mut Vec<String>) {
    let ids: Vec<ConnectionId> = rows
        .iter()
        .filter_map(|row| match &row.detail {
            Detail::Connections(texts) => texts.connection_id().map(ConnectionId::from),
            _ => None,
        })
        .collect();
    let mut latest: HashMap<EventId, EventRow> = HashMap::new();
    for row in rows {
        match latest.get(&row.event_id) {
            Some(held) if held.revision >= row.revision => {}
            _ => drop(latest.insert(row.event_id.clone(), row)),
        }
    }
    let naive = naive_sessions::sessions(latest.into_values().map(|row| row.raw.to_vec()));
    let store = Arc::new(run.files.snapshot());
    let archive = Archive::open(store).expect("it was opened before");
    let held = archive.writer(&team.id).and_then(|writer| {
        let ids: Vec<&ConnectionId> = ids.iter().collect();
        Ok([writer.rows().open_sessions(|_| true)?, writer.rows().finished_sessions(&ids)?].concat())
    });
    let held = match held {
        Ok(held) => held,
        Err(error) => return broken.push(format!("I13: {} has sessions that cannot be read: {error}", team.id)),
    };
    let count = held.len();
    let held: BTreeMap<String, Value> =
        held.into_iter().map(|held| (held.row.connection_id.to_string(), row_value(&held.row))).collect();
    if held.len() != count {
        broken.push(format!("I13: {}: a session stands twice", team.id));
    }
    for (id, session) in &naive {
        if held.get(id) != Some(session) {
            broken.push(format!("I13: {} {id}: {session}, held {:?}", team.id, held.get(id)));
            return;
        }
    }
    if held.len() != naive.len() {
        broken.push(format!("I13: {} has {} sessions, the events make {}", team.id, held.len(), naive.len()));
    }
}

/// The row that the naive program computes.
fn row_value(row: &SessionRow) -> Value {
    let millis = |at: Option<Instant>| at.map(|at| at.nanos().div_euclid(1_000_000));
    let mut value = json!({
        "connection_id": row.connection_id.as_str(), "requested_at": millis(row.requested_at),
        "established_at": millis(row.established_at), "authenticated_at": millis(row.authenticated_at),
        "closed_at": millis(row.closed_at), "first_event_at": millis(Some(row.first_event_at)),
        "last_event_at": millis(Some(row.last_event_at)), "duration_ms": row.duration_ms,
        "outcome": row.outcome.as_str(), "failed_attempts": row.failed_attempts, "event_count": row.event_count,
        "failure_reasons": row.failure_reasons, "conflicts": row.conflicts.as_deref().map(in_order),
    });
    for (name, detail) in SESSION_DETAILS.iter().zip(row.details.all()) {
        value[*name] = json!(detail);
    }
    value
}

/// Conflicts with the values of each detail in order: an erasure replaces a value at its place, and a pseudonym sorts elsewhere.
fn in_order(conflicts: &str) -> String {
    let mut conflicts: Value = serde_json::from_str(conflicts).expect("the conflicts of a session are JSON");
    for values in conflicts.as_object_mut().into_iter().flat_map(|details| details.values_mut()) {
        if let Some(values) = values.as_array_mut() {
            values.sort_by_key(Value::to_string);
        }
    }
    conflicts.to_string()
}
