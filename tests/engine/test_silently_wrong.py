"""Both readers read values right that DuckDB's own Parquet reader gets silently wrong."""

from __future__ import annotations

import datetime as dt
import re
import shutil
from ast import literal_eval
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql
from tests.rows import rows_of
from tests.tables import read_cases
from tests.writer.fields import fields
from tests.writer.table import TableWriter


@pytest.fixture(params=["auto", "arrow"])
def reader(request):
    return request.param


def query(table, sql, reader, zone="UTC"):
    with icesql.connect(timezone=zone, settings={"local_reader": reader}) as con:
        con.register_table("t", table.metadata_path)
        cursor = con.execute(sql)
        rows = cursor.fetchall()
        return rows, cursor.scan_groups


@rows_of(__file__, "evolved.tsv", "before", "row", "after", "sql", "expected")
def test_children_are_found_by_their_ids(tmp_path, reader, before, row, after, sql, expected):
    table = TableWriter(tmp_path, fields(before))
    table.commit([table.data_file([literal_eval(row)])])
    if after:
        table.set_fields(fields(after))
    with icesql.connect(settings={"local_reader": reader}) as con:
        con.register_table("t", table.metadata_path)
        assert con.execute(sql).fetchall() == [literal_eval(expected)]
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(1,)]


def stored(table, columns, **options):
    """Commit a file of columns, whose ids count from 1, that Arrow writes."""
    found = [
        pa.field(name, values.type, metadata={"PARQUET:field_id": str(number)})
        for number, (name, values) in enumerate(columns.items(), 1)
    ]
    data = pa.table([*columns.values()], schema=pa.schema(found))
    path = f"{table.folder}/data/stored.parquet"
    pq.write_table(data, path, **options)
    table.commit([table.existing_file(path, path, data.num_rows)])


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize(("declared", "stored_zone"), [("timestamp", "UTC"), ("timestamptz", None)])
def test_table_type_decides_the_zone_whatever_the_file_says(
    tmp_path, reader, zone, declared, stored_zone
):
    table = TableWriter(tmp_path, fields(f"ts {declared}"))
    micros = 1_700_000_000_000_000
    stored(table, {"ts": pa.array([micros], pa.timestamp("us", stored_zone))})
    expected = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
    if declared == "timestamptz":
        expected = expected.replace(tzinfo=dt.UTC)
    rows, groups = query(table, "SELECT ts FROM t", reader, zone)
    assert rows == [(expected,)]
    assert groups == ["arrow"]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("declared", ["timestamp", "timestamptz"])
def test_int96_is_read_as_utc_in_every_session_zone(tmp_path, reader, zone, declared):
    table = TableWriter(tmp_path, fields(f"ts {declared}"))
    values = pa.array([1_700_000_000_000_000], pa.timestamp("us"))
    stored(table, {"ts": values}, use_deprecated_int96_timestamps=True)
    expected = dt.datetime(2023, 11, 14, 22, 13, 20)
    if declared == "timestamptz":
        expected = expected.replace(tzinfo=dt.UTC)
    assert query(table, "SELECT ts FROM t", reader, zone)[0] == [(expected,)]


NAN = float("nan")


@pytest.mark.parametrize("stats", [True, False])
@pytest.mark.parametrize("type_", ["float", "double"])
@pytest.mark.parametrize(("condition", "count"), read_cases(__file__, "nan_filters.tsv", 1))
def test_rows_with_nan_survive_every_filter(tmp_path, reader, stats, type_, condition, count):
    table = TableWriter(tmp_path, fields(f"x {type_}"))
    rows = [{"x": 1.0}, {"x": 5.0}, {"x": NAN}, {"x": None}]
    table.commit([table.data_file(rows, stats=stats)])
    assert query(table, f"SELECT count(*) FROM t WHERE {condition}", reader)[0] == [(count,)]


@pytest.mark.parametrize("stats", [True, False])
def test_nan_is_the_greatest_value(tmp_path, reader, stats):
    table = TableWriter(tmp_path, fields("x double"))
    table.commit([table.data_file([{"x": 1.0}, {"x": NAN}], stats=stats)])
    ((greatest, least),), _ = query(table, "SELECT max(x), min(x) FROM t", reader)
    assert greatest != greatest
    assert least == 1.0
    ((first,),), _ = query(table, "SELECT x FROM t ORDER BY x DESC LIMIT 1", reader)
    assert first != first


FILES_WITH_NAN = (
    [{"id": 0, "x": NAN}, {"id": 1, "x": 1.0}, {"id": 2, "x": 2.0}, {"id": 3, "x": None}],
    [{"id": 4, "x": 0.5}, {"id": 5, "x": NAN}, {"id": 6, "x": 7.0}, {"id": 7, "x": -3.0}],
)


def table_with_nan(folder, shape, stats, nested):
    """Two files of row groups whose bounds exclude NaN, read by name or id, and with deletes.

    ``nested``: the numbers are in a struct inside a struct.
    """

    def columns(number):
        inner = f"s struct<k int, r struct<x {number}, k int>>" if nested else f"x {number}"
        return f"id int, {inner}"

    table = TableWriter(folder, fields(columns("float" if shape == "promoted" else "double")))
    first, second = (
        [{"id": row["id"], "s": {"k": 1, "r": {"x": row["x"], "k": 2}}} for row in rows]
        if nested
        else rows
        for rows in FILES_WITH_NAN
    )
    table.commit([data := table.data_file(first, stats=stats, row_group_size=2)])
    if shape in ("added", "promoted"):
        table.set_fields(fields(f"{columns('double')}, y int"))
    table.commit([table.data_file(second, stats=stats, row_group_size=2)])
    if shape == "positions":
        table.commit([table.position_deletes([(data.record["file_path"], 3)])])
    elif shape == "keys":
        table.commit([table.equality_deletes([{"id": 3}], [1])])
    return table


@pytest.mark.parametrize("stats", [True, False])
@pytest.mark.parametrize("shape", ["plain", "added", "promoted", "positions", "keys"])
@pytest.mark.parametrize("nested", [False, True])
def test_rows_with_nan_survive_whatever_prunes_row_groups(tmp_path, reader, stats, shape, nested):
    table = table_with_nan(tmp_path, shape, stats, nested)

    def ask(sql):
        return query(table, re.sub(r"\bx\b", "s.r.x", sql) if nested else sql, reader)[0]

    found = {
        condition: sorted(row[0] for row in ask(f"SELECT id FROM t WHERE {condition}"))
        for condition in (
            "x > 100",
            "x = 'nan'",
            "x BETWEEN 8 AND 'nan'",
            "x IS DISTINCT FROM 7 AND x > 6",
            "x = (SELECT max(x) FROM t)",
            "x >= (SELECT max(x) FROM t WHERE id > 4)",
            "x IN (SELECT x FROM t WHERE id = 5)",
            "id IN (SELECT l.id FROM t AS l JOIN t AS r ON l.x = r.x WHERE r.id = 0)",
            "id IN (SELECT l.id FROM t AS l, t AS r WHERE l.x > r.x AND r.id = 6)",
            "id IN (SELECT id FROM t ORDER BY x DESC NULLS LAST LIMIT 2)",
        )
    }
    assert found == {condition: [0, 5] for condition in found}
    ((greatest, least, counted),) = ask("SELECT max(x), min(x), count(x) FROM t")
    assert (str(greatest), least, counted) == ("nan", -3.0, 7)


@pytest.mark.parametrize("name", ["br[ab]", "st*ar", "what?", "per%20cent", "quo'te", "dol$1lar"])
def test_paths_are_names_and_never_patterns(tmp_path, reader, name):
    table = TableWriter(tmp_path, fields("x int"))
    inside = tmp_path / "data" / name
    inside.mkdir()
    for other in ("bra", "stXar", "whatX"):
        (tmp_path / "data" / other).mkdir()
    wanted = table.data_file([{"x": 1}], path=f"{inside}/f.parquet")
    decoy = table.data_file([{"x": 2}])
    for other in ("bra", "stXar", "whatX"):
        shutil.copy(decoy.record["file_path"], tmp_path / "data" / other / "f.parquet")
    table.commit([wanted])
    rows, groups = query(table, "SELECT x, _file FROM t", reader)
    assert rows == [(1, f"{inside}/f.parquet")]
    assert groups == ["duckdb" if reader == "auto" else "arrow"]


def test_binary_stored_for_a_string_column_is_text(tmp_path, reader):
    table = TableWriter(tmp_path, fields("s string"))
    stored(table, {"s": pa.array(["é\x01".encode()])})
    assert query(table, "SELECT s FROM t", reader)[0] == [("é\x01",)]


def test_nanoseconds_arrive_whole(tmp_path, reader):
    table = TableWriter(tmp_path, fields("ts timestamp_ns"), version=3)
    stored(table, {"ts": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns"))})
    ((value,),), _ = query(table, "SELECT ts FROM t", reader)
    assert (value.microsecond, value.nanosecond) == (123456, 789)
    assert str(value) == "2023-11-14 22:13:20.123456789"


def test_no_filter_loses_nanoseconds_under_microseconds(tmp_path, reader):
    """A value is rounded down to its microsecond, also in bounds of row groups."""
    base = 1_700_000_000_000_000_000
    nanos = [base + each for each in (-2_001, -1, 0, 1, 999, 1_000, 1_999, 2_001)]
    nanos += [-1_001, -1_000, -1, 0, 1]
    table = TableWriter(tmp_path, fields("id int, ts timestamp"))
    columns = {"id": pa.array(range(len(nanos)), pa.int32())}
    columns["ts"] = pa.array(nanos, pa.timestamp("ns"))
    stored(table, columns, row_group_size=2, version="2.6")
    micros = [each // 1000 for each in nanos]
    for micro in sorted({each + step for each in micros for step in (-1, 0, 1)}):
        for word, holds in (("<", int.__lt__), ("<=", int.__le__), ("=", int.__eq__),
                            (">", int.__gt__), (">=", int.__ge__), ("<>", int.__ne__)):  # fmt: skip
            sql = f"SELECT id FROM t WHERE ts {word} make_timestamp({micro}) ORDER BY id"
            expected = [(at,) for at, each in enumerate(micros) if holds(each, micro)]
            assert query(table, sql, reader)[0] == expected, sql
    sql = "SELECT min(epoch_us(ts)), max(epoch_us(ts)), count(DISTINCT ts) FROM t"
    assert query(table, sql, reader)[0] == [(min(micros), max(micros), len(set(micros)))]


def test_a_column_called_filename_is_a_column(tmp_path, reader):
    table = TableWriter(tmp_path, fields("filename string, file_index int"))
    table.commit([table.data_file([{"filename": "mine", "file_index": 41}])])
    rows, groups = query(table, "SELECT filename, file_index, _pos FROM t", reader)
    assert rows == [("mine", 41, 0)]
    assert groups == ["duckdb" if reader == "auto" else "arrow"]


def test_metadata_columns_name_file_and_position(tmp_path, reader):
    table = TableWriter(tmp_path, fields("x int"))
    files = [table.data_file([{"x": i}, {"x": i + 10}]) for i in range(3)]
    snapshot = table.commit(files)
    rows, _ = query(
        table, "SELECT x, _file, _pos, _spec_id, _snapshot_id FROM t ORDER BY x", reader
    )
    names = [each.record["file_path"] for each in files]
    assert rows == [
        *((i, names[i], 0, 0, snapshot) for i in range(3)),
        *((i + 10, names[i], 1, 0, snapshot) for i in range(3)),
    ]


def test_decimals_sum_and_average_as_declared(tmp_path, reader):
    table = TableWriter(tmp_path, fields("d decimal(9, 2), i long"))
    table.commit(
        [table.data_file([{"d": Decimal("1.10"), "i": 1}, {"d": Decimal("2.20"), "i": 2}])]
    )
    with icesql.connect(settings={"local_reader": reader}) as con:
        con.register_table("t", table.metadata_path)
        cursor = con.execute("SELECT sum(d), avg(d), d / 2, sum(i) FROM t GROUP BY d ORDER BY d")
        assert [each[1] for each in cursor.description] == [
            "decimal(38,2)", "double", "double", "hugeint"]  # fmt: skip
        assert cursor.fetchall()[0] == (Decimal("1.10"), 1.1, 0.55, 1)
