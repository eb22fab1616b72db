"""Common statements and forms, as data: the dialects that accept each, and that others refuse."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from tests.tables import read_table

DIALECTS = ("default", "spark", "trino", "snowflake")


def forms() -> list[tuple[tuple[str, ...], str]]:
    pairs = read_table(__file__, "statement_forms.tsv")
    return [(DIALECTS if where == "all" else tuple(where.split(",")), sql) for where, sql in pairs]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_form_works_where_it_is_said_to(warehouse: Any, dialect: str) -> None:
    """In one connection, in the order of the file: some create objects that others name."""
    found: dict[str, str] = {}
    expected: dict[str, str] = {}
    name = None if dialect == "default" else dialect
    with icesql.connect(warehouse=str(warehouse), dialect=name) as connection:
        for where, form in forms():
            sql = form.format(t="shop.orders", n="shop")
            expected[form] = "works" if dialect in where else "refused"
            try:
                cursor = connection.execute(sql)
                if cursor.description is not None:
                    cursor.fetchall()
                found[form] = "works"
            except icesql.Error as error:
                found[form] = "refused" if dialect not in where else f"{error}"
    assert found == expected
