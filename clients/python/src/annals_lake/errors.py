"""Every error of this package."""


class LakeError(Exception):
    """The base of every error here."""


class NotAnArchive(LakeError):
    """No archive exists there, or this version cannot read its format."""


class WrongLedger(LakeError):
    """The ledger of the archive lies in another place than the given one."""


class UnknownDataset(LakeError):
    """An archive has no dataset of this name."""


class UnknownTeam(LakeError):
    """The archive holds no team of this id."""


class UnknownLine(LakeError):
    """The team's ledger has no such line."""


class UnknownSnapshot(LakeError):
    """The open table has no such snapshot, or names lines that the ledger does not have."""


class Damaged(LakeError):
    """The ledger or a file differs from the committed one."""


class FileGone(LakeError):
    """A file that the ledger names is missing."""


class PackageMissing(LakeError, ImportError):
    """An optional package is not installed."""
