"""File pruning by metrics: Java's TestInclusiveMetricsEvaluator under SQL's NULLs, and soundness."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icesql.iceberg.expressions.predicate import (
    Predicate,
    evaluate,
)
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import (
    BINARY,
    DOUBLE,
    INTEGER,
    STRING,
    UUID,
    DecimalType,
    IcebergType,
    NestedField,
)
from icesql.scan.pruning.metrics_evaluator import explain_metrics, metrics_mask
from icesql.scan.pruning.strict_evaluator import strict_mask
from tests.iceberg.random_predicates import predicates
from tests.iceberg.text_forms import columns, read_predicate
from tests.scan.pruning.files import MAPS, entries_of, read_file
from tests.tables import read_table
from tests.writer.bounds import encode_bound

SCHEMA, FILE = read_file(read_table(__file__, "file.tsv"))
# A column of the predicates that the file does not have.
WITH_GONE = Schema((*SCHEMA.fields, NestedField(99, "gone", INTEGER)))
NO_STATS = {"record_count": 50}
ENTRIES = entries_of(FILE)


def read(text: str) -> Predicate:
    return read_predicate(text, WITH_GONE)


def reads(
    predicate: Predicate, entries: ManifestEntries = ENTRIES, schema: Schema = SCHEMA
) -> bool:
    """Whether the first file is read; the mask and the explanation must agree."""
    (mask,) = metrics_mask(entries, predicate, schema)
    assert mask is (explain_metrics(entries, 0, predicate, schema) is None)
    return mask


INCLUSIVE = [
    *read_table(__file__, "inclusive.tsv"),
    [f"id IN {list(range(300, 1000))}", "False"],
]


@pytest.mark.parametrize(("predicate", "expected"), INCLUSIVE)
def test_files_that_cannot_match_are_skipped(predicate, expected):
    assert str(reads(read(predicate))) == expected
    # A file without statistics is always read.
    assert reads(read(predicate), entries_of(NO_STATS))


def test_empty_file_is_skipped_and_unknown_row_count_is_read():
    empty, unknown = entries_of(FILE | {"record_count": 0}), entries_of(FILE | {"record_count": -1})
    for predicate in map(read, ("id = 40", "id = 5", "true")):
        assert not reads(predicate, empty)
        assert reads(predicate, unknown)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("id = 40 AND id = 5", False),
        ("id = 5 AND id = 40", False),
        ("id = 40 OR id = 5", True),
        ("id = 5 OR id = 40", True),
        ("id = 5 OR id > 100", False),
        ("true", True),
        ("false", False),
    ],
)
def test_and_or_and_constants(predicate, expected):
    assert reads(read(predicate)) is expected


def test_mask_keeps_the_order_of_entries_and_looks_only_among_those_asked():
    files = [
        FILE | read_file([("id", "int", "50", "0", "-", str(low), str(low + 9))])[1]
        for low in (0, 10, 20, 30)
    ]
    entries, predicate = entries_of(*files), read("id < 10 OR id >= 30")
    assert metrics_mask(entries, predicate, SCHEMA) == [True, False, False, True]
    assert metrics_mask(entries, predicate, SCHEMA, among=[1, 3]) == [False, False, False, True]


@pytest.mark.parametrize(
    ("predicate", "shown", "reason"),
    [
        ('d >= "1995-01-01"', "d >= 1995-01-01", "upper bound is 1994-12-31"),
        ('s = "x" OR d IS NULL', "s = 'x' OR d IS NULL",
         "all 10 values are NULL; no value is NULL"),
        ('d >= "1995-01-01" AND s = "x"', "d >= 1995-01-01", "upper bound is 1994-12-31"),
        ("d IN [0, 9131]", "d IN (1970-01-01, 1995-01-01)",
         "bounds are 1991-11-27 to 1994-12-31"),
    ],
)  # fmt: skip
def test_explanation_names_the_bound_as_people_write_it(predicate, shown, reason):
    schema, file = read_file(
        [
            ("d", "date", "-", "0", "-", '"1991-11-27"', '"1994-12-31"'),
            ("s", "string", "10", "10", "-", "-", "-"),
        ]
    )
    entries = entries_of(file | {"record_count": 10})
    found = explain_metrics(entries, 0, read_predicate(predicate, schema), schema)
    assert found == (shown, reason)


@pytest.mark.parametrize(
    ("kind", "nans", "lower", "upper", "predicate", "expected"),
    read_table(__file__, "one_column.tsv"),
)
def test_files_of_one_column(kind, nans, lower, upper, predicate, expected):
    schema, file = read_file([("x", kind, "50", "0", nans, lower, upper)])
    found = reads(read_predicate(predicate, schema), entries_of(file), schema)
    assert str(found) == expected


@pytest.mark.parametrize(("text", "is_whole"), [("short", True), ("x" * 16, False)])
def test_cut_text_of_sixteen_is_not_taken_for_a_single_value(text, is_whole):
    schema, file = read_file([("x", "string", "50", "0", "0", f'"{text}"', f'"{text}"')])
    entries = entries_of(file)
    assert reads(read_predicate(f'x <> "{text}"', schema), entries, schema) is not is_whole
    assert strict_mask(entries, read_predicate(f'x = "{text}"', schema), schema) == [is_whole]


@pytest.mark.parametrize(
    ("kind", "predicate", "expected"),
    [
        ("long", "x = 8", False),
        ("timestamp", 'x = "1970-01-08T00:00:00"', True),
        ("timestamp", 'x > "1970-01-08T00:00:00"', False),
    ],
)
def test_bounds_of_promoted_columns_are_read_by_their_length(kind, predicate, expected):
    _, file = read_file([("x", "int", "50", "0", "0", "7", "7")])
    schema = columns(f"x {kind}")
    assert reads(read_predicate(predicate, schema), entries_of(file), schema) is expected


def test_bounds_of_another_length_are_no_bounds():
    _, file = read_file([("x", "long", "50", "0", "0", "0", "0")])
    schema = columns("x int")
    assert reads(read_predicate("x = 100", schema), entries_of(file), schema)


@pytest.mark.parametrize("predicate", ["x = 1", "x IS NOT NULL"])
def test_counts_that_leave_out_nulls_do_not_pass_for_all_null(predicate):
    schema, file = read_file([("x", "int", "25", "25", "-", "-", "-")])
    assert reads(read_predicate(predicate, schema), entries_of(file), schema)


def test_null_count_of_a_child_may_leave_out_null_parents():
    fields = [{"id": 2, "name": "c", "type": "int", "required": True}]
    struct = json.dumps({"type": "struct", "fields": fields})
    schema, file = read_file(
        [("s", struct, "-", "-", "-", "-", "-"), ("s.c", "child", "40", "0", "-", "-", "-")]
    )
    assert reads(read_predicate("s.c IS NULL", schema), entries_of(file), schema)


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


def upper_of(text: str, length: int) -> str | None:
    """The truncated upper bound of a string, by the spec."""
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
    return column, draw(predicates(column, VALUES[column])), tables, files


@given(cases())
@settings(max_examples=600, deadline=None)
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
    return column, draw(predicates(column, VALUES[column])), files


@given(arbitrary_metrics())
@settings(max_examples=1000, deadline=None)
def test_the_mask_skips_exactly_the_files_that_explain_has_a_reason_for(case):
    column, predicate, files = case
    schema, entries = Schema((NestedField(1, "x", column),)), entries_of(*files)
    reasons = [explain_metrics(entries, i, predicate, schema) for i in range(len(files))]
    assert metrics_mask(entries, predicate, schema) == [reason is None for reason in reasons]
