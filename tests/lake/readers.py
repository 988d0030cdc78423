"""Reads open tables with third-party engines, and prints the result of each.

Standard input has one JSON object a line: the metadata file of a version, the snapshot (null: the current one), the column of
time, the readers to ask, and the exact list of the files that the archive says are live. With `catalog` (uri, token) the
engines find the table in a REST catalog by the name `table`; with `s3` (endpoint, key, secret, region) its files are in a
bucket. For each line one JSON object is printed: by reader, and for `expected` from the files themselves, the rows as a sum of
digests, their number, the least and greatest time, as the engine answers `min` and `max`, and the number of rows in the middle
third of that time, as the engine answers a filter. A job without `columns` gets all rows instead.
"""
import datetime
import hashlib
import json
import os
import sys

import duckdb
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq

SITE = next(p for p in sys.path if p.endswith("site-packages"))


def canonical(value):
    if isinstance(value, datetime.datetime):
        since = value.replace(tzinfo=datetime.timezone.utc) - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        return (since.days * 86400 + since.seconds) * 10**6 + since.microseconds
    return value.hex() if isinstance(value, bytes) else value


def plain(table, names):
    """One name for each column type, because engines use different names."""
    columns = []
    for name in names:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us"))
        if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
            column = column.cast(pa.string())
        if pa.types.is_large_binary(column.type) or pa.types.is_binary_view(column.type):
            column = column.cast(pa.binary())
        columns.append(column)
    return pa.table(columns, names=names)


def digest(table, names):
    total = 0
    for batch in plain(table, names).to_batches(max_chunksize=4096):
        for row in zip(*(column.to_pylist() for column in batch.columns)):
            text = json.dumps([canonical(value) for value in row], ensure_ascii=False)
            total += int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    return f"{total % 2**256:064x}"


def micros(value):
    return None if value is None else canonical(value)


def seen(table, names, count, low, high, within):
    if names is None:
        return [[canonical(value) for value in row.values()] for row in table.to_pylist()]
    answers = {"count": count, "min": micros(low), "max": micros(high), "within": within}
    return {"digest": digest(table, names), "rows": table.num_rows, **answers}


def middle(times):
    """The middle third of the times, without its end."""
    if not times:
        return None
    low, high = min(times), max(times)
    third = (high - low) // 3
    return low + third, high - third


def texts(job):
    return [time.isoformat(sep=" ", timespec="microseconds") for time in job["within"]]


def filtered(job, literal):
    """A filter in SQL; `literal` makes a time of a text."""
    start, end = (literal.format(text) for text in texts(job))
    return f"{job['time']} >= {start} AND {job['time']} < {end}"


def opened(job, path):
    if "s3" not in job:
        return path
    s3 = job["s3"]
    bucket = fs.S3FileSystem(
        access_key=s3["key"], secret_key=s3["secret"], region=s3["region"], endpoint_override=s3["endpoint"], scheme="http"
    )
    return bucket.open_input_file(path.removeprefix("s3://"))


def expected(job):
    if job["columns"] is None:
        return None
    tables = [pq.ParquetFile(opened(job, path)).read() for path in job["files"]]
    if not tables:
        return {"digest": f"{0:064x}", "rows": 0, "count": 0, "min": None, "max": None, "within": None}
    table = pa.concat_tables(tables)
    times = [value for value in table.column(job["time"]).to_pylist() if value is not None]
    job["within"] = middle(times)
    within = job["within"] and sum(job["within"][0] <= time < job["within"][1] for time in times)
    return seen(table, job["columns"], table.num_rows, min(times, default=None), max(times, default=None), within)


def pyiceberg(job):
    from pyiceberg.catalog import load_catalog
    from pyiceberg.table import StaticTable

    s3 = job.get("s3")
    access = {f"s3.{name}": s3[name] for name in ("endpoint", "region")} if s3 else {}
    access |= {"s3.access-key-id": s3["key"], "s3.secret-access-key": s3["secret"]} if s3 else {}
    if "catalog" in job:
        catalog = load_catalog("annals", type="rest", **job["catalog"], **access)
        assert job["table"] in [name for _, name in catalog.list_tables("annals")], "the catalog lists the table"
        table = catalog.load_table(f"annals.{job['table']}")
    else:
        table = StaticTable.from_metadata(job["metadata"], access)
    scan = table.scan(snapshot_id=job["snapshot"]) if job["snapshot"] else table.scan()
    rows = scan.to_arrow()
    times = [value for value in rows.column(job["time"]).to_pylist() if value is not None]
    within = None
    if job["within"]:
        start, end = (text.replace(" ", "T") for text in texts(job))
        condition = f"{job['time']} >= '{start}' AND {job['time']} < '{end}'"
        within = table.scan(snapshot_id=job["snapshot"], row_filter=condition).to_arrow().num_rows
    return seen(rows, job["columns"], scan.count(), min(times, default=None), max(times, default=None), within)


def polars(job):
    import polars as pl

    def scan():
        return pl.scan_iceberg(job["metadata"], snapshot_id=job["snapshot"])

    time = pl.col(job["time"])
    count, low, high = scan().select(pl.len(), time.min().alias("low"), time.max().alias("high")).collect().row(0)
    within = None
    if job["within"]:
        start, end = job["within"]
        within = scan().filter(time >= start, time < end).select(pl.len()).collect().item()
    return seen(scan().collect().to_arrow(), job["columns"], count, low, high, within)


def duck(job):
    client = duckdb.connect(config={"allow_unsigned_extensions": False})
    for name in ("avro", "httpfs", "iceberg"):
        place = f"{SITE}/duckdb_extension_{name}/extensions/v{duckdb.__version__}/{name}.duckdb_extension"
        client.execute(f"LOAD '{place}'")
    if s3 := job.get("s3"):
        host = s3["endpoint"].removeprefix("http://")
        keys = f"KEY_ID '{s3['key']}', SECRET '{s3['secret']}', REGION '{s3['region']}'"
        client.execute(f"CREATE SECRET (TYPE s3, {keys}, ENDPOINT '{host}', USE_SSL false, URL_STYLE 'path')")
    return client


def duckdb_iceberg(job):
    client = duck(job)
    at = f", snapshot_from_id => {job['snapshot']}" if job["snapshot"] else ""
    scan = f"iceberg_scan('{job['metadata']}'{at})"
    if catalog := job.get("catalog"):
        client.execute(f"CREATE SECRET port (TYPE iceberg, TOKEN '{catalog['token']}')")
        client.execute(f"ATTACH 'annals' AS lake (TYPE iceberg, ENDPOINT '{catalog['uri']}', SECRET port)")
        scan = f"lake.annals.{job['table']}"
    count, low, high = client.execute(f"SELECT count(*), min({job['time']}), max({job['time']}) FROM {scan}").fetchone()
    rows = client.execute(f"SELECT * FROM {scan}").to_arrow_table()
    within = None
    if job["within"]:
        condition = filtered(job, "TIMESTAMP '{}'")
        [within] = client.execute(f"SELECT count(*) FROM {scan} WHERE {condition}").fetchone()
    return seen(rows, job["columns"], count, low, high, within)


def clickhouse(job):
    import chdb
    import chdb.session

    # ClickHouse opens only files under the working directory.
    os.chdir("/")
    table, version = os.path.split(os.path.dirname(job["metadata"]))[0], os.path.basename(job["metadata"])
    # A setting of the function selects the version; a setting of the query selects the snapshot.
    own = f"SETTINGS iceberg_metadata_file_path = 'metadata/{version}'"
    source = f"icebergLocal('{table}', {own})"
    if s3 := job.get("s3"):
        address = f"{s3['endpoint']}/{table.removeprefix('s3://')}"
        source = f"icebergS3('{address}', '{s3['key']}', '{s3['secret']}', {own})"
    settings = f"iceberg_snapshot_id = {job['snapshot']}, " if job["snapshot"] else ""
    names = ", ".join(f"`{name}`" for name in job["columns"])
    extra = "output_format_arrow_string_as_string = 0, session_timezone = 'UTC'"
    query = chdb.query
    if catalog := job.get("catalog"):
        session = chdb.session.Session()
        query = session.query
        query("SET allow_experimental_database_iceberg = 1")
        # For tables in a directory the two arguments behind the address are the files' format and compression.
        how = f"catalog_type = 'rest', warehouse = 'annals', auth_header = 'Authorization: Bearer {catalog['token']}'"
        query("DROP DATABASE IF EXISTS lake")
        query(f"CREATE DATABASE lake ENGINE = DataLakeCatalog('{catalog['uri']}/v1', 'Parquet', 'auto') SETTINGS {how}")
        source = f"lake.`annals.{job['table']}`"

    def ask(what, condition="1 = 1"):
        answer = query(f"SELECT {what} FROM {source} WHERE {condition} SETTINGS {settings}{extra}", "Arrow").bytes()
        return pa.ipc.open_file(pa.py_buffer(answer)).read_all()

    time = job["time"]
    row = ask(f"count() AS n, min(`{time}`) AS low, max(`{time}`) AS high").to_pylist()[0]
    low, high = (None, None) if row["n"] == 0 else (row["low"], row["high"])
    # ClickHouse has one type for texts and bytes.
    file = opened(job, job["metadata"])
    fields = json.loads(file.read() if "s3" in job else open(file).read())["schemas"][-1]["fields"]
    rows = ask(names)
    for field in fields:
        if field["type"] == "string":
            at = rows.schema.get_field_index(field["name"])
            rows = rows.set_column(at, field["name"], rows.column(at).cast(pa.string()))
    within = None
    if job["within"]:
        condition = filtered(job, "toDateTime64('{}', 6, 'UTC')")
        [within] = ask("count() AS n", condition).column("n").to_pylist()
    return seen(rows, job["columns"], row["n"], low, high, within)


def sail(job):
    spark = sail_session()
    reader = spark.read.format("iceberg")
    if job["snapshot"]:
        reader = reader.option("snapshot-id", str(job["snapshot"]))
    frame = reader.load(os.path.split(os.path.dirname(job["metadata"]))[0])
    frame.createOrReplaceTempView("asked")
    time = job["time"]
    [row] = spark.sql(f"SELECT count(*) AS n, min({time}) AS low, max({time}) AS high FROM asked").toArrow().to_pylist()
    within = None
    if job["within"]:
        condition = filtered(job, "TIMESTAMP_NTZ '{}'")
        [within] = spark.sql(f"SELECT count(*) AS n FROM asked WHERE {condition}").toArrow().column("n").to_pylist()
    return seen(frame.toArrow(), job["columns"], row["n"], row["low"], row["high"], within)


SESSION = []


def sail_session():
    if not SESSION:
        # Sail reads these settings when it is imported.
        os.environ |= {"SAIL_MODE": "local-cluster", "SAIL_CLUSTER__WORKER_INITIAL_COUNT": "2"}
        os.environ |= {"SAIL_CLUSTER__WORKER_MAX_COUNT": "2"}
        from pysail.spark import SparkConnectServer
        from pyspark.sql import SparkSession

        server = SparkConnectServer()
        server.start(background=True)
        _, port = server.listening_address
        SESSION.extend([SparkSession.builder.remote(f"sc://localhost:{port}").getOrCreate(), server])
        SESSION[0].conf.set("spark.sql.session.timeZone", "UTC")
    return SESSION[0]


READERS = {
    "pyiceberg": pyiceberg,
    "polars": polars,
    "duckdb": duckdb_iceberg,
    "clickhouse": clickhouse,
    "sail": sail,
}


def main():
    for line in sys.stdin:
        job = json.loads(line) | {"within": None}
        found = {"expected": expected(job)}
        for name in job["readers"]:
            try:
                found[name] = READERS[name](job)
            except Exception as error:  # An engine that fails is an answer: the test says which, and of what.
                found[name] = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(json.dumps(found), flush=True)
    # Engines can keep threads that never end.
    os._exit(0)


if __name__ == "__main__":
    main()
