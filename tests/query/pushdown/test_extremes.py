"""``ORDER BY c LIMIT n``, ``max(c)`` and ``min(c)`` read only files that may hold those rows."""

from __future__ import annotations

import struct
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

import icesql
from tests.query.pushdown.test_prunable_forms import _lines, connection
from tests.tables import read_lines
from tests.writer.fields import fields
from tests.writer.table import TableWriter

__all__ = ["connection"]

COLUMNS = ("id", "n", "dec", "s", "d", "ts", "tstz", "tm")


def _both(connection: icesql.Connection, sql: str) -> tuple[list[Any], int]:
    """The rows and the number of files read, after a check that pruning changes no row."""
    connection.execute("SET prune = off")
    expected = connection.execute(sql).fetchall()
    connection.execute("SET prune = on")
    cursor = connection.execute(sql)
    rows = cursor.fetchall()
    assert rows == expected, sql
    return rows, sum(report.result_data_files for report in cursor.scan_reports)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("order", ["", "DESC"])
def test_the_first_rows_by_a_column_come_from_few_files(
    connection: icesql.Connection, column: str, order: str
) -> None:
    sql = f"SELECT {column}, id FROM t ORDER BY {column} {order}, id LIMIT 3"
    _, files = _both(connection, sql)
    assert files <= (8 if column == "tm" else 2)


@pytest.mark.parametrize("column", COLUMNS)
def test_the_greatest_and_smallest_values_come_from_few_files(
    connection: icesql.Connection, column: str
) -> None:
    assert _both(connection, f"SELECT max({column}) FROM t")[1] <= 2
    assert _both(connection, f"SELECT min({column}) AS low FROM t")[1] <= 2
    assert _both(connection, f"SELECT max({column}), min(id) FROM t")[1] <= 3


def test_limits_offsets_and_nulls(connection: icesql.Connection) -> None:
    assert _both(connection, "SELECT id FROM t ORDER BY id LIMIT 25")[1] == 2
    assert _both(connection, "SELECT id FROM t ORDER BY id LIMIT 5 OFFSET 18")[1] == 2
    assert _both(connection, "SELECT id FROM t ORDER BY id LIMIT 1000")[1] == 8
    assert _both(connection, "SELECT id FROM t ORDER BY id LIMIT 0")[1] in (0, 8)
    # A third of n is NULL, which comes last without NULLS FIRST.
    assert _both(connection, "SELECT n, id FROM t ORDER BY n DESC, id LIMIT 140")[1] == 8
    assert _both(connection, "SELECT n, id FROM t ORDER BY n NULLS FIRST, id LIMIT 3")[1] == 8
    assert _both(connection, "SELECT n, id FROM t ORDER BY n NULLS LAST, id LIMIT 3")[1] == 1


@pytest.mark.parametrize("sql", read_lines(__file__, "no_extremes.tsv"))
def test_other_forms_lose_no_row(connection: icesql.Connection, sql: str) -> None:
    _both(connection, sql)


def test_a_sample_is_taken_of_all_files(connection: icesql.Connection) -> None:
    sample = "FROM t USING SAMPLE 100 PERCENT (bernoulli)"
    all_files = _both(connection, "SELECT id FROM t ORDER BY id")[1]
    for sql in (f"SELECT id {sample} ORDER BY id LIMIT 3", f"SELECT max(id) {sample}"):
        assert _both(connection, sql)[1] == all_files


def test_every_condition_beside_them_loses_no_row(connection: icesql.Connection) -> None:
    forms = [
        form for *_, form in _lines() if not form.startswith(("SELECT", "WITH", "FROM", "VALUES"))
    ]
    assert len(forms) > 400
    for form in forms[::4]:
        where = form.replace("{t}", "t")
        _both(connection, f"SELECT id FROM t WHERE {where} ORDER BY id DESC LIMIT 2")
        _both(connection, f"SELECT min(ts), max(id), max(s) FROM t WHERE {where}")


def test_explain_says_which_bound_made_a_file_needless(connection: icesql.Connection) -> None:
    connection.execute("SET prune = on")
    lines = connection.execute("EXPLAIN SELECT * FROM t ORDER BY d DESC LIMIT 3").fetchall()
    text = "\n".join(line for (line,) in lines)
    assert "by order: d DESC LIMIT 3; upper bound is 2026-07-20 < 2026-08-01" in text
    assert "data files: 1 kept, 7 skipped" in text


WEAKER = [
    "ts {} '2026-03-01T00:00:00Z'",
    "ts {} '2026-03-01 02:00:00+02'",
    "r {} 0.1::DOUBLE",
    "r {} 0.1",
    "f {} 0.1000000000000000055",
    "f {} 16777217",
    "dec {} 0.45",
    "dec {} 0.45::DOUBLE",
    "s {} 'b'",
    "n {} 1.5",
]


def test_files_are_not_trusted_for_more_than_the_whole_condition(tmp_path) -> None:
    """Row filters may be weaker than the condition: rows that pass only the filter do not count."""
    columns = fields("id long, ts timestamp, r float, f double, dec decimal(9, 1), s string, n int")
    writer = TableWriter(tmp_path / "t", columns)
    start = datetime(2026, 2, 28, 23, 59, 59, 999_998)
    single = struct.unpack("f", struct.pack("f", 0.1))[0]

    def row(file: int, number: int) -> dict[str, Any]:
        near = [single, 0.1, 16777216.0, float("nan"), -0.0][(file + number) % 5]
        return {
            "id": file * 4 + number, "ts": start + timedelta(microseconds=file + number),
            "r": single if file % 2 else near, "f": near, "dec": Decimal(file + number) / 10,
            "s": "abc"[(file + number) % 3], "n": None if file == 4 else (file + number) % 4,
        }  # fmt: skip

    writer.commit([writer.data_file([row(file, n) for n in range(4)]) for file in range(6)])
    with icesql.connect(timezone="UTC") as opened:
        opened.register_table("t", writer.metadata_path)
        for form in WEAKER:
            for operator in ("<>", "<=", ">"):
                _both(opened, f"SELECT max(id), min(id) FROM t WHERE {form.format(operator)}")


def test_deleted_rows_are_not_counted_on(tmp_path) -> None:
    writer = TableWriter(tmp_path / "t", fields("id long"))
    files = [writer.data_file([{"id": k * 10 + i} for i in range(10)]) for k in range(3)]
    writer.commit(files)
    writer.commit([writer.position_deletes([(files[2], i) for i in range(10)])])
    with icesql.connect() as opened:
        opened.register_table("t", writer.metadata_path)
        assert opened.execute("SELECT max(id) FROM t").fetchall() == [(19,)]
        assert opened.execute("SELECT id FROM t ORDER BY id DESC LIMIT 2").fetchall() == [
            (19,),
            (18,),
        ]
