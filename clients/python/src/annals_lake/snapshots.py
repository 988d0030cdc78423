"""Snapshots of the open tables (Apache Iceberg), as lines of the ledgers.

Each snapshot names a file with the last line of each team that the snapshot includes. The ledgers say which files are live there, so that
no manifest is read.
"""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .errors import Damaged, UnknownSnapshot
from .store import Store

_VERSION = re.compile(r"v(\d+)\.metadata\.json")
_LINES = "annals.ledgers"


@dataclass(frozen=True)
class Head:
    """A ledger line of a snapshot, and its hash."""

    seq: int
    sha256: str


@dataclass(frozen=True)
class Snapshot:
    """A version of an open table."""

    id: int
    at: datetime
    """When it was published."""
    _lines: str


def read_snapshots(store: Store, dataset: str) -> list[Snapshot]:
    """The snapshots in the newest version of the table, oldest first; empty if the table was never published."""
    directory = f"tables/{dataset}/metadata"
    versions = [int(found[1]) for name in store.names(directory) if (found := _VERSION.fullmatch(name))]
    if not versions:
        return []
    path = f"{directory}/v{max(versions)}.metadata.json"
    metadata = _json(store, path)
    # Addresses can name another place, for example after a copy. All metadata files of a table are in one directory.
    return [
        Snapshot(
            snapshot["snapshot-id"],
            datetime.fromtimestamp(snapshot["timestamp-ms"] / 1000, UTC),
            f"{directory}/{snapshot['summary'].get(_LINES, '').rsplit('/', 1)[-1]}",
        )
        for snapshot in metadata.get("snapshots", [])
    ]


def heads_of(store: Store, dataset: str, snapshot_id: int, archive_id: str) -> dict[str, Head]:
    """The ledger line of each team in a snapshot."""
    found = read_snapshots(store, dataset)
    named = next((snapshot for snapshot in found if snapshot.id == snapshot_id), None)
    if named is None:
        known = ", ".join(str(snapshot.id) for snapshot in found[-5:]) or "none: run `annals publish`"
        raise UnknownSnapshot(f"the table {dataset} has no snapshot {snapshot_id}; the newest are {known}")
    lines = _json(store, named._lines)
    if lines["archive_id"] != archive_id:
        raise Damaged(f"{named._lines} is of another archive")
    return {team["team_id"]: Head(team["seq"], team["head"]) for team in lines["teams"]}


def _json(store: Store, path: str) -> dict[str, Any]:
    text = store.read(path)
    if text is None:
        raise UnknownSnapshot(f"{path} is not there: the table's snapshots were replaced meanwhile, or damaged")
    try:
        parsed: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise Damaged(f"{path} is not JSON: {error}") from error
    return parsed
