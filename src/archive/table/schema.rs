//! The explicit columns of every dataset with files; all files of a version have the same columns.
//!
//! The field id of a column is its position, from 1 on. It never changes, because other engines find columns by it. Append new
//! columns at the end.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::model::Dataset;
use crate::model::{InventoryKind, InventoryPart, SESSION_DETAILS};

/// The names of columns that code refers to.
pub mod column {
    pub const TEAM_ID: &str = "team_id";
    pub const STREAM: &str = "stream";
    pub const EVENT_ID: &str = "event_id";
    pub const EVENT_TIME: &str = "event_time";
    pub const EVENT_TIME_NS: &str = "event_time_ns";
    pub const EVENT_TYPE: &str = "event_type";
    pub const REVISION: &str = "revision";
    pub const FIRST_SEEN_AT: &str = "first_seen_at";
    pub const REDACTED: &str = "redacted";
    pub const RAW: &str = "raw";
    pub const RAW_BYTES: &str = "raw_bytes";
    pub const REASON: &str = "reason";
    pub const DETAIL: &str = "detail";
    pub const SEEN_AT: &str = "seen_at";
    pub const PRESENT: &str = "present";
    pub const REPEATS: &str = "repeats";
    pub const TOKEN_INFO: &str = "token_info";
    pub const PAYLOAD: &str = "payload";
    pub const CONNECTION_ID: &str = "connection_id";
    pub const DEVICE_ID: &str = "device_id";
    pub const FIRST_EVENT_AT: &str = "first_event_at";
    /// The erasure orders that rewrote the row, separated by spaces.
    pub const ERASED: &str = "erased";
    /// A keyed digest of the served text, if `raw` is not that text, or null. Annals recognises the event by it.
    pub const SERVED_DIGEST: &str = "served_digest";
    /// The columns that `connections` adds, in order.
    pub const CONNECTION: [&str; 10] = [
        CONNECTION_ID,
        DEVICE_ID,
        "computer_host_name",
        "tunnel_id",
        "source_type",
        "peer_email",
        "peer_ip",
        "direct_ip",
        "local_user_name",
        "failure_reason",
    ];
    /// The columns of `sessions` with few equal values.
    pub const TIMES: [&str; 6] =
        ["requested_at", "established_at", "authenticated_at", "closed_at", FIRST_EVENT_AT, "last_event_at"];
    pub const DURATION_MS: &str = "duration_ms";
    pub const OUTCOME: &str = "outcome";
    pub const FAILED_ATTEMPTS: &str = "failed_attempts";
    pub const FAILURE_REASONS: &str = "failure_reasons";
    pub const EVENT_COUNT: &str = "event_count";
    pub const CONFLICTS: &str = "conflicts";

    /// The columns of `sessions` with few distinct values, as its details have: queries group and filter by them. They use
    /// dictionaries without compression: see `docs/decisions/0006-encoding.md`.
    pub const REPEATED: [&str; 3] = [OUTCOME, FAILED_ATTEMPTS, EVENT_COUNT];
}

/// The columns of a dataset. Times are microseconds in UTC, without a zone.
pub fn schema_of(dataset: Dataset) -> SchemaRef {
    static SCHEMAS: LazyLock<[SchemaRef; Dataset::ALL.len()]> = LazyLock::new(|| Dataset::ALL.map(make));
    let at = Dataset::ALL.iter().position(|d| *d == dataset).expect("BUG: every dataset is among all of them");
    Arc::clone(&SCHEMAS[at])
}

fn make(dataset: Dataset) -> SchemaRef {
    let with_id =
        |(id, field): (i32, Field)| field.with_metadata([(PARQUET_FIELD_ID_META_KEY.into(), id.to_string())].into());
    Arc::new(Schema::new((1..).zip(fields_of(dataset)).map(with_id).collect::<Vec<_>>()))
}

fn fields_of(dataset: Dataset) -> Vec<Field> {
    use column::*;
    match dataset {
        Dataset::Inventory(part) => return inventory_fields(part),
        Dataset::Sessions => return session_fields(),
        Dataset::Quarantine => {
            return vec![
                text(TEAM_ID),
                text(STREAM),
                text(EVENT_ID),
                time(EVENT_TIME).with_nullable(true),
                number(EVENT_TIME_NS).with_nullable(true),
                text(REASON),
                text(DETAIL),
                time(FIRST_SEEN_AT),
                flag(REDACTED),
                text(RAW),
                Field::new(RAW_BYTES, DataType::Binary, true),
                maybe(ERASED),
                maybe(SERVED_DIGEST),
            ];
        }
        Dataset::Activity | Dataset::Billing | Dataset::Connections => {}
    }
    let mut fields = vec![
        text(TEAM_ID),
        text(EVENT_ID),
        time(EVENT_TIME),
        number(EVENT_TIME_NS),
        text(EVENT_TYPE),
        Field::new(REVISION, DataType::Int32, false),
        time(FIRST_SEEN_AT),
        flag(REDACTED),
        maybe(RAW),
    ];
    fields.extend(own_columns(dataset).iter().map(|name| maybe(name)));
    fields.extend([maybe(ERASED), maybe(SERVED_DIGEST)]);
    fields
}

/// The columns that the dataset of a stream adds, in the order of [`Detail`](crate::model::Detail).
pub fn own_columns(dataset: Dataset) -> &'static [&'static str] {
    match dataset {
        Dataset::Activity => &[column::TOKEN_INFO, column::PAYLOAD],
        Dataset::Billing => &[column::PAYLOAD],
        Dataset::Connections => &column::CONNECTION,
        Dataset::Sessions | Dataset::Inventory(_) | Dataset::Quarantine => &[],
    }
}

fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, false)
}

fn maybe(name: &str) -> Field {
    text(name).with_nullable(true)
}

fn time(name: &str) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, None), false)
}

fn number(name: &str) -> Field {
    Field::new(name, DataType::Int64, false)
}

fn flag(name: &str) -> Field {
    Field::new(name, DataType::Boolean, false)
}

fn inventory_fields(part: InventoryPart) -> Vec<Field> {
    use column::*;
    let mut fields = vec![text(TEAM_ID)];
    fields.extend(part.keys().iter().map(|name| text(name)));
    fields.extend([time(SEEN_AT), flag(PRESENT), flag(REPEATS)]);
    fields.extend(part.columns().iter().map(|column| {
        let field = match column.kind {
            InventoryKind::Text => text(column.name),
            InventoryKind::Int => number(column.name),
            InventoryKind::Flag => flag(column.name),
            InventoryKind::Time => time(column.name),
        };
        field.with_nullable(true)
    }));
    fields.push(maybe(ERASED));
    fields
}

fn session_fields() -> Vec<Field> {
    use column::*;
    let mut fields = vec![text(TEAM_ID), text(CONNECTION_ID)];
    fields.extend(TIMES.map(|name| time(name).with_nullable(!matches!(name, FIRST_EVENT_AT | "last_event_at"))));
    fields.extend([number(DURATION_MS).with_nullable(true), text(OUTCOME), number(FAILED_ATTEMPTS)]);
    fields.push(maybe(FAILURE_REASONS));
    fields.extend(SESSION_DETAILS.map(maybe));
    fields.extend([number(EVENT_COUNT), maybe(CONFLICTS)]);
    fields
}
