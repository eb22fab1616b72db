from __future__ import annotations

from datetime import UTC, datetime

import pytest

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.iceberg.expressions.render import render_predicate
from icesql.iceberg.metadata.schema_json import parse_schema
from tests.query.pushdown.translation import translate
from tests.tables import read_table
from tests.writer.fields import fields

COLUMNS = (
    "i int, l long, f float, d double, c decimal(10, 2), s string, b boolean, e date, t timestamp, "
    "z timestamptz, u uuid, y binary, h decimal(38, 10), r struct<x int>"
)
SCHEMA = parse_schema({"type": "struct", "fields": fields(COLUMNS)})


def translated(condition: str, zone: str = "UTC") -> tuple[str, tuple[str, ...]]:
    context = QueryContext(
        settings=Settings(timezone=zone), now=datetime(2026, 11, 21, 12, tzinfo=UTC)
    )
    found = translate(condition, lambda column: SCHEMA.find_column(column.name), context)
    return render_predicate(found.predicate, SCHEMA), found.reasons


def predicate(condition: str, zone: str = "UTC") -> str:
    return translated(condition, zone)[0]


@pytest.mark.parametrize(("condition", "zone", "expected"), read_table(__file__, "implied.tsv"))
def test_condition_becomes_what_it_implies(condition, zone, expected):
    assert predicate(condition, zone) == expected


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("length(s) = 5", "length() is not known to keep the order of its argument"),
        ("i = l", "it compares columns with each other"),
        ("i IN (SELECT 1)", "it depends on a subquery"),
        ("s = 5", "a string column is not compared with integer"),
        ("r IS NULL", "columns have no bounds"),
    ],
)
def test_what_is_left_to_the_engine_is_told(condition, reason):
    (told,) = translated(condition)[1]
    assert reason in told


def test_a_thousand_alternatives_make_one_set():
    condition = " OR ".join(f"i = {number}" for number in range(300))
    assert predicate(condition).startswith("i IN (0, 1, 2, ")


def test_a_long_list_of_ranges_makes_a_shallow_tree():
    condition = " OR ".join(f"i < {n}" for n in range(150))
    found = translate(condition, lambda column: SCHEMA.find_column(column.name), QueryContext())

    def depth(node: object) -> int:
        sides = [getattr(node, side, None) for side in ("left", "right")]
        return 1 + max((depth(each) for each in sides if each is not None), default=0)

    assert depth(found.predicate) < 12
