"""Conditions implied by equal columns prune the other table's files, and lose no row."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import icesql
from tests.tables import read_cases
from tests.writer.fields import fields
from tests.writer.table import TableWriter

FIELDS = fields("k long, s string, f double, n int")


@pytest.fixture(scope="module")
def connection(tmp_path_factory) -> Iterator[icesql.Connection]:
    """``a``, ``b`` and ``c``: 8 files each, in the order of their columns, with NULL and gaps."""
    with icesql.connect() as opened:
        for name, step in (("a", 1), ("b", 2), ("c", 3)):
            table = TableWriter(tmp_path_factory.mktemp("transitive") / name, FIELDS)
            numbers = range(0, 80 * step, step)
            rows = [
                {"k": None if n % 35 == 3 else n, "s": f"x{n:03d}", "f": n / 2, "n": n}
                for n in numbers
            ]
            table.commit([table.data_file(rows[at : at + 10]) for at in range(0, 80, 10)])
            opened.register_table(name, table.metadata_path)
        opened.execute("SET run_time_filters = off")
        yield opened


def both(connection: icesql.Connection, sql: str) -> tuple[list[Any], list[int]]:
    """The rows, and the number of files of each scan, after a check that pruning changes no row."""
    connection.execute("SET prune = off")
    expected = sorted(map(repr, connection.execute(sql).fetchall()))
    connection.execute("SET prune = on")
    cursor = connection.execute(sql)
    rows = cursor.fetchall()
    assert sorted(map(repr, rows)) == expected, sql
    return rows, [each.result_data_files for each in cursor.scan_reports]


@pytest.mark.parametrize(("sql", "files"), read_cases(__file__, "transitive.tsv", 1))
def test_it_reaches_the_other_table(
    connection: icesql.Connection, sql: str, files: list[int]
) -> None:
    assert both(connection, sql)[1] <= files


JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
CONDITIONS = ("a.k = 20", "a.k > 70", "a.k IS NULL", "a.k IS NOT NULL", "coalesce(a.k, 5) < 9")


@pytest.mark.parametrize("join", JOINS)
def test_no_join_loses_a_row(connection: icesql.Connection, join: str) -> None:
    shown = "a.k, a.n" if join in ("SEMI JOIN", "ANTI JOIN") else "a.k, a.n, b.k, b.n"
    for condition in CONDITIONS:
        both(connection, f"SELECT {shown} FROM a {join} b ON a.k = b.k WHERE {condition}")
        both(
            connection, f"SELECT {shown} FROM a {join} b ON a.k = b.k AND a.n > 3 WHERE {condition}"
        )
        if "SEMI" not in join and "ANTI" not in join:
            other = condition.replace("a.k", "b.k")
            both(connection, f"SELECT {shown} FROM a {join} b ON a.k = b.k WHERE {other}")


def test_no_two_joins_lose_a_row(connection: icesql.Connection) -> None:
    """The second join may fill both sides of the first one's equality with NULL."""
    for first, second in itertools.product(JOINS[:4], JOINS[:4]):
        for condition, key in itertools.product(("a.k = 12", "c.k > 60", "b.k IS NULL"), "ab"):
            both(
                connection,
                f"SELECT a.n, b.n, c.n FROM a {first} b ON a.k = b.k {second} c ON {key}.k = c.k "
                f"WHERE {condition}",
            )
    both(connection, "SELECT a.n, b.n FROM a CROSS JOIN b LEFT JOIN c ON a.k = b.k WHERE a.k = 2")


def test_explain_lists_what_follows(connection: icesql.Connection) -> None:
    lines = connection.execute("EXPLAIN SELECT 1 FROM a JOIN b ON a.k = b.k WHERE a.k = 20")
    text = "\n".join(line for (line,) in lines.fetchall())
    assert "a.k = 20 (as b.k = a.k)" in text
