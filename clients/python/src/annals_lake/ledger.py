"""A team's ledger: read, checked, and replayed to the files that are live at one of its lines.

The format is described in the guide's page "The archive format".
"""

import hashlib
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from .errors import Damaged, UnknownLine
from .store import Store

LEDGER = "ledger"
_DOMAIN = b"annals ledger line v1\n"
_TAIL = re.compile(rb',"sha256":"([0-9a-f]{64})"}$')
_DAY = re.compile(r"\d{4}-\d\d-\d\d\.jsonl")
_TEAM = "team="
_LINES_AT_ONCE = 16


@dataclass(frozen=True)
class FileEntry:
    """The ledger's entry of a data file. `first` and `last` bound the times of its rows; None if no row has a time."""

    path: str
    dataset: str
    team_id: str
    role: str
    rows: int
    bytes: int
    sha256: str
    first: str | None
    last: str | None
    seq: int
    """The line that added it."""


@dataclass(frozen=True)
class Line:
    seq: int
    sha256: str
    at: str
    adds: tuple[FileEntry, ...]
    removes: tuple[str, ...]


@dataclass(frozen=True)
class Ledger:
    """All lines of one team, checked against their hashes."""

    team_id: str
    lines: tuple[Line, ...]

    def line(self, seq: int) -> Line:
        if not 1 <= seq <= len(self.lines):
            raise UnknownLine(f"team {self.team_id!r} has the lines 1 to {len(self.lines)}, and no line {seq}")
        return self.lines[seq - 1]

    def live(self, seq: int) -> dict[str, FileEntry]:
        """The files that are live after line `seq`, by path: all added, less all removed."""
        live: dict[str, FileEntry] = {}
        for line in self.lines[: self.line(seq).seq]:
            for path in line.removes:
                if live.pop(path, None) is None:
                    raise Damaged(f"line {line.seq} of team {self.team_id!r} removes {path}, which is not live")
            live.update((entry.path, entry) for entry in line.adds)
        return live


def team_key(team_id: str) -> str:
    """A team's id in its path form."""
    plain = b"abcdefghijklmnopqrstuvwxyz0123456789_-"
    key = "".join(chr(byte) if byte in plain else f".{byte:02x}" for byte in team_id.encode())
    if len(key) > 120:
        key = f"{key[:80]}..{hashlib.sha256(team_id.encode()).hexdigest()[:32]}"
    return key or "."


def team_keys(store: Store) -> list[str]:
    return [name.removeprefix(_TEAM) for name in store.names(LEDGER) if name.startswith(_TEAM)]


def read_ledger(store: Store, key: str, archive_id: str) -> Ledger | None:
    """The ledger of the team with the path key `key`; None if it has no line."""
    directory = f"{LEDGER}/{_TEAM}{key}"
    lines: list[Line] = []
    prev, team_id = "0" * 64, ""
    for where, text in _texts(store, directory):
        parsed, digest = _checked(where, text)
        team_id = team_id or parsed["team_id"]
        of_this = (parsed["archive_id"], parsed["team_id"]) == (archive_id, team_id) and team_key(team_id) == key
        if not of_this:
            raise Damaged(f"{where} is a line of another archive or team")
        if parsed["seq"] != len(lines) + 1 or parsed["prev"] != prev:
            raise Damaged(f"{where} is line {parsed['seq']} and does not follow line {len(lines)}")
        lines.append(_line(parsed, digest))
        prev = digest
    return Ledger(team_id, tuple(lines)) if lines else None


def _texts(store: Store, directory: str) -> Iterator[tuple[str, bytes]]:
    """Every line, with its place. In a bucket, lines beyond the day files are objects of their own."""
    names = store.names(directory)
    days = [name for name in names if _DAY.fullmatch(name)]
    count = 0
    for name in days:
        for text in _whole_lines(store, f"{directory}/{name}", is_newest=name == days[-1]):
            count += 1
            yield f"{directory}/{name}", text
    if "line" not in names:
        return
    if "copy" in names:
        for name in reversed(store.names(f"{directory}/copy")):
            path = f"{directory}/copy/{name}"
            texts = (store.read(path) or b"").split(b"\n")[:-1]
            # A copy holds the lines of one day up to the number in its name.
            before = int(name.removesuffix(".jsonl")) - len(texts)
            if texts and before <= count < before + len(texts):
                for text in texts[count - before :]:
                    count += 1
                    yield path, text
                break
    yield from _beyond(store, directory, count)


def _beyond(store: Store, directory: str, count: int) -> Iterator[tuple[str, bytes]]:
    """The lines after line `count`: fetches them by number until one is missing."""
    with ThreadPoolExecutor(_LINES_AT_ONCE) as threads:
        while True:
            paths = [f"{directory}/line/{count + n:012}.jsonl" for n in range(1, _LINES_AT_ONCE + 1)]
            found = list(threads.map(store.read, paths))
            end = found.index(None) if None in found else len(found)
            if any(text is not None for text in found[end:]):
                # A writer may have appended these lines while they were read.
                found[end:] = threads.map(store.read, paths[end:])
                end = found.index(None) if None in found else len(found)
            if any(text is not None for text in found[end:]):
                raise Damaged(f"{paths[end]} is not there, and a later line is")
            for path, text in zip(paths[:end], found[:end]):
                yield path, (text or b"").rstrip(b"\n")
            if end < len(found):
                return
            count += len(found)


def _whole_lines(store: Store, path: str, is_newest: bool) -> list[bytes]:
    lines = (store.read(path) or b"").split(b"\n")
    torn = lines.pop()
    if is_newest:
        # An interrupted append leaves bytes that are no line.
        if lines and (lines[-1].startswith(b"\0") or lines[-1].count(b"\0") >= 512):
            lines.pop()
    elif torn:
        raise Damaged(f"{path} ends in the middle of a line")
    return lines


def _checked(where: str, text: bytes) -> tuple[dict[str, Any], str]:
    tail = _TAIL.search(text)
    if tail is None:
        raise Damaged(f"{where} has a line without a hash")
    hashed, digest = text[: tail.start()], tail[1].decode()
    if hashlib.sha256(_DOMAIN + hashed).hexdigest() != digest:
        raise Damaged(f"{where} has a line whose hash does not fit")
    return json.loads(hashed + b"}"), digest


def _line(parsed: dict[str, Any], digest: str) -> Line:
    body, seq, team_id = parsed["body"], parsed["seq"], parsed["team_id"]
    adds = tuple(
        FileEntry(
            added["path"], added["dataset"], team_id, added["role"], added["rows"], added["bytes"], added["sha256"],
            added.get("first"), added.get("last"), seq,
        )
        for added in body.get("adds", [])
    )
    return Line(seq, digest, parsed["at"], adds, tuple(body.get("removes", [])))
