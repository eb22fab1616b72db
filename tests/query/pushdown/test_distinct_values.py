"""Distinct values of identity partition columns come from metadata; what it does not know is read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
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
        "SELECT day, count(*) FROM t GROUP BY day",
        "SELECT city, sum(1) FROM t GROUP BY city",
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


def test_explain_says_how_many_files_were_answered(connection: icesql.Connection) -> None:
    connection.execute("SET prune = on")
    lines = connection.execute("EXPLAIN SELECT DISTINCT day FROM t").fetchall()
    text = "\n".join(line for (line,) in lines)
    assert "data files: 3 kept, 0 skipped, 6 counted from metadata" in text
    assert "its partition has all values" in text
