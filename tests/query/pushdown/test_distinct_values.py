"""Distinct values of identity partition columns come from metadata; what it does not know is read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.writer.table import TableWriter

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "day", "required": False, "type": "date"},
    {"id": 3, "name": "city", "required": False, "type": "string"},
    {"id": 4, "name": "f", "required": False, "type": "double"},
]


def _identity(*names: str) -> list[dict[str, Any]]:
    ids = {each["name"]: each["id"] for each in FIELDS}
    return [
        {"source-id": ids[n], "field-id": 1000 + ids[n], "name": n, "transform": "identity"}
        for n in names
    ]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[icesql.Connection]:
    """``t``: 6 files by day and city, one of them with a deleted row; one by day alone; two by f."""
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


@pytest.mark.parametrize(
    ("sql", "files"),
    [
        # The file whose rows are deleted, the two by f, and one that knows its day alone.
        ("SELECT DISTINCT day FROM t", 3),
        ("SELECT DISTINCT day, city FROM t", 4),
        ("SELECT count(DISTINCT city) FROM t", 4),
        ("SELECT count(DISTINCT day) AS n, max(city), min(day) FROM t", 4),
        ("SELECT day FROM t GROUP BY day ORDER BY day LIMIT 3", 3),
        ("SELECT city, max(day), count(DISTINCT day) FROM t GROUP BY city", 4),
        (
            "SELECT DISTINCT city FROM t WHERE day BETWEEN DATE '2026-01-02' AND DATE '2026-01-04'",
            0,
        ),
        ("SELECT DISTINCT day FROM t WHERE city IS NULL OR city LIKE '%b'", 4),
        ("SELECT count(DISTINCT day) FROM t WHERE day = DATE '1999-01-01'", 0),
    ],
)
def test_partitions_answer(connection: icesql.Connection, sql: str, files: int) -> None:
    assert _both(connection, sql)[1] <= files


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT day FROM t",
        "SELECT count(DISTINCT id) FROM t",
        "SELECT DISTINCT f FROM t",
        "SELECT DISTINCT day FROM t WHERE id > 12",
        "SELECT DISTINCT row_number() OVER (ORDER BY day) FROM t",
        "SELECT city, list_sort(array_agg(day)) FROM t GROUP BY city",
        "SELECT city AS c FROM t GROUP BY ALL",
        "SELECT day FROM t GROUP BY day HAVING count(*) > 2",
        "SELECT DISTINCT ON (city) city, day FROM t ORDER BY city, day",
        "SELECT count(DISTINCT day) FILTER (WHERE city = 'a') FROM t",
        "SELECT DISTINCT day FROM t USING SAMPLE 100 PERCENT (bernoulli)",
        "SELECT city, day FROM t GROUP BY CUBE (city, day)",
        "SELECT DISTINCT unnest([day, day]) FROM t",
        "SELECT DISTINCT d FROM (SELECT day AS d, city FROM t)",
        "SELECT DISTINCT a.day FROM t a JOIN t b ON a.day = b.day",
        "SELECT DISTINCT random() < 2 AS r FROM t",
        "SELECT DISTINCT _file IS NULL FROM t",
        "SELECT max(day) FROM t",
        "SELECT DISTINCT city FROM t ORDER BY length(city)",
    ],
)
def test_other_forms_give_the_same_rows(connection: icesql.Connection, sql: str) -> None:
    _both(connection, sql)


@pytest.mark.parametrize(
    ("sql", "files"),
    [
        ("SELECT day, count(*) FROM t GROUP BY day", 3),
        ("SELECT day, count(*) AS n, count(day), avg(1) FROM t GROUP BY ALL HAVING n > 1", 3),
        ("SELECT city, count(*), count(city), sum(length(city)) FROM t GROUP BY city", 4),
        ("SELECT city, day, count(*) FROM t GROUP BY CUBE (city, day)", 4),
        ("SELECT city IS NULL AS k, count(*) FROM t WHERE day > DATE '2026-01-02' GROUP BY k", 4),
        ("SELECT upper(city) AS k, count(*) FROM t WHERE day <> DATE '2026-01-03' GROUP BY 1", 4),
        ("SELECT city, count(*), row_number() OVER (ORDER BY city) FROM t GROUP BY city", 4),
        (
            "SELECT city, count(*) FROM t GROUP BY city QUALIFY row_number() OVER (ORDER BY city) = 1",
            4,
        ),
        # What has no values, or floats, is read.
        ("SELECT f, count(*) FROM t GROUP BY f", 9),
        ("SELECT day, count(id) FROM t GROUP BY day", 9),
        ("SELECT day, count(*) FROM t GROUP BY day, _file", 9),
    ],
)
def test_partitions_count(connection: icesql.Connection, sql: str, files: int) -> None:
    assert _both(connection, sql)[1] <= files


def test_rows_come_as_often_as_they_are_there(tmp_path: Path) -> None:
    """Also where only bounds know the value, with a deletion vector, and for any number of rows."""
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
