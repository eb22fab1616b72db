"""EXPLAIN shows values as people write them."""

from __future__ import annotations

import pytest

from icesql.iceberg.expressions.predicate import Leaf, Operation, Term
from icesql.iceberg.expressions.render import (
    render_partition_leaf,
    render_predicate,
    render_value,
)
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.types import (
    DATE,
)
from tests.iceberg.text_forms import columns, read_predicate, read_type, read_value
from tests.tables import read_table

SCHEMA = columns("d date", "s string", "n int")


@pytest.mark.parametrize(("kind", "value", "text"), read_table(__file__, "rendered_values.tsv"))
def test_values(kind, value, text):
    assert render_value(read_type(kind), read_value(read_type(kind), value)) == text


def test_values_of_another_type_are_shown_as_they_are():
    assert render_value(DATE, "odd") == "odd"


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        # only the parentheses that are needed
        ('d >= "1995-01-01" AND s STARTS WITH "ab" OR n IS NULL',
         "d >= 1995-01-01 AND s STARTS WITH 'ab' OR n IS NULL"),
        ("true", "true"),
        # a long list shows its least literals
        (f"n IN {list(range(100))}", "n IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … 90 more)"),
        ("month(d) = 300", "month(d) = 1995-01"),
        ("bucket[4](d) = 3", "bucket[4](d) = 3"),
    ],
)  # fmt: skip
def test_predicates(predicate, text):
    assert render_predicate(read_predicate(predicate, SCHEMA), SCHEMA) == text


def test_a_disjunction_in_a_conjunction_has_parentheses():
    day = read_predicate('d >= "1995-01-01"', SCHEMA)
    either = read_predicate('s STARTS WITH "ab" OR n IS NULL', SCHEMA)
    assert render_predicate(day & either, SCHEMA) == (
        "d >= 1995-01-01 AND (s STARTS WITH 'ab' OR n IS NULL)"
    )


def test_columns_that_are_gone_are_shown_by_name():
    assert render_predicate(Leaf(Operation.EQ, Term(99, "gone"), "a"), SCHEMA) == "gone = 'a'"


@pytest.mark.parametrize(
    ("predicate", "text"),
    [("d_month <= 300", "d_month <= 1995-01"), ('s_trunc = "ab"', "s_trunc = 'ab'")],
)
def test_partition_values_are_shown_by_their_transform(predicate, text):
    spec = PartitionSpec(0, (
        PartitionField((1,), 1, "month", "d_month"),
        PartitionField((2,), 2, "truncate[2]", "s_trunc"),
    ))  # fmt: skip
    leaf = read_predicate(predicate, columns("d_month int", "s_trunc string"))
    assert render_partition_leaf(leaf, spec, SCHEMA) == text
