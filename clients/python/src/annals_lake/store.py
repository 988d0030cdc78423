"""The storage of an archive: a directory, or a place in a bucket."""

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs

from .errors import LakeError


@dataclass(frozen=True)
class Store:
    """The files under one root. Paths are relative to it and use `/`."""

    filesystem: Any
    root: str
    prefix: str
    """The prefix that turns a path into an address for other engines."""
    location: str | None
    """The address with which `open_store` can open this again, also on another machine; None with the caller's own file system."""

    def full(self, path: str) -> str:
        """The path in this store's file system."""
        return f"{self.root}/{path}" if self.root else path

    def address(self, path: str) -> str:
        return self.prefix + self.full(path)

    def read(self, path: str) -> bytes | None:
        """The whole file; None if it does not exist."""
        try:
            with self.filesystem.open_input_stream(self.full(path), compression=None) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def names(self, directory: str) -> list[str]:
        """The sorted names of the files and directories in a directory; empty if it does not exist."""
        found = self.filesystem.get_file_info(fs.FileSelector(self.full(directory), allow_not_found=True))
        return sorted(info.base_name for info in found)

    @property
    def is_local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)


def open_store(location: str | os.PathLike[str], filesystem: Any = None) -> Store:
    """The store at a directory, an address such as `s3://bucket/prefix`, or a path of `filesystem`."""
    text = os.fspath(location)
    scheme, separator, rest = text.partition("://")
    if filesystem is not None:
        path = rest.strip("/") if separator else text.rstrip("/")
        return Store(filesystem, path, f"{scheme}://" if separator else "", None)
    if scheme == "s3" and separator:
        return Store(s3_filesystem(), rest.strip("/"), "s3://", text)
    if separator and scheme != "file":
        try:
            found, path = fs.FileSystem.from_uri(text)
        except ValueError as error:
            raise LakeError(
                f"pyarrow does not open {scheme}:// addresses: pass filesystem=, such as pyarrow.fs.AzureFileSystem(ACCOUNT)"
            ) from error
        return Store(found, path.strip("/"), f"{scheme}://", text)
    path = os.path.abspath(rest if separator else text)
    return Store(fs.LocalFileSystem(), path, "", path)


def s3_filesystem() -> Any:
    """S3 by the usual AWS_* environment. Finds keys, profiles and instance identities like AWS's own programs."""
    options: dict[str, Any] = {}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if endpoint:
        url = urlsplit(endpoint)
        options |= {"endpoint_override": url.netloc or endpoint, "scheme": url.scheme or "https"}
        # A private server has no regions.
        region = region or "us-east-1"
    if region:
        options["region"] = region
    return fs.S3FileSystem(**options)
