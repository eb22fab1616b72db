"""Residuals: Java's TestResiduals, NULL partitions, and exactness on the rows of a partition."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icesql.iceberg.expressions.evaluate import evaluate
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
    Term,
)
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import parse_transform
from icesql.iceberg.types import (
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    IcebergType,
    NestedField,
)
from icesql.scan.pruning.residual import ResidualEvaluator

O = Operation  # noqa: E741
SCHEMA = Schema((NestedField(1, "dateint", INTEGER), NestedField(2, "hour", INTEGER)))
DATEINT, HOUR = Term(1, "dateint"), Term(2, "hour")
BY_DATEINT = PartitionSpec(0, (PartitionField((1,), 1000, "identity", "dateint"),))


def residual_for(
    predicate: Predicate, spec: PartitionSpec, partition: tuple[Any, ...], schema: Schema
) -> Predicate:
    return ResidualEvaluator(predicate, spec, schema).residual(partition)


def date_of(operation: Operation, literal: Any = None) -> Leaf:
    return Leaf(operation, DATEINT, literal)


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        (20170815, Leaf(O.LT, HOUR, 12)),
        (20170801, Leaf(O.GT, HOUR, 11)),
        (20170812, ALWAYS_TRUE),
        (20170817, ALWAYS_FALSE),
        (None, ALWAYS_FALSE),
    ],
)
def test_identity_partition_answers_its_own_comparisons(partition, expected):
    predicate = (
        (date_of(O.LT, 20170815) & date_of(O.GT, 20170801))
        | (date_of(O.EQ, 20170815) & Leaf(O.LT, HOUR, 12))
        | (date_of(O.EQ, 20170801) & Leaf(O.GT, HOUR, 11))
    )
    assert residual_for(predicate, BY_DATEINT, (partition,), SCHEMA) == expected


@pytest.mark.parametrize(
    ("partition", "expected"),
    [(20170815, ALWAYS_TRUE), (20180815, ALWAYS_FALSE), (None, ALWAYS_FALSE)],
)
def test_in(partition, expected):
    predicate = date_of(O.IN, frozenset({20170815, 20170816, 20170817}))
    assert residual_for(predicate, BY_DATEINT, (partition,), SCHEMA) == expected


@pytest.mark.parametrize("operation", [O.LT, O.LT_EQ, O.GT, O.GT_EQ, O.EQ, O.NOT_EQ])
def test_null_partition_satisfies_no_comparison(operation):
    assert residual_for(date_of(operation, 5), BY_DATEINT, (None,), SCHEMA) is ALWAYS_FALSE


def test_null_partition_satisfies_is_null_alone():
    assert residual_for(date_of(O.IS_NULL), BY_DATEINT, (None,), SCHEMA) is ALWAYS_TRUE
    assert residual_for(date_of(O.NOT_NULL), BY_DATEINT, (None,), SCHEMA) is ALWAYS_FALSE
    not_in = date_of(O.NOT_IN, frozenset({1, 2}))
    assert residual_for(not_in, BY_DATEINT, (None,), SCHEMA) is ALWAYS_FALSE


def test_unpartitioned_residual_is_the_very_predicate():
    predicate = date_of(O.LT, 5) & Leaf(O.GT, HOUR, 3)
    assert residual_for(predicate, PartitionSpec(), (), SCHEMA) is predicate


def test_bucket_decides_what_is_not_there_and_keeps_the_rest():
    spec = PartitionSpec(0, (PartitionField((1,), 1000, "bucket[16]", "b"),))
    predicate, bucket = date_of(O.EQ, 34), 2017239379 % 16
    assert residual_for(predicate, spec, (bucket,), SCHEMA) is predicate
    assert residual_for(predicate, spec, (bucket + 1,), SCHEMA) is ALWAYS_FALSE
    assert residual_for(date_of(O.NOT_EQ, 34), spec, (bucket + 1,), SCHEMA) is ALWAYS_TRUE
    # the term is a transform: the identity partition must not be compared with it
    of_bucket = Leaf(O.EQ, Term(1, "dateint", "bucket[16]"), 3)
    assert residual_for(of_bucket, BY_DATEINT, (3,), SCHEMA) is of_bucket


def test_one_evaluator_serves_many_partitions():
    evaluator = ResidualEvaluator(date_of(O.EQ, 1) | Leaf(O.EQ, HOUR, 2), BY_DATEINT, SCHEMA)
    assert evaluator.residual((1,)) is ALWAYS_TRUE
    assert evaluator.residual((2,)) == Leaf(O.EQ, HOUR, 2)
    assert evaluator.residual((1,)) is ALWAYS_TRUE


VALUES: dict[IcebergType, st.SearchStrategy[Any]] = {
    INTEGER: st.integers(-25, 25),
    STRING: st.text("ab🙂", max_size=4),
    DATE: st.integers(-70, 70),
    TIMESTAMP: st.integers(-50, 50).map(lambda hours: hours * 3_600_000_000 + hours % 2),
    DOUBLE: st.sampled_from([-1.5, -0.0, 0.0, 2.5, math.nan]),
}
TRANSFORMS = {
    INTEGER: ["identity", "bucket[4]", "truncate[8]", "void", "zorder"],
    STRING: ["identity", "bucket[4]", "truncate[2]"],
    DATE: ["identity", "month", "year", "day"],
    TIMESTAMP: ["day", "hour", "month"],
    DOUBLE: ["identity"],
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[IcebergType, list[str], Predicate, Any, Any]:
    column = draw(st.sampled_from(list(VALUES)))
    literals = VALUES[column].filter(lambda value: value == value)

    def leaf() -> Leaf:
        kinds = [
            O.LT,
            O.LT_EQ,
            O.GT,
            O.GT_EQ,
            O.EQ,
            O.NOT_EQ,
            O.IN,
            O.NOT_IN,
            O.IS_NULL,
            O.NOT_NULL,
        ]
        kinds += [O.IS_NAN, O.NOT_NAN] if column == DOUBLE else []
        kinds += [O.STARTS_WITH, O.NOT_STARTS_WITH] if column == STRING else []
        operation = draw(st.sampled_from(kinds))
        term = Term(draw(st.sampled_from([1, 2])), "x")
        if operation in (O.IN, O.NOT_IN):
            return Leaf(operation, term, draw(st.frozensets(literals, min_size=2, max_size=3)))
        if operation in (O.IS_NULL, O.NOT_NULL, O.IS_NAN, O.NOT_NAN):
            return Leaf(operation, term)
        return Leaf(operation, term, draw(literals))

    predicate: Predicate = leaf()
    for _ in range(draw(st.integers(0, 3))):
        predicate = (predicate & leaf()) if draw(st.booleans()) else (predicate | leaf())
    transforms = draw(st.lists(st.sampled_from(TRANSFORMS[column]), min_size=1, max_size=2))
    values = st.none() | VALUES[column]
    return column, transforms, predicate, draw(values), draw(values)


@given(cases())
@settings(max_examples=800, deadline=None)
def test_residual_is_true_for_exactly_the_rows_of_the_predicate(case):
    column, transforms, predicate, value, other = case
    schema = Schema((NestedField(1, "x", column), NestedField(2, "y", column)))
    spec = PartitionSpec(0, tuple(
        PartitionField((1,), 1000 + at, text, f"p{at}") for at, text in enumerate(transforms)
    ))  # fmt: skip
    partition = tuple(
        None if text == "zorder" else parse_transform(text).apply(value, column)
        for text in transforms
    )
    residual = residual_for(predicate, spec, partition, schema)
    row = {1: value, 2: other}
    assert evaluate(residual, row.get) is evaluate(predicate, row.get)
