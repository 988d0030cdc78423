"""A small archive of the sandbox's data, made by the program itself.

    python tests/support.py DIRECTORY

ANNALS names the program, else target/release/annals of this checkout is used.
"""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[3]
ANNALS = os.environ.get("ANNALS") or str(ROOT / "target/release/annals")
END = "2026-11-20T06:00:00Z"
SANDBOX = ["sandbox", "--json", "--teams", "2", "--days", "12", "--sessions-per-day", "60", "--seed", "3", "--odd-events"]
SANDBOX += ["--end", END, "--now", END]
# Processes with neighbouring numbers begin at ports that are far apart.
ports = itertools.count(os.getpid() * 64)
claims: list[socket.socket] = []


def annals(*arguments: str, **environment: str) -> str:
    done = subprocess.run([ANNALS, *arguments], env=os.environ | environment, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise AssertionError(f"annals {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def make_archive(directory: str) -> None:
    """An archive of two teams, read in two syncs, so that later lines replace files of earlier ones."""
    with subprocess.Popen([ANNALS, *SANDBOX], stdout=subprocess.PIPE, text=True) as sandbox:
        try:
            assert sandbox.stdout is not None
            ready = json.loads(sandbox.stdout.readline())
            service = {"ANNALS_BASE_URL": ready["base_url"], "ANNALS_TOKEN": ready["tokens"]["read_only"]}
            options = ["--archive", directory, "--requests-per-second", "0", "sync"]
            annals(*options, "--until", "2026-11-15", **service)
            annals(*options, **service)
        finally:
            sandbox.terminate()


def free_port() -> int:
    """A port on which nobody listens, below the ports that systems give to programs that ask for any port."""
    while True:
        port = 10_000 + next(ports) % 22_000
        with contextlib.suppress(OSError), socket.socket() as tried:
            # A socket on the UDP port of the same number claims the port until the server has started, also among processes.
            claim = socket.socket(type=socket.SOCK_DGRAM)
            claim.bind(("127.0.0.1", port))
            tried.bind(("127.0.0.1", port))
            claims.append(claim)
            return port


@contextlib.contextmanager
def bucket_server() -> Iterator[dict[str, str]]:
    """MiniStack's S3 for the block: yields the environment for its clients. Skips the test if MiniStack is not installed."""
    port = free_port()
    process = subprocess.Popen(
        [ROOT / "scripts/object-stores.sh", "ministack", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 300
        while True:
            # Another server can answer on the port of a server that has ended.
            if process.poll() == 3:
                raise unittest.SkipTest("MiniStack is not installed: run scripts/object-stores.sh install")
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("MiniStack does not start")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.2)
        yield {
            "AWS_ALLOW_HTTP": "true",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }
    finally:
        process.kill()
        process.wait()


class ArchiveTest(unittest.TestCase):
    """Tests of one archive, which they do not change; `copy` makes one for damage."""

    directory: tempfile.TemporaryDirectory[str]
    root: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        if not pathlib.Path(ANNALS).exists():
            raise unittest.SkipTest(f"{ANNALS} does not exist: build it, or name the program in ANNALS")
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.root = pathlib.Path(cls.directory.name) / "archive"
        make_archive(str(cls.root))

    def copy(self) -> pathlib.Path:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        return pathlib.Path(shutil.copytree(self.root, pathlib.Path(directory.name) / "copy"))


if __name__ == "__main__":
    make_archive(sys.argv[1])
