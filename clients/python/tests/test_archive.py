"""Compares the archive at each line with the program's own answers, and checks the errors for damage."""

import json
import pathlib
import shutil
import unittest
from collections.abc import Callable
from datetime import UTC, datetime
from unittest import mock

import annals_lake as lake
import pyarrow as pa
import pyarrow.parquet as pq
from annals_lake.ledger import _beyond, team_key
from annals_lake.schema import SCHEMAS

from support import ArchiveTest, annals, bucket_server


def ledger_files(root: pathlib.Path, team: str) -> list[pathlib.Path]:
    return sorted((root / "ledger" / f"team={team_key(team)}").glob("*.jsonl"))


def change_byte(path: pathlib.Path, place: int) -> None:
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


class ReadingTest(ArchiveTest):
    def test_the_newest_line_has_the_program_s_files_and_rows(self) -> None:
        archive = lake.Archive(self.root)
        self.assertEqual(len(archive.teams()), 2)
        for name in lake.DATASETS:
            table = archive.dataset(name)
            told = annals("--archive", str(self.root), "files", name).splitlines()
            self.assertEqual(sorted(table.files()), sorted(told), name)
            self.assertEqual(table.arrow().num_rows, table.rows, name)
        filled = [name for name in lake.DATASETS if archive.dataset(name).rows]
        self.assertTrue({"connections", "sessions", "inventory_users"} <= set(filled), filled)

    def test_every_line_has_the_files_of_a_ledger_that_ends_there(self) -> None:
        archive, removed = lake.Archive(self.root), 0
        for team in archive.teams():
            copy = self.copy()
            # With its snapshots, an archive refuses a team without a ledger line.
            shutil.rmtree(copy / "snapshots")
            for other in archive.teams():
                if other != team:
                    for path in ledger_files(copy, other):
                        path.unlink()
            (path,) = ledger_files(copy, team)
            lines = path.read_bytes().splitlines(keepends=True)
            removed += sum(len(json.loads(line)["body"].get("removes", [])) for line in lines)
            for seq in range(len(lines), 0, -1):
                path.chmod(0o600)
                path.write_bytes(b"".join(lines[:seq]))
                for name in ("connections", "sessions"):
                    told = annals("--archive", str(copy), "files", name).splitlines()
                    there = [file.replace(str(copy), str(self.root)) for file in told]
                    table = archive.dataset(name, team, seq)
                    self.assertEqual(sorted(table.files()), sorted(there), f"{name} of {team} at {seq}")
                    self.assertEqual(dict(table.lines), {team: seq})
        self.assertGreater(removed, 10)

    def test_teams_are_apart_and_lines_are_given_by_team(self) -> None:
        archive = lake.Archive(self.root)
        one, other = archive.teams()
        whole = archive.dataset("connections")
        self.assertEqual(whole.rows, sum(archive.dataset("connections", team).rows for team in (one, other)))
        heads = archive.heads()
        self.assertEqual(archive.dataset("connections", at=heads).files(), whole.files())
        self.assertEqual(archive.dataset("connections", at={one: heads[one]}).files(), archive.dataset("connections", one).files())

    def test_every_reader_gives_the_same_rows(self) -> None:
        archive = lake.Archive(self.root)
        for name in lake.DATASETS:
            table = archive.dataset(name)
            keys = [(column, "ascending") for column in table.schema.names[:4]] + [("raw", "ascending")] * ("raw" in table.schema.names)
            expected = table.arrow().sort_by(keys)
            frame = table.polars().collect().to_arrow().cast(table.schema)
            relation = pa.table(table.duckdb().arrow()).select(table.schema.names).cast(table.schema)
            self.assertTrue(frame.sort_by(keys).equals(expected), name)
            self.assertTrue(relation.sort_by(keys).equals(expected), name)

    def test_the_columns_are_those_of_the_files(self) -> None:
        archive = lake.Archive(self.root)
        for name in lake.DATASETS:
            for path in archive.dataset(name).files():
                self.assertTrue(pq.read_schema(path).equals(SCHEMAS[name], check_metadata=False), path)
                ids = [field.metadata[b"PARQUET:field_id"] for field in pq.read_schema(path)]
                self.assertEqual(ids, [field.metadata[b"PARQUET:field_id"] for field in SCHEMAS[name]])

    def test_between_keeps_what_a_period_needs(self) -> None:
        table = lake.Archive(self.root).dataset("connections")
        start, end = datetime(2026, 11, 10), datetime(2026, 11, 11, tzinfo=UTC)
        part = table.between(start, end)
        self.assertTrue(0 < len(part.entries) < len(table.entries))
        import pyarrow.dataset as ds

        period = (ds.field("event_time") >= start) & (ds.field("event_time") < end.replace(tzinfo=None))
        self.assertEqual(part.arrow(filter=period).num_rows, table.arrow(filter=period).num_rows)
        self.assertGreater(part.arrow(filter=period).num_rows, 0)

    def test_the_spark_source_gives_every_row_in_so_many_parts(self) -> None:
        from annals_lake.spark import AnnalsDataSource

        table = lake.Archive(self.root).dataset("sessions")
        options = {"path": str(self.root), "dataset": "sessions", "at": json.dumps(dict(table.lines))}
        source = AnnalsDataSource(options | {"partitions": "2"})
        reader = source.reader(source.schema())
        partitions = reader.partitions()
        self.assertEqual(len(partitions), 2)
        self.assertGreater(len(table.entries), 2)
        batches = [batch for partition in partitions for batch in reader.read(partition)]
        keys = [("team_id", "ascending"), ("connection_id", "ascending")]
        self.assertTrue(pa.Table.from_batches(batches).sort_by(keys).equals(table.arrow().sort_by(keys)))
        with self.assertRaisesRegex(ValueError, "needs the option 'dataset'"):
            AnnalsDataSource({"path": str(self.root)}).schema()

    def test_a_snapshot_stands_for_lines(self) -> None:
        copy = self.copy()
        archive = lake.Archive(copy)
        team, other = archive.teams()
        head = archive._read_ledgers()[team].line(3).sha256
        metadata = copy / "tables/sessions/metadata"
        metadata.mkdir()
        summary = {"annals.ledgers": "s3://elsewhere/tables/sessions/metadata/lines-1.json"}
        known = [{"snapshot-id": 1, "timestamp-ms": 1_763_600_000_000, "summary": summary}]
        (metadata / "v9.metadata.json").write_text("{}")
        (metadata / "v10.metadata.json").write_text(json.dumps({"snapshots": known}))
        lines = {"archive_id": archive.id, "teams": [{"team_id": team, "seq": 3, "head": head}]}
        (metadata / "lines-1.json").write_text(json.dumps(lines))
        self.assertEqual([snapshot.id for snapshot in archive.snapshots("sessions")], [1])
        self.assertEqual(archive.dataset("sessions", snapshot=1), archive.dataset("sessions", at={team: 3}))
        self.assertEqual(archive.dataset("sessions", other, snapshot=1).entries, ())
        with self.assertRaisesRegex(lake.UnknownSnapshot, "no snapshot 2; the newest are 1"):
            archive.dataset("sessions", snapshot=2)
        lines["teams"] = [{"team_id": team, "seq": 3, "head": "0" * 64}]
        (metadata / "lines-1.json").write_text(json.dumps(lines))
        with self.assertRaisesRegex(lake.UnknownSnapshot, "which the ledger does not have"):
            archive.dataset("sessions", snapshot=1)

    def test_a_bucket_has_the_same_files(self) -> None:
        with bucket_server() as environment, mock.patch.dict("os.environ", environment):
            from pyarrow import fs

            from annals_lake.store import s3_filesystem

            options = {"endpoint_override": environment["AWS_ENDPOINT_URL"].removeprefix("http://"), "scheme": "http"}
            fs.S3FileSystem(allow_bucket_creation=True, region="us-east-1", **options).create_dir("lake")
            annals("copy", str(self.root), "s3://lake/some/archive", **environment)
            local, bucket = lake.Archive(self.root), lake.Archive("s3://lake/some/archive")
            by_path = lake.Archive("lake/some/archive", filesystem=s3_filesystem())
            for name in ("connections", "sessions", "quarantine", "inventory_groups"):
                expected, table = local.dataset(name), bucket.dataset(name)
                self.assertEqual([entry.path for entry in table.entries], [entry.path for entry in expected.entries])
                self.assertTrue(all(file.startswith("s3://lake/some/archive/tables/") for file in table.files()))
                self.assertTrue(table.arrow().equals(expected.arrow()))
                self.assertEqual(table.polars().collect().height, expected.rows)
                self.assertEqual(table.duckdb().count("*").fetchall(), [(expected.rows,)])
                self.assertTrue(by_path.dataset(name).arrow().equals(expected.arrow()))
            bucket.dataset("sessions").verify()
            with self.assertRaises(lake.NotAnArchive):
                lake.Archive("s3://lake/elsewhere")


class LedgerElsewhereTest(ArchiveTest):
    def test_the_ledger_is_read_elsewhere(self) -> None:
        data, ledger = self.root.parent / "divided", self.root.parent / "ledgers"
        annals("--archive", str(data), "--ledger", str(ledger), "copy", str(self.root), str(data))
        self.assertFalse((data / "ledger").exists())
        whole, divided = lake.Archive(self.root), lake.Archive(data, ledger=ledger)
        self.assertEqual(divided.heads(), whole.heads())
        for name in lake.DATASETS:
            self.assertTrue(divided.dataset(name).arrow().equals(whole.dataset(name).arrow()), name)
        divided.dataset("sessions", whole.teams()[0]).verify()
        other = self.root.parent / "other"
        (other / "ledger").mkdir(parents=True)
        (other / "ledger/archive.json").write_text('{"format": "annals ledger", "version": 3, "id": "another"}')
        for location, place, message in [
            (data, None, "lies elsewhere: give its place as `ledger`"),
            (data, self.root, "is not the place of a ledger"),
            (data, other, "has the ledger of another archive"),
            (self.root, ledger, "lies inside it: leave `ledger` out"),
            (ledger, None, "is no archive"),
        ]:
            with self.assertRaisesRegex(lake.LakeError, message):
                lake.Archive(location, ledger=place)


class WrongUseTest(ArchiveTest):
    def test_what_is_not_there_is_named(self) -> None:
        archive = lake.Archive(self.root)
        team = archive.teams()[0]
        calls: list[tuple[Callable[[], object], type[Exception], str]] = [
            (lambda: lake.Archive(self.root.parent), lake.NotAnArchive, "is no archive: it has no archive.json"),
            (lambda: lake.Archive("az://container/prefix"), lake.LakeError, "az:// addresses: pass filesystem="),
            (lambda: archive.dataset("sesions"), lake.UnknownDataset, "'sesions'; there are activity, connections"),
            (lambda: archive.snapshots("sesions"), lake.UnknownDataset, "'sesions'; there are activity, connections"),
            (lambda: archive.dataset("sessions", "nobody"), lake.UnknownTeam, f"no team 'nobody'; there are '{team}'"),
            (lambda: archive.dataset("sessions", team, 0), lake.UnknownLine, "and no line 0"),
            (lambda: archive.dataset("sessions", team, 999), lake.UnknownLine, "and no line 999"),
            (lambda: archive.dataset("sessions", at=1), lake.UnknownLine, "each of 2 teams"),
            (lambda: archive.dataset("sessions", at={"nobody": 1}), lake.UnknownTeam, "'nobody', which `at` names"),
            (lambda: archive.dataset("sessions", snapshot=7), lake.UnknownSnapshot, "none: run `annals publish`"),
        ]
        for call, kind, said in calls:
            with self.assertRaisesRegex(kind, said):
                call()

    def test_other_formats_are_refused(self) -> None:
        copy = self.copy()
        manifest = copy / "archive.json"
        manifest.chmod(0o600)
        for text, kind, said in [
            ('{"format": "annals archive", "version": 2, "id": "x"}', lake.NotAnArchive, "version 2; this reader knows version 3"),
            ('{"format": "something"}', lake.NotAnArchive, "another program's"),
            ("{", lake.Damaged, "not JSON"),
        ]:
            manifest.write_text(text)
            with self.assertRaisesRegex(kind, said):
                lake.Archive(copy)

    def test_damage_is_named(self) -> None:
        copy = self.copy()
        path = pathlib.Path(lake.Archive(copy).dataset("sessions").files()[0])
        change_byte(path, 100)
        lake.Archive(copy).dataset("sessions")
        with self.assertRaisesRegex(lake.Damaged, f"{path.name} is not the file that line"):
            lake.Archive(copy, verify=True).dataset("sessions")
        path.unlink()
        readers: list[Callable[[lake.Table], object]] = [
            lambda table: table.arrow(),
            lambda table: table.polars(),
            lambda table: table.duckdb(),
            lambda table: table.verify(),
        ]
        for read in readers:
            with self.assertRaisesRegex(lake.FileGone, f"{path.name} is missing"):
                read(lake.Archive(copy).dataset("sessions"))

    def test_a_ledger_that_was_changed_is_refused(self) -> None:
        damages: list[tuple[Callable[[list[bytes]], list[bytes]], str]] = [
            (lambda lines: [lines[0][:90] + b"X" + lines[0][91:], *lines[1:]], "hash does not fit"),
            (lambda lines: [lines[0], *lines[2:]], "does not follow line 1"),
            (lambda lines: [lines[1], lines[0], *lines[2:]], "does not follow line 0"),
            (lambda lines: [*lines[:-1], b'{"v":1}\n'], "without a hash"),
        ]
        for damage, said in damages:
            copy = self.copy()
            (path,) = ledger_files(copy, lake.Archive(self.root).teams()[0])
            path.chmod(0o600)
            path.write_bytes(b"".join(damage(path.read_bytes().splitlines(keepends=True))))
            with self.assertRaisesRegex(lake.Damaged, said):
                lake.Archive(copy).teams()

    def test_a_team_is_read_without_the_ledgers_of_others(self) -> None:
        copy, (one, other) = self.copy(), lake.Archive(self.root).teams()
        (path,) = ledger_files(copy, other)
        change_byte(path, 90)
        rows = lake.Archive(self.root).dataset("sessions", one).rows
        self.assertEqual(lake.Archive(copy).dataset("sessions", one).rows, rows)
        with self.assertRaises(lake.Damaged):
            lake.Archive(copy).dataset("sessions")

    def test_an_append_that_was_interrupted_is_no_line(self) -> None:
        heads = lake.Archive(self.root).heads()
        for torn in (b'{"v":1,"archive', b"\0" * 4096, b"\0" * 4096 + b"\n"):
            copy = self.copy()
            (path,) = ledger_files(copy, min(heads))
            path.chmod(0o600)
            with path.open("ab") as file:
                file.write(torn)
            self.assertEqual(lake.Archive(copy).heads(), heads)


class LinesOfABucketTest(unittest.TestCase):
    class Store:
        """Has the lines 1 to 3. The first read of line 2 comes before its append, and the read of line 3 after it."""

        def __init__(self, late: int) -> None:
            self.late = {f"team/line/{2:012}.jsonl": late}

        def read(self, path: str) -> bytes | None:
            self.late[path] = self.late.get(path, 0) - 1
            number = int(path[-18:-6])
            return None if self.late[path] >= 0 or number > 3 else f"{number}\n".encode()

    def test_lines_that_appear_during_the_read_are_read_again(self) -> None:
        found = _beyond(self.Store(1), "team", 0)  # type: ignore[arg-type]
        self.assertEqual([text for _, text in found], [b"1", b"2", b"3"])
        with self.assertRaisesRegex(lake.Damaged, "is not there, and a later line is"):
            list(_beyond(self.Store(2), "team", 0))  # type: ignore[arg-type]


class TeamKeyTest(unittest.TestCase):
    def test_ids_in_paths(self) -> None:
        for team, key in [("acme", "acme"), ("Acme", ".41cme"), ("", "."), ("a/b", "a.2fb"), ("..", ".2e.2e")]:
            self.assertEqual(team_key(team), key)
        self.assertEqual(len(team_key("t" * 121)), 114)


if __name__ == "__main__":
    unittest.main()
