"""The columns of every dataset, in order. A column's position is its Parquet field id. Append new columns at the end."""

from typing import Any

import pyarrow as pa

_TYPES = {
    "text": pa.string(),
    "time": pa.timestamp("us"),
    "long": pa.int64(),
    "int": pa.int32(),
    "flag": pa.bool_(),
    "bytes": pa.binary(),
}
_EVENT = (
    "team_id:text! event_id:text! event_time:time! event_time_ns:long! event_type:text! revision:int! "
    "first_seen_at:time! redacted:flag! raw:text"
)
_ERASED = "erased served_digest"
_DETAILS = "device_id computer_host_name tunnel_id source_type peer_email peer_ip direct_ip local_user_name"
_SEEN = "seen_at:time! present:flag! repeats:flag!"
_COLUMNS = {
    "activity": f"{_EVENT} token_info payload {_ERASED}",
    "connections": f"{_EVENT} connection_id {_DETAILS} failure_reason {_ERASED}",
    "billing": f"{_EVENT} payload {_ERASED}",
    "sessions": "team_id:text! connection_id:text! requested_at:time established_at:time authenticated_at:time "
    "closed_at:time first_event_at:time! last_event_at:time! duration_ms:long outcome:text! failed_attempts:long! "
    f"failure_reasons {_DETAILS} event_count:long! conflicts",
    "quarantine": "team_id:text! stream:text! event_id:text! event_time:time event_time_ns:long reason:text! "
    f"detail:text! first_seen_at:time! redacted:flag! raw:text! raw_bytes:bytes {_ERASED}",
    "inventory_team": f"team_id:text! {_SEEN} name created_at:time device_events_max_retrieval_s:long plan_features "
    "limited_view:flag",
    "inventory_users": f"team_id:text! user_id:text! {_SEEN} email first_name last_name role remote_access "
    "totp_enabled:flag auth_providers last_used_at:time scim:flag annotations joined_on:time",
    "inventory_sso_users": f"team_id:text! user_id:text! {_SEEN} email first_name last_name scim:flag",
    "inventory_computers": f"team_id:text! device_id:text! {_SEEN} name last_online_at:time tags annotations "
    "os_hostname os_platform os_version",
    "inventory_groups": f"team_id:text! group_id:text! {_SEEN} name scim_managed:flag annotations",
    "inventory_memberships": f"team_id:text! group_id:text! member_kind:text! member_id:text! {_SEEN}",
    "inventory_grants": f"team_id:text! device_id:text! grantee_kind:text! grantee_id:text! {_SEEN}",
    "inventory_sign_in": f"team_id:text! user_id:text! {_SEEN} totp_enabled:flag auth_providers",
    "inventory_tokens": f"team_id:text! user_id:text! token_key:text! {_SEEN} title scopes last_used_at:time "
    "last_used_ip expires_at:time",
}


def _field(number: int, text: str) -> Any:
    name, _, kind = text.partition(":")
    nullable = not kind.endswith("!")
    return pa.field(name, _TYPES[kind.rstrip("!") or "text"], nullable, {"PARQUET:field_id": str(number)})


def _columns(name: str) -> str:
    return f"{_COLUMNS[name]} erased" if name.startswith("inventory_") else _COLUMNS[name]


DATASETS = tuple(_COLUMNS)
"""The datasets that an archive keeps in files."""

LEDGER_TABLES = ("coverage", "findings")
"""Further open tables: `annals publish` makes their rows from the ledgers."""

SCHEMAS: dict[str, Any] = {
    name: pa.schema([_field(number, text) for number, text in enumerate(_columns(name).split(), 1)]) for name in _COLUMNS
}
