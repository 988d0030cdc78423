"""An archive, as it was at its opening."""

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .errors import Damaged, NotAnArchive, UnknownDataset, UnknownLine, UnknownSnapshot, UnknownTeam, WrongLedger
from .ledger import FileEntry, Ledger, read_ledger, team_key, team_keys
from .schema import DATASETS, LEDGER_TABLES
from .snapshots import Snapshot, heads_of, read_snapshots
from .store import open_store
from .table import Table

_MANIFEST = "archive.json"
_LEDGER_MANIFEST = "ledger/archive.json"
_VERSION = 3
_TEAMS_AT_ONCE = 8


class Archive:
    """An archive in a directory or a bucket.

    `location` is a directory, or an address such as `s3://bucket/prefix`; with `filesystem`, a path of that pyarrow file
    system. `ledger` is the place of the ledger, in the same form, if it lies elsewhere (`[store] ledger` of Annals). Each team's
    ledger is read once, when it is first needed: open the archive again to see later commits.

    With `verify`, every file is compared with the hash that the ledger holds before it is handed out, which reads it whole.
    """

    def __init__(
        self,
        location: str | os.PathLike[str],
        *,
        ledger: str | os.PathLike[str] | None = None,
        filesystem: Any = None,
        verify: bool = False,
    ) -> None:
        self.location = os.fspath(location)
        self.verify = verify
        self._store = open_store(location, filesystem)
        self._ledger_store = self._store if ledger is None else open_store(ledger, filesystem)
        manifest = self._read_manifest()
        self.id = str(manifest["id"])
        self._check_ledger(manifest, ledger)
        self._ledgers: dict[str, Ledger] = {}
        self._has_all = False

    def __repr__(self) -> str:
        return f"Archive({self.location!r})"

    def teams(self) -> list[str]:
        """The ids of the teams, sorted."""
        return sorted(self._read_ledgers())

    def heads(self) -> dict[str, int]:
        """The number of the last line of each team."""
        return {team: len(ledger.lines) for team, ledger in self._read_ledgers().items()}

    def dataset(
        self,
        name: str,
        team: str | None = None,
        at: int | Mapping[str, int] | None = None,
        snapshot: int | None = None,
    ) -> Table:
        """A dataset: of one team or of all, at a line of the ledger, at a snapshot of the open table, or at the newest line.

        `at` is a line's number, where the archive or `team` is one team; else the number of each team's line by its id.
        A team that `at` or the snapshot does not name has no rows.
        """
        if name not in DATASETS:
            raise UnknownDataset(f"no dataset is named {name!r}; there are {', '.join(DATASETS)}")
        if snapshot is not None:
            if at is not None:
                raise ValueError("give `at` or `snapshot`, not both")
            at = self._lines_of_snapshot(name, snapshot, team)
        files: list[FileEntry] = []
        lines = self._lines(team, at)
        for team_id, seq in lines.items():
            files.extend(self._of_dataset(self._ledgers[team_id], seq, name))
        elsewhere = None if self._ledger_store is self._store else self._ledger_store
        table = Table(self._store, name, tuple(sorted(files, key=lambda file: file.path)), lines, elsewhere)
        if self.verify:
            table.verify()
        return table

    def snapshots(self, name: str) -> list[Snapshot]:
        """The snapshots of a dataset's open table, oldest first; none where it was never published."""
        if name not in DATASETS and name not in LEDGER_TABLES:
            raise UnknownDataset(f"no table is named {name!r}; there are {', '.join((*DATASETS, *LEDGER_TABLES))}")
        return read_snapshots(self._store, name)

    def _lines_of_snapshot(self, name: str, snapshot: int, only: str | None) -> dict[str, int]:
        heads = heads_of(self._store, name, snapshot, self.id)
        heads = {team: head for team, head in heads.items() if only in (None, team)}
        for team, head in heads.items():
            ledger = self._ledger(team)
            lines = ledger.lines if ledger else ()
            if head.seq > len(lines) or (head.seq and lines[head.seq - 1].sha256 != head.sha256):
                raise UnknownSnapshot(
                    f"snapshot {snapshot} of {name} names line {head.seq} of team {team!r} with the hash {head.sha256}, "
                    "which the ledger does not have"
                )
        return {team: head.seq for team, head in heads.items() if head.seq}

    def _of_dataset(self, ledger: Ledger, seq: int, name: str) -> list[FileEntry]:
        return [entry for entry in ledger.live(seq).values() if entry.dataset == name]

    def _lines(self, team: str | None, at: int | Mapping[str, int] | None) -> dict[str, int]:
        """The line of each team at which the dataset is asked for."""
        if team is None:
            asked = self.heads()
        else:
            ledger = self._ledger(team)
            if ledger is None:
                raise UnknownTeam(f"{self.location} has no team {team!r}; there are {', '.join(map(repr, self.teams())) or 'none'}")
            asked = {team: len(ledger.lines)}
        if at is None:
            return asked
        if isinstance(at, Mapping):
            unknown = sorted(team_id for team_id in at if self._ledger(team_id) is None)
            if unknown:
                raise UnknownTeam(f"{self.location} has no team {unknown[0]!r}, which `at` names")
            lines = {team_id: at[team_id] for team_id in asked if team_id in at}
        elif len(asked) == 1:
            lines = {team_id: at for team_id in asked}
        else:
            raise UnknownLine(f"each of {len(asked)} teams counts its own lines: give `team`, or `at` as a line of each team")
        for team_id, seq in lines.items():
            self._ledgers[team_id].line(seq)
        return lines

    def _ledger(self, team: str) -> Ledger | None:
        if team not in self._ledgers and not self._has_all:
            ledger = read_ledger(self._ledger_store, team_key(team), self.id)
            if ledger is not None:
                self._ledgers[team] = ledger
        return self._ledgers.get(team)

    def _read_ledgers(self) -> dict[str, Ledger]:
        if not self._has_all:
            with ThreadPoolExecutor(_TEAMS_AT_ONCE) as threads:
                found = threads.map(lambda key: read_ledger(self._ledger_store, key, self.id), team_keys(self._ledger_store))
                read = {ledger.team_id: ledger for ledger in found if ledger is not None}
            self._ledgers, self._has_all = read | self._ledgers, True
        return self._ledgers

    def _read_manifest(self) -> dict[str, Any]:
        text = self._store.read(_MANIFEST)
        if text is None:
            raise NotAnArchive(f"{self.location} is no archive: it has no {_MANIFEST}")
        manifest = _parsed(text, f"{self.location}/{_MANIFEST}")
        if not isinstance(manifest, dict) or manifest.get("format") != "annals archive":
            raise NotAnArchive(f"{self.location} is no archive of Annals: its {_MANIFEST} is another program's")
        if manifest.get("version") != _VERSION:
            raise NotAnArchive(
                f"{self.location} is an archive of version {manifest.get('version')}; this reader knows version {_VERSION}"
            )
        return manifest

    def _check_ledger(self, manifest: dict[str, Any], ledger: str | os.PathLike[str] | None) -> None:
        """A wrong place of the ledger would look like an archive without a team."""
        if manifest.get("ledger") is None:
            if ledger is not None:
                raise WrongLedger(f"the ledger of {self.location} lies inside it: leave `ledger` out")
            return
        if ledger is None:
            raise WrongLedger(f"the ledger of {self.location} lies elsewhere: give its place as `ledger`")
        place = os.fspath(ledger)
        text = self._ledger_store.read(_LEDGER_MANIFEST)
        found = None if text is None else _parsed(text, f"{place}/{_LEDGER_MANIFEST}")
        if not isinstance(found, dict) or found.get("format") != "annals ledger":
            raise WrongLedger(f"{place} is not the place of a ledger: it has no {_LEDGER_MANIFEST}")
        if found.get("id") != self.id:
            raise WrongLedger(f"{place} has the ledger of another archive than {self.location}")


def _parsed(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Damaged(f"{where} is not JSON: {error}") from error
