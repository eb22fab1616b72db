"""Residuals: Java's TestResiduals, NULL partitions, and exactness on the rows of a partition."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icesql.iceberg.expressions.predicate import (
    ALWAYS_TRUE,
    Predicate,
    Term,
    evaluate,
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
from icesql.scan.spec_scan import ResidualEvaluator
from tests.iceberg.random_predicates import predicates
from tests.iceberg.text_forms import columns, read_predicate
from tests.tables import read_table

SCHEMA = columns("dateint int", "hour int")


def residual_for(
    predicate: Predicate, spec: PartitionSpec, partition: tuple[Any, ...], schema: Schema
) -> Predicate:
    return ResidualEvaluator(predicate, spec, schema).residual(partition)


def by_dateint(transform: str) -> PartitionSpec:
    return PartitionSpec(0, (PartitionField((1,), 1000, transform, "p"),))


@pytest.mark.parametrize(
    ("transform", "partition", "predicate", "expected"), read_table(__file__, "residuals.tsv")
)
def test_residuals(transform, partition, predicate, expected):
    given, values = read_predicate(predicate, SCHEMA), (json.loads(partition),)
    found = residual_for(given, by_dateint(transform), values, SCHEMA)
    assert found == read_predicate(expected, SCHEMA)


def test_unpartitioned_residual_is_the_very_predicate():
    predicate = read_predicate("dateint < 5 AND hour > 3", SCHEMA)
    assert residual_for(predicate, PartitionSpec(), (), SCHEMA) is predicate


def test_one_evaluator_serves_many_partitions():
    predicate = read_predicate("dateint = 1 OR hour = 2", SCHEMA)
    evaluator = ResidualEvaluator(predicate, by_dateint("identity"), SCHEMA)
    assert evaluator.residual((1,)) is ALWAYS_TRUE
    assert evaluator.residual((2,)) == read_predicate("hour = 2", SCHEMA)
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
    columns_of_rows = Term(1, "x"), Term(2, "y")
    predicate = draw(predicates(column, VALUES[column], *columns_of_rows, most=4))
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
