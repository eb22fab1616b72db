"""Decide from column bounds and counts which files of a manifest can hold a matching row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from icesql.iceberg import types as t
from icesql.iceberg.bounds import bound_decoder, decode_bounds
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    And,
    Leaf,
    Operation,
    Or,
    Predicate,
)
from icesql.iceberg.expressions.render import render_column_leaf
from icesql.iceberg.manifest.entries import FilterColumns, ManifestEntries
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import parse_transform
from icesql.scan.pruning.column_summary import (
    ColumnSummary,
    Test,
    any_fits,
    bound_tests,
    decoded_bounds,
    sorted_literals,
    why_none,
    why_not,
)

_Bounds = list[bytes | None]
_Indices = list[int]


def metrics_mask(
    entries: FilterColumns,
    predicate: Predicate,
    schema: Schema,
    among: Sequence[int] | None = None,
) -> list[bool]:
    """Per entry, False only if no row of its file can satisfy ``predicate``.

    Missing counts and bounds, columns that ``schema`` lacks and columns inside lists and maps
    count as "may match", as does every file of unknown row count (below 0). Entries outside
    ``among`` (None: all) are False. Source: Iceberg spec, "Scan Planning"; Java
    ``InclusiveMetricsEvaluator``.
    """
    mask = [False] * entries.count
    indices = range(entries.count) if among is None else among
    unknown = set(entries.unknown_counts)
    known = [each for each in indices if each not in unknown] if unknown else list(indices)
    # Empty files are dropped last, when few are left: record counts are decoded on use.
    for index in ColumnStatistics(entries, schema).select(predicate, known):
        mask[index] = entries.record_count[index] > 0
    if unknown:
        for index in indices:
            mask[index] = mask[index] or index in unknown
    return mask


def explain_metrics(
    entries: ManifestEntries, index: int, predicate: Predicate, schema: Schema
) -> tuple[str, str] | None:
    """The part of ``predicate`` that no row of the file satisfies and what decided, as text.

    For example ("l_shipdate >= 1995-01-01", "upper bound is 1994-12-31"); None when rows may
    match.
    """
    if entries.record_count[index] == 0:
        return str(ALWAYS_FALSE) if predicate is ALWAYS_FALSE else "any row", "the file is empty"
    if entries.record_count[index] < 0:
        return None
    columns = ColumnStatistics(entries, schema)

    def reason_of(leaf: Leaf) -> str | None:
        column = columns.summary(leaf, index)
        return None if column is None else why_none(leaf, column)

    return why_not(predicate, reason_of, lambda leaf: render_column_leaf(leaf, schema))


class ColumnStatistics:
    """The statistics of one manifest, read column by column."""

    def __init__(self, entries: FilterColumns, schema: Schema) -> None:
        self.entries = entries
        self.schema = schema

    def select(self, predicate: Predicate, among: _Indices) -> _Indices:
        """Those of ``among`` whose file may match, in order."""
        match predicate:
            case _ if not among:
                return among
            case Leaf():
                return self._select_leaf(predicate, among)
            case And(left, right):
                return self.select(right, self.select(left, among))
            case Or(left, right):
                first = self.select(left, among)
                chosen = set(first)
                rest = self.select(right, [i for i in among if i not in chosen])
                return sorted(first + rest)
            case _ if predicate is ALWAYS_FALSE:
                return []
            case _:
                return among

    def type_of(self, leaf: Leaf) -> t.IcebergType | None:
        """The type of the leaf's column, None if it has no usable statistics."""
        source = self.schema.field_by_id.get(leaf.term.field_id)
        if source is None or not isinstance(source.type, t.PrimitiveType):
            return None
        return None if self.schema.inside_repeated(source.field_id) else source.type

    # -------------------------------------------------------------- one entry

    def summary(self, leaf: Leaf, index: int) -> ColumnSummary | None:
        """The summary of ``leaf``'s term in the file of one entry; None without metrics."""
        column_type = self.type_of(leaf)
        if column_type is None:
            return None
        transform = parse_transform(leaf.term.transform)
        entries, field_id = self.entries, leaf.term.field_id
        floating = t.is_floating(column_type)
        values = entries.values_of("value_counts", field_id)[index]
        nulls = entries.values_of("null_value_counts", field_id)[index]
        nans = entries.values_of("nan_value_counts", field_id)[index] if floating else 0
        rows = entries.record_count[index]
        # Writers that count values per parent, or leave nulls out, have fewer values than rows.
        whole = values is not None and values >= rows > 0
        nested = field_id in self.schema.parent_by_id
        # A lower bound is a value: counts that contradict it prove nothing.
        boundless = whole and entries.values_of("lower_bounds", field_id)[index] is None
        all_null = boundless and nulls == values
        lower = upper = None
        if transform.preserves_order and transform.accepts(column_type):
            lower, upper = decoded_bounds(
                column_type,
                entries.values_of("lower_bounds", field_id)[index],
                entries.values_of("upper_bounds", field_id)[index],
            )
            if leaf.term.transform != "identity":
                lower, upper = (transform.apply(each, column_type) for each in (lower, upper))
                column_type = transform.result_type(column_type)
        return ColumnSummary(
            value_type=column_type,
            lower=lower,
            upper=upper,
            no_nulls=nulls == 0 and (whole or not nested),
            all_null=all_null,
            no_nans=nans == 0,
            valueless=boundless
            and None not in (nulls, nans)
            and (nulls or 0) + (nans or 0) == values,
            nulls_text=f"all {values} values are {'NULL' if all_null else 'NULL or NaN'}",
        )

    # -------------------------------------------------------------- all entries

    def _select_leaf(self, leaf: Leaf, among: _Indices) -> _Indices:
        column_type = self.type_of(leaf)
        if column_type is None:
            return among
        if leaf.term.transform == "identity" and not isinstance(column_type, t.UUIDType):
            # Whatever these leave is checked for columns of nulls; the others one by one.
            found = self._within_bounds(leaf, column_type, among)
            if found is not None:
                return self._with_values(leaf, column_type, found)
        field_id = leaf.term.field_id
        match leaf.operation:
            case Operation.IS_NULL if field_id not in self.schema.parent_by_id:
                nulls = self.entries.values_of("null_value_counts", field_id)
                return [i for i in among if nulls[i] != 0]
            case Operation.IS_NAN if t.is_floating(column_type):
                nans = self.entries.values_of("nan_value_counts", field_id)
                return [i for i in among if nans[i] != 0 and self._may_match(leaf, i)]
            case Operation.NOT_NAN if leaf.term.transform == "identity":
                # A bound is a value; only files without one can be skipped.
                lowers = self.entries.values_of("lower_bounds", field_id)
                return [i for i in among if lowers[i] is not None or self._may_match(leaf, i)]
            case Operation.NOT_EQ | Operation.NOT_IN:
                # Only a file of one value can be skipped: its bounds are the same bytes, or absent.
                lowers, uppers = self._bounds(field_id)
                return [
                    i
                    for i in among
                    if (lowers[i] is not None and lowers[i] != uppers[i])
                    or self._may_match(leaf, i)
                ]
            case _:
                return [i for i in among if self._may_match(leaf, i)]

    def _may_match(self, leaf: Leaf, index: int) -> bool:
        column = self.summary(leaf, index)
        return column is None or why_none(leaf, column) is None

    def _bounds(self, field_id: int) -> tuple[_Bounds, _Bounds]:
        values_of = self.entries.values_of
        return values_of("lower_bounds", field_id), values_of("upper_bounds", field_id)

    def _within_bounds(
        self, leaf: Leaf, column_type: t.IcebergType, among: _Indices
    ) -> _Indices | None:
        """Those whose bounds do not rule out an ordered comparison; None for other operations."""
        operation, literal = leaf.operation, leaf.literal
        if operation is Operation.NOT_NULL:
            return among
        literals: list[Any] = []
        tests = bound_tests(operation, literal)
        if operation is Operation.IN and literal:
            literals = sorted_literals(literal)
            least, _ = bound_tests(Operation.LT_EQ, literals[-1])
            tests = least, bound_tests(Operation.GT_EQ, literals[0])[1]
        if tests == (None, None):
            return None
        columns = self._bounds(leaf.term.field_id)
        decode, found = bound_decoder(column_type), among
        for test, bounds in zip(tests, columns, strict=True):
            if test is not None:
                found = _passing(test, found, bounds, decode)
        if literals:
            found = [
                i
                for i in found
                if any_fits(
                    literals, *(None if (b := each[i]) is None else decode(b) for each in columns)
                )
            ]
        if not t.is_floating(column_type) or len(found) == len(among):
            return found
        # Where NaN is in one bound, the other is unusable, too.
        spoilt = {
            i for raw in columns for i in among if (b := raw[i]) is not None and decode(b) is None
        }
        return sorted(spoilt.union(found)) if spoilt else found

    def _with_values(self, leaf: Leaf, column_type: t.IcebergType, among: _Indices) -> _Indices:
        """Without the files whose column holds only NULL or, but for NOT_NULL, only NaN."""
        field_id = leaf.term.field_id
        lowers = self.entries.values_of("lower_bounds", field_id)
        if all(lowers[i] is not None for i in among):
            return among
        nulls = self.entries.values_of("null_value_counts", field_id)
        values = self.entries.values_of("value_counts", field_id)
        rows = self.entries.record_count
        if not t.is_floating(column_type) or leaf.operation is Operation.NOT_NULL:
            return [
                i
                for i in among
                if (n := nulls[i]) is None or n != values[i] or n < rows[i] or lowers[i] is not None
            ]
        return [i for i in among if lowers[i] is not None or self._may_match(leaf, i)]


def _passing(
    test: Test, among: _Indices, bounds: _Bounds, decode: Callable[[bytes], Any]
) -> _Indices:
    """Those whose bound passes a test; an absent or unusable bound passes any."""
    if len(among) == len(bounds):
        values = decode_bounds(decode, bounds)
        return [i for i, v in enumerate(values) if v is None or test(v)]
    return [i for i in among if (b := bounds[i]) is None or (v := decode(b)) is None or test(v)]
