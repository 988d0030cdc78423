"""Reads an Annals archive by its ledger: the exact files of a dataset, for Arrow, Polars, DuckDB and Spark.

    from annals_lake import Archive

    sessions = Archive("annals-demo").dataset("sessions")
    sessions.polars().filter(...).collect()
"""

from .archive import Archive
from .errors import (
    Damaged,
    FileGone,
    LakeError,
    NotAnArchive,
    PackageMissing,
    UnknownDataset,
    UnknownLine,
    UnknownSnapshot,
    UnknownTeam,
    WrongLedger,
)
from .ledger import FileEntry
from .schema import DATASETS
from .snapshots import Snapshot
from .table import Table

__all__ = [
    "DATASETS",
    "Archive",
    "Damaged",
    "FileEntry",
    "FileGone",
    "LakeError",
    "NotAnArchive",
    "PackageMissing",
    "Snapshot",
    "Table",
    "UnknownDataset",
    "UnknownLine",
    "UnknownSnapshot",
    "UnknownTeam",
    "WrongLedger",
]
