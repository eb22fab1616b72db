"""Manifest pruning: Java's TestInclusiveManifestEvaluator under SQL's NULLs, and soundness."""

from __future__ import annotations

import ast
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
from icesql.iceberg.manifest.manifest import FieldSummary, ManifestFile
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import (
    DOUBLE,
    INTEGER,
    STRING,
    UNKNOWN,
    IcebergType,
    NestedField,
)
from icesql.scan.pruning.partition_evaluator import (
    explain_manifest,
    explain_partition,
    manifest_may_match,
    partition_mask,
)
from tests.iceberg.random_predicates import predicates
from tests.iceberg.text_forms import columns, read_predicate, read_type
from tests.scan.pruning.files import entries_of, read_bound
from tests.tables import read_table
from tests.writer.bounds import encode_bound


def summary(column: IcebergType, lower: Any = None, upper: Any = None, *, null: bool = False,
            nan: bool | None = None) -> FieldSummary:  # fmt: skip
    low, high = (None if each is None else encode_bound(column, each) for each in (lower, upper))
    return FieldSummary(null, nan, low, high)


FIELDS = [
    (name, read_type(kind), FieldSummary(null == "True", ast.literal_eval(nan),
                                         read_bound(read_type(kind), lower),
                                         read_bound(read_type(kind), upper)))
    for name, kind, null, nan, lower, upper in read_table(__file__, "summaries.tsv")
] + [
    ("odd", INTEGER, FieldSummary(False, None, b"123", b"1")),
    ("dropped", UNKNOWN, summary(INTEGER, 5, 5)),
]  # fmt: skip
# Columns of the predicates, and one that no field is made of.
SCHEMA = Schema(
    tuple(
        NestedField(1000 + number, name, kind)
        for number, (name, kind, _) in enumerate([*FIELDS, ("gone", INTEGER, None)])
    )
)
TYPES = {1000 + number: kind for number, (_, kind, _) in enumerate(FIELDS)}
MANIFEST = ManifestFile("m.avro", partitions=tuple(each for *_, each in FIELDS))


CASES = [
    *read_table(__file__, "manifest.tsv"),
    [f"id IN {list(range(300, 1000))}", "False"],
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_manifests_that_cannot_match_are_skipped(text, expected):
    predicate = read_predicate(text, SCHEMA)
    assert str(manifest_may_match(MANIFEST, predicate, TYPES)) == expected
    # A manifest without summaries is read.
    bare = ManifestFile("m.avro", partitions=None)
    assert manifest_may_match(bare, predicate, TYPES)


def test_summaries_that_do_not_fit_the_spec_are_ignored():
    short = ManifestFile("m.avro", partitions=MANIFEST.partitions[:1])
    assert manifest_may_match(short, read_predicate("id = 5", SCHEMA), TYPES)


TABLE = columns("d date", "n int")
PARTITION = columns("d_month int", "n int")
SPEC = PartitionSpec(0, (
    PartitionField((1,), 1, "month", "d_month"), PartitionField((2,), 2, "identity", "n"),
))  # fmt: skip


def test_explanation_shows_partition_values_as_dates():
    manifest = ManifestFile("m.avro", partitions=(
        summary(INTEGER, 290, 299), summary(INTEGER, 1, 5),
    ))  # fmt: skip
    late, few = (read_predicate(text, PARTITION) for text in ("d_month >= 300", "n < 9"))
    assert explain_manifest(manifest, late, SPEC, TABLE) == (
        "d_month >= 1995-01",
        "upper bound is 1994-12",
    )
    assert explain_manifest(manifest, few, SPEC, TABLE) is None
    assert explain_partition(late, SPEC, (299, None), TABLE) == (
        "d_month >= 1995-01",
        "partition value is 1994-12",
    )
    assert explain_partition(few, SPEC, (299, None), TABLE) == ("n < 9", "partition value is NULL")
    assert explain_partition(late, SPEC, (300, None), TABLE) is None


def test_partition_mask_is_per_entry_and_only_among_those_asked():
    entries = entries_of(*[{}] * 5)
    entries.partition[:] = [(300, 1), (299, 1), (None, 1), (300, 2), (300, 1)]
    predicate = read_predicate("d_month = 300 AND n = 1", PARTITION)
    assert partition_mask(entries, predicate, SPEC) == [True, False, False, False, True]
    assert partition_mask(entries, predicate, SPEC, among=[1, 4]) == [False] * 4 + [True]
    assert partition_mask(entries, ALWAYS_TRUE, SPEC) == [True] * 5


VALUES = {
    INTEGER: st.integers(-3, 3),
    STRING: st.text("abA", max_size=3),
    DOUBLE: st.sampled_from([-1.5, -0.0, 0.0, 2.5, math.nan]),
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[IcebergType, Predicate, list[Any], bool]:
    column = draw(st.sampled_from(list(VALUES)))
    rows = draw(st.lists(st.none() | VALUES[column], min_size=1, max_size=4))
    predicate = draw(predicates(column, VALUES[column], Term(1000, "p")))
    return column, predicate, rows, draw(st.booleans())


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
