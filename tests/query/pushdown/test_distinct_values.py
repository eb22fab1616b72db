"""Distinct values of identity partition columns come from metadata; other values are read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

import icesql
from tests.tables import read_cases, read_lines
from tests.writer.fields import fields
from tests.writer.table import TableWriter

FIELDS = fields("id long, day date, city string, f double")


def _identity(*names: str) -> list[dict[str, Any]]:
    ids = {each["name"]: each["id"] for each in FIELDS}
    return [
        {"source-id": ids[n], "field-id": 1000 + ids[n], "name": n, "transform": "identity"}
        for n in names
    ]


@pytest.fixture(scope="module")
def connection(tmp_path_factory) -> Iterator[icesql.Connection]:
    """``t``: 6 files by day and city, one of them with a deleted row; one by day only; two by f."""
    table = TableWriter(
        tmp_path_factory.mktemp("values") / "t", FIELDS, spec=_identity("day", "city")
    )
    first = date(2026, 1, 1)
    days = (first - date(1970, 1, 1)).days

    def file(number: int, partition: tuple[Any, ...], **values: Any) -> Any:
        row = {"day": first + timedelta(days=number), "city": "abc"[number % 3], "f": 0.5} | values
        rows = [{"id": 10 * number + each, **row} for each in range(3)]
        return table.data_file(rows, partition=partition)

    files = [file(n, (days + n, "abc"[n % 3])) for n in range(5)]
    files.append(file(5, (days + 5, None), city=None))
    table.commit(files)
    deleted = [(files[0], each) for each in range(3)]
    table.commit([table.position_deletes(deleted, partition=(days, "a"))])
    table.set_spec(_identity("day"))
    table.commit([file(6, (days + 6,), city="z")])
    table.set_spec(_identity("f"))
    table.commit([file(7, (float("nan"),), f=float("nan")), file(8, (-0.0,), f=-0.0)])
    with icesql.connect() as opened:
        opened.register_table("t", table.metadata_path)
        yield opened


def _both(connection: icesql.Connection, sql: str) -> tuple[list[Any], int]:
    connection.execute("SET prune = off")
    expected = connection.execute(sql).fetchall()
    connection.execute("SET prune = on")
    cursor = connection.execute(sql)
    rows = cursor.fetchall()
    assert sorted(map(repr, rows)) == sorted(map(repr, expected)), sql
    return rows, cursor.scan_reports[0].result_data_files


@pytest.mark.parametrize(("sql", "files"), read_cases(__file__, "distinct_values.tsv", 1))
def test_partitions_answer(connection: icesql.Connection, sql: str, files: int) -> None:
    assert _both(connection, sql)[1] <= files


@pytest.mark.parametrize("sql", read_lines(__file__, "not_distinct_values.tsv"))
def test_other_forms_give_the_same_rows(connection: icesql.Connection, sql: str) -> None:
    _both(connection, sql)


@pytest.mark.parametrize(("sql", "files"), read_cases(__file__, "counts_of_partitions.tsv", 1))
def test_partitions_count(connection: icesql.Connection, sql: str, files: int) -> None:
    assert _both(connection, sql)[1] <= files


def test_rows_come_as_often_as_they_are_there(tmp_path) -> None:
    """Also if only bounds have the value, with a deletion vector, and for any number of rows."""
    table = TableWriter(tmp_path / "t", FIELDS, spec=_identity("city"), version=3)
    counts = {"a": 1, "b": 6, "c": 37, "d": 1025}
    files = {
        city: table.data_file(
            [{"id": 7, "city": city, "day": None} for _ in range(count)], partition=(city,)
        )
        for city, count in counts.items()
    }
    table.commit([*files.values()])
    table.commit(table.deletion_vectors([(files["c"], [0, 5, 36])]))
    expected = [(each, count - 3 * (each == "c")) for each, count in counts.items()]
    with icesql.connect() as opened:
        opened.register_table("t", table.metadata_path)
        for sql in (
            "SELECT city, count(*) FROM t GROUP BY city ORDER BY city",
            "SELECT city, count(id) FROM t GROUP BY city ORDER BY city",
            "SELECT city, count(*) FROM t WHERE id > 3 GROUP BY city ORDER BY city",
        ):
            cursor = opened.execute(sql)
            assert cursor.fetchall() == expected
            assert cursor.scan_reports[0].result_data_files == 0, sql
        read = opened.execute("SELECT day, count(*) FROM t GROUP BY day").fetchall()
        assert read == [(None, sum(count for _, count in expected))]


def test_explain_says_how_many_files_were_answered(connection: icesql.Connection) -> None:
    connection.execute("SET prune = on")
    lines = connection.execute("EXPLAIN SELECT DISTINCT day FROM t").fetchall()
    text = "\n".join(line for (line,) in lines)
    assert "data files: 1 kept, 0 skipped, 8 counted from metadata" in text
    assert "one value each" in text
