"""File pruning by metrics: Java's TestInclusiveMetricsEvaluator under SQL's NULLs, and soundness."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
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
from icesql.iceberg.manifest.entries import ManifestEntries, PlainMaps
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    UUID,
    DecimalType,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)
from icesql.scan.pruning.metrics_evaluator import explain_metrics, metrics_mask
from icesql.scan.pruning.strict_evaluator import strict_mask
from tests.writer.bounds import encode_bound

O = Operation  # noqa: E741
MAPS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def entries_of(*files: Mapping[str, Any]) -> ManifestEntries:
    """A manifest of files given by record_count and the maps of MAPS, by field id."""
    count = len(files)
    return ManifestEntries(
        spec_id=0,
        status=[1] * count,
        snapshot_id=[1] * count,
        sequence_number=[1] * count,
        file_sequence_number=[1] * count,
        content=[0] * count,
        path=[f"{index}.parquet" for index in range(count)],
        file_format=["PARQUET"] * count,
        partition=[()] * count,
        record_count=[each.get("record_count", 50) for each in files],
        file_size_in_bytes=[10] * count,
        maps={name: PlainMaps([each.get(name) for each in files]) for name in MAPS},
    )


def bounds(types: Mapping[int, IcebergType], values: Mapping[int, Any]) -> dict[int, bytes]:
    return {field_id: encode_bound(types[field_id], value) for field_id, value in values.items()}


SCHEMA = Schema(
    (
        NestedField(1, "id", INTEGER),
        NestedField(2, "no_stats", INTEGER),
        NestedField(3, "required", STRING, required=True),
        NestedField(4, "all_nulls", STRING),
        NestedField(5, "some_nulls", STRING),
        NestedField(6, "no_nulls", STRING),
        NestedField(7, "all_nans", DOUBLE),
        NestedField(8, "some_nans", FLOAT),
        NestedField(9, "no_nans", FLOAT),
        NestedField(10, "all_nulls_double", DOUBLE),
        NestedField(11, "mixed", FLOAT),
        NestedField(12, "always_5", INTEGER),
        NestedField(13, "nested", StructType((NestedField(14, "child", INTEGER),))),
        NestedField(15, "list", ListType(16, INTEGER)),
    )
)
TYPES = {field_id: field.type for field_id, field in SCHEMA.field_by_id.items()}
IDS = {name: field_id for field_id, name in SCHEMA.name_by_id.items()}
FILE = {
    "record_count": 50,
    "value_counts": {1: 50, 4: 50, 5: 50, 6: 50, 7: 50, 8: 50, 9: 50, 10: 50, 11: 50, 12: 50, 14: 50,
                     16: 50},
    "null_value_counts": {1: 0, 4: 50, 5: 10, 6: 0, 7: 0, 8: 0, 9: 0, 10: 50, 11: 20, 12: 0, 14: 0,
                          16: 0},
    "nan_value_counts": {7: 50, 8: 10, 9: 0, 10: 0, 11: 30},
    "lower_bounds": bounds(TYPES, {1: 30, 12: 5, 14: 7, 16: 7}),
    "upper_bounds": bounds(TYPES, {1: 79, 12: 5, 14: 7, 16: 7}),
}  # fmt: skip
NO_STATS = {"record_count": 50}
ENTRIES = entries_of(FILE)


def on(column: str, operation: Operation, literal: Any = None) -> Leaf:
    term = Term(IDS.get(column, 99), column)
    return Leaf(
        operation, term, frozenset(literal) if isinstance(literal, set | range) else literal
    )


def reads(
    predicate: Predicate, entries: ManifestEntries = ENTRIES, schema: Schema = SCHEMA
) -> bool:
    """Whether the first file is read; the mask and the explanation must agree."""
    (mask,) = metrics_mask(entries, predicate, schema)
    assert mask is (explain_metrics(entries, 0, predicate, schema) is None)
    return mask


INCLUSIVE = [
    ("id", O.LT, 5, False), ("id", O.LT, 30, False), ("id", O.LT, 31, True), ("id", O.LT, 79, True),
    ("id", O.LT_EQ, 29, False), ("id", O.LT_EQ, 30, True), ("id", O.LT_EQ, 79, True),
    ("id", O.GT, 85, False), ("id", O.GT, 79, False), ("id", O.GT, 78, True), ("id", O.GT, 75, True),
    ("id", O.GT_EQ, 85, False), ("id", O.GT_EQ, 80, False), ("id", O.GT_EQ, 79, True),
    ("id", O.EQ, 5, False), ("id", O.EQ, 29, False), ("id", O.EQ, 30, True), ("id", O.EQ, 75, True),
    ("id", O.EQ, 79, True), ("id", O.EQ, 80, False), ("id", O.EQ, 85, False),
    ("id", O.NOT_EQ, 5, True), ("id", O.NOT_EQ, 30, True), ("id", O.NOT_EQ, 80, True),
    ("id", O.IN, range(5, 25), False), ("id", O.IN, {28, 29}, False), ("id", O.IN, {29, 30}, True),
    ("id", O.IN, {75, 76}, True), ("id", O.IN, {79, 80}, True), ("id", O.IN, {80, 81}, False),
    ("id", O.IN, {5, 85}, False), ("id", O.IN, range(300, 1000), False),
    ("id", O.NOT_IN, {5, 6}, True), ("id", O.NOT_IN, {30, 31}, True),
    ("id", O.IS_NULL, None, False), ("id", O.NOT_NULL, None, True),
    ("all_nulls", O.NOT_NULL, None, False), ("some_nulls", O.NOT_NULL, None, True),
    ("no_nulls", O.NOT_NULL, None, True), ("all_nulls", O.IS_NULL, None, True),
    ("some_nulls", O.IS_NULL, None, True), ("no_nulls", O.IS_NULL, None, False),
    ("all_nulls", O.LT, "a", False), ("all_nulls", O.LT_EQ, "a", False),
    ("all_nulls", O.GT, "a", False), ("all_nulls", O.GT_EQ, "a", False),
    ("all_nulls", O.EQ, "a", False), ("all_nulls", O.IN, {"abc", "def"}, False),
    ("some_nulls", O.IN, {"abc", "def"}, True), ("no_nulls", O.IN, {"abc", "def"}, True),
    ("all_nulls", O.STARTS_WITH, "a", False),
    # Java reads these for its null-safe <>; SQL's WHERE drops NULL
    ("all_nulls", O.NOT_EQ, "a", False), ("all_nulls", O.NOT_IN, {"abc", "def"}, False),
    ("all_nulls", O.NOT_STARTS_WITH, "a", False),
    ("some_nulls", O.NOT_EQ, "a", True), ("no_nulls", O.NOT_IN, {"abc"}, True),
    ("all_nans", O.IS_NAN, None, True), ("some_nans", O.IS_NAN, None, True),
    ("no_nans", O.IS_NAN, None, False), ("all_nulls_double", O.IS_NAN, None, False),
    ("all_nans", O.NOT_NAN, None, False), ("some_nans", O.NOT_NAN, None, True),
    ("no_nans", O.NOT_NAN, None, True), ("all_nulls_double", O.NOT_NAN, None, False),
    ("all_nans", O.GT, 1.0, False), ("all_nans", O.LT_EQ, 1.0, False), ("all_nans", O.EQ, 1.0, False),
    ("all_nans", O.IN, {1.0, 2.0}, False), ("all_nans", O.NOT_EQ, 1.0, True),
    ("all_nans", O.NOT_IN, {1.0, 2.0}, True), ("all_nans", O.NOT_NULL, None, True),
    ("some_nans", O.GT, 1.0, True), ("no_nans", O.EQ, 1.0, True),
    ("mixed", O.EQ, 1.0, False), ("mixed", O.NOT_NAN, None, False), ("mixed", O.NOT_EQ, 1.0, True),
    ("always_5", O.NOT_EQ, 5, False), ("always_5", O.NOT_EQ, 6, True),
    ("always_5", O.NOT_IN, {5, 6}, False), ("always_5", O.NOT_IN, {6, 7}, True),
    ("nested.child", O.EQ, 8, False), ("nested.child", O.EQ, 7, True),
    ("nested.child", O.IS_NULL, None, False),
    ("list.element", O.EQ, 8, True), ("list", O.IS_NULL, None, True),
    ("no_stats", O.EQ, 5, True), ("no_stats", O.IS_NULL, None, True),
    ("no_stats", O.NOT_NULL, None, True), ("no_stats", O.NOT_IN, {1, 2}, True),
    ("gone", O.EQ, 5, True),
]  # fmt: skip


@pytest.mark.parametrize(("column", "operation", "literal", "expected"), INCLUSIVE)
def test_files_that_cannot_match_are_skipped(column, operation, literal, expected):
    assert reads(on(column, operation, literal)) is expected


@pytest.mark.parametrize(("column", "operation", "literal", "expected"), INCLUSIVE)
def test_file_without_statistics_is_always_read(column, operation, literal, expected):
    assert reads(on(column, operation, literal), entries_of(NO_STATS))


def test_empty_file_is_skipped_and_unknown_row_count_is_read():
    empty, unknown = entries_of(FILE | {"record_count": 0}), entries_of(FILE | {"record_count": -1})
    for predicate in (on("id", O.EQ, 40), on("id", O.EQ, 5), ALWAYS_TRUE):
        assert not reads(predicate, empty)
        assert reads(predicate, unknown)


def test_and_or_and_constants():
    in_range, outside = on("id", O.EQ, 40), on("id", O.EQ, 5)
    assert not reads(in_range & outside)
    assert not reads(outside & in_range)
    assert reads(in_range | outside)
    assert reads(outside | in_range)
    assert not reads(outside | on("id", O.GT, 100))
    assert reads(ALWAYS_TRUE)
    assert not reads(ALWAYS_FALSE)


def test_mask_keeps_the_order_of_entries_and_looks_only_among_those_asked():
    files = [{**FILE, "lower_bounds": bounds(TYPES, {1: low}), "upper_bounds": bounds(TYPES, {1: low + 9})}
             for low in (0, 10, 20, 30)]  # fmt: skip
    entries = entries_of(*files)
    predicate = on("id", O.LT, 10) | on("id", O.GT_EQ, 30)
    assert metrics_mask(entries, predicate, SCHEMA) == [True, False, False, True]
    assert metrics_mask(entries, predicate, SCHEMA, among=[1, 3]) == [False, False, False, True]


def test_explanation_names_the_bound_as_people_write_it():
    schema = Schema((NestedField(1, "l_shipdate", DATE), NestedField(2, "s", STRING)))
    entries = entries_of({
        "record_count": 10,
        "value_counts": {2: 10}, "null_value_counts": {1: 0, 2: 10},
        "lower_bounds": bounds({1: DATE}, {1: 8000}), "upper_bounds": bounds({1: DATE}, {1: 9130}),
    })  # fmt: skip
    late = Leaf(O.GT_EQ, Term(1, "l_shipdate"), 9131)
    text, nulls = Leaf(O.EQ, Term(2, "s"), "x"), Leaf(O.IS_NULL, Term(1, "l_shipdate"))
    assert explain_metrics(entries, 0, late, schema) == (
        "l_shipdate >= 1995-01-01", "upper bound is 1994-12-31")  # fmt: skip
    assert explain_metrics(entries, 0, text | nulls, schema) == (
        "s = 'x' OR l_shipdate IS NULL", "all 10 values are NULL; no value is NULL")  # fmt: skip
    assert explain_metrics(entries, 0, late & text, schema)[0] == "l_shipdate >= 1995-01-01"
    both = Leaf(O.IN, Term(1, "l_shipdate"), frozenset({0, 9131}))
    assert explain_metrics(entries, 0, both, schema)[1] == "bounds are 1991-11-27 to 1994-12-31"


def one_column(column: IcebergType, lower: bytes | None, upper: bytes | None, *, nulls: int | None = 0,
               nans: int | None = 0) -> tuple[ManifestEntries, Schema, Term]:  # fmt: skip
    entries = entries_of({
        "value_counts": {1: 50},
        "null_value_counts": {} if nulls is None else {1: nulls},
        "nan_value_counts": {} if nans is None else {1: nans},
        "lower_bounds": {} if lower is None else {1: lower},
        "upper_bounds": {} if upper is None else {1: upper},
    })  # fmt: skip
    return entries, Schema((NestedField(1, "x", column),)), Term(1, "x")


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [("a", True), ("aa", True), ("aaa", True), ("dC", True), ("aB", False), ("dWX", False)],
)
def test_starts_with_in_byte_order(prefix, expected):
    entries, schema, x = one_column(STRING, b"aa", b"dC")
    assert reads(Leaf(O.STARTS_WITH, x, prefix), entries, schema) is expected
    assert reads(Leaf(O.NOT_STARTS_WITH, x, prefix), entries, schema)


@pytest.mark.parametrize(
    ("prefix", "expected"), [("1s", True), ("1str1x", True), ("5", False), ("3str3x", True)]
)
def test_starts_with_compares_the_common_prefix_of_a_bound(prefix, expected):
    # "3str3x" lies above the bound "3str3", but a bound that was cut could hide it
    entries, schema, x = one_column(STRING, b"1str1", b"3str3")
    assert reads(Leaf(O.STARTS_WITH, x, prefix), entries, schema) is expected


def test_starts_with_an_empty_lower_bound():
    entries, schema, x = one_column(STRING, b"", "イロハ".encode())
    assert reads(Leaf(O.STARTS_WITH, x, "イロ"), entries, schema)
    assert not reads(Leaf(O.STARTS_WITH, x, "イヮ"), entries, schema)


@pytest.mark.parametrize(("prefix", "expected"), [("abc", False), ("abcd", True), ("b", True)])
def test_not_starts_with_skips_a_file_within_the_prefix(prefix, expected):
    entries, schema, x = one_column(STRING, b"abc", b"abcdefghi")
    assert reads(Leaf(O.NOT_STARTS_WITH, x, prefix), entries, schema) is expected


def test_cut_text_of_sixteen_is_not_taken_for_a_single_value():
    whole, cut = one_column(STRING, b"short", b"short"), one_column(STRING, b"x" * 16, b"x" * 16)
    for (entries, schema, x), value, expected in ((whole, "short", False), (cut, "x" * 16, True)):
        assert reads(Leaf(O.NOT_EQ, x, value), entries, schema) is expected
        assert strict_mask(entries, Leaf(O.EQ, x, value), schema) == [not expected]


@pytest.mark.parametrize("nan_in", ["lower", "upper"])
def test_nan_in_a_bound_makes_both_unusable(nan_in):
    nan, five = (encode_bound(DOUBLE, value) for value in (math.nan, 5.0))
    entries, schema, x = one_column(DOUBLE, *((nan, five) if nan_in == "lower" else (five, nan)))
    for operation in (O.LT, O.LT_EQ, O.GT, O.GT_EQ, O.EQ):
        assert reads(Leaf(operation, x, 100.0), entries, schema)
        assert reads(Leaf(operation, x, -100.0), entries, schema)
    assert reads(Leaf(O.IN, x, frozenset({-100.0, 100.0})), entries, schema)


def test_file_of_negative_zeros_is_read_for_zero():
    zero = encode_bound(DOUBLE, -0.0)
    entries, schema, x = one_column(DOUBLE, zero, zero)
    assert reads(Leaf(O.EQ, x, 0.0), entries, schema)
    assert reads(Leaf(O.GT_EQ, x, 0.0), entries, schema)
    assert not reads(Leaf(O.LT, x, 0.0), entries, schema)


def test_single_value_needs_known_zero_nan_count():
    five = encode_bound(DOUBLE, 5.0)
    for nans, expected in ((0, False), (1, True), (None, True)):
        entries, schema, x = one_column(DOUBLE, five, five, nans=nans)
        assert reads(Leaf(O.NOT_EQ, x, 5.0), entries, schema) is expected


def test_bounds_of_promoted_columns_are_read_by_their_length():
    four = encode_bound(INTEGER, 7)
    entries, schema, x = one_column(LONG, four, four)
    assert not reads(Leaf(O.EQ, x, 8), entries, schema)
    entries, schema, x = one_column(TIMESTAMP, four, four)
    week = 7 * 86_400_000_000
    assert reads(Leaf(O.EQ, x, week), entries, schema)
    assert not reads(Leaf(O.GT, x, week), entries, schema)
    entries, schema, x = one_column(INTEGER, bytes(8), bytes(8))
    assert reads(Leaf(O.EQ, x, 100), entries, schema)


def test_missing_upper_bound_is_open():
    entries, schema, x = one_column(STRING, b"m", None)
    assert reads(Leaf(O.GT, x, "zzz"), entries, schema)
    assert reads(Leaf(O.IN, x, frozenset({"a", "zzz"})), entries, schema)
    assert not reads(Leaf(O.IN, x, frozenset({"a", "b"})), entries, schema)


def test_uuid_is_skipped_only_where_signed_and_unsigned_order_agree():
    low, middle, high = (bytes([first]) + bytes(15) for first in (0x10, 0x20, 0x30))
    top = bytes([0x90]) + bytes(15)
    entries, schema, x = one_column(UUID, low, high)
    assert reads(Leaf(O.EQ, x, middle), entries, schema)
    assert not reads(Leaf(O.EQ, x, top), entries, schema)
    assert not reads(Leaf(O.IN, x, frozenset({top, bytes(16)})), entries, schema)
    # the signed order of Java: the lower bound is above the upper one
    entries, schema, x = one_column(UUID, top, high)
    assert reads(Leaf(O.EQ, x, bytes([0x50]) + bytes(15)), entries, schema)
    # lower halves of opposite sign: only the signed order says that the value is inside
    entries, schema, x = one_column(UUID, bytes([1]) + bytes(7) + b"\x90" + bytes(7), high)
    assert reads(Leaf(O.EQ, x, bytes([1]) + bytes(7) + b"\x10" + bytes(7)), entries, schema)
    assert reads(Leaf(O.GT, x, top), entries, schema)


def test_counts_that_leave_out_nulls_do_not_pass_for_all_null():
    entries, schema, x = one_column(INTEGER, None, None, nulls=25)
    entries.maps["value_counts"].maps[0][1] = 25
    assert reads(Leaf(O.EQ, x, 1), entries, schema)
    assert reads(Leaf(O.NOT_NULL, x), entries, schema)


def test_null_count_of_a_child_may_leave_out_null_parents():
    schema = Schema(
        (NestedField(1, "s", StructType((NestedField(2, "c", INTEGER, required=True),))),)
    )
    counted = {"value_counts": {2: 40}, "null_value_counts": {2: 0}}
    assert reads(Leaf(O.IS_NULL, Term(2, "s.c")), entries_of(counted), schema)


def test_transformed_terms_use_transformed_bounds_when_order_is_kept():
    entries, schema, _ = one_column(DATE, encode_bound(DATE, 0), encode_bound(DATE, 400))
    assert reads(Leaf(O.EQ, Term(1, "x", "year"), 1), entries, schema)
    assert not reads(Leaf(O.EQ, Term(1, "x", "year"), 2), entries, schema)
    assert reads(Leaf(O.EQ, Term(1, "x", "bucket[4]"), 77), entries, schema)


# ------------------------------------------------------------------ soundness

D2 = DecimalType(9, 2)
VALUES: dict[IcebergType, st.SearchStrategy[Any]] = {
    INTEGER: st.integers(-4, 4),
    DOUBLE: st.sampled_from([-1.5, -0.0, 0.0, 2.5, math.nan, math.inf, -math.inf]),
    D2: st.integers(-3, 3).map(lambda n: Decimal(n).scaleb(-2)),
    STRING: st.text("ab🙂\U0010ffff", max_size=4),
    BINARY: st.binary(max_size=3),
    UUID: st.sampled_from(
        [bytes([a, *[0] * 7, b, *[0] * 7]) for a in (1, 0x90) for b in (1, 0x90)]
    ),
}
KINDS = [O.LT, O.LT_EQ, O.GT, O.GT_EQ, O.EQ, O.NOT_EQ, O.IN, O.NOT_IN, O.IS_NULL, O.NOT_NULL]


def upper_of(text: str, length: int) -> str | None:
    """The truncated upper bound of a string, as the spec says."""
    if len(text) <= length:
        return text
    cut = text[:length]
    while cut:
        if cut[-1] != "\U0010ffff":
            return cut[:-1] + chr(ord(cut[-1]) + 1)
        cut = cut[:-1]
    return None


def file_of(
    column: IcebergType, rows: list[Any], *, kept: frozenset[str], java: bool
) -> dict[str, Any]:
    """The metrics in ``kept`` as a writer stores them for the rows, ``java``: in its order of UUIDs."""
    ordinary = [row for row in rows if row is not None and row == row]
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    if ordinary:

        def key(value: Any) -> Any:
            if column == UUID and java:
                return tuple(
                    int.from_bytes(half, "big", signed=True) for half in (value[:8], value[8:])
                )
            return value

        low, high = min(ordinary, key=key), max(ordinary, key=key)
        if column == STRING:
            low, high = low[:2], upper_of(high, 2)
        lower[1] = encode_bound(column, low)
        if high is not None:
            upper[1] = encode_bound(column, high)
    nans = sum(row is not None and row != row for row in rows)
    metrics: dict[str, dict[int, Any]] = {
        "value_counts": {1: len(rows)},
        "null_value_counts": {1: sum(row is None for row in rows)},
        "nan_value_counts": {1: nans} if column == DOUBLE else {},
        "lower_bounds": lower,
        "upper_bounds": upper,
    }
    return {"record_count": len(rows), **{name: metrics[name] for name in kept}}


@st.composite
def predicates(draw: st.DrawFn, column: IcebergType) -> Predicate:
    """One or two comparisons of ``x``."""
    literals = VALUES[column].filter(lambda value: value == value)
    kinds = KINDS + ([O.IS_NAN, O.NOT_NAN] if column == DOUBLE else [])
    kinds += [O.STARTS_WITH, O.NOT_STARTS_WITH] if column == STRING else []
    x = Term(1, "x")

    def leaf() -> Leaf:
        operation = draw(st.sampled_from(kinds))
        if operation in (O.IN, O.NOT_IN):
            return Leaf(operation, x, draw(st.frozensets(literals, min_size=2, max_size=3)))
        if operation in (O.IS_NULL, O.NOT_NULL, O.IS_NAN, O.NOT_NAN):
            return Leaf(operation, x)
        return Leaf(operation, x, draw(literals))

    match draw(st.sampled_from(["one", "and", "or"])):
        case "and":
            return leaf() & leaf()
        case "or":
            return leaf() | leaf()
        case _:
            return leaf()


@st.composite
def cases(draw: st.DrawFn) -> tuple[IcebergType, Predicate, list[list[Any]], list[dict[str, Any]]]:
    column = draw(st.sampled_from(list(VALUES)))
    tables = draw(
        st.lists(st.lists(st.none() | VALUES[column], max_size=4), min_size=1, max_size=4)
    )
    files = [
        # Any part of the metrics may be missing.
        file_of(
            column, rows, kept=draw(st.frozensets(st.sampled_from(MAPS))), java=draw(st.booleans())
        )
        for rows in tables
    ]
    return column, draw(predicates(column)), tables, files


@given(cases())
@settings(max_examples=1500, deadline=None)
def test_no_file_with_a_matching_row_is_skipped_and_strict_files_match_throughout(case):
    column, predicate, tables, files = case
    schema, entries = Schema((NestedField(1, "x", column),)), entries_of(*files)
    mask = metrics_mask(entries, predicate, schema)
    strict = strict_mask(entries, predicate, schema)
    for index, rows in enumerate(tables):
        verdicts = [evaluate(predicate, lambda _, row=row: row) for row in rows]
        assert mask[index] or not any(verdicts), rows
        assert all(verdicts) or not strict[index], rows
        assert mask[index] or not rows or not strict[index], rows
        assert mask[index] is (explain_metrics(entries, index, predicate, schema) is None)


@st.composite
def arbitrary_metrics(draw: st.DrawFn) -> tuple[IcebergType, Predicate, list[dict[str, Any]]]:
    """Metrics that no rows need have: of broken writers, and bounds of no value at all."""
    column = draw(st.sampled_from(list(VALUES)))
    count = st.none() | st.integers(-1, 4)
    bound = st.none() | VALUES[column].map(lambda value: encode_bound(column, value))
    kinds = {name: bound if "bound" in name else count for name in MAPS}

    def file() -> dict[str, Any]:
        drawn = {name: draw(kind) for name, kind in kinds.items()}
        metrics = {name: {1: value} for name, value in drawn.items() if value is not None}
        return {"record_count": draw(st.integers(-1, 4)), **metrics}

    files = [file() for _ in range(draw(st.integers(1, 4)))]
    return column, draw(predicates(column)), files


@given(arbitrary_metrics())
@settings(max_examples=2500, deadline=None)
def test_the_mask_skips_exactly_the_files_that_explain_has_a_reason_for(case):
    column, predicate, files = case
    schema, entries = Schema((NestedField(1, "x", column),)), entries_of(*files)
    reasons = [explain_metrics(entries, i, predicate, schema) for i in range(len(files))]
    assert metrics_mask(entries, predicate, schema) == [reason is None for reason in reasons]
