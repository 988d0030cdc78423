"""Archives in Spark: exact lists of files, and a Python data source.

    spark.dataSource.register(AnnalsDataSource)
    spark.read.format("annals").option("path", "s3://bucket/archive").option("dataset", "connections").load()

The source's options are `path`, `ledger` (if the ledger lies elsewhere), `dataset`, `team`, `at` (a line's number, or a JSON object of each team's) and `partitions`: how
many parts the files are read in at most.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from .archive import Archive
from .store import Store, open_store
from .table import Table

FORMAT = "annals"
_FILES = "files"
_PARTITIONS = 16
_TYPES: dict[Any, st.DataType] = {
    pa.string(): st.StringType(),
    pa.timestamp("us"): st.TimestampNTZType(),
    pa.int64(): st.LongType(),
    pa.int32(): st.IntegerType(),
    pa.bool_(): st.BooleanType(),
    pa.binary(): st.BinaryType(),
}


class AnnalsDataSource(DataSource):
    """`spark.read.format("annals")`: files in Arrow batches."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> st.StructType:
        return spark_schema(self._table().schema)

    def reader(self, schema: st.StructType) -> DataSourceReader:
        table, chosen = self._table(), self.options.get(_FILES)
        paths = [entry.path for entry in table.entries] if chosen is None else json.loads(chosen)
        return _Reader(self.options["path"], table.schema, paths, int(self.options.get("partitions", _PARTITIONS)))

    def _table(self) -> Table:
        missing = [name for name in ("path", "dataset") if not self.options.get(name)]
        if missing:
            raise ValueError(f"the source {FORMAT!r} needs the option {missing[0]!r}")
        at = self.options.get("at")
        line = None if at is None else json.loads(at)
        archive = Archive(self.options["path"], ledger=self.options.get("ledger"))
        return archive.dataset(self.options["dataset"], self.options.get("team"), line)


class _Files(InputPartition):
    def __init__(self, paths: list[str]) -> None:
        self.paths = paths


class _Reader(DataSourceReader):
    def __init__(self, location: str, schema: Any, paths: list[str], partitions: int) -> None:
        self.location, self.schema, self.paths, self.count = location, schema, paths, max(1, partitions)

    def partitions(self) -> list[InputPartition]:
        return [_Files(self.paths[first :: self.count]) for first in range(min(self.count, len(self.paths)))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Files)
        store = open_store(self.location)
        paths, file_format = [store.full(path) for path in partition.paths], pads.ParquetFileFormat()
        yield from pads.FileSystemDataset.from_paths(
            paths, schema=self.schema, format=file_format, filesystem=store.filesystem
        ).to_batches()


def read(session: SparkSession, table: Table, store: Store, ledger: Store | None, through: str | None) -> DataFrame:
    """What `Table.spark` gives."""
    through = through or ("files" if store.is_local else "source")
    if through not in ("files", "source"):
        raise ValueError(f"through is 'files' or 'source', not {through!r}")
    schema = spark_schema(table.schema)
    if not table.entries:
        return session.createDataFrame([], schema)
    if through == "files":
        # Spark takes a path as a pattern.
        return session.read.schema(schema).parquet(*(re.sub(r"([\\{}\[\]*?])", r"\\\1", path) for path in table.files()))
    if store.location is None or (ledger is not None and ledger.location is None):
        raise ValueError("workers cannot be given a file system: open the archive by its address")
    session.dataSource.register(AnnalsDataSource)
    source = session.read.format(FORMAT).option("path", store.location).option("dataset", table.name)
    if ledger is not None:
        source = source.option("ledger", ledger.location)
    paths = [entry.path for entry in table.entries]
    return source.option("at", json.dumps(dict(table.lines))).option(_FILES, json.dumps(paths)).load()


def spark_schema(schema: Any) -> st.StructType:
    """Spark's types of these columns. Times have no zone and are UTC."""
    return st.StructType([st.StructField(field.name, _TYPES[field.type], field.nullable) for field in schema])
