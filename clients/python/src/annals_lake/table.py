"""A dataset at fixed lines of the ledger: exact files, and ways to read them."""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as pads

from .errors import Damaged, FileGone, PackageMissing
from .ledger import FileEntry
from .schema import SCHEMAS
from .store import Store

if TYPE_CHECKING:
    import duckdb
    import polars
    from pyspark.sql import DataFrame, SparkSession

_FILES_AT_ONCE = 8


@dataclass(frozen=True)
class Table:
    """The result of `Archive.dataset`. Reads nothing before a call of one of its readers."""

    _store: Store
    name: str
    entries: tuple[FileEntry, ...]
    """The ledger's entries of the files."""
    lines: Mapping[str, int]
    """The ledger line of each team in this result."""
    _ledger: Store | None = None
    """The place of the ledger, if it lies elsewhere."""

    def files(self) -> list[str]:
        """The files: absolute paths, or addresses as `s3://bucket/…`."""
        return [self._store.address(entry.path) for entry in self.entries]

    @property
    def rows(self) -> int:
        return sum(entry.rows for entry in self.entries)

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.entries)

    @property
    def schema(self) -> Any:
        """The columns as an Arrow schema, with columns of later versions of Annals if a file has them."""
        schema = SCHEMAS[self.name]
        if not self.entries:
            return schema
        newest = max(self.entries, key=lambda entry: entry.seq)
        found = self._format().make_fragment(self._store.full(newest.path), self._store.filesystem).physical_schema
        known = set(schema.names)
        return pa.schema([*schema, *(field for field in found if field.name not in known)])

    def between(self, start: datetime, end: datetime) -> "Table":
        """Only files that can hold rows of `[start, end)`; a time without a zone is UTC. The caller must still filter the rows."""
        first, last = _micros_of(start), _micros_of(end)

        def may_hold(entry: FileEntry) -> bool:
            if entry.first is None or entry.last is None:
                return True
            return _micros(entry.first) < last and _micros(entry.last) >= first

        return replace(self, entries=tuple(filter(may_hold, self.entries)))

    def verify(self) -> None:
        """Compares every file with its size and SHA-256 in the ledger.

        Raises `FileGone` or `Damaged` for the first that does not fit.
        """
        with ThreadPoolExecutor(_FILES_AT_ONCE) as threads:
            for fault in threads.map(self._fault, self.entries):
                if fault is not None:
                    raise fault

    def arrow_dataset(self) -> Any:
        """A lazy `pyarrow.dataset.Dataset`, which other libraries can read."""
        self._check_there()
        paths = [self._store.full(entry.path) for entry in self.entries]
        return pads.FileSystemDataset.from_paths(
            paths, schema=self.schema, format=self._format(), filesystem=self._store.filesystem
        ) if paths else pads.dataset([], schema=self.schema)

    def arrow(self, columns: list[str] | None = None, filter: Any = None) -> Any:
        """A `pyarrow.Table` of all rows, or of the rows that match a filter of `pyarrow.dataset`."""
        return self.arrow_dataset().to_table(columns=columns, filter=filter)

    def polars(self) -> "polars.LazyFrame":
        """A lazy frame of Polars."""
        try:
            import polars
        except ImportError as error:
            raise PackageMissing("polars() needs Polars: pip install 'annals-lake[polars]'") from error
        if self.entries and self._store.is_local:
            self._check_there()
            empty = polars.DataFrame(self.schema.empty_table())
            return polars.scan_parquet(
                self.files(), schema=empty.schema, hive_partitioning=False, glob=False, missing_columns="insert"
            )
        return polars.scan_pyarrow_dataset(self.arrow_dataset())

    def duckdb(self, connection: "duckdb.DuckDBPyConnection | None" = None) -> "duckdb.DuckDBPyRelation":
        """A relation of DuckDB, in `connection` or in the module's default connection."""
        try:
            import duckdb
        except ImportError as error:
            raise PackageMissing("duckdb() needs DuckDB: pip install 'annals-lake[duckdb]'") from error
        connection = connection or duckdb.default_connection()
        if self.entries and self._store.is_local:
            self._check_there()
            # DuckDB must not treat a star or a bracket in a path as a pattern.
            paths = ["".join(f"[{c}]" if c in "*?[" else c for c in path) for path in self.files()]
            relation = connection.read_parquet(paths, hive_partitioning=False, union_by_name=True)
            if set(self.schema.names) <= set(relation.columns):
                return relation
        return connection.from_arrow(self.arrow_dataset())

    def spark(self, session: "SparkSession", through: str | None = None) -> "DataFrame":
        """A data frame of Spark over exactly these files.

        `through="files"` lets Spark read them itself. `through="source"` reads them by this package in Python on the
        workers, which need it and pyarrow, and the archive's credentials in their environment. Without `through`: files of a
        directory are read by Spark, those of a bucket by this package, since Spark alone does not know buckets.
        """
        try:
            from . import spark
        except ImportError as error:
            raise PackageMissing("spark() needs PySpark 4: pip install 'annals-lake[spark]'") from error
        return spark.read(session, self, self._store, self._ledger, through)

    def _format(self) -> Any:
        return pads.ParquetFileFormat()

    def _check_there(self) -> None:
        """Raises the error for a missing file, and names its line."""
        paths = [self._store.full(entry.path) for entry in self.entries]
        for entry, info in zip(self.entries, self._store.filesystem.get_file_info(paths) if paths else []):
            if not info.is_file:
                raise self._gone(entry)

    def _gone(self, entry: FileEntry) -> FileGone:
        at = self.lines[entry.team_id]
        return FileGone(
            f"{self._store.address(entry.path)} is missing. Line {entry.seq} of team {entry.team_id!r} added it, and it was "
            f"live at line {at}. If a later line removed it, its grace is over: ask at a later line"
        )

    def _fault(self, entry: FileEntry) -> Damaged | FileGone | None:
        try:
            stream = self._store.filesystem.open_input_stream(self._store.full(entry.path), compression=None)
        except FileNotFoundError:
            return self._gone(entry)
        digest, size = hashlib.sha256(), 0
        with stream:
            while block := stream.read(1 << 20):
                digest.update(block)
                size += len(block)
        if (digest.hexdigest(), size) == (entry.sha256, entry.bytes):
            return None
        return Damaged(
            f"{self._store.address(entry.path)} is not the file that line {entry.seq} of team {entry.team_id!r} added: "
            f"{size} bytes with the SHA-256 {digest.hexdigest()}, not {entry.bytes} with {entry.sha256}"
        )


def _micros(text: str) -> int:
    """The microseconds of an RFC 3339 time in the ledger, which ends with `Z` and can have nine digits."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    return _micros_of(datetime.fromisoformat(whole)) + int(fraction[:6].ljust(6, "0") or 0)


def _micros_of(time: datetime) -> int:
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
