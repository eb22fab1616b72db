"""The keys of a small table limit the files of a large one that a query reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.tables import read_cases, read_lines
from tests.writer.fields import fields, spec
from tests.writer.table import TableWriter

FACT = fields("k long, day date, name string, f double, mixed int, ts timestamp, tz timestamptz")
DIM = fields("k int, day date, name string, f double, kind string, region int")
REGION = fields("region int, title string")
DAY = date(2026, 1, 1)
FILES, ROWS = 20, 50


def _fact(number: int) -> dict[str, Any]:
    # The first row of a file is at midnight, the last one a microsecond before the next midnight.
    first = datetime.combine(DAY, datetime.min.time()) + timedelta(days=number // ROWS)
    moment = first + number % ROWS * timedelta(hours=24, microseconds=-1) / (ROWS - 1)
    return {
        "ts": None if number % 89 == 5 else moment,
        "tz": moment.replace(tzinfo=UTC),
        "k": None if number % 97 == 5 else number,
        "day": DAY + timedelta(days=number // ROWS),
        "name": f"n{number:05d}",
        "f": float("nan") if number % 100 == 7 else number / 2,
        "mixed": number * 7919 % (FILES * ROWS),
    }


def _dim(number: int) -> dict[str, Any]:
    return {
        "k": None if number == 3 else number * ROWS + 1,
        "day": DAY + timedelta(days=number),
        "name": f"n{number * ROWS:05d}",
        "f": float("nan") if number == 4 else number / 2,
        "kind": "ab"[number % 2] if number > 1 else "one",
        "region": number // 5,
    }


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[icesql.Connection]:
    """``fact``: 20 files of 50 rows in order of ``k``, ``day`` and ``name``, one of them with a
    deleted row; ``dim`` with a row for every file and ``region`` with one for five of them.
    """
    folder = tmp_path_factory.mktemp("run_time")
    fact, dim, region, parts = (
        TableWriter(folder / "fact", FACT),
        TableWriter(folder / "dim", DIM),
        TableWriter(folder / "region", REGION),
        TableWriter(
            folder / "parts",
            FACT,
            spec=spec("1 bucket[16] b"),
        ),
    )
    files = [
        fact.data_file([_fact(each) for each in range(n * ROWS, (n + 1) * ROWS)])
        for n in range(FILES)
    ]
    fact.commit(files)
    fact.commit([fact.position_deletes([(files[2], 1)])])
    dim.commit([dim.data_file([_dim(each) for each in range(FILES)])])
    region.commit([region.data_file([{"region": n, "title": f"r{n}"} for n in range(4)])])
    from icesql.iceberg.transforms import Bucket
    from icesql.iceberg.types import LONG

    buckets: dict[int, list[dict[str, Any]]] = {}
    for number in range(400):
        buckets.setdefault(Bucket(16).apply(number, LONG), []).append(_fact(number) | {"k": number})
    parts.commit([parts.data_file(rows, partition=(key,)) for key, rows in buckets.items()])
    with icesql.connect() as opened:
        for name, table in [("fact", fact), ("dim", dim), ("region", region), ("parts", parts)]:
            opened.register_table(name, table.metadata_path)
        yield opened


def _run(connection: icesql.Connection, sql: str) -> tuple[list[Any], dict[str, int]]:
    """The rows, and the number of files by table, after a check that pruning changes no row."""
    connection.execute("SET prune = off")
    expected = connection.execute(sql).fetchall()
    connection.execute("SET prune = on")
    cursor = connection.execute(sql)
    rows = cursor.fetchall()
    assert sorted(map(repr, rows)) == sorted(map(repr, expected)), sql
    files: dict[str, int] = {}
    for report in cursor.scan_reports:
        files[report.table_name] = files.get(report.table_name, 0) + report.result_data_files
    return rows, files


ONE = "dim.kind = 'one'"
NARROWED = read_cases(__file__, "narrowed.tsv", 1)


@pytest.mark.parametrize(("sql", "files"), NARROWED)
def test_the_keys_of_a_small_table_choose_files(
    connection: icesql.Connection, sql: str, files: int
) -> None:
    assert _run(connection, sql)[1]["fact"] == files


def test_keys_choose_among_buckets(connection: icesql.Connection) -> None:
    sql = "SELECT count(*) FROM parts JOIN dim USING (k) WHERE kind = 'one'"
    assert _run(connection, sql)[1]["parts"] <= 2


@pytest.mark.parametrize("sql", read_lines(__file__, "not_narrowed.tsv"))
def test_other_forms_read_every_file(connection: icesql.Connection, sql: str) -> None:
    assert _run(connection, sql)[1]["fact"] == FILES


@pytest.mark.parametrize("sql", read_lines(__file__, "no_row_lost.tsv"))
def test_no_form_loses_a_row(connection: icesql.Connection, sql: str) -> None:
    _run(connection, sql)


def test_days_around_1970_and_at_the_ends_of_time(tmp_path: Path) -> None:
    """Also those that are infinity in DuckDB."""
    day, ends = 86_400_000_000, ((1 << 63) - 1, 1 - (1 << 63), (1 << 63) - 2)
    moments = [day * number + each for number in range(-3, 4) for each in (-1, 0, 1, day // 2)]
    old = TableWriter(tmp_path / "old", [FACT[0], FACT[5]])
    old.commit([old.data_file([{"k": each, "ts": each}] * 2) for each in (*moments, *ends)])
    dim = TableWriter(tmp_path / "dim", [DIM[0], DIM[1]])
    infinity = (1 << 31) - 1
    days = [-2, -1, 0, 1, infinity, -infinity, 106_751_991, None]
    dim.commit([dim.data_file([{"k": n, "day": each} for n, each in enumerate(days)])])
    with icesql.connect() as connection:
        connection.register_table("old", old.metadata_path)
        connection.register_table("dim", dim.metadata_path)
        for first in range(len(days)):
            for last in range(first, len(days)):
                sql = (
                    "SELECT old.k FROM old JOIN dim ON CAST(old.ts AS DATE) = dim.day "
                    f"WHERE dim.k BETWEEN {first} AND {last}"
                )
                files = _run(connection, sql)[1]["old"]
                if last < 4:
                    assert files == 4 * (last - first + 1), (first, last)


def test_they_can_be_switched_off(connection: icesql.Connection) -> None:
    connection.execute("SET run_time_filters = off")
    try:
        assert _run(connection, NARROWED[0][0])[1]["fact"] == FILES
    finally:
        connection.execute("RESET run_time_filters")


def test_the_small_table_is_read_once(connection: icesql.Connection, tmp_path: Path) -> None:
    """Its file is deleted when the query itself starts to read."""
    import shutil

    from icesql.engine import run_time_filters

    folder = tmp_path / "d"
    dim = TableWriter(folder, DIM)
    dim.commit([dim.data_file([_dim(each) for each in range(FILES)])])
    connection.register_table("once", dim.metadata_path)
    found = []
    real = run_time_filters.narrowed

    def narrowed(*given: Any) -> Any:
        found.append(real(*given))
        shutil.rmtree(folder)
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_time_filters, "narrowed", narrowed)
        rows = connection.execute(
            "SELECT count(*) FROM fact JOIN once ON fact.k = once.k WHERE once.kind = 'one'"
        ).fetchall()
    assert rows == [(2,)]
    assert [plan.rows_read is not None for plan in found[0]] == [False, True]


def test_explain_tells_of_them(connection: icesql.Connection) -> None:
    sql = (
        "SELECT count(*) FROM fact JOIN dim ON fact.k = dim.k "
        "JOIN region r ON dim.region = r.region WHERE title = 'r1'"
    )
    text = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {sql}").fetchall())
    assert "run-time filter: known when run: k has to be among scan 1: dim.k" in text
    assert "run-time filter: known when run: region has to be among scan 2: region.region" in text
    assert "data files: 20 kept, 0 skipped" in text
    text = "\n".join(line for (line,) in connection.execute(f"EXPLAIN ANALYZE {sql}").fetchall())
    assert "run-time filter: part of the filter: k has to be among scan 1: dim.k" in text
    assert "filter: k IN (251, 301, 351, 401, 451)" in text
    assert "data files: 5 kept, 15 skipped" in text
    sql = f"SELECT count(*) FROM fact JOIN dim ON fact.ts::DATE = dim.day WHERE {ONE}"
    text = "\n".join(line for (line,) in connection.execute(f"EXPLAIN ANALYZE {sql}").fetchall())
    assert "part of the filter: CAST(ts AS DATE) has to be among scan 1: dim.day" in text
    assert "filter: ts >= 2026-01-01 00:00:00 AND ts < 2026-01-03 00:00:00" in text


def test_limits_hold_for_what_is_read_once_keys_are_known(connection: icesql.Connection) -> None:
    sql = f"SELECT fact.k FROM fact JOIN dim ON fact.k = dim.k WHERE {ONE}"
    rows, files = _run(connection, sql)
    allowed = sum(files.values()) + 1  # and the delete file of one of them
    try:
        connection.execute(f"SET max_scan_files = {allowed}")
        assert sorted(connection.execute(sql).fetchall()) == sorted(rows)
        told = " ".join(connection.execute(f"EXPLAIN {sql}").notes)
        assert "allowed to run only if run-time filters leave out files" in told
        connection.execute(f"EXPLAIN ANALYZE {sql}")
        connection.execute("SET max_scan_files = 2")
        for each in (sql, f"EXPLAIN ANALYZE {sql}"):
            with pytest.raises(icesql.ScanLimitError, match="which is more than max_scan_files"):
                connection.execute(each)
        # The limit also applies to scans that are read first.
        connection.execute("SET max_scan_bytes = 10")
        with pytest.raises(icesql.ScanLimitError, match="max_scan_bytes = 10"):
            connection.execute(sql)
    finally:
        connection.execute("RESET max_scan_files")
        connection.execute("RESET max_scan_bytes")
