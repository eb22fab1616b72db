"""``format("icesql")`` for PySpark users: options, filters, streams."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icesql.engine.spark.source import register
from icesql.errors import (
    CatalogError,
    ColumnNotFoundError,
    ProgrammingError,
    SnapshotNotFoundError,
    TableNotFoundError,
    UnsupportedSqlError,
    UnsupportedTableError,
)
from tests.spark.conftest import FIELDS as ALL_FIELDS
from tests.spark.conftest import ROWS as ALL_ROWS
from tests.writer.table import TableWriter

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
FIELDS = [
    {"id": 1, "name": "x", "required": False, "type": "long"},
    {"id": 2, "name": "s", "required": False, "type": "string"},
]


def rows(*numbers: int) -> list[dict[str, Any]]:
    return [{"x": number, "s": f"row {number}"} for number in numbers]


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


def test_pushed_filters_mean_what_spark_means(session: Any, one_row_a_file: str) -> None:
    """NaN above all numbers and equal to itself, both zeros equal, NULL never, zones by session."""

    def found(condition: str, push: str) -> list[int]:
        reader = session.read.format("icesql").option("push-filters", push).load(one_row_a_file)
        return sorted(row.id for row in reader.where(condition).collect())

    session.conf.set(PUSHDOWN, "true")
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for condition, expected in (
            ("d >= double('nan')", [2]),
            ("f > 1.5F", [5, 6]),
            ("f <= -0.0F", [2]),
            ("d = -0.0D", [4]),
            ("i IN (7, 2, NULL)", [1, 5, 6]),
            ("i NOT IN (7, NULL)", []),
            ("NOT (i <=> 7)", [2, 3, 4, 5]),
            ("s LIKE 'hel%' AND i IS NOT NULL", [1, 6]),
            ("dec > 2.4999BD AND dec < 3.495BD", [1, 5]),
            ("tz = TIMESTAMP'2026-01-31 08:00:00'", [1]),
            ("tz >= TIMESTAMP_NTZ'2026-11-01 00:30:00'", [5]),
            ("ts = TIMESTAMP_NTZ'2024-02-29 00:00:00'", [2]),
            ("bin > X'61'", [4]),
            ("u = '00000000-0000-0000-0000-000000000005' AND t = 45000000005", [1]),
        ):
            assert found(condition, "true") == found(condition, "false") == expected, condition
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
        with pytest.raises(Exception, match=text):
            reader.format("icesql").options(**options).load(place)


def test_a_pushed_filter_prunes_files(spark_here: None, table: TableWriter) -> None:
    from pyspark.sql.datasource import GreaterThan

    from icesql.engine.spark.worker import unpack

    for push, expected in (("true", 1), ("false", 3)):
        planning = planned(table, push_filters=push)
        planning.push([GreaterThan(("x",), 3)])
        jobs = [unpack(partition) for partition in planning.partitions()]
        assert sum(len(job.task.tasks) for job in jobs) == expected


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


# ------------------------------------------------------------------ without a JVM


def source(table: TableWriter | str, **options: Any) -> Any:
    from icesql.engine.spark.table import TableSource

    path = table if isinstance(table, str) else table.folder
    named = {name.replace("_", "-"): str(value) for name, value in options.items()}
    return TableSource.of({"path": path, **named}, {})


def planned(table: TableWriter | str, **options: Any) -> Any:
    """The plan of a read that was just loaded."""
    from icesql.engine.spark.planning import BatchPlanning

    return BatchPlanning(loaded(table, **options))


def loaded(table: TableWriter | str, **options: Any) -> Any:
    found = source(table, **options)
    return replace(found, fixed=found.columns())


def values(planning: Any) -> list[dict[str, Any]]:
    from icesql.engine.spark.worker import unpack

    jobs = [unpack(job) for job in planning.partitions()]
    return [row for job in jobs for batch in job() for row in batch.to_pylist()]


def numbers(table: TableWriter | str, **options: Any) -> list[int]:
    return sorted(row["x"] for row in values(planned(table, **options)))


# ------------------------------------------------------------------ incremental reads


def test_an_incremental_read_gives_what_was_appended(spark_here: None, table: TableWriter) -> None:
    table.commit([table.data_file(rows(1, 2, 3, 4))], list(table.live), "replace")
    table.commit([table.data_file(rows(5)), table.data_file(rows(6))])
    for start, end, expected in (
        (1000, None, [4, 5, 6]),
        (1000, 1001, [4]),
        (1001, 1002, []),
        (1001, 1003, [5, 6]),
        (1003, None, []),
        (1001, 1001, []),
    ):
        options = {} if end is None else {"end_snapshot_id": end}
        assert numbers(table, start_snapshot_id=start, **options) == expected, (start, end)


def test_tasks_of_appended_files_carry_no_bounds(spark_here: None, table: TableWriter) -> None:
    from icesql.engine.spark.worker import unpack

    jobs = [unpack(job) for job in planned(table, start_snapshot_id=1000).partitions()]
    assert [each.data_file.lower_bounds for job in jobs for each in job.task.tasks] == [None]


def test_an_incremental_read_follows_its_branch(spark_here: None, table: TableWriter) -> None:
    table.tag("audit", 1000, kind="branch")
    table.commit([table.data_file(rows(7))], branch="audit")
    assert numbers(table, start_snapshot_id=1000, branch="audit") == [7]
    with pytest.raises(ProgrammingError, match="1001 is not in branch audit"):
        numbers(table, start_snapshot_id=1000, end_snapshot_id=1001, branch="audit")


def test_an_incremental_read_over_a_delete_fails_or_leaves_it_out(
    spark_here: None, table: TableWriter
) -> None:
    table.commit([], [table.live[0]], "delete")
    table.commit([table.data_file(rows(5))])
    with pytest.raises(UnsupportedTableError, match="on-delete"):
        numbers(table, start_snapshot_id=1000)
    assert numbers(table, start_snapshot_id=1000, on_delete="skip") == [4, 5]
    assert numbers(table, start_snapshot_id=1002) == [5]


def test_an_incremental_read_needs_its_start_in_the_history(
    spark_here: None, table: TableWriter
) -> None:
    table.commit([table.data_file(rows(5))])
    table.rollback(1001)
    table.commit([table.data_file(rows(6))])
    with pytest.raises(SnapshotNotFoundError, match="rolled back or belongs to a branch"):
        numbers(table, start_snapshot_id=1002)
    table.snapshots = table.snapshots[1:]
    table.log = table.log[1:]
    table.write_metadata()
    assert numbers(table, start_snapshot_id=1000) == [4, 6], "what followed it is kept"
    with pytest.raises(SnapshotNotFoundError, match="is expired or never was"):
        numbers(table, start_snapshot_id=999)
    with pytest.raises(SnapshotNotFoundError, match="end-snapshot-id"):
        numbers(table, start_snapshot_id=1001, end_snapshot_id=5)


# ------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"snapshot_id": 1, "branch": "main"}, "one of snapshot-id and branch, not both"),
        ({"tag": "a", "as_of_timestamp": 1}, "not both"),
        ({"snapshot_id": 1, "start_snapshot_id": 1}, "not both"),
        ({"tag": "t", "end_snapshot_id": 1}, "not both"),
        ({"end_snapshot_id": 1}, "needs start-snapshot-id"),
        ({"snapshot_id": "x"}, "not a whole number"),
        ({"snapshot_id": "1_000"}, "not a whole number"),
        ({"as_of_timestamp": "2024-01-01"}, "not a whole number"),
        ({"snapshotid": 1}, "did you mean snapshot-id"),
        ({"banana": 1}, "there are: as-of-timestamp, "),
        ({"stream_from": "latest"}, "for readStream, not for read"),
        ({"max_rows_per_batch": 1}, "for readStream, not for read"),
        ({"on_delete": "skip"}, "reads with start-snapshot-id"),
        ({"split_size": "huge"}, "\"split-size\": 'huge' is no size"),
        ({"columns": " , "}, "names no column"),
        ({"columns": "x, X"}, "twice"),
    ],
)
def test_options_are_checked(
    spark_here: None, table: TableWriter, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ProgrammingError, match=text):
        planned(table, **options)


@pytest.mark.parametrize(
    ("name", "text"),
    [("start-timestamp", "changelog"), ("versionAsOf", "snapshot-id"), ("paths", "one table")],
)
def test_options_of_other_readers_are_refused_by_name(
    spark_here: None, name: str, text: str
) -> None:
    from icesql.engine.spark.options import read_options

    with pytest.raises(UnsupportedSqlError, match=f"{name}.*{text}"):
        read_options({"path": "a/b", name: "1"})


def test_switches_for_speed_change_nothing(spark_here: None, table: TableWriter) -> None:
    assert numbers(table, vectorization_enabled="false", batch_size=7, locality="x") == [1, 2, 3, 4]
    assert numbers(table, lookback=1, file_open_cost="1MB") == [1, 2, 3, 4]


def test_values_of_unknown_options_are_not_repeated(spark_here: None, table: TableWriter) -> None:
    with pytest.raises(ProgrammingError, match="no option") as raised:
        source(table, secret_key="hush-hush")
    assert "hush-hush" not in str(raised.value)
    with pytest.raises(ProgrammingError, match="register_spark") as raised:
        source(table, uri="postgresql://me:hush-hush@host/db")
    assert "hush-hush" not in str(raised.value)


def test_options_win_over_what_was_registered(spark_here: None, warehouse: Path) -> None:
    from icesql.engine.spark.table import TableSource

    options = {"path": "shop.customers", "warehouse": str(warehouse)}
    found = TableSource.of(options, {"warehouse": "/nowhere", "name": "x"})
    assert found.table().identifier == ("shop", "customers")


# ------------------------------------------------------------------ names


def test_names_with_and_without_the_catalog(spark_here: None, warehouse: Path) -> None:
    from icesql.engine.spark.table import TableSource

    def table_of(path: str, **connect: Any) -> str:
        return str(TableSource.of({"path": path}, connect).table().name)

    uri = f"sqlite:///{warehouse}/catalog.db"
    for connect in ({"uri": uri}, {"uri": uri, "name": "shop"}, {"warehouse": str(warehouse)}):
        for name in ("shop.customers", "shop.shop.customers", "`shop`.`customers`"):
            assert table_of(name, **connect) == "shop.customers", (name, connect)
    with pytest.raises(TableNotFoundError, match="did you mean"):
        table_of("shop.customer", uri=uri)
    with pytest.raises(ProgrammingError, match=r"neither .* nor a path"):
        table_of("shop..customers", uri=uri)
    with pytest.raises(TableNotFoundError, match="there is no such file or folder"):
        table_of("/nowhere/t", uri=uri)
    with pytest.raises(CatalogError, match="there is no catalog"):
        table_of("nobody.knows.me")
    with pytest.raises(ProgrammingError, match="needs a table"):
        table_of("")


def test_another_configured_catalog_is_found_by_its_name(
    spark_here: None, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.engine.spark.table import TableSource

    monkeypatch.setenv("PYICEBERG_CATALOG__SHOP__URI", f"sqlite:///{warehouse}/catalog.db")
    for connect in ({}, {"warehouse": str(warehouse)}):
        found = TableSource.of({"path": "shop.shop.customers"}, connect).table()
        assert found.identifier[-1] == "customers"


def test_a_metadata_file_is_read_as_it_is(spark_here: None, table: TableWriter) -> None:
    path = table.metadata_path
    table.commit([table.data_file(rows(5))])
    assert numbers(path) == [1, 2, 3, 4]
    assert numbers(f"file://{path}") == [1, 2, 3, 4]


def test_branches_and_tags_that_look_like_numbers(spark_here: None, table: TableWriter) -> None:
    table.tag("1001", 1000)
    table.tag("7", 1000, kind="branch")
    table.set_fields([*FIELDS, {"id": 3, "name": "new", "required": False, "type": "int"}])
    assert numbers(table, tag="1001") == [1, 2, 3]
    assert values(planned(table, tag="1001"))[0].keys() == {"x", "s"}
    assert numbers(table, branch="7") == [1, 2, 3]
    assert values(planned(table, branch="7"))[0].keys() == {"x", "s", "new"}, "as it is now"
    with pytest.raises(SnapshotNotFoundError, match="7 is a branch"):
        planned(table, tag="7")
    with pytest.raises(SnapshotNotFoundError, match=r'branch "mian".*did you mean "main"'):
        planned(table, branch="mian")


def test_main_of_a_table_without_snapshots_is_empty(spark_here: None, tmp_path: Path) -> None:
    empty = TableWriter(tmp_path / "empty", FIELDS)
    assert numbers(empty) == numbers(empty, branch="main") == []
    with pytest.raises(SnapshotNotFoundError, match="no snapshot yet"):
        numbers(empty, start_snapshot_id=1)


# ------------------------------------------------------------------ columns


def test_columns_are_chosen_by_name(spark_here: None, table: TableWriter) -> None:
    found = values(planned(table, columns="S, _pos, `x`, _file, _snapshot_id", snapshot_id=1000))
    assert [list(row) for row in found] == [["s", "_pos", "x", "_file", "_snapshot_id"]] * 3
    assert sorted((row["x"], row["_pos"]) for row in found) == [(1, 0), (2, 1), (3, 0)]
    assert {row["_snapshot_id"] for row in found} == {1000}
    with pytest.raises(ColumnNotFoundError, match='did you mean "s"'):
        planned(table, columns="x, s.inner")
    with pytest.raises(ColumnNotFoundError):
        planned(table, columns="y")


def test_a_name_with_a_comma_stands_in_backticks(spark_here: None, tmp_path: Path) -> None:
    table = TableWriter(
        tmp_path / "odd", [{"id": 1, "name": "a,`b", "required": False, "type": "int"}]
    )
    table.commit([table.data_file([{"a,`b": 1}])])
    assert values(planned(table, columns="`a,``b`")) == [{"a,`b": 1}]


def test_the_partition_column_is_there(spark_here: None, warehouse: Path) -> None:
    from icesql.engine.spark.planning import BatchPlanning
    from icesql.engine.spark.table import TableSource

    options = {"path": "shop.orders", "columns": "_partition, id"}
    found = TableSource.of(options, {"warehouse": str(warehouse)})
    rows_read = values(BatchPlanning(replace(found, fixed=found.columns())))
    assert rows_read[0]["_partition"].keys() == {"ordered_on", "region"}


def test_columns_are_those_of_load_whatever_becomes_of_the_table(
    spark_here: None, table: TableWriter
) -> None:
    kept = loaded(table)
    required = [{**FIELDS[0], "name": "y"}]
    table.set_fields(required)
    table.commit([table.data_file([{"y": 5}])])
    from icesql.engine.spark.planning import BatchPlanning

    found = sorted((row["x"], row["s"]) for row in values(BatchPlanning(kept)))
    assert found[-2:] == [(4, "row 4"), (5, None)]


def test_a_schema_of_the_users_is_refused(session: Any, table: TableWriter) -> None:
    frame = session.read.format("icesql").schema("x bigint").load(table.folder)
    with pytest.raises(Exception, match="not a schema of yours"):
        frame.collect()
