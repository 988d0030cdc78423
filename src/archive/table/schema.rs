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
    if let Dataset::Inventory(part) = dataset {
        return inventory_fields(part);
    }
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let maybe = |name: &str| Field::new(name, DataType::Utf8, true);
    let time = |name: &str, nullable| Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, None), nullable);
    let nanos = |nullable| Field::new(EVENT_TIME_NS, DataType::Int64, nullable);
    let flag = Field::new(REDACTED, DataType::Boolean, false);
    if dataset == Dataset::Sessions {
        return session_fields();
    }
    if dataset == Dataset::Quarantine {
        return vec![
            text(TEAM_ID),
            text(STREAM),
            text(EVENT_ID),
            time(EVENT_TIME, true),
            nanos(true),
            text(REASON),
            text(DETAIL),
            time(FIRST_SEEN_AT, false),
            flag,
            text(RAW),
            Field::new(RAW_BYTES, DataType::Binary, true),
            maybe(ERASED),
            maybe(SERVED_DIGEST),
        ];
    }
    let mut fields = vec![
        text(TEAM_ID),
        text(EVENT_ID),
        time(EVENT_TIME, false),
        nanos(false),
        text(EVENT_TYPE),
        Field::new(REVISION, DataType::Int32, false),
        time(FIRST_SEEN_AT, false),
        flag,
        maybe(RAW),
    ];
    match dataset {
        Dataset::Activity => fields.extend([maybe(TOKEN_INFO), maybe(PAYLOAD)]),
        Dataset::Billing => fields.push(maybe(PAYLOAD)),
        Dataset::Connections => fields.extend(CONNECTION.map(maybe)),
        Dataset::Sessions | Dataset::Quarantine | Dataset::Inventory(_) => {}
    }
    fields.extend([maybe(ERASED), maybe(SERVED_DIGEST)]);
    fields
}

fn inventory_fields(part: InventoryPart) -> Vec<Field> {
    use column::*;
    let micros = || DataType::Timestamp(TimeUnit::Microsecond, None);
    let mut fields = vec![Field::new(TEAM_ID, DataType::Utf8, false)];
    fields.extend(part.keys().iter().map(|name| Field::new(*name, DataType::Utf8, false)));
    fields.extend([
        Field::new(SEEN_AT, micros(), false),
        Field::new(PRESENT, DataType::Boolean, false),
        Field::new(REPEATS, DataType::Boolean, false),
    ]);
    fields.extend(part.columns().iter().map(|column| {
        let kind = match column.kind {
            InventoryKind::Text => DataType::Utf8,
            InventoryKind::Int => DataType::Int64,
            InventoryKind::Flag => DataType::Boolean,
            InventoryKind::Time => micros(),
        };
        Field::new(column.name, kind, true)
    }));
    fields.push(Field::new(ERASED, DataType::Utf8, true));
    fields
}

/// The columns of `sessions`, in order.
fn session_fields() -> Vec<Field> {
    use column::*;
    let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
    let time = |name: &&str| {
        let nullable = !matches!(*name, FIRST_EVENT_AT | "last_event_at");
        Field::new(*name, DataType::Timestamp(TimeUnit::Microsecond, None), nullable)
    };
    let number = |name: &str, nullable| Field::new(name, DataType::Int64, nullable);
    let mut fields = vec![text(TEAM_ID, false), text(CONNECTION_ID, false)];
    fields.extend(TIMES.iter().map(time));
    fields.extend([number(DURATION_MS, true), text(OUTCOME, false)]);
    fields.extend([number(FAILED_ATTEMPTS, false), text(FAILURE_REASONS, true)]);
    fields.extend(SESSION_DETAILS.map(|name| text(name, true)));
    fields.extend([number(EVENT_COUNT, false), text(CONFLICTS, true)]);
    fields
}
