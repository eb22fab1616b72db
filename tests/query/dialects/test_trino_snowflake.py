"""The dialects of Trino and Snowflake against values of the vendors' documentation."""

from __future__ import annotations

import ast
import datetime
import functools
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.errors import Error, UnsupportedSqlError
from icesql.query.dialects.functions import functions
from tests.tables import read_cases

HERE = Path(__file__).parent
DIALECTS = ("trino", "snowflake")


def cases(dialect: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in (HERE / f"{dialect}_values.txt").read_text().splitlines():
        if line.startswith("["):
            section = line
        elif line and not line.startswith("#"):
            sql, expected = line.rsplit(" = ", 1)
            over = " FROM (VALUES (1), (2), (2), (NULL)) t(x)"
            if not section.startswith(("[aggregate", "[window")):
                over = ""
            if section.startswith("[window"):
                over += " ORDER BY x"
            yield f"SELECT {sql}{over}", expected


def value(text: str) -> Any:
    if text.endswith("inf"):
        return float(text)
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call):
        return ast.literal_eval(text)
    made = {
        "datetime.date": datetime.date,
        "datetime.datetime": datetime.datetime,
        "Decimal": Decimal,
    }[ast.unparse(call.func)]
    return made(*(ast.literal_eval(each) for each in call.args))


@functools.cache
def opened(dialect: str) -> icesql.Connection:
    return icesql.connect(dialect=dialect)


@pytest.mark.parametrize(
    ("dialect", "sql", "expected"),
    [(dialect, *case) for dialect in DIALECTS for case in cases(dialect)],
)
def test_what_the_vendor_documents(dialect: str, sql: str, expected: str) -> None:
    cursor = opened(dialect).cursor()
    if expected.startswith("refused "):
        with pytest.raises(UnsupportedSqlError) as refused:
            cursor.execute(sql)
        assert expected.removeprefix("refused ") in str(refused.value)
        assert refused.value.line == 1
    elif expected.startswith("!"):
        with pytest.raises(Error, match=expected[1:]):
            cursor.execute(sql).fetchall()
    else:
        wanted = value(expected)
        given = cursor.execute(sql).fetchall()
        found = [each for (each,) in given] if " OVER (" in sql else given[0][0]
        assert found == wanted
        assert type(found) is type(wanted)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_function_of_the_table_has_a_documented_value(dialect: str) -> None:
    text = "\n".join(sql for sql, expected in cases(dialect) if not expected.startswith("refused"))
    called = {each.lower() for each in re.findall(r"(\w+)\s*\(", text)}
    assert sorted(set(functions(dialect)) - called) == []


@pytest.mark.parametrize(
    ("dialect", "sql", "expected"), read_cases(__file__, "vendor_statements.tsv", 2)
)
def test_statements(dialect: str, sql: str, expected: list[Any]) -> None:
    assert opened(dialect).cursor().execute(sql).fetchall() == expected


@pytest.mark.parametrize(
    ("dialect", "sql", "construct", "column"), read_cases(__file__, "vendor_refusals.tsv", 3)
)
def test_what_is_not_in_the_table_is_refused_at_its_place(
    dialect: str, sql: str, construct: str, column: int
) -> None:
    with pytest.raises(Error) as refused:
        opened(dialect).cursor().execute(sql)
    assert construct in str(refused.value)
    if construct:
        assert isinstance(refused.value, UnsupportedSqlError)
        assert abs((refused.value.column or 0) - column) <= 12


@pytest.mark.parametrize(
    ("dialect", "sql", "expected"),
    [
        ("trino", f"SELECT {' / '.join(['x'] * 41)} FROM (VALUES 1) t(x)", 1),
        ("trino", f"SELECT {'sqrt(' * 40}x{')' * 40} FROM (VALUES 1) t(x)", 1.0),
        ("trino", f"SELECT max({' / '.join(['x'] * 41)}) FROM (VALUES 1) t(x)", 1),
        ("trino", f"SELECT {' / '.join(['sum(x)'] * 41)} FROM (VALUES 1) t(x)", 1),
        ("snowflake", f"SELECT {' % '.join(['x'] * 41)} FROM VALUES (7) t(x)", 0),
    ],
)
def test_long_expressions_are_not_doubled_by_each_call(
    dialect: str, sql: str, expected: Any
) -> None:
    assert opened(dialect).cursor().execute(sql).fetchall()[0][0] == expected
