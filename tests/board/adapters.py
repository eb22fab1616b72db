"""The adapters: each opens an engine and returns the function that answers a question.

Each runs in the environment of its engine, and imports that inside its function. A question holds
`metadata` (a file), `columns` (as in SELECT), `where` (SQL or null) and `snapshot_id` (or null).
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Question = dict[str, Any]
Answer = Callable[[Question], Iterable[Any]]


class NotOffered(Exception):
    """The engine's interface has no way to ask this: a refusal, and the message says of what."""


def select(question: Question, relation: str) -> str:
    """The question as SQL that every engine of the board reads."""
    where = f" WHERE {question['where']}" if question["where"] else ""
    return f"SELECT {question['columns']} FROM {relation}{where}"


def travel(question: Question, words: str) -> str:
    """The words for the question's snapshot, if it has one."""
    return "" if question["snapshot_id"] is None else words.format(question["snapshot_id"])


def arrow_rows(table: Any) -> list[list[Any]]:
    """The rows of a pyarrow.Table; with pandas installed, nanoseconds are its timestamps."""
    return [list(row) for row in zip(*(each.to_pylist() for each in table.columns), strict=True)]


def icesql() -> Answer:
    import icesql

    def answer(question: Question) -> Any:
        with icesql.connect() as connection:
            connection.register_table("t", question["metadata"])
            relation = "t" + travel(question, " FOR VERSION AS OF {}")
            return connection.execute(select(question, relation)).fetchall()

    return answer


def pyiceberg() -> Answer:
    """A scan with its own row filter, read as Arrow."""
    from pyiceberg.table import StaticTable

    def answer(question: Question) -> Any:
        columns = question["columns"]
        # Its filters have no typed literals: the type of the column says what a string means.
        where = (question["where"] or "TRUE").replace("DATE '", "'")
        scan = StaticTable.from_metadata(question["metadata"]).scan(
            row_filter=where, snapshot_id=question["snapshot_id"]
        )
        if columns == "count(*)":
            return [[scan.count()]]
        if columns.startswith("*, "):
            names = [each.name for each in scan.projection().fields]
            return arrow_rows(scan.select(*names, *columns[3:].split(", ")).to_arrow())
        if columns != "*":
            names = columns.split(", ")
            return arrow_rows(scan.select(*names).to_arrow().select(names))
        return arrow_rows(scan.to_arrow())

    return answer


def duckdb() -> Answer:
    """DuckDB with its iceberg extension, which PyPI has as a package of its own."""
    import duckdb
    import duckdb_extensions

    def answer(question: Question) -> Any:
        # A database of its own for each question: an internal error ends all that share one.
        with duckdb.connect() as connection:
            for name in ("avro", "httpfs", "iceberg"):
                duckdb_extensions.import_extension(name, con=connection)
                connection.execute(f"LOAD {name}")
            connection.execute("SET TimeZone = 'UTC'")
            place = question["metadata"].replace("'", "''")
            relation = f"iceberg_scan('{place}'{travel(question, ', snapshot_from_id => {}')})"
            return connection.execute(select(question, relation)).fetchall()

    return answer


def polars() -> Answer:
    import polars

    def answer(question: Question) -> Any:
        frame = polars.scan_iceberg(question["metadata"], snapshot_id=question["snapshot_id"])
        with polars.SQLContext(t=frame) as context:
            return arrow_rows(context.execute(select(question, "t")).collect().to_arrow())

    return answer


def daft() -> Answer:
    """Its reader of PyIceberg's tables, with its SQL on top."""
    import daft
    from pyiceberg.table import StaticTable

    def answer(question: Question) -> Any:
        table = StaticTable.from_metadata(question["metadata"])
        frame = daft.read_iceberg(table, snapshot_id=question["snapshot_id"])
        return arrow_rows(daft.sql(select(question, "t"), t=frame).to_arrow())

    return answer


def datafusion() -> Answer:
    """The table provider of pyiceberg-core, which is Iceberg's Rust library."""
    import pyarrow as pa
    from datafusion import SessionContext
    from pyiceberg_core.datafusion import IcebergDataFusionTable

    def answer(question: Question) -> Any:
        if question["snapshot_id"] is not None:
            raise NotOffered("time travel is not supported by this interface")
        context = SessionContext()
        table = IcebergDataFusionTable(["db", "t"], "file://" + question["metadata"], {})
        context.register_table("t", table)
        frame = context.sql(select(question, "t"))
        return arrow_rows(pa.Table.from_batches(frame.collect(), schema=frame.schema()))

    return answer


def chdb() -> Answer:
    """ClickHouse in a process, with its table function for Iceberg in a local folder."""
    import chdb
    import pyarrow as pa

    def answer(question: Question) -> Any:
        metadata = Path(question["metadata"])
        file = f"SETTINGS iceberg_metadata_file_path = 'metadata/{metadata.name}'"
        relation = f"icebergLocal('{metadata.parents[1]}', {file})"
        # Its strings are bytes, which need not be text.
        options = " SETTINGS output_format_arrow_string_as_string = 0"
        options += travel(question, ", iceberg_snapshot_id = {}")
        result = chdb.query(select(question, relation) + options, "Arrow")
        rows = arrow_rows(pa.ipc.open_file(result.bytes()).read_all())
        return [[_text(cell) for cell in row] for row in rows]

    return answer


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, dict):
        return {name: _text(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_text(each) for each in value]
    return value


def sail() -> Answer:
    """A Spark Connect server of its own, asked by PySpark's client."""
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer(ip="127.0.0.1", port=0)
    server.start(background=True)
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{server.listening_address[1]}")
    session = session.getOrCreate()
    session.server = server  # it stops with the last reference to it
    session.conf.set("spark.sql.session.timeZone", "UTC")

    def answer(question: Question) -> Any:
        reader = session.read.format("iceberg")
        if question["snapshot_id"] is not None:
            reader = reader.option("snapshotId", str(question["snapshot_id"]))
        reader.load(str(Path(question["metadata"]).parents[1])).createOrReplaceTempView("t")
        return session.sql(select(question, "t")).collect()

    return answer


def spark() -> Answer:
    """Iceberg's runtime and its JDBC catalog, in which each table is registered."""
    from pyspark.sql import SparkSession

    folder, catalog = tempfile.mkdtemp(), "spark.sql.catalog.board"
    settings = {
        "spark.ui.enabled": "false",
        "spark.jars": os.environ["BOARD_ICEBERG_JARS"],
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{catalog}.uri": f"jdbc:sqlite:{folder}/catalog.db",
        f"{catalog}.warehouse": folder,
    }
    session = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    session.sql("CREATE NAMESPACE board.db")

    @functools.cache
    def registered(metadata: str) -> str:
        name = f"db.t{registered.cache_info().misses}"
        session.sql(f"CALL board.system.register_table('{name}', '{metadata}')").collect()
        return f"board.{name}"

    def answer(question: Question) -> Any:
        relation = registered(question["metadata"]) + travel(question, " VERSION AS OF {}")
        return session.sql(select(question, relation)).collect()

    return answer
