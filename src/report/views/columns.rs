//! The views and their columns, which users may rely on.

use strum::IntoStaticStr;

use crate::model::{InventoryKind, InventoryPart};

/// A view's column, and its type in the SQL engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub sql_type: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum View {
    Activity,
    Connections,
    Billing,
    Sessions,
    Quarantine,
    Coverage,
    Findings,
    Ledger,
    ArchiveFiles,
    Verification,
    VerificationVerdict,
    Inventory(InventoryPart),
    InventoryAddresses,
    InventoryReads,
    Reviews,
    Holds,
    Expired,
    Retention,
    Erasures,
    UnfinishedErasures,
}

const fn text(name: &'static str) -> Column {
    Column { name, sql_type: "VARCHAR" }
}

const fn time(name: &'static str) -> Column {
    Column { name, sql_type: "TIMESTAMP" }
}

const fn count(name: &'static str) -> Column {
    Column { name, sql_type: "BIGINT" }
}

const fn flag(name: &'static str) -> Column {
    Column { name, sql_type: "BOOLEAN" }
}

/// The columns of every event.
const EVENT: [Column; 9] = [
    text("team_id"),
    text("event_id"),
    time("event_time"),
    count("event_time_ns"),
    text("event_type"),
    Column { name: "revision", sql_type: "INTEGER" },
    time("first_seen_at"),
    flag("redacted"),
    text("raw"),
];

/// The erasure orders that rewrote the row, separated by spaces.
const ERASED: Column = text("erased");

const CONNECTION: [Column; 10] = [
    text("connection_id"),
    text("device_id"),
    text("computer_host_name"),
    text("tunnel_id"),
    text("source_type"),
    text("peer_email"),
    text("peer_ip"),
    text("direct_ip"),
    text("local_user_name"),
    text("failure_reason"),
];

const SESSIONS: [Column; 22] = [
    text("team_id"),
    text("connection_id"),
    time("requested_at"),
    time("established_at"),
    time("authenticated_at"),
    time("closed_at"),
    time("first_event_at"),
    time("last_event_at"),
    count("duration_ms"),
    text("outcome"),
    count("failed_attempts"),
    text("failure_reasons"),
    text("device_id"),
    text("computer_host_name"),
    text("tunnel_id"),
    text("source_type"),
    text("peer_email"),
    text("peer_ip"),
    text("direct_ip"),
    text("local_user_name"),
    count("event_count"),
    text("conflicts"),
];

const QUARANTINE: [Column; 12] = [
    text("team_id"),
    text("stream"),
    text("event_id"),
    time("event_time"),
    count("event_time_ns"),
    text("reason"),
    text("detail"),
    time("first_seen_at"),
    flag("redacted"),
    text("raw"),
    // The raw bytes, if they are not UTF-8.
    Column { name: "raw_bytes", sql_type: "BLOB" },
    ERASED,
];

const COVERAGE: [Column; 12] = [
    text("team_id"),
    text("stream"),
    time("window_start"),
    time("window_end"),
    text("state"),
    count("reads"),
    count("requests"),
    count("events"),
    count("new"),
    count("late"),
    count("gaps"),
    time("settled_at"),
];

const FINDINGS: [Column; 10] = [
    text("team_id"),
    text("stream"),
    text("kind"),
    text("subject"),
    time("from_time"),
    time("to_time"),
    text("reason"),
    count("count"),
    time("found_at"),
    count("ledger_seq"),
];

/// A line of a ledger: one commit.
const LEDGER: [Column; 9] = [
    text("team_id"),
    count("seq"),
    time("at"),
    text("kind"),
    count("files_added"),
    count("files_removed"),
    // Rows of the added files minus rows of the removed files.
    count("rows_added"),
    text("sha256"),
    text("prev"),
];

/// A live file, and the ledger line that added it.
const ARCHIVE_FILES: [Column; 10] = [
    text("team_id"),
    text("dataset"),
    text("role"),
    // Relative to the archive.
    text("path"),
    count("rows"),
    count("bytes"),
    text("sha256"),
    time("first_event_at"),
    time("last_event_at"),
    count("added_seq"),
];

/// A fault that `verify` found.
const VERIFICATION: [Column; 4] = [text("team_id"), text("code"), text("subject"), text("detail")];

/// The overall result of `verify`: one row. The `…_good` columns count what agrees with the ledger.
const VERIFICATION_VERDICT: [Column; 11] = [
    flag("clean"),
    text("verdict"),
    count("files"),
    count("files_good"),
    count("rows"),
    count("rows_good"),
    count("lines"),
    count("lines_good"),
    count("retired"),
    count("unnamed"),
    count("faults"),
];

/// A review of a pack, recorded by `review sign`.
const REVIEWS: [Column; 11] = [
    text("team_id"),
    time("reviewed_at"),
    text("reviewer"),
    text("pack_sha256"),
    time("period_from"),
    time("period_to"),
    // Report ids, as a JSON list.
    text("reports"),
    count("findings"),
    text("outcome"),
    text("ticket"),
    count("ledger_seq"),
];

/// A legal hold in a team's ledger.
const HOLDS: [Column; 12] = [
    text("team_id"),
    text("hold_id"),
    // `team` or `all`.
    text("scope"),
    time("held_from"),
    time("held_to"),
    flag("by_subject"),
    text("reason"),
    text("requested_by"),
    time("added_at"),
    time("released_at"),
    text("release_reason"),
    count("ledger_seq"),
];

/// An expired month of a dataset.
const EXPIRED: [Column; 9] = [
    text("team_id"),
    text("dataset"),
    time("month_start"),
    text("policy"),
    count("files"),
    count("rows"),
    text("rows_digest"),
    time("expired_at"),
    count("ledger_seq"),
];

/// A live month of a dataset with a class, and the time from which it may expire.
const RETENTION: [Column; 9] = [
    text("team_id"),
    text("dataset"),
    time("month_start"),
    text("policy"),
    count("files"),
    count("rows"),
    count("bytes"),
    time("due_at"),
    text("kept_by"),
];

/// The changes of one erasure order in one dataset.
const ERASURES: [Column; 10] = [
    text("team_id"),
    text("order_id"),
    time("erased_at"),
    text("dataset"),
    count("files"),
    count("rows"),
    // Times of the first and the last rewritten row.
    time("first_event_at"),
    time("last_event_at"),
    count("ledger_seq"),
    flag("salts_replaced"),
];

/// A team of an order that began and is not done.
const UNFINISHED_ERASURES: [Column; 2] = [text("team_id"), text("order_id")];

/// An email address in lower case, and the time for which its sessions belong to the person.
const INVENTORY_ADDRESSES: [Column; 6] =
    [text("team_id"), text("email"), text("user_id"), time("valid_from"), time("held_from"), time("held_to")];

const INVENTORY_READS: [Column; 5] =
    [text("team_id"), text("part"), time("read_at"), flag("visible"), count("entities")];

impl View {
    pub const ALL: [View; 28] = [
        View::Activity,
        View::Connections,
        View::Billing,
        View::Sessions,
        View::Quarantine,
        View::Coverage,
        View::Findings,
        View::Ledger,
        View::ArchiveFiles,
        View::Verification,
        View::VerificationVerdict,
        View::Inventory(InventoryPart::Team),
        View::Inventory(InventoryPart::Users),
        View::Inventory(InventoryPart::SsoUsers),
        View::Inventory(InventoryPart::Computers),
        View::Inventory(InventoryPart::Groups),
        View::Inventory(InventoryPart::Memberships),
        View::Inventory(InventoryPart::Grants),
        View::Inventory(InventoryPart::SignIn),
        View::Inventory(InventoryPart::Tokens),
        View::InventoryAddresses,
        View::InventoryReads,
        View::Reviews,
        View::Holds,
        View::Expired,
        View::Retention,
        View::Erasures,
        View::UnfinishedErasures,
    ];
    /// Views whose rows are read only when a query uses them.
    pub const LOOKED_UP: [View; 5] =
        [View::Ledger, View::ArchiveFiles, View::Verification, View::VerificationVerdict, View::UnfinishedErasures];

    pub const fn as_str(self) -> &'static str {
        match self {
            View::Inventory(part) => part.table(),
            other => other.into_str(),
        }
    }

    /// In the order of the view.
    pub fn columns(self) -> Vec<Column> {
        let event = |own: &[Column]| [&EVENT, own, &[ERASED]].concat();
        match self {
            View::Activity => event(&[text("token_info"), text("payload")]),
            View::Connections => event(&CONNECTION),
            View::Billing => event(&[text("payload")]),
            View::Sessions => SESSIONS.to_vec(),
            View::Quarantine => QUARANTINE.to_vec(),
            View::Coverage => COVERAGE.to_vec(),
            View::Findings => FINDINGS.to_vec(),
            View::Ledger => LEDGER.to_vec(),
            View::ArchiveFiles => ARCHIVE_FILES.to_vec(),
            View::Verification => VERIFICATION.to_vec(),
            View::VerificationVerdict => VERIFICATION_VERDICT.to_vec(),
            View::Inventory(part) => inventory(part),
            View::InventoryAddresses => INVENTORY_ADDRESSES.to_vec(),
            View::InventoryReads => INVENTORY_READS.to_vec(),
            View::Reviews => REVIEWS.to_vec(),
            View::Holds => HOLDS.to_vec(),
            View::Expired => EXPIRED.to_vec(),
            View::Retention => RETENTION.to_vec(),
            View::Erasures => ERASURES.to_vec(),
            View::UnfinishedErasures => UNFINISHED_ERASURES.to_vec(),
        }
    }
}

/// Dated versions: valid from `valid_from` to `valid_to` (not included); still valid if that is NULL.
fn inventory(part: InventoryPart) -> Vec<Column> {
    let mut columns = vec![text("team_id")];
    columns.extend(part.keys().iter().map(|name| text(name)));
    columns.extend([time("valid_from"), time("valid_to")]);
    columns.extend(part.columns().iter().map(|column| match column.kind {
        InventoryKind::Text => text(column.name),
        InventoryKind::Int => count(column.name),
        InventoryKind::Flag => flag(column.name),
        InventoryKind::Time => time(column.name),
    }));
    columns
}
