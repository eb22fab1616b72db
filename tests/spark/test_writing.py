"""INSERT and CREATE TABLE AS with engine = spark: tasks write, the driver commits once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.engine.spark.engine import SparkResult
from icesql.engine.spark.start_up import PINNED
from icesql.engine.spark.worker import by_name
from icesql.engine.spark.writing import frame
from tests.spark.conftest import here, lake

COLUMNS = (
    "i BIGINT, k INT, s VARCHAR, u UUID, t TIME, ts TIMESTAMP, tz TIMESTAMPTZ, d DECIMAL(9, 2), "
    "f DOUBLE, x BLOB, li BIGINT[], st STRUCT<a INT, b VARCHAR>"
)
ROWS = (
    "SELECT i, CASE WHEN i % 11 > 0 THEN (i % 5)::INT END, 'é' || i, "
    "('00000000-0000-0000-0000-' || lpad(i::VARCHAR, 12, '0'))::UUID, TIME '01:02:03.000004', "
    "TIMESTAMP '2026-01-01 00:00:00' + INTERVAL (i) HOUR, "
    "TIMESTAMPTZ '1969-12-31 00:00:00+00' + INTERVAL (i) HOUR, i / 100, i / 3, "
    "encode('b' || i), [i, NULL], {'a': i::INT, 'b': 'x'} FROM range(300) r(i)"
)


@pytest.fixture(scope="module")
def writer(connect: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[icesql.Connection]:
    """A connection with a table ``s.source`` of 300 rows in three files."""
    created = f"CREATE TABLE s.source ({COLUMNS})"
    with lake(connect, tmp_path_factory.mktemp("warehouse"), created) as made:
        for part in range(3):
            here(made, f"INSERT INTO s.source {ROWS} WHERE i % 3 = {part}")
        yield made


@pytest.fixture
def nothing_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    def collected(*given: Any) -> Any:
        raise AssertionError("rows came to the driver")

    monkeypatch.setattr(SparkResult, "_batches", collected)
    monkeypatch.setattr(SparkResult, "_chunks", collected)


def files_on_disk(con: icesql.Connection, table: str) -> set[str]:
    ((path,),) = here(con, f"SELECT min(file_path) FROM {table}.all_files") or [(None,)]
    folder = Path(path).parents[0]
    while folder.name != "data":
        folder = folder.parent
    return {str(each) for each in folder.rglob("*") if each.is_file()}


def differences(con: icesql.Connection, table: str, query: str) -> list[tuple[Any, ...]]:
    """Rows that only one of the two has, with their multiplicity."""
    return here(
        con,
        f"(FROM {table} EXCEPT ALL ({query})) UNION ALL (({query}) EXCEPT ALL FROM {table})",
    )


def test_a_table_of_all_types(writer: icesql.Connection, nothing_collected: None) -> None:
    done = writer.execute("CREATE TABLE s.copy AS SELECT * FROM s.source")
    ((rows, files, size, snapshot),) = done.fetchall()
    assert (rows, done.rowcount) == (300, 300)
    assert files >= 1
    assert differences(writer, "s.copy", "FROM s.source") == []
    ((summed,),) = here(writer, "SELECT sum(file_size_in_bytes) FROM s.copy.files")
    assert (size, [(snapshot,)]) == (
        summed,
        here(writer, "SELECT snapshot_id FROM s.copy.snapshots"),
    )
    writer.execute("INSERT OVERWRITE s.copy SELECT * FROM s.source WHERE k = 1 ORDER BY i")
    assert differences(writer, "s.copy", "FROM s.source WHERE k = 1") == []
    assert len(here(writer, "FROM s.copy.snapshots")) == 2


@pytest.mark.parametrize(
    ("spec", "partitions"),
    [("k", 6), ("bucket(4, u), st.b", 4), ("day(tz), truncate(100, i)", None)],
)
def test_the_rows_of_a_partition_come_to_one_task(
    writer: icesql.Connection, nothing_collected: None, spec: str, partitions: int | None
) -> None:
    here(writer, f"CREATE OR REPLACE TABLE s.parts ({COLUMNS}) PARTITIONED BY ({spec})")
    writer.execute("INSERT INTO s.parts SELECT * FROM s.source")
    assert differences(writer, "s.parts", "FROM s.source") == []
    ((files, distinct),) = here(
        writer, "SELECT count(*), count(DISTINCT partition) FROM s.parts.files"
    )
    assert files == distinct
    assert partitions in (None, files)


def test_without_distribution_each_task_writes_what_it_has(writer: icesql.Connection) -> None:
    here(
        writer,
        "CREATE OR REPLACE TABLE s.parts (i BIGINT, k INT) PARTITIONED BY (k) "
        "TBLPROPERTIES ('write.distribution-mode' = 'none')",
    )
    writer.execute("SET split_target_size = 1000")
    try:
        writer.execute("INSERT INTO s.parts SELECT i, k FROM s.source")
    finally:
        writer.execute("RESET split_target_size")
    ((files, distinct),) = here(
        writer, "SELECT count(*), count(DISTINCT partition) FROM s.parts.files"
    )
    assert files > distinct == 6


def test_a_sort_order_gives_each_task_a_range(
    writer: icesql.Connection, connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PINNED, "spark.sql.adaptive.coalescePartitions.enabled", "false")
    ((path,),) = here(writer, "SELECT max(file) FROM s.source.metadata_log_entries")
    with lake(connect, tmp_path, "CREATE TABLE s.t (i BIGINT, s VARCHAR) ORDER BY (i DESC)") as con:
        con.register_table("source", path)
        con.execute("INSERT INTO s.t SELECT i, s FROM source")
        assert differences(con, "s.t", "SELECT i, s FROM source") == []
        found = here(
            con,
            "SELECT f.sort_order_id, min(i), max(i) FROM s.t.files f JOIN "
            "(SELECT _file, i FROM s.t) r ON r._file = f.file_path GROUP BY 1, f.file_path ORDER BY 2",
        )
    assert len(found) == 2, "two tasks, a range each"
    assert {order for order, _, _ in found} == {1}
    assert found[0][2] < found[1][1]


def test_a_value_that_does_not_fit_leaves_the_table_and_no_file(writer: icesql.Connection) -> None:
    here(
        writer,
        "CREATE OR REPLACE TABLE s.small (d DECIMAL(4, 2), k INT) PARTITIONED BY (k)",
        "INSERT INTO s.small VALUES (1, 1)",
    )
    before = files_on_disk(writer, "s.small")
    with pytest.raises(errors.DataError, match='column "d"'):
        writer.execute("INSERT INTO s.small SELECT i, k FROM s.source")
    assert here(writer, "FROM s.small") == [(1, 1)]
    assert files_on_disk(writer, "s.small") == before
    with pytest.raises(errors.TypeMismatchError, match='column "k"'):
        writer.execute("INSERT INTO s.small SELECT d, ts FROM s.source")


def test_few_rows_put_together_on_the_driver(writer: icesql.Connection) -> None:
    here(
        writer,
        "CREATE OR REPLACE TABLE s.sums (n BIGINT, total HUGEINT DEFAULT 7) TBLPROPERTIES ('format-version' = '3')",
    )
    writer.execute("INSERT INTO s.sums SELECT count(*), sum(i) FROM s.source")
    writer.execute("INSERT INTO s.sums (n) VALUES (1), (2)")
    writer.execute("INSERT INTO s.sums (n) SELECT i FROM s.source WHERE i < 0")
    assert here(writer, "FROM s.sums ORDER BY n") == [(1, 7), (2, 7), (300, 44850)]
    writer.execute("INSERT INTO s.sums SELECT k, sum(i) FROM s.source GROUP BY k ORDER BY k")
    assert here(writer, "SELECT count(*) FROM s.sums") == [(9,)]


def once_killed(armed: Path) -> Callable[..., Callable[..., Any]]:
    """``by_name`` with a writer whose process is killed after its first rows, in the first attempt."""
    path = str(armed)

    def made(module: str, name: str, *packed: Any) -> Callable[..., Any]:
        real, sigkill = by_name(module, name, *packed), int(signal.SIGKILL)
        if name != "write_batches":
            return real

        def write(batches: Any) -> Iterator[Any]:
            def given() -> Iterator[Any]:
                for each in batches:
                    yield each
                    if os.path.exists(path):
                        os.unlink(path)
                        os.kill(os.getpid(), sigkill)

            yield from real(given())

        return write

    return made


def test_a_worker_that_is_killed_loses_nothing_and_doubles_nothing(
    writer: icesql.Connection, armed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here(writer, f"CREATE OR REPLACE TABLE s.lost ({COLUMNS}) PARTITIONED BY (bucket(8, i))")
    monkeypatch.setattr(frame, "by_name", once_killed(armed / "0"))
    writer.execute("INSERT INTO s.lost SELECT * FROM s.source")
    assert not [*armed.iterdir()]
    assert differences(writer, "s.lost", "FROM s.source") == []
    named = {path for (path,) in here(writer, "SELECT file_path FROM s.lost.files")}
    assert files_on_disk(writer, "s.lost") == named


def test_columns_come_with_the_rows(writer: icesql.Connection, nothing_collected: None) -> None:
    """WITH SCHEMA EVOLUTION: tasks write the columns that this commit adds to the table."""
    statement = (
        "INSERT WITH SCHEMA EVOLUTION INTO s.{} BY NAME SELECT s AS text, i, k::BIGINT AS k, "
        "{{'b': s, 'c': k, 'a': i}} AS st, [i] AS li FROM s.source"
    )
    for name in ("grown", "twin"):
        here(writer, f"CREATE TABLE s.{name} (k INT, i BIGINT, st STRUCT<a INT>)")
        here(writer, f"INSERT INTO s.{name} VALUES (1, 2, {{'a': 3}})")
    here(writer, statement.format("twin"))
    assert writer.execute(statement.format("grown")).rowcount == 300
    described = [here(writer, f"DESCRIBE s.{name}") for name in ("grown", "twin")]
    assert described[0] == described[1]
    rows = [here(writer, f"SELECT * FROM s.{each} ORDER BY i, k") for each in ("grown", "twin")]
    assert rows[0] == rows[1]
    assert here(writer, "SELECT count(*) FROM s.grown.snapshots") == [(2,)]
