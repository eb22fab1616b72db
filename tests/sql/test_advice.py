"""Hints and clauses that only advise an engine: they are ignored and change no row."""

from __future__ import annotations

import pytest

from icesql.sql.parse import parse
from icesql.sql.statement import Query


def query(sql: str, dialect: str | None = None) -> Query:
    (statement,) = parse(sql, dialect=dialect)
    assert isinstance(statement, Query)
    return statement


@pytest.mark.parametrize("dialect", [None, "spark", "trino", "snowflake"])
@pytest.mark.parametrize(
    "hint",
    ["BROADCAST(t)", "REPARTITION(3), MAPJOIN(a, b)", "coalesce(1) shuffle_hash(t)", "MERGE(t) ,"],
)
def test_a_hint_that_advises_is_left_out_with_a_note(dialect: str | None, hint: str) -> None:
    found = query(f"SELECT /*+ {hint} */ a FROM t WHERE b = 3", dialect)
    bare = query(f"SELECT {' ' * len(f'/*+ {hint} */')} a FROM t WHERE b = 3", dialect)
    assert found.tree == bare.tree
    assert found.references == bare.references
    assert [f"the hint {' '.join(hint.split())} only advises" in note for note in found.notes] == [
        True
    ]


@pytest.mark.parametrize("dialect", [None, "spark"])
def test_each_statement_has_its_own_notes(dialect: str | None) -> None:
    first, second, third = parse(
        "SELECT 1; SELECT /*+ BROADCAST(t) */ 2; SELECT '/*+ BROADCAST(t) */'", dialect=dialect
    )
    assert [len(each.notes) for each in (first, second, third) if isinstance(each, Query)] == [
        0,
        1,
        0,
    ]
    assert isinstance(third, Query)
    assert third.tree.expressions[0].unalias().this == "/*+ BROADCAST(t) */"


@pytest.mark.parametrize(
    ("clauses", "order"),
    [
        ("SORT BY a DESC", "ORDER BY a DESC"),
        ("CLUSTER BY a", "ORDER BY a"),
        ("DISTRIBUTE BY b SORT BY a", "ORDER BY a, b"),
        ("DISTRIBUTE BY b SORT BY a LIMIT 3", "ORDER BY a, b LIMIT 3"),
    ],
)
def test_sorting_in_parts_is_sorting(clauses: str, order: str) -> None:
    found = query(f"SELECT a FROM t {clauses}", "spark").tree
    assert found == query(f"SELECT a FROM t {order}", "spark").tree
