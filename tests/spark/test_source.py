"""``format("icesql")`` for PySpark users: options, filters, streams."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from icesql.engine.spark.source import register
from icesql.errors import ProgrammingError
from tests.writer.table import TableWriter

FIELDS = [
    {"id": 1, "name": "x", "required": False, "type": "long"},
    {"id": 2, "name": "s", "required": False, "type": "string"},
]


def rows(*numbers: int) -> list[dict[str, Any]]:
    return [{"x": number, "s": f"row {number}"} for number in numbers]


@pytest.fixture(scope="module")
def session(connect: Any, warehouse: Path) -> Iterator[Any]:
    """The user's own session on the shared Spark."""
    with connect() as connection:
        connection.execute("SELECT 1").fetchall()
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate().newSession()
        register(session, warehouse=str(warehouse))
        yield session


@pytest.fixture
def table(tmp_path: Path) -> TableWriter:
    made = TableWriter(tmp_path / "t", FIELDS)
    made.commit([made.data_file(rows(1, 2)), made.data_file(rows(3))])
    made.commit([made.data_file(rows(4))])
    return made


def test_a_table_of_the_catalog_and_a_path_are_read(session: Any, table: TableWriter) -> None:
    assert session.read.format("icesql").load("shop.customers").count() == 4
    frame = session.read.format("icesql").load(table.folder)
    assert sorted(tuple(row) for row in frame.collect()) == [
        (number, f"row {number}") for number in (1, 2, 3, 4)
    ]


def test_travel_and_columns_by_option(session: Any, table: TableWriter) -> None:
    first = table.snapshots[0]["snapshot-id"]
    stamp = table.snapshots[0]["timestamp-ms"]
    for name, value in (("snapshot-id", first), ("as-of-timestamp", stamp)):
        frame = session.read.format("icesql").option(name, value).option("columns", "x")
        assert sorted(row.x for row in frame.load(table.folder).collect()) == [1, 2, 3]
    tagged = session.read.format("icesql").option("tag", "opening").load("shop.orders")
    branch = session.read.format("icesql").option("branch", "audit").load("shop.orders")
    assert tagged.count() == branch.count() == 20
    with pytest.raises(Exception, match="not both"):
        session.read.format("icesql").option("tag", "a").option("snapshot-id", 1).load(
            table.folder
        ).count()


@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_filters_give_the_same_rows_pushed_or_not(
    session: Any, table: TableWriter, pushdown: str
) -> None:
    name = "spark.sql.python.filterPushdown.enabled"
    session.conf.set(name, pushdown)
    try:
        frame = session.read.format("icesql").load(table.folder)
        assert sorted(r.x for r in frame.where("x > 2 AND s <> 'row 4'").collect()) == [3]
        assert frame.where("x IS NULL").count() == 0
    finally:
        session.conf.unset(name)


def test_a_pushed_filter_prunes_files(spark_here: None, table: TableWriter) -> None:
    from pyspark.sql.datasource import GreaterThan

    from icesql.engine.spark.planning import IcesqlReader
    from icesql.engine.spark.table import TableSource
    from icesql.engine.spark.worker import unpack

    reader = IcesqlReader(TableSource({"path": table.folder}, {}))
    assert list(reader.pushFilters([GreaterThan(("x",), 3)])) == [GreaterThan(("x",), 3)]
    files = [
        task.data_file.path
        for partition in reader.partitions()
        for task in unpack(partition.value).task.tasks
    ]
    assert len(files) == 1


def test_credentials_show_in_no_plan(session: Any, table: TableWriter) -> None:
    register(session, properties={"s3.secret-access-key": "hush-hush"})
    try:
        frame = session.read.format("icesql").load(table.folder)
        assert "hush-hush" not in frame._jdf.queryExecution().toString()
        assert frame.count() == 4
    finally:
        register(session)


def test_register_knows_its_options(session: Any) -> None:
    with pytest.raises(ProgrammingError, match="secret"):
        register(session, secret="x")


# ------------------------------------------------------------------ streams


def run_stream(session: Any, table: TableWriter, folder: Path, **options: Any) -> list[list[int]]:
    """The numbers of each batch of a stream that ends when it has read what is there."""
    batches: list[list[int]] = []
    reader = session.readStream.format("icesql")
    for name, value in options.items():
        reader = reader.option(name.replace("_", "-"), value)
    query = (
        reader.load(table.folder)
        .writeStream.foreachBatch(
            lambda frame, _: batches.append(sorted(row.x for row in frame.collect()))
        )
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    return [batch for batch in batches if batch]


def test_a_stream_gives_each_row_once_also_after_a_restart(
    session: Any, table: TableWriter, tmp_path: Path
) -> None:
    assert list(chain(*run_stream(session, table, tmp_path))) == [1, 2, 3, 4]
    assert run_stream(session, table, tmp_path) == []
    table.commit([table.data_file(rows(5, 6))])
    assert run_stream(session, table, tmp_path) == [[5, 6]]


def test_a_stream_keeps_to_its_limits(session: Any, table: TableWriter, tmp_path: Path) -> None:
    assert run_stream(session, table, tmp_path, max_files_per_batch=1) == [[1, 2], [3], [4]]


def test_overwrites_fail_or_are_skipped(session: Any, table: TableWriter, tmp_path: Path) -> None:
    table.commit([table.data_file(rows(9))], [table.live[0]], "overwrite")
    table.commit([table.data_file(rows(10))])
    with pytest.raises(Exception, match="operation is overwrite"):
        run_stream(session, table, tmp_path / "a")
    found = run_stream(session, table, tmp_path / "b", on_overwrite="skip")
    assert list(chain(*found)) == [1, 2, 3, 4, 10]


class TestOffsets:
    """Without Spark's help: where a stream starts and how far a batch goes."""

    def reader(self, table: TableWriter, **options: str) -> Any:
        from icesql.engine.spark.stream import IcesqlStreamReader
        from icesql.engine.spark.table import TableSource

        named = {name.replace("_", "-"): value for name, value in options.items()}
        return IcesqlStreamReader(TableSource({"path": table.folder, **named}, {}))

    def numbers(self, reader: Any, start: Any, end: Any) -> list[int]:
        return [
            number
            for partition in reader.partitions(start, end)
            for batch in reader.read(partition)
            for number in batch.column("x").to_pylist()
        ]

    def test_starts(self, spark_here: None, table: TableWriter) -> None:
        second = table.snapshots[1]
        for options, expected in (
            ({}, [1, 2, 3, 4]),
            ({"stream_from": "latest"}, []),
            ({"stream_from": str(second["snapshot-id"])}, [4]),
            ({"stream_from_timestamp": str(second["timestamp-ms"])}, [4]),
            ({"stream_from_timestamp": "9999999999999"}, []),
        ):
            reader = self.reader(table, **options)
            start = reader.initialOffset()
            assert self.numbers(reader, start, reader.latestOffset(start)) == expected, options

    def test_row_limit_stops_between_files(self, spark_here: None, table: TableWriter) -> None:
        from pyspark.sql.streaming.datasource import ReadMaxRows

        reader = self.reader(table, max_rows_per_batch="2")
        offset, batches = reader.initialOffset(), []
        while (end := reader.latestOffset(offset, ReadMaxRows(2))) != offset:
            batches.append(self.numbers(reader, offset, end))
            offset = end
        assert batches == [[1, 2], [3, 4]] or batches == [[1, 2], [3], [4]]

    def test_a_lost_snapshot_is_an_error(self, spark_here: None, table: TableWriter) -> None:
        from icesql.errors import SnapshotNotFoundError

        with pytest.raises(SnapshotNotFoundError, match="expired"):
            self.reader(table).latestOffset({"snapshot_id": 42, "files": 1})
