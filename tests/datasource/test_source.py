"""``format("icesql")`` on Spark: what PySpark users call."""

from __future__ import annotations

import ast
import re
import sys
import traceback
from types import SimpleNamespace
from typing import Any

import pytest

from icesql.datasource.read import ReadError
from icesql.datasource.source import _planner, _rows, register
from icesql.errors import ProgrammingError
from tests.spark.conftest import FIELDS as ALL_FIELDS
from tests.spark.conftest import ROWS as ALL_ROWS
from tests.spark.conftest import needs
from tests.tables import read_table
from tests.writer.table import TableWriter

FILTERS = needs("4.1", why="filters of data sources")
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


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
    with pytest.raises(Exception, match="only one of"):
        session.read.format("icesql").option("tag", "a").option("snapshot-id", 1).load(
            table.folder
        ).count()


@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_filters_give_the_same_rows_pushed_or_not(
    session: Any, table: TableWriter, pushdown: str
) -> None:
    session.conf.set(PUSHDOWN, pushdown)
    try:
        frame = session.read.format("icesql").load(table.folder)
        assert sorted(r.x for r in frame.where("x > 2 AND s <> 'row 4'").collect()) == [3]
        assert frame.where("x IS NULL").count() == 0
    finally:
        session.conf.unset(PUSHDOWN)


@pytest.fixture(scope="module")
def one_row_a_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    table = TableWriter(tmp_path_factory.mktemp("rows"), ALL_FIELDS)
    table.commit([table.data_file([row]) for row in ALL_ROWS[:6]])
    return str(table.folder)


@FILTERS
def test_pushed_filters_mean_what_spark_means(session: Any, one_row_a_file: str) -> None:
    """NaN above all numbers and equal to itself, both zeros equal, NULL never, zones by session."""

    reader = session.read.format("icesql").option("push-filters", "true")
    cases = read_table(__file__, "filters.tsv")
    session.conf.set(PUSHDOWN, "true")
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = session.read.format("icesql").option("push-filters", "false").load(one_row_a_file)
        computed = frame.selectExpr("id", *(condition for condition, _ in cases)).collect()
        for at, (condition, expected) in enumerate(cases, start=1):
            found = sorted(row.id for row in reader.load(one_row_a_file).where(condition).collect())
            spark = sorted(row[0] for row in computed if row[at])
            assert found == spark == ast.literal_eval(expected), condition
    finally:
        session.conf.unset("spark.sql.session.timeZone")
        session.conf.unset(PUSHDOWN)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("branch", "mian", "SnapshotNotFoundError"),
        ("snapshot-id", "7", "SnapshotNotFoundError: snapshot 7 not found"),
        ("as-of-timestamp", "7", "SnapshotNotFoundError"),
        ("columns", "x, why", "ColumnNotFoundError"),
        ("path", "/nowhere/at/all", "TableNotFoundError"),
    ],
)
def test_errors_come_at_load(
    session: Any, table: TableWriter, name: str, value: str, text: str
) -> None:
    for reader in (session.read, session.readStream):
        if reader is session.readStream and name in ("snapshot-id", "as-of-timestamp"):
            continue
        place = value if name == "path" else table.folder
        options = {} if name == "path" else {name: value}
        with pytest.raises(Exception, match=text) as raised:
            reader.format("icesql").options(**options).load(place)
        last = str(raised.value).splitlines()[-1]
        assert re.fullmatch(rf"icesql\.errors\.{text}.* SQLSTATE: 38000", last), "Spark adds this"


@FILTERS
def test_filters_of_one_scan_are_not_those_of_another(session: Any, table: TableWriter) -> None:
    """Spark itself keeps what one filter left for all scans of a DataFrame."""
    session.conf.set(PUSHDOWN, "true")
    try:
        frame = session.read.format("icesql").load(table.folder)
        both = frame.where("x = 1").union(frame.where("x = 4"))
        assert sorted(row.x for row in both.collect()) == [1, 4]
        assert frame.where("x = 4").count() == 1
        assert frame.count() == 4
        for push, expected in (("true", 1), ("false", 3)):
            reader = session.read.format("icesql").option("push-filters", push)
            frame = reader.option("split-size", "4MB").load(table.folder)
            assert frame.where("x = 4").rdd.getNumPartitions() == expected
    finally:
        session.conf.unset(PUSHDOWN)


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


def test_a_schema_of_the_users_is_refused(session: Any, table: TableWriter) -> None:
    frame = session.read.format("icesql").schema("x bigint").load(table.folder)
    with pytest.raises(Exception, match="uses the table's schema"):
        frame.collect()


def test_a_temporary_view_reads_a_table(session: Any, table: TableWriter) -> None:
    options = f"path '{table.folder}', `snapshot-id` '1000'"
    session.sql(f"CREATE TEMPORARY VIEW first USING icesql OPTIONS ({options})")
    assert session.table("first").count() == 3


def test_a_python_that_lacks_a_package_names_the_setting(
    spark_here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered: list[Any] = []
    register(SimpleNamespace(conf={}, dataSource=SimpleNamespace(register=registered.append)))
    made = registered[0]({"path": "ns.t"})
    for module in ("datasource.table", "datasource.write", "engine.spark.worker"):
        monkeypatch.setitem(sys.modules, f"icesql.{module}", None)
    job = SimpleNamespace(value=b"")
    read = _rows(_planner(lambda: None))
    for call in (made.schema, lambda: made.writer(None, False), lambda: read(job)):
        with pytest.raises(ReadError) as raised:
            call()
        last = "".join(traceback.format_exception(raised.value)).splitlines()[-1]
        assert last.startswith("icesql.errors.OperationalError: ")
        assert last.endswith("in PYSPARK_PYTHON")
    monkeypatch.setitem(sys.modules, "icesql.errors", None)
    with pytest.raises(ModuleNotFoundError, match=r"icesql\.errors.*PYSPARK_PYTHON"):
        made.schema()


def test_a_path_is_not_written(table: TableWriter) -> None:
    registered: list[Any] = []
    register(SimpleNamespace(conf={}, dataSource=SimpleNamespace(register=registered.append)))
    made = registered[0]({"path": table.folder, "txn-app-id": "a"})
    with pytest.raises(ReadError) as raised:
        made.streamWriter(None, overwrite=False)
    last = "".join(traceback.format_exception(raised.value)).splitlines()[-1]
    assert last.startswith("icesql.errors.UnsupportedTableError: ")
    assert "no catalog says" in last
