"""Manifest pruning: Java's TestInclusiveManifestEvaluator under SQL's NULLs, and soundness."""

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
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import FieldSummary, ManifestFile
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    UNKNOWN,
    IcebergType,
    NestedField,
)
from icesql.scan.pruning.manifest_evaluator import explain_manifest, manifest_may_match
from icesql.scan.pruning.partition_evaluator import explain_partition, partition_mask
from tests.writer.bounds import encode_bound

O = Operation  # noqa: E741


def summary(column: IcebergType, lower: Any = None, upper: Any = None, *, null: bool = False,
            nan: bool | None = None) -> FieldSummary:  # fmt: skip
    low, high = (None if each is None else encode_bound(column, each) for each in (lower, upper))
    return FieldSummary(null, nan, low, high)


FIELDS: dict[str, tuple[IcebergType, FieldSummary]] = {
    "id": (INTEGER, summary(INTEGER, 30, 79)),
    "all_nulls": (STRING, summary(STRING, null=True)),
    "some_nulls": (STRING, summary(STRING, "a", "z", null=True)),
    "no_nulls": (STRING, summary(STRING, "a", "z")),
    "all_nans": (DOUBLE, summary(DOUBLE, nan=True)),
    "nulls_or_nans": (DOUBLE, summary(DOUBLE, null=True, nan=True)),
    "nulls_unknown_nans": (FLOAT, summary(FLOAT, null=True)),
    "all_nulls_no_nans": (FLOAT, summary(FLOAT, null=True, nan=False)),
    "no_nans": (FLOAT, summary(FLOAT, 0.0, 20.0, nan=False)),
    "unknown_nans": (FLOAT, summary(FLOAT, 5.0, 5.0)),
    "five": (INTEGER, summary(INTEGER, 5, 5)),
    "five_or_null": (INTEGER, summary(INTEGER, 5, 5, null=True)),
    "prefix": (STRING, summary(STRING, "abc", "abcde")),
    "bare": (INTEGER, summary(INTEGER)),
    "odd": (INTEGER, FieldSummary(False, None, b"123", b"1")),
    "dropped": (UNKNOWN, summary(INTEGER, 5, 5)),
}
IDS = {name: 1000 + at for at, name in enumerate(FIELDS)}
TYPES = {IDS[name]: column for name, (column, _) in FIELDS.items()}
MANIFEST = ManifestFile("m.avro", partitions=tuple(each for _, each in FIELDS.values()))


def on(column: str, operation: Operation, literal: Any = None) -> Leaf:
    literal = frozenset(literal) if isinstance(literal, set | range) else literal
    return Leaf(operation, Term(IDS.get(column, 99), column), literal)


CASES = [
    ("id", O.LT, 30, False), ("id", O.LT, 31, True), ("id", O.LT_EQ, 29, False),
    ("id", O.LT_EQ, 30, True), ("id", O.GT, 79, False), ("id", O.GT, 78, True),
    ("id", O.GT_EQ, 80, False), ("id", O.GT_EQ, 79, True), ("id", O.EQ, 29, False),
    ("id", O.EQ, 30, True), ("id", O.EQ, 80, False), ("id", O.NOT_EQ, 30, True),
    ("id", O.IN, {28, 29}, False), ("id", O.IN, {29, 30}, True), ("id", O.IN, {1, 90}, False),
    ("id", O.IN, range(300, 1000), False), ("id", O.NOT_IN, {30, 31}, True),
    ("id", O.IS_NULL, None, False), ("id", O.NOT_NULL, None, True),
    ("all_nulls", O.NOT_NULL, None, False), ("all_nulls", O.IS_NULL, None, True),
    ("all_nulls", O.EQ, "a", False), ("all_nulls", O.LT, "a", False), ("all_nulls", O.IN, {"a", "b"}, False),
    ("all_nulls", O.STARTS_WITH, "a", False), ("all_nulls", O.NOT_EQ, "a", False),
    ("some_nulls", O.NOT_NULL, None, True), ("some_nulls", O.IS_NULL, None, True),
    ("no_nulls", O.IS_NULL, None, False), ("some_nulls", O.NOT_EQ, "a", True),
    ("some_nulls", O.STARTS_WITH, "a", True), ("some_nulls", O.STARTS_WITH, "zzzz", True),
    ("no_nulls", O.STARTS_WITH, "Z", False),
    ("all_nans", O.IS_NAN, None, True), ("all_nans", O.NOT_NAN, None, False),
    ("all_nans", O.GT, 1.0, False), ("all_nans", O.NOT_NULL, None, True), ("all_nans", O.NOT_EQ, 1.0, True),
    ("nulls_or_nans", O.GT, 1.0, False), ("nulls_or_nans", O.NOT_NULL, None, True),
    ("nulls_or_nans", O.NOT_NAN, None, False),
    ("nulls_unknown_nans", O.NOT_NULL, None, True), ("nulls_unknown_nans", O.IS_NAN, None, True),
    ("nulls_unknown_nans", O.EQ, 1.0, False),
    ("all_nulls_no_nans", O.NOT_NULL, None, False), ("all_nulls_no_nans", O.IS_NAN, None, False),
    ("no_nans", O.IS_NAN, None, False), ("no_nans", O.NOT_NAN, None, True),
    ("unknown_nans", O.IS_NAN, None, True), ("unknown_nans", O.NOT_EQ, 5.0, True),
    ("five", O.NOT_EQ, 5, False), ("five", O.NOT_EQ, 6, True), ("five", O.NOT_IN, {5, 6}, False),
    # SQL's <> is not true for NULL, so those may be there
    ("five_or_null", O.NOT_EQ, 5, False),
    ("prefix", O.NOT_STARTS_WITH, "abc", False), ("prefix", O.NOT_STARTS_WITH, "abcd", True),
    ("prefix", O.STARTS_WITH, "abcdef", True), ("prefix", O.STARTS_WITH, "abd", False),
    # neither null nor a bound: the summary contradicts itself and proves nothing
    ("bare", O.EQ, 5, True), ("bare", O.NOT_NULL, None, True),
    ("odd", O.EQ, 5, True), ("dropped", O.EQ, 6, True), ("gone", O.EQ, 6, True),
]  # fmt: skip


@pytest.mark.parametrize(("column", "operation", "literal", "expected"), CASES)
def test_manifests_that_cannot_match_are_skipped(column, operation, literal, expected):
    assert manifest_may_match(MANIFEST, on(column, operation, literal), TYPES) is expected


@pytest.mark.parametrize(("column", "operation", "literal", "expected"), CASES)
def test_manifest_without_summaries_is_read(column, operation, literal, expected):
    bare = ManifestFile("m.avro", partitions=None)
    assert manifest_may_match(bare, on(column, operation, literal), TYPES)


def test_summaries_that_do_not_fit_the_spec_are_ignored():
    short = ManifestFile("m.avro", partitions=MANIFEST.partitions[:1])
    assert manifest_may_match(short, on("id", O.EQ, 5), TYPES)


def test_and_or_and_constants():
    inside, outside = on("id", O.EQ, 40), on("id", O.EQ, 5)
    assert not manifest_may_match(MANIFEST, inside & outside, TYPES)
    assert manifest_may_match(MANIFEST, inside | outside, TYPES)
    assert manifest_may_match(MANIFEST, ALWAYS_TRUE, TYPES)
    assert not manifest_may_match(MANIFEST, ALWAYS_FALSE, TYPES)


SCHEMA = Schema((NestedField(1, "d", DATE), NestedField(2, "n", INTEGER)))
SPEC = PartitionSpec(0, (
    PartitionField((1,), 1000, "month", "d_month"), PartitionField((2,), 1001, "identity", "n"),
))  # fmt: skip


def test_explanation_shows_partition_values_as_dates():
    manifest = ManifestFile("m.avro", partitions=(
        summary(INTEGER, 290, 299), summary(INTEGER, 1, 5),
    ))  # fmt: skip
    late = Leaf(O.GT_EQ, Term(1000, "d_month"), 300)
    assert explain_manifest(manifest, late, SPEC, SCHEMA) == (
        "d_month >= 1995-01",
        "upper bound is 1994-12",
    )
    assert explain_manifest(manifest, Leaf(O.LT, Term(1001, "n"), 9), SPEC, SCHEMA) is None
    assert explain_partition(late, SPEC, (299, None), SCHEMA) == (
        "d_month >= 1995-01",
        "partition value is 1994-12",
    )
    assert explain_partition(Leaf(O.LT, Term(1001, "n"), 9), SPEC, (299, None), SCHEMA) == (
        "n < 9",
        "partition value is NULL",
    )
    assert explain_partition(late, SPEC, (300, None), SCHEMA) is None


def test_partition_mask_is_per_entry_and_only_among_those_asked():
    partitions = [(300, 1), (299, 1), (None, 1), (300, 2), (300, 1)]
    count = len(partitions)
    entries = ManifestEntries(
        0, [1] * count, [1] * count, [1] * count, [1] * count, [0] * count, ["a"] * count,
        ["PARQUET"] * count, partitions, [1] * count, [1] * count,
    )  # fmt: skip
    predicate = Leaf(O.EQ, Term(1000, "d_month"), 300) & Leaf(O.EQ, Term(1001, "n"), 1)
    assert partition_mask(entries, predicate, SPEC) == [True, False, False, False, True]
    assert partition_mask(entries, predicate, SPEC, among=[1, 4]) == [False] * 4 + [True]
    assert partition_mask(entries, ALWAYS_TRUE, SPEC) == [True] * count


VALUES = {
    INTEGER: st.integers(-3, 3),
    STRING: st.text("abA", max_size=3),
    DOUBLE: st.sampled_from([-1.5, -0.0, 0.0, 2.5, math.nan]),
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[IcebergType, Predicate, list[Any], bool]:
    column = draw(st.sampled_from(list(VALUES)))
    literals = VALUES[column].filter(lambda value: value == value)
    kinds = [
        each for each in O if each not in (O.STARTS_WITH, O.NOT_STARTS_WITH) or column == STRING
    ]
    kinds = [each for each in kinds if each not in (O.IS_NAN, O.NOT_NAN) or column == DOUBLE]
    operation = draw(st.sampled_from(kinds))
    literal: Any = None
    if operation in (O.IN, O.NOT_IN):
        literal = draw(st.frozensets(literals, min_size=2, max_size=3))
    elif operation not in (O.IS_NULL, O.NOT_NULL, O.IS_NAN, O.NOT_NAN):
        literal = draw(literals)
    rows = draw(st.lists(st.none() | VALUES[column], min_size=1, max_size=4))
    return column, Leaf(operation, Term(1000, "p"), literal), rows, draw(st.booleans())


@given(cases())
@settings(max_examples=600, deadline=None)
def test_no_manifest_with_a_matching_partition_is_skipped(case):
    column, predicate, partitions, knows_nan = case
    ordinary = [each for each in partitions if each is not None and each == each]
    has_nan = any(each is not None and each != each for each in partitions)
    facts = summary(
        column,
        min(ordinary, default=None),
        max(ordinary, default=None),
        null=None in partitions,
        nan=has_nan if knows_nan else None,
    )
    manifest = ManifestFile("m.avro", partitions=(facts,))
    if any(evaluate(predicate, lambda _, value=value: value) for value in partitions):
        assert manifest_may_match(manifest, predicate, {1000: column})
