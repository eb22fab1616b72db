"""Strict metrics: Java's TestStrictMetricsEvaluator where NULL never satisfies a comparison."""

from __future__ import annotations

from typing import Any

import pytest

from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE, Leaf, Operation, Term
from icesql.iceberg.manifest.entries import ManifestEntries, PlainMaps
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import DOUBLE, INTEGER, STRING, UUID, NestedField, StructType
from icesql.scan.pruning.strict_evaluator import strict_mask
from tests.writer.bounds import encode_bound

O = Operation  # noqa: E741
SCHEMA = Schema(
    (
        NestedField(1, "id", INTEGER),
        NestedField(2, "all_nulls", STRING),
        NestedField(3, "some_nulls", INTEGER),
        NestedField(4, "all_nans", DOUBLE),
        NestedField(5, "some_nans", DOUBLE),
        NestedField(6, "no_nans", DOUBLE),
        NestedField(7, "always_5", INTEGER),
        NestedField(8, "uncounted", INTEGER),
        NestedField(9, "nans_uncounted", DOUBLE),
        NestedField(10, "no_stats", INTEGER),
        NestedField(11, "s", StructType((NestedField(12, "child", INTEGER),))),
        NestedField(13, "text", STRING),
        NestedField(14, "uuid", UUID),
    )
)
IDS = {name: field_id for field_id, name in SCHEMA.name_by_id.items()}
INTS = {1: (30, 79), 3: (5, 9), 7: (5, 5), 8: (5, 5), 12: (5, 5)}
DOUBLES = {5: (1.0, 2.0), 6: (1.0, 2.0), 9: (1.0, 2.0)}
LOWER = {i: encode_bound(INTEGER, low) for i, (low, _) in INTS.items()} | {
    i: encode_bound(DOUBLE, low) for i, (low, _) in DOUBLES.items()
} | {13: b"abc", 14: bytes(16)}  # fmt: skip
UPPER = {i: encode_bound(INTEGER, high) for i, (_, high) in INTS.items()} | {
    i: encode_bound(DOUBLE, high) for i, (_, high) in DOUBLES.items()
} | {13: b"abd", 14: bytes([1]) + bytes(15)}  # fmt: skip


def entries(record_count: int = 50) -> ManifestEntries:
    counted = [i for i in SCHEMA.field_by_id if i not in (8, 10)]
    nulls = dict.fromkeys(counted, 0) | {2: 50, 3: 10}
    maps = {
        "value_counts": dict.fromkeys(counted, 50),
        "null_value_counts": nulls,
        "nan_value_counts": {4: 50, 5: 10, 6: 0},
        "lower_bounds": LOWER,
        "upper_bounds": UPPER,
    }
    return ManifestEntries(
        0, [1], [1], [1], [1], [0], ["a"], ["PARQUET"], [()], [record_count], [1],
        {name: PlainMaps([each]) for name, each in maps.items()},
    )  # fmt: skip


def on(column: str, operation: Operation, literal: Any = None) -> Leaf:
    literal = frozenset(literal) if isinstance(literal, set) else literal
    return Leaf(operation, Term(IDS.get(column, 99), column), literal)


@pytest.mark.parametrize(
    ("column", "operation", "literal", "expected"),
    [
        ("id", O.LT, 30, False), ("id", O.LT, 79, False), ("id", O.LT, 80, True),
        ("id", O.LT_EQ, 78, False), ("id", O.LT_EQ, 79, True),
        ("id", O.GT, 79, False), ("id", O.GT, 30, False), ("id", O.GT, 29, True),
        ("id", O.GT_EQ, 31, False), ("id", O.GT_EQ, 30, True),
        ("id", O.EQ, 30, False), ("always_5", O.EQ, 5, True), ("always_5", O.EQ, 6, False),
        ("id", O.NOT_EQ, 29, True), ("id", O.NOT_EQ, 80, True), ("id", O.NOT_EQ, 30, False),
        ("id", O.NOT_EQ, 50, False), ("id", O.NOT_EQ, 79, False),
        ("always_5", O.IN, {5, 6}, True), ("always_5", O.IN, {6, 7}, False), ("id", O.IN, {30, 79}, False),
        ("id", O.NOT_IN, {5, 6}, True), ("id", O.NOT_IN, {5, 40}, False),
        ("id", O.NOT_NULL, None, True), ("id", O.IS_NULL, None, False),
        ("all_nulls", O.IS_NULL, None, True), ("all_nulls", O.NOT_NULL, None, False),
        ("some_nulls", O.NOT_NULL, None, False), ("some_nulls", O.IS_NULL, None, False),
        # Java says yes for NULL; SQL's WHERE drops those rows
        ("all_nulls", O.NOT_EQ, "a", False), ("all_nulls", O.NOT_IN, {"a", "b"}, False),
        ("all_nulls", O.NOT_STARTS_WITH, "a", False),
        ("some_nulls", O.LT, 100, False), ("some_nulls", O.NOT_EQ, 100, False),
        ("all_nans", O.IS_NAN, None, True), ("some_nans", O.IS_NAN, None, False),
        ("no_nans", O.NOT_NAN, None, True), ("some_nans", O.NOT_NAN, None, False),
        ("all_nulls", O.NOT_NAN, None, False),
        # NaN differs from every literal, but is neither above nor below one
        ("all_nans", O.NOT_EQ, 1.0, True), ("some_nans", O.NOT_EQ, 5.0, True),
        ("some_nans", O.LT, 5.0, False), ("no_nans", O.LT, 5.0, True), ("all_nans", O.GT, 1.0, False),
        # a count that is missing is not zero
        ("uncounted", O.EQ, 5, False), ("uncounted", O.NOT_NULL, None, False),
        ("nans_uncounted", O.LT, 5.0, False), ("nans_uncounted", O.NOT_NAN, None, False),
        ("no_stats", O.LT, 5, False), ("no_stats", O.NOT_EQ, 5, False),
        ("gone", O.LT, 5, False),
        # nested columns prove nothing
        ("s.child", O.EQ, 5, False), ("s.child", O.NOT_NULL, None, False),
        ("text", O.STARTS_WITH, "ab", True), ("text", O.STARTS_WITH, "abc", False),
        ("text", O.NOT_STARTS_WITH, "b", True), ("text", O.NOT_STARTS_WITH, "a", False),
        ("uuid", O.LT, bytes([2]) + bytes(15), False), ("uuid", O.NOT_EQ, bytes([2]) + bytes(15), True),
    ],
)  # fmt: skip
def test_all_rows_match(column, operation, literal, expected):
    assert strict_mask(entries(), on(column, operation, literal), SCHEMA) == [expected]


def test_empty_file_matches_and_unknown_row_count_does_not():
    predicate = on("id", O.LT, 80)
    assert strict_mask(entries(0), on("id", O.EQ, 1), SCHEMA) == [True]
    assert strict_mask(entries(-1), predicate, SCHEMA) == [False]
    assert strict_mask(entries(), predicate, SCHEMA, among=[]) == [False]


def test_and_or_and_constants():
    yes, no = on("id", O.LT, 80), on("id", O.LT, 50)
    assert strict_mask(entries(), yes & on("id", O.GT, 29), SCHEMA) == [True]
    assert strict_mask(entries(), yes & no, SCHEMA) == [False]
    assert strict_mask(entries(), no | yes, SCHEMA) == [True]
    # every row satisfies one side, but neither side holds for all of them
    assert strict_mask(entries(), no | on("id", O.GT_EQ, 50), SCHEMA) == [False]
    assert strict_mask(entries(), ALWAYS_TRUE, SCHEMA) == [True]
    assert strict_mask(entries(), ALWAYS_FALSE, SCHEMA) == [False]
