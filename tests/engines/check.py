"""Asks Spark's cluster and Sail's the questions of `queries/spark` and compares each answer with DuckDB's.

    scripts/engines.sh check ARCHIVE [--engines spark,sail] [--from DATE] [--to DATE] [--tz ZONE] [--questions r00,sessions]
        [--session-parts 8]

The program that asks DuckDB is named by ANNALS, else target/release/annals. Clusters are started here and ended here.
Exits with 3 where an engine is not here.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
REPORTS = ["r00", "r01", "r02", "r03", "r14", "r15"]
# Parameters that give answers on a small archive, too.
PARAMETERS = {"r03": {"min_failures": 1}}
QUESTIONS = [*REPORTS, "sessions", "source"]
START_SECONDS_MAX = 300
# Processes with neighbouring numbers begin at ports that are far apart.
ports = itertools.count(os.getpid() * 64)
claims = []


def free_port():
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


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextlib.contextmanager
def cluster(engine, environment):
    """The address and the process group of a cluster; the cluster ends with the block."""
    port = free_port()
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [ROOT / "scripts/engines.sh", engine, str(port)],
            stdout=log, stderr=log, env=environment, start_new_session=True,
        )
        try:
            deadline = time.monotonic() + START_SECONDS_MAX
            # Another server can answer on the port of a cluster that has ended.
            while process.poll() is not None or not answers(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    print(f"{engine} does not start: {log.read()[-2000:]}", file=sys.stderr)
                    sys.exit(3 if process.returncode == 3 else 1)
                time.sleep(0.2)
            yield f"{'sc' if engine == 'sail' else 'spark'}://127.0.0.1:{port}", process.pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def annals(arguments, output):
    program = os.environ.get("ANNALS", ROOT / "target/release/annals")
    done = subprocess.run([program, *arguments, "--output", output], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"annals {' '.join(arguments)}: {done.stderr}")


def ask_duckdb(options, directory):
    """The input of every engine, and DuckDB's answers."""
    base = ["--archive", options.archive]
    since, until = (f"{day}T00:00:00" for day in (options.since, options.until))
    period = ["--from", f"{since}Z", "--to", f"{until}Z", "--tz", options.tz]
    annals([*base, "sql", "FROM coverage", "--format", "parquet"], directory / "coverage.parquet")
    for report in [report for report in REPORTS if report in options.questions]:
        began, used, given = time.monotonic(), children_seconds(), PARAMETERS.get(report, {})
        changed = [word for name, value in given.items() for word in ("--param", f"{name}={value}")]
        run = [*base, "report", "run", report, *period, *changed, "--format", "ndjson", "--bare"]
        annals(run, directory / f"{report}.ndjson")
        took = {"seconds": round(time.monotonic() - began, 2), "processor": round(children_seconds() - used, 2)}
        count = sum(1 for _ in open(directory / f"{report}.ndjson"))
        print(json.dumps({"engine": "duckdb", "question": report, "rows": count} | took), flush=True)
    # The tables' times have no zone, and are UTC.
    arguments = {"from": since, "to": until, "tz": options.tz, "team": None}
    asked = {"questions": options.questions, "arguments": arguments, "parameters": PARAMETERS}
    return asked | {"session_parts": options.session_parts}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("archive")
    parser.add_argument("--engines", type=lambda text: text.split(","), default=["sail", "spark"])
    parser.add_argument("--questions", type=lambda text: text.split(","), default=QUESTIONS)
    # Sail and Spark hold the events of a part in memory.
    parser.add_argument("--session-parts", type=int, default=2)
    parser.add_argument("--from", dest="since", default="2000-01-01")
    parser.add_argument("--to", dest="until", default="2099-01-01")
    parser.add_argument("--tz", default="Europe/Prague")
    options = parser.parse_args()
    options.archive = str(pathlib.Path(options.archive).resolve())
    source = str(ROOT / "clients/python/src")
    # Workers run Python too.
    environment = os.environ | {"PYTHONPATH": source, "PYTHONWARNINGS": "ignore", "PYSPARK_PYTHON": sys.executable}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1"}
    failed = False
    with tempfile.TemporaryDirectory() as directory:
        given = ask_duckdb(options, pathlib.Path(directory))
        for engine in options.engines:
            with cluster(engine, environment) as (address, group):
                (pathlib.Path(directory) / "asked.json").write_text(json.dumps(given | {"group": group}))
                asked = [sys.executable, HERE / "ask.py", engine, address, options.archive, directory]
                # Engines print much on standard error; show it only if they fail.
                done = subprocess.run(asked, env=environment, stderr=subprocess.PIPE, text=True)
                if done.returncode:
                    failed = True
                    print(done.stderr[-4000:], file=sys.stderr)
    sys.exit(failed)


if __name__ == "__main__":
    main()
