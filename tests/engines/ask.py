"""Asks one engine the questions of `queries/spark` and compares its answers with those in a directory.

    python tests/engines/ask.py ENGINE ADDRESS ARCHIVE DIRECTORY

`check.py` beside it writes the directory: `asked.json`, `coverage.parquet`, and the rows of each report that DuckDB gives,
`<id>.ndjson`. The rows must be equal, and in the same order. Sessions are compared with those of the archive. Every question is
one line of JSON, with the seconds that passed and those of processors; exit 1 where an answer differs.
"""

import datetime
import decimal
import json
import os
import pathlib
import re
import sys
import time

import duckdb
from annals_lake import Archive
from pyspark.sql import SparkSession

QUERIES = pathlib.Path(__file__).parents[2] / "queries" / "spark"
PARAMETER = re.compile(r"^-- param: (\w+) = (.*)$", re.M)
TABLES = ["connections", "sessions", "inventory_computers"]


def connect(engine, address):
    builder = SparkSession.builder
    if engine == "sail":
        return builder.remote(address).getOrCreate()
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        # The driver collects an answer of millions of rows.
        "spark.driver.memory": "3g",
        "spark.driver.maxResultSize": "3g",
        "spark.executor.memory": "1g",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
    }
    builder = builder.master(address).appName("annals")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def processor_seconds(groups):
    """The processor seconds of these process groups, as Linux counts them; 0 on other systems."""
    used = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) in groups:
            # Includes its ended children.
            used += sum(map(int, fields[11:15]))
    return used / os.sysconf("SC_CLK_TCK")


class Clock:
    """Wall seconds and processor seconds since its creation, until it is stopped."""

    def __init__(self, groups):
        self.groups, self.took = groups, None
        self.began, self.used = time.monotonic(), processor_seconds(groups)

    def stop(self):
        if self.took is None:
            seconds, used = time.monotonic() - self.began, processor_seconds(self.groups) - self.used
            self.took = {"seconds": round(seconds, 2), "processor": round(used, 2)}
        return self.took


def value_of(text):
    """A parameter's default: a number, a truth value or a text."""
    return {"true": True, "false": False}.get(text, int(text) if text.isdigit() else text)


def plain(value):
    """The value as `annals report run` prints it."""
    if isinstance(value, datetime.datetime):
        digits = "seconds" if not value.microsecond else "milliseconds" if value.microsecond % 1000 == 0 else "microseconds"
        return value.isoformat(timespec=digits)
    return float(value) if isinstance(value, decimal.Decimal) else value


def rows(answer):
    """The rows of an Arrow table, one by one."""
    for batch in answer.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            yield {name: plain(value) for name, value in row.items()}


def difference(found, expected):
    """The first row that differs, or None; and the number of rows."""
    count = 0
    with open(expected) as lines:
        for count, row in enumerate(found, 1):
            line = lines.readline()
            if not line or json.loads(line) != row:
                return count, f"row {count} is {json.dumps(row, ensure_ascii=False)}, DuckDB's is {line.strip() or 'none'}"
        if line := lines.readline():
            return count, f"row {count + 1} is missing: {line.strip()}"
    return count, None


def ask(session, sql, given):
    arguments = {name: value_of(text) for name, text in PARAMETER.findall(sql)} | given
    return session.sql(sql, args={name: value for name, value in arguments.items() if f":{name}" in sql})


def make_sessions(session, archive, parts, written):
    """Makes the sessions of one part of the connections after the other: each connection is in one part, with all its events."""
    archive.dataset("connections").spark(session).createOrReplaceTempView("every_connection")
    for part in range(parts):
        events = f"SELECT * FROM every_connection WHERE crc32(connection_id) % {parts} = {part}"
        session.sql(events).createOrReplaceTempView("connections")
        session.sql((QUERIES / "sessions.sql").read_text()).write.mode("append").parquet(str(written))


def compare_sessions(archive, written):
    """The number of rows of two sets of sessions, and one row that only one of them has."""
    mine = f"read_parquet('{written}/*.parquet', hive_partitioning = false)"
    client = duckdb.connect()
    archive.dataset("sessions").duckdb(client).create_view("theirs")
    columns = ", ".join(name for name in archive.dataset("sessions").schema.names)
    count = client.execute(f"SELECT count(*) FROM {mine}").fetchone()[0]
    for one, other in [(mine, "theirs"), ("theirs", mine)]:
        query = f"SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other} LIMIT 1"
        if row := client.execute(query).fetchone():
            return count, f"{'only the engine' if one == mine else 'only the archive'} has {row}"
    return count, None


def main(engine, address, location, directory):
    directory = pathlib.Path(directory)
    asked = json.loads((directory / "asked.json").read_text())
    groups = {os.getpgrp(), asked["group"]}
    clock = Clock(groups)
    session, archive = connect(engine, address), Archive(location)
    for name in TABLES:
        archive.dataset(name).spark(session).createOrReplaceTempView(name)
    session.read.parquet(str(directory / "coverage.parquet")).createOrReplaceTempView("coverage")
    failed = False

    def say(question, clock, count, fault):
        nonlocal failed
        failed |= fault is not None
        took = {"engine": engine, "question": question, "rows": count} | clock.stop()
        print(json.dumps(took | ({"fault": fault} if fault else {}), ensure_ascii=False), flush=True)

    say("start", clock, 0, None)
    for path in sorted(QUERIES.glob("r*.sql")):
        question = path.name[:3]
        if question not in asked["questions"]:
            continue
        clock, given = Clock(groups), asked["arguments"] | asked["parameters"].get(question, {})
        answer = ask(session, path.read_text(), given).toArrow()
        clock.stop()
        say(question, clock, *difference(rows(answer), directory / f"{question}.ndjson"))
    if "sessions" in asked["questions"]:
        clock, written = Clock(groups), directory / f"sessions-{engine}"
        make_sessions(session, archive, asked["session_parts"], written)
        clock.stop()
        say("sessions", clock, *compare_sessions(archive, written))
    if "source" in asked["questions"]:
        clock, table = Clock(groups), archive.dataset("connections")
        count = table.spark(session, through="source").count()
        say("source", clock, count, None if count == table.rows else f"the ledger says {table.rows} rows")
    session.stop()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
