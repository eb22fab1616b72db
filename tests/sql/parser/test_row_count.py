"""A count of a whole table is read without the parser, with the same result as the parser's."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import icesql
from icesql.sql.keywords import NO_ALIAS
from icesql.sql.parse import parse
from icesql.sql.parser.row_count import read_row_count

READ = [
    "SELECT count(*) FROM shop.orders",
    "select COUNT ( * )\n from\tSHOP.Customers ;",
    "  SELECT count(*) FROM ShOp.types;  ",
]
LEFT = [
    "SELECT count(*) FROM shop . orders",
    'SELECT count(*) FROM shop."orders"',
    "SELECT count(*) AS n FROM shop.orders",
    "SELECT count(*) FROM shop.orders o",
    "SELECT count(*) FROM shop.orders VERSION AS OF 'opening'",
    "SELECT count(*) FROM shop.orders, shop.types",
    "SELECT count(*) FROM shop.orders -- c",
    "SELECT count(*) FROM shop.orders; SELECT 1",
    "SELECT count(*) FROM shop.orders;;",
    "SELECT count(id) FROM shop.orders",
    "SELECT count(DISTINCT *) FROM shop.orders",
    "SELECT\u00a0count(*) FROM shop.orders",
    "SELECT count(*) FROM shop.\u017fhop",
    "SELECT count(*) FROM 'a.parquet'",
    "SELECT count(*) FROM range(3)",
    "SELECT count(*) FROM a.b.c.d.e",
    "SELECT count(*) FROM 1a",
    "EXPLAIN SELECT count(*) FROM shop.orders",
    *(f"SELECT count(*) FROM {word}" for word in sorted(NO_ALIAS)),
    *(f"SELECT count(*) FROM {word}" for word in ("values", "unnest", "CURRENT_DATE", "map")),
    *(f"SELECT count(*) FROM shop.{word}" for word in ("select", "where", "union")),
]


@pytest.mark.parametrize("sql", READ)
def test_the_parser_reads_the_same_table(sql: str) -> None:
    counted = read_row_count(sql)
    assert counted is not None
    (statement,) = parse(sql)
    (reference,) = statement.references
    assert counted.parts == reference.parts


@pytest.mark.parametrize("sql", LEFT)
def test_anything_else_is_left_to_the_parser(sql: str) -> None:
    assert read_row_count(sql) is None


def without_short_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icesql.session.pipeline.read_row_count", lambda _: None)


def answer(connection: Any, sql: str) -> Any:
    try:
        cursor = connection.execute(sql)
        reports = [(each.table_name, each.snapshot_id) for each in cursor.scan_reports]
        return cursor.description, cursor.fetchall(), cursor.notes, reports
    except icesql.Error as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "sql",
    [
        *READ,
        "SELECT count(*) FROM orders",
        "SELECT count(*) FROM shop.order",
        "SELECT count(*) FROM shop.orders.snapshots",
        "SELECT count(*) FROM shop.orders.branch_audit",
        "SELECT count(*) FROM nosuch.shop.orders",
    ],
)
def test_the_answer_is_that_of_the_whole_way(
    connection: Any, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = answer(connection, sql)
    without_short_cut(monkeypatch)
    assert short == answer(connection, sql)


def test_where_every_file_is_verified_none_is_counted_from_metadata(connection: Any) -> None:
    connection.execute("SET verify = 'full'")
    cursor = connection.execute("SELECT count(*) FROM shop.orders")
    assert cursor.scan_reports
    connection.execute("RESET verify")
    assert cursor.fetchall() == connection.execute("SELECT count(*) FROM shop.orders").fetchall()


def test_another_dialect_reads_it_by_its_own_words(warehouse: Any) -> None:
    with icesql.connect(warehouse=str(warehouse), dialect="spark") as connection:
        cursor = connection.execute("SELECT count(*) FROM shop.orders")
        assert cursor.description[0][0] != "count_star()"


def test_nothing_of_the_parser_is_imported(warehouse: Any) -> None:
    program = (
        "import sys, icesql; c = icesql.connect(warehouse=sys.argv[1])\n"
        "print(c.execute('SELECT count(*) FROM shop.orders').fetchall(), 'sqlglot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(warehouse)],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert done.stdout.endswith("False\n")
