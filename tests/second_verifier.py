"""Verifies an archive. It follows only the description of the format in docs/format.md, and uses no code of Annals.

    python3 tests/second_verifier.py ARCHIVE [LEDGER]

LEDGER is the place of a ledger that lies elsewhere. Every fault is one line, `<what> <where>: <detail>`; exit 0 when there is none, else 1. A line that begins with `note` is no fault. Rows are proved too where the
`duckdb` module can be imported; else their files' bytes alone are, and the last line says so.
"""

import calendar
import datetime
import hashlib
import itertools
import json
import pathlib
import re
import stat
import sys
import time

try:
    import duckdb
except ImportError:
    duckdb = None

GRACE = 2 * 86_400  # seconds that an orphan file may stay: a day, and a day until vacuum runs
DOMAIN = b"annals ledger line v1\n"
LINE = re.compile(
    rb'{"v":1,"archive_id":"[^"]*","team_id":".*","seq":[0-9]+,"prev":"[0-9a-f]{64}",'
    rb'"at":"\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\d(\.\d*[1-9])?Z","nonce":"[0-9a-f]{16}","kind":"commit","body":{.*}'
)
TAIL = re.compile(rb',"sha256":"([0-9a-f]{64})"}$')
PLACE = re.compile(
    r"tables/([a-z0-9_]+)/team=([a-z0-9_.-]+)/month=\d{4}-\d\d/"
    r"\d{8}t\d{6}z-(part|window|day|month|amendment|open)-([0-9a-f]{16})\.parquet"
)
DERIVED = re.compile(
    r"locks/.+|snapshots/team=[a-z0-9_.-]+/\d+\.json|tables/[a-z_]+/metadata/[a-z0-9.-]+"
    r"|tables/(coverage|findings)/data/\d{4}-\d\d-[0-9a-f]{16}\.parquet"
)
SALT = re.compile(r"salts/team=[a-z0-9_.-]+/\d{4}-\d\d-[0-9a-f]{16}\.json")
EVENTS = ("activity", "connections", "billing")
STATES = ["provisional", "settled", "sealed"]
faults, notes = [], []


def fault(what, where, detail):
    faults.append(f"{what} {where}: {detail}")


def team_key(team):
    plain = b"abcdefghijklmnopqrstuvwxyz0123456789_-"
    key = "".join(chr(b) if b in plain else f".{b:02x}" for b in team.encode())
    if len(key) > 120:
        key = f"{key[:80]}..{hashlib.sha256(team.encode()).hexdigest()[:32]}"
    return key or "."


def leb128(number):
    return bytes([number]) if number < 128 else bytes([128 | number & 127]) + leb128(number >> 7)


def month_of(names, row):
    """The month of the row's sorting time: `2026-11`."""
    values = dict(zip(names, row))
    name = next(name for name in ("event_time_ns", "first_event_at", "seen_at") if name in values)
    at = values["first_seen_at"] if values[name] is None else values[name] // (1_000 if name == "event_time_ns" else 1)
    return time.strftime("%Y-%m", time.gmtime(at // 1_000_000))


def row_bytes(salt, names, values):
    out = [b"annals row v1\n", salt]
    for name, value in zip(names, values):
        if value is None:
            out.append(b"\0")
        elif isinstance(value, bool):
            out.append(bytes([3, value]))
        elif isinstance(value, int):
            out.append(b"\2" + value.to_bytes(8, "little", signed=True))
        else:
            data = value.encode() if isinstance(value, str) else bytes(value)
            is_raw = name == "raw"
            out.append(b"\4" + hashlib.sha256(data).digest() if is_raw else b"\1" + leb128(len(data)) + data)
    return b"".join(out)


def rows_of(path, salts):
    """The number of rows and their digest, or None without a salt; times are microseconds since the epoch."""
    columns = duckdb.execute("SELECT name, logical_type FROM parquet_schema(?) WHERE num_children IS NULL", [str(path)])
    columns = columns.fetchall()
    names = [name for name, _ in columns]
    picked = [f'epoch_us("{name}")' if kind and "Timestamp" in kind else f'"{name}"' for name, kind in columns]
    query = duckdb.execute(f"SELECT {', '.join(picked)} FROM read_parquet(?, hive_partitioning = false)", [str(path)])
    rows, total, is_lost = 0, 0, False
    while chunk := query.fetchmany(10_000):
        rows += len(chunk)
        for row in chunk:
            salt = salts.get(month_of(names, row))
            is_lost |= salt is None
            total += int.from_bytes(hashlib.sha256(row_bytes(salt or b"", names, row)).digest(), "big")
    return rows, None if is_lost else f"{total % 2**256:064x}"


def check_line(where, line, archive_id, key, before):
    """The parsed line, or None if its check fails; `before` is (seq, hash, at) of the line before."""
    tail = TAIL.search(line)
    if tail is None:
        return fault("CHAIN_BREAK", where, "no hash at its end")
    hashed = line[: tail.start()]
    if hashlib.sha256(DOMAIN + hashed).hexdigest() != tail[1].decode():
        return fault("CHAIN_BREAK", where, "its hash is another")
    parsed = json.loads(hashed + b"}")
    again = json.dumps(parsed, separators=(",", ":"), ensure_ascii=False).encode()
    if not LINE.fullmatch(hashed) or again != hashed + b"}":
        return fault("CHAIN_BREAK", where, "not in the form of a line")
    if parsed["seq"] != before[0] + 1:
        fault("SEQ_GAP", where, f"number {parsed['seq']} after {before[0]}")
    if parsed["prev"] != before[1]:
        fault("CHAIN_BREAK", where, "does not follow the line before")
    if parsed["archive_id"] != archive_id or team_key(parsed["team_id"]) != key:
        fault("ARCHIVE_ID", where, "of another archive or team")
    return parsed, tail[1].decode()


def moment(text):
    return datetime.datetime.fromisoformat(text[:19])


def month_after(start, months):
    """The same day so many months later; the last one of a month that lacks it."""
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    return start.replace(year=year, month=month + 1, day=min(start.day, calendar.monthrange(year, month + 1)[1]))


def outlived(end, policy):
    """When what ended at `end` has outlived the class of a policy, such as `connections = 7y`."""
    number, unit = re.fullmatch(r"\w+ = (\d+)(d|w|mo|y)", policy).groups()
    days = {"d": 1, "w": 7}.get(unit)
    if days:
        return end + datetime.timedelta(days=int(number) * days)
    return month_after(end, int(number) * {"mo": 1, "y": 12}[unit])


def of_month(live, dataset, month):
    return [entry for entry in live.values() if entry["dataset"] == dataset and f"/month={month}/" in entry["path"]]


def check_holds(where, holds, dataset, start, end):
    """Whether no hold covers rows that a line removes or erases."""
    for hold in filter(None, holds):
        begins, ends = (moment(hold[edge]) if edge in hold else None for edge in ("from", "to"))
        if dataset == "quarantine" or ((begins is None or begins < end) and (ends is None or start < ends)):
            fault("POLICY_VIOLATION", where, f"rows of {dataset} were under the hold {hold['id']}")


def check_expired(where, parsed, live, holds, windows, gone):
    """Whether rows that go outlived their class, are those that the line says, and are under no hold."""
    body = parsed["body"]
    for record in body.get("expired", []):
        dataset, month, start = record["dataset"], record["month"][:7], moment(record["month"])
        if dataset == "sessions":
            twin = [other for other in body["expired"] if (other["dataset"], other["month"]) == ("connections", record["month"])]
            if not twin or record["rows"] > body["sessions"]["replaced"]:
                fault("STATE", where, f"sessions of {month} go without their connections")
            continue
        files, end = of_month(live, dataset, month), month_after(start, 1)
        digest = sum(int(entry["rows_digest"], 16) for entry in files) % 2**256
        found = (len(files), sum(entry["rows"] for entry in files), f"{digest:064x}")
        if found != (record["files"], record["rows"], record["rows_digest"]) or not files:
            fault("STATE", where, f"{dataset} of {month} are not what the line says")
        if {entry["path"] for entry in files} - set(body["removes"]):
            fault("STATE", where, f"a file of {dataset} of {month} stays")
        if dataset.startswith("inventory_"):
            later = [moment(entry["first"]) for entry in live.values() if entry["dataset"] == dataset and moment(entry["first"]) >= end]
            end = min(later, default=datetime.datetime.max)
        elif dataset != "quarantine":
            end = max([end, *(moment(entry["last"]) for entry in files if "last" in entry)])
        name = "inventory" if dataset.startswith("inventory_") else dataset
        is_due = end != datetime.datetime.max and outlived(end, record["policy"]) <= moment(record["at"]) <= moment(parsed["at"])
        if not record["policy"].startswith(f"{name} = ") or not is_due:
            fault("POLICY_VIOLATION", where, f"{dataset} of {month} had not outlived their class")
        if any(held["state"] != "sealed" for (stream, at), held in windows.items() if stream == dataset and at[:7] == month):
            fault("STATE", where, f"windows of {dataset} of {month} are open")
        check_holds(where, holds.values(), dataset, start, end)
    gone |= {(record["dataset"], record["month"][:7]) for record in body.get("expired", [])}
    for entry in body.get("adds", []):
        if entry["dataset"] in EVENTS and any(
            entry["dataset"] == dataset and f"/month={month}/" in entry["path"] for dataset, month in gone
        ):
            fault("STATE", where, f"{entry['path']} is of an expired month")
    for act in body.get("holds", []):
        hold, name = act.get("add"), act.get("add", act.get("release"))["id"]
        if hold and (name in holds or ("from" in hold and "to" in hold and moment(hold["from"]) >= moment(hold["to"]))):
            fault("STATE", where, f"the hold {name} is not new, or its period is empty")
        if not hold and not holds.get(name):
            fault("STATE", where, "a hold is released that does not stand")
        holds[name] = hold
    for window in body.get("windows", []):
        held = windows.get(at := (window["stream"], window["start"]), window)
        (state, events), (state_held, events_held) = ((STATES.index(of["state"]), of["events"]) for of in (window, held))
        if state < state_held or events < events_held or window["end"] != held["end"]:
            fault("STATE", where, f"the window {at} goes back")
        windows[at] = window


def check_rows(where, body, live, key):
    """Whether added files are new and in their place, and hold the rows that files lose, except those that the line says."""
    adds, gone = body.get("adds", []), [live[path] for path in set(body.get("removes", [])) & set(live)]
    for entry in adds:
        place = PLACE.fullmatch(entry["path"])
        if place is None or place.groups()[:3] != (entry["dataset"], key, entry["role"]):
            fault("STATE", where, f"{entry['path']} is not the place of an added file")
        if entry["path"] in live or sum(entry["path"] == other["path"] for other in adds) > 1:
            fault("STATE", where, f"{entry['path']} is not new")
        if "first" in entry and "last" in entry and moment(entry["first"]) > moment(entry["last"]):
            fault("STATE", where, f"{entry['path']} ends before it begins")
    if "erased" in body:
        return
    due = {(record["dataset"], record["month"][:7]) for record in body.get("expired", []) if record["dataset"] != "sessions"}
    gone = [entry for entry in gone if (entry["dataset"], entry["path"].split("/month=")[1][:7]) not in due]
    if any(entry["dataset"] in EVENTS and entry["role"] in ("day", "month", "amendment") for entry in gone):
        fault("STATE", where, "removes a sealed file")
    said = {"added": 0, "replaced": 0, "added_digest": "0", "replaced_digest": "0"} | body.get("sessions", {})
    for dataset in {entry["dataset"] for entry in gone + adds}:
        def total(entries):
            mine = [entry for entry in entries if entry["dataset"] == dataset]
            return sum(entry["rows"] for entry in mine), sum(int(entry["rows_digest"], 16) for entry in mine)
        (rows, digest), after = total(gone), total(adds)
        if dataset == "sessions":
            rows += said["added"] - said["replaced"]
            digest += int(said["added_digest"], 16) - int(said["replaced_digest"], 16)
        if dataset == "quarantine" and "released" in body:
            rows -= body["released"]["rows"]
            digest -= int(body["released"]["rows_digest"], 16)
        if (dataset == "sessions" or after[0] <= rows) and (after[0] != rows or (after[1] - digest) % 2**256):
            fault("STATE", where, f"rows of {dataset} are lost or changed")


def check_erased(where, body, live, holds):
    """Whether an erasure changed the rows that it declares and no others, and none under a hold that covers every subject."""
    def place(entry):
        return (*entry["path"].rsplit("-", 1)[:1], entry["dataset"], entry["role"], entry["rows"], entry.get("first"), entry.get("last"))
    before, after = [live[path] for path in body.get("removes", []) if path in live], body.get("adds", [])
    if sorted(map(str, map(place, before))) != sorted(map(str, map(place, after))):
        fault("STATE", where, "an erasure puts no file in the place of another")
    parts = {part["dataset"]: part for part in body["erased"]["parts"]}
    if set(body) - {"adds", "removes", "erased", "salts", "findings"} or len(parts) != len(body["erased"]["parts"]):
        fault("STATE", where, "an erasure does more than erase")
    for dataset, part in parts.items():
        first = moment(part["first"]) if "first" in part else datetime.datetime.min
        end = moment(part["last"]) + datetime.timedelta(microseconds=1) if "last" in part else datetime.datetime.max
        check_holds(where, [hold for hold in holds.values() if hold and "subject" not in hold], dataset, first, end)
    for dataset in {entry["dataset"] for entry in before} | set(parts):
        part = parts.get(dataset, {"erased_digest": "0", "replaced_digest": "0", "rows": 0})
        def total(entries):
            return sum(int(entry["rows_digest"], 16) for entry in entries if entry["dataset"] == dataset)
        kept = total(before) - int(part["erased_digest"], 16)
        if (kept + int(part["replaced_digest"], 16) - total(after)) % 2**256 or not part["rows"]:
            fault("STATE", where, f"an erasure changed other rows of {dataset} than it declares")


def check_resalted(where, body, live, salts):
    """Whether an erasure that replaces salts gives only live files new row digests; applies the digests."""
    files = {file["path"]: file["rows_digest"] for file in body["erased"].get("resalted", [])}
    replaced = [record["month"][:7] for record in body.get("salts", []) if record["month"][:7] in salts]
    if "1970-01" in replaced or bool(replaced) != bool(files) or set(files) - set(live):
        fault("STATE", where, "an erasure replaces salts in a way that is not allowed")
    live |= {path: {**live[path], "rows_digest": digest} for path, digest in files.items() if path in live}
    notes.extend(f"SALT_REPLACED {where}: only hashes and signatures attest the row digests of {month} up to here" for month in replaced)


def check_ledger(folder, archive_id):
    """The live files by path, the time of the ledger file that removes each other file and if an order covers it, and the salts' hashes."""
    holds, windows, gone_months, day = {}, {}, set(), ""
    key, before, live, removed, salts = folder.name.removeprefix("team="), (0, "0" * 64), {}, {}, {}
    for path in sorted(path for path in folder.glob("*.jsonl") if path.is_file()):
        lines = path.read_bytes().split(b"\n")
        if lines.pop():
            fault("TORN_TAIL", path, "bytes behind the last newline")
        for number, line in enumerate(lines, 1):
            checked = check_line(f"{path}:{number}", line, archive_id, key, before)
            if checked is None:
                return live, removed, salts
            parsed, digest = checked
            before, day = (parsed["seq"], digest), max(day, parsed["at"][:10])
            if path.stem != day:
                fault("PATH_MISMATCH", f"{path}:{number}", f"belongs in the file of {day}")
            check_rows(f"{path}:{number}", parsed["body"], live, key)
            check_expired(f"{path}:{number}", parsed, live, holds, windows, gone_months)
            if "erased" in parsed["body"]:
                check_erased(f"{path}:{number}", parsed["body"], live, holds)
            for gone in parsed["body"].get("removes", []):
                if live.pop(gone, None) is None:
                    fault("STATE", f"{path}:{number}", f"removes {gone}, which is not live")
                removed[gone] = path.stat().st_mtime, False
            for added in parsed["body"].get("adds", []):
                live[added["path"]] = added
            if "erased" in parsed["body"]:
                check_resalted(f"{path}:{number}", parsed["body"], live, salts)
                removed = {gone: (at, True) for gone, (at, _) in removed.items()}
            named = {record["month"][:7]: record["sha256"] for record in parsed["body"].get("salts", [])}
            if set(named) & set(salts) and "erased" not in parsed["body"]:
                fault("STATE", f"{path}:{number}", "names the salt of a month again")
            salts |= named
    for ((stream, _), before), ((other, start), _) in itertools.pairwise(sorted(windows.items(), key=lambda item: item[0])):
        if stream == other and moment(start) < moment(before["end"]):
            fault("STATE", folder, f"two windows of {stream} overlap at {start}")
    return live, removed, salts


def salt_name(key, month, sha256):
    return f"salts/team={key}/{month}-{sha256[:16]}.json"


def check_salts(root, archive_id, key, named):
    """The salts by month; without a salt, only the files' hashes attest a month's rows."""
    salts = {}
    for month, sha256 in named.items():
        path = root / salt_name(key, month, sha256)
        data = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(data).hexdigest() != sha256:
            fault("SALT", salt_name(key, month, sha256), "not there, or not the one that the ledger names")
            continue
        salt = json.loads(data)
        if (salt["archive_id"], team_key(salt["team_id"]), salt["month"]) != (archive_id, key, month):
            fault("SALT", salt_name(key, month, sha256), "of another archive, team or month")
        salts[month] = bytes.fromhex(salt["salt"])
    return salts


def check_file(root, entry, salts):
    path, place = root / entry["path"], PLACE.fullmatch(entry["path"])
    if place is None or place[1] != entry["dataset"] or place[4] != entry["sha256"][:16]:
        fault("PATH_MISMATCH", entry["path"], "not the place of this file")
    if not path.is_file():
        return fault("FILE_MISSING", entry["path"], f"{entry['rows']} rows")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != entry["sha256"] or len(data) != entry["bytes"]:
        return fault("FILE_HASH", entry["path"], "its bytes are not those that were committed")
    rows, digest = rows_of(path, salts) if duckdb else (entry["rows"], None)
    if rows != entry["rows"] or digest not in (None, entry["rows_digest"]):
        fault("ROW_ROOT", entry["path"], "its rows are not those that were committed")


def read_manifest(path, form):
    manifest = dict(members := json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=list))
    if sorted(name for name, _ in members if name != "ledger") != ["format", "id", "version"] or (manifest["format"], str(manifest["version"])) != (form, "3"):
        fault("VERSION", path, f"{manifest}")
    return manifest


def main(root, ledger_root):
    manifest = read_manifest(root / "archive.json", "annals archive")
    known, retired, contents = {"archive.json"}, {}, set()
    if (manifest.get("ledger") == "elsewhere") != (ledger_root != root):
        sys.exit(f"archive.json says that the ledger lies {manifest.get('ledger', 'inside')}")
    if ledger_root != root:
        known.add("ledger/archive.json")
        if read_manifest(ledger_root / "ledger/archive.json", "annals ledger")["id"] != manifest["id"]:
            fault("ARCHIVE_ID", "ledger/archive.json", "the ledger of another archive")
    def may_be_left(path, name):
        """Whether the file may be there: it is young and no copy of a live file, or a line removed it and it is intact."""
        place, (removed_at, is_erased) = PLACE.fullmatch(name), retired.get(name, (0, True))
        age, digest = time.time() - max(path.stat().st_mtime, removed_at), hashlib.sha256(path.read_bytes()).hexdigest()
        if place and age >= GRACE and not is_erased and digest.startswith(place[4]):
            return notes.append(f"RETIRED_FILE {name}: a line removed it before the grace, run vacuum") or True
        return age < GRACE and (place or SALT.fullmatch(name) or name.startswith("scratch/")) and not (place and (place[3], digest) in contents)
    for folder in sorted((ledger_root / "ledger").glob("team=*")):
        days = [path for path in folder.iterdir() if re.fullmatch(r"\d{4}-\d\d-\d\d\.(jsonl|heads)", path.name)]
        known.update(str(path.relative_to(ledger_root)) for path in days)
        live, removed, named = check_ledger(folder, manifest["id"])
        key = folder.name.removeprefix("team=")
        salts = check_salts(root, manifest["id"], key, named)
        for entry in live.values():
            check_file(root, entry, salts)
        known.update(live, (salt_name(key, month, sha256) for month, sha256 in named.items()))
        contents.update((entry["role"], entry["sha256"]) for entry in live.values())
        retired |= removed
    for folder in {path.parent.name for path in root.glob("snapshots/team=*/*.json")}:
        if not any(path.stat().st_size for path in (ledger_root / "ledger" / folder).glob("*")):
            fault("SEQ_GAP", f"ledger/{folder}", "no line is there, but a snapshot exists")
    for base, path in sorted((base, path) for base in {root, ledger_root} for path in base.rglob("*")):
        name, info = str(path.relative_to(base)), path.lstat()
        if stat.S_ISDIR(info.st_mode):
            continue
        if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
            if not name.startswith("scratch/") or time.time() - info.st_mtime >= GRACE:
                fault("UNREADABLE", name, "no plain file, or a file with several names")
            continue
        is_known = name in known and base == (ledger_root if name.startswith("ledger/") else root)
        if not (is_known or DERIVED.fullmatch(name) or may_be_left(path, name)):
            fault("ORPHAN_FILE", name, "no ledger names it")


try:
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[-1]))
except (AttributeError, IndexError, KeyError, OSError, TypeError, ValueError) as error:
    fault("FORM", sys.argv[1], f"not in the documented form: {error!r}")
print("".join(f"note {note}\n" for note in notes), end="")
print("\n".join(faults) or f"no fault{'' if duckdb else ' (rows not read: no duckdb module)'}")
sys.exit(bool(faults))
