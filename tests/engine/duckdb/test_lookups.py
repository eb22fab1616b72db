"""A lookup gives what the whole way gives, sees every change, and takes nothing from it."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

import icesql
from icesql.engine.duckdb import lookups
from icesql.engine.duckdb.relations.kept_relations import USES_BEFORE

OFTEN = USES_BEFORE + 4
ONE = "SELECT * FROM n.t WHERE id = ?"
ROWS = """
    SELECT i AS id, (i * 7)::INTEGER AS small, i / 7 AS x, (i * 1.25)::DECIMAL(9, 2) AS d,
        DATE '1999-12-30' + i::INTEGER AS day, TIMESTAMP '2020-01-01' + to_hours(i) AS moment,
        TIMESTAMPTZ '2020-03-29 00:30:00+00' + to_minutes(i) AS instant,
        CASE WHEN i % 5 > 0 THEN 'it''s ' || i END AS s, ('x' || i)::BLOB AS raw
    FROM range({}) AS r(i)
"""
SHAPES = [
    ONE,
    "SELECT id, s AS name FROM n.t AS a WHERE a.small > ? AND a.small <= 700 ORDER BY id",
    "SELECT day, moment, instant FROM n.t WHERE ? <= id AND id < 9 ORDER BY id DESC",
    "SELECT x, d, raw FROM n.t WHERE d = ?",
    "FROM n.t WHERE id = ? AND s IS NOT NULL",
]


def made(folder: Path, name: str, *parts: str) -> None:
    """A table n.<name> with a file of the rows of each SELECT."""
    from pyiceberg.catalog.sql import SqlCatalog

    uri = f"sqlite:///{folder}/catalog.db"
    with closing(SqlCatalog("c", uri=uri, warehouse=f"file://{folder}")) as catalog:
        catalog.create_namespace_if_not_exists("n")
        for part in parts:
            rows = duckdb.sql(part).to_arrow_table()
            catalog.create_table_if_not_exists(f"n.{name}", schema=rows.schema).append(rows)


def tables(folder: Path) -> Path:
    made(folder, "t", ROWS.format(500))
    made(folder, "other", ROWS.format(7))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables that stay as they are."""
    return tables(tmp_path_factory.mktemp("lookups"))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Tables that a test may change."""
    return tables(tmp_path)


@pytest.fixture
def connection(folder: Path) -> Iterator[Any]:
    with icesql.connect(uri=f"sqlite:///{folder}/catalog.db") as opened:
        yield opened


@pytest.fixture
def changing(own: Path) -> Iterator[Any]:
    """A connection to ``own``."""
    with icesql.connect(uri=f"sqlite:///{own}/catalog.db") as opened:
        yield opened


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What ``look_up`` gave, None where a query went the whole way after all."""
    found: list[Any] = []
    plain = lookups.look_up

    def noted(*given: Any) -> Any:
        found.append(plain(*given))
        return found[-1]

    monkeypatch.setattr(lookups, "look_up", noted)
    return found


def warm(connection: Any, sql: str = ONE, key: Any = 3) -> None:
    for _ in range(OFTEN):
        connection.execute(sql, [key]).fetchall()


def fresh(folder: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows as a connection that has seen nothing yet gives them."""
    with icesql.connect(uri=f"sqlite:///{folder}/catalog.db") as other:
        return other.execute(sql, list(values)).fetchall()


@pytest.mark.parametrize("sql", SHAPES)
def test_the_rows_are_those_of_the_whole_way(
    connection: Any, folder: Path, looked_up: list[Any], sql: str
) -> None:
    warm(connection, sql)
    chance = random.Random(5)
    with icesql.connect(uri=f"sqlite:///{folder}/catalog.db") as other:
        for key in [0, -1, 499, 500, (1 << 62), *(chance.randrange(700) for _ in range(6))]:
            cursor = connection.execute(sql, [key])
            whole = other.execute(f"{sql} -- {key}", [key])
            assert [each[:2] for each in cursor.description] == [
                each[:2] for each in whole.description
            ]
            assert cursor.fetchall() == whole.fetchall()
            assert cursor.scan_reports[0].filter == whole.scan_reports[0].filter
            assert cursor.rowcount == whole.rowcount
    assert sum(each is not None for each in looked_up) >= 5


def test_what_is_not_plain_is_no_lookup(connection: Any, looked_up: list[Any]) -> None:
    for sql in (
        "SELECT sum(x) FROM n.t WHERE id = ?",
        "SELECT repeat('x', 3), id FROM n.t WHERE id = ?",
        "SELECT DISTINCT s FROM n.t WHERE id = ?",
        "SELECT id, row_number() OVER () FROM n.t WHERE id = ?",
        "SELECT CAST(id AS VARCHAR) FROM n.t WHERE id = ?",
        "SELECT id FROM n.t USING SAMPLE 3 ROWS",
    ):
        for _ in range(OFTEN):
            connection.execute(sql, [3] if "?" in sql else None).fetchall()
    assert looked_up == []


def test_a_long_condition_is_no_lookup_and_a_short_one_needs_little_stack(
    connection: Any, looked_up: list[Any]
) -> None:
    short, long = (f"{ONE}{' AND id <> 1000' * count}" for count in (60, 150))
    warm(connection, long)
    assert looked_up == []
    warm(connection, short)
    assert looked_up[-1] is not None
    found: list[Any] = []
    before = threading.stack_size(128 << 10)
    try:
        thread = threading.Thread(
            target=lambda: found.append(connection.execute(short, [3]).fetchall())
        )
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert found == [connection.execute(short, [3]).fetchall()]


def test_many_rows_go_the_whole_way(connection: Any, looked_up: list[Any]) -> None:
    sql = "SELECT id FROM n.t WHERE id >= ?"
    warm(connection, sql, 498)
    assert looked_up[-1] is not None
    assert len(connection.execute(sql, [2]).fetchall()) == 498
    assert looked_up[-1] is None
    assert len(connection.execute(sql, [490]).fetchall()) == 10


def test_a_commit_is_seen(changing: Any, own: Path, looked_up: list[Any]) -> None:
    warm(changing)
    before = changing.execute(ONE, [3]).fetchall()
    made(own, "t", ROWS.format(5))
    assert changing.execute(ONE, [3]).fetchall() == before * 2
    warm(changing)
    assert looked_up[-1] is not None
    assert changing.execute(ONE, [3]).fetchall() == before * 2
    assert changing.execute(ONE, [6]).fetchall() == fresh(own, ONE, 6)


def test_the_connections_own_delete_is_seen(changing: Any) -> None:
    warm(changing)
    changing.execute("DELETE FROM n.t WHERE id = 3")
    assert changing.execute(ONE, [3]).fetchall() == []
    changing.execute("INSERT INTO n.t SELECT * FROM n.other WHERE id = 3")
    assert len(changing.execute(ONE, [3]).fetchall()) == 1


def test_another_metadata_file_in_the_place_of_the_last_is_seen(changing: Any, own: Path) -> None:
    warm(changing)
    with sqlite3.connect(own / "catalog.db") as catalog:
        sql = "SELECT table_name, metadata_location FROM iceberg_tables"
        names = dict(catalog.execute(sql).fetchall())
    mine, other = (Path(names[each].removeprefix("file://")) for each in ("t", "other"))
    shutil.copy(own / "n" / "other" / "metadata" / other.name, tmp := own / "new.json")
    os.replace(tmp, own / "n" / "t" / "metadata" / mine.name)
    assert changing.execute(ONE, [100]).fetchall() == []


def test_a_data_file_in_the_place_of_another_is_seen(changing: Any, own: Path) -> None:
    warm(changing)
    (path,) = (own / "n" / "t" / "data").glob("*.parquet")
    other = own / "new.parquet"
    changed = ROWS.format(500).replace("(i * 7)", "(i * 8)")
    fields = "{" + ", ".join(f"{name}: {at}" for at, name in enumerate(NAMES, 1)) + "}"
    duckdb.sql(f"COPY ({changed}) TO '{other}' (FORMAT parquet, FIELD_IDS {fields})")
    os.replace(other, path)
    ((_, small, *_),) = changing.execute(ONE, [3]).fetchall()
    assert small == 24


NAMES = ("id", "small", "x", "d", "day", "moment", "instant", "s", "raw")


def test_a_data_file_that_is_gone_is_missed(changing: Any, own: Path) -> None:
    warm(changing)
    for path in (own / "n" / "t" / "data").glob("*.parquet"):
        path.unlink()
    with pytest.raises(icesql.Error, match="no such file"):
        changing.execute(ONE, [3]).fetchall()


def test_a_table_that_is_gone_is_missed(changing: Any) -> None:
    warm(changing)
    changing.execute("DROP TABLE n.t")
    with pytest.raises(icesql.TableNotFoundError, match="line 1, column 15"):
        changing.execute(ONE, [3])


def test_a_name_that_means_another_table_now(connection: Any, folder: Path) -> None:
    sql = "SELECT id FROM t WHERE id = ?"
    connection.execute("USE n")
    warm(connection, sql, 100)
    connection.execute("CREATE TEMP TABLE t AS SELECT 100 AS id FROM range(3)")
    assert connection.execute(sql, [100]).fetchall() == [(100,)] * 3
    connection.execute("DROP TABLE t")
    assert connection.execute(sql, [100]).fetchall() == [(100,)]
    warm(connection, sql, 100)
    connection.register_table("t", folder / "n" / "other")
    assert connection.execute(sql, [100]).fetchall() == []


def test_a_table_of_one_statement_has_the_name(connection: Any) -> None:
    import pyarrow as pa

    sql = "SELECT id FROM n.t AS q WHERE id = ?"
    warm(connection, sql, 100)
    rows = connection.cursor().execute(
        "SELECT id FROM t WHERE id = ?", [100], tables={"t": pa.table({"id": [100, 100]})}
    )
    assert rows.fetchall() == [(100,)] * 2


def test_the_time_zone_is_that_of_the_setting(connection: Any) -> None:
    sql = "SELECT instant FROM n.t WHERE id = ?"
    connection.execute("SET timezone = 'Europe/Berlin'")
    warm(connection, sql)
    ((first,),) = connection.execute(sql, [3]).fetchall()
    connection.execute("SET timezone = 'Asia/Tokyo'")
    warm(connection, sql)
    ((second,),) = connection.execute(sql, [3]).fetchall()
    assert (str(first.tzinfo), str(second.tzinfo)) == ("Europe/Berlin", "Asia/Tokyo")
    assert first == second


def test_limits_of_scans_hold(connection: Any) -> None:
    warm(connection)
    connection.execute("SET max_scan_bytes = 10")
    with pytest.raises(icesql.ScanLimitError):
        connection.execute(ONE, [3])
    connection.execute("RESET max_scan_bytes")
    assert len(connection.execute(ONE, [3]).fetchall()) == 1


def test_the_rows_as_arrow_and_in_a_file(connection: Any, tmp_path: Path) -> None:
    warm(connection)
    expected = connection.execute(ONE, [4]).fetchall()
    table = connection.execute(ONE, [4]).arrow()
    assert table.num_rows == 1
    assert table.column_names == list(NAMES)
    assert str(table.schema.field("d").type) == "decimal128(9, 2)"
    assert connection.execute(ONE, [4]).fetchall() == expected
    warm(connection)
    cursor = connection.execute(ONE, [4])
    reader = cursor.arrow_reader()
    with pytest.raises(icesql.InterfaceError, match="already being read as arrow"):
        cursor.fetchall()
    assert reader.read_all().equals(table)


def test_rows_come_one_by_one_and_once(connection: Any, looked_up: list[Any]) -> None:
    sql = "SELECT id FROM n.t WHERE id < ? ORDER BY id"
    warm(connection, sql)
    cursor = connection.execute(sql, [3])
    assert looked_up[-1] is not None
    assert cursor.rowcount == -1
    assert cursor.fetchone() == (0,)
    assert cursor.fetchmany(1) == [(1,)]
    assert list(cursor) == [(2,)]
    assert cursor.fetchall() == []
    assert cursor.rowcount == 3


def test_a_cursor_that_was_cancelled_or_closed(connection: Any, looked_up: list[Any]) -> None:
    warm(connection)
    cursor = connection.execute(ONE, [3])
    cursor.close()
    with pytest.raises(icesql.InterfaceError, match="the cursor is closed"):
        cursor.fetchall()
    assert len(connection.execute(ONE, [3]).fetchall()) == 1
    assert looked_up[-1] is not None


def test_a_value_of_another_kind_goes_the_whole_way(
    connection: Any, folder: Path, looked_up: list[Any]
) -> None:
    warm(connection)
    count = len(looked_up)
    for value in (3.0, None, True, "3"):
        assert connection.execute(ONE, [value]).fetchall() == fresh(folder, ONE, value)
    assert len(looked_up) == count


def test_a_text_is_a_value_and_no_sql(connection: Any) -> None:
    sql = "SELECT id, s FROM n.t WHERE s = ?"
    warm(connection, sql, "it's 7")
    assert connection.execute(sql, ["it's 8"]).fetchall() == [(8, "it's 8")]
    for text in ("' OR 1=1 --", "'; DROP TABLE __kept_1; --", "\\' OR true --", "$1", "?", ""):
        assert connection.execute(sql, [text]).fetchall() == []
    assert connection.execute(sql, ["it's 9"]).fetchall() == [(9, "it's 9")]


def test_another_instance_of_the_engine_is_not_asked(
    connection: Any, folder: Path, tmp_path: Path, looked_up: list[Any]
) -> None:
    warm(connection)
    far = tmp_path / "far"
    shutil.copytree(folder / "n" / "other", far)
    # A table elsewhere needs an engine that may read there.
    for _ in range(OFTEN):
        connection.execute(f"SELECT id FROM iceberg_scan('{far}') WHERE id < 2").fetchall()
    assert connection.execute(ONE, [400]).fetchall() == fresh(folder, ONE, 400)
    warm(connection, ONE, 400)
    assert looked_up[-1] is not None
    assert connection.execute(ONE, [401]).fetchall() == fresh(folder, ONE, 401)


def test_many_threads_with_values_of_their_own(connection: Any, looked_up: list[Any]) -> None:
    warm(connection)
    wrong: list[Any] = []

    def ask(number: int) -> None:
        chance, cursor = random.Random(number), connection.cursor()
        for _ in range(30):
            key = chance.randrange(500)
            rows = cursor.execute(ONE, [key]).fetchall()
            if [row[:2] for row in rows] != [(key, key * 7)]:
                wrong.append((key, rows))

    threads = [threading.Thread(target=ask, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert sum(each is not None for each in looked_up) > 150


def test_nothing_is_left_behind(connection: Any) -> None:
    warm(connection)
    instance = connection._session.engines.started["local"]._pool._current
    before = threading.active_count(), instance._open, len(instance._idle)
    for key in range(60):
        connection.execute(ONE, [key]).fetchall()
    assert (threading.active_count(), instance._open, len(instance._idle)) <= before
    assert all(not table.leases for table in instance._kept._tables.values())
    connection.close()
    assert instance.ended.wait(60)
    assert instance._idle == []
