"""Files that cannot hold one of the greatest or smallest values that a query needs.

``ORDER BY ts DESC LIMIT 10``, ``max(ts)``: files that surely hold enough rows at or beyond a bound
make all files needless whose values lie on the other side of it. Bounds are used only as limits
that enclose the values, so truncated texts do no harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
    Term,
)
from icesql.iceberg.expressions.render import render_value
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.schema import Schema
from icesql.scan.pruning.column_summary import ColumnSummary
from icesql.scan.pruning.metrics_evaluator import ColumnStatistics, metrics_mask


class Extreme(Frozen):
    """The ``count`` rows with the greatest (``descending``) or smallest values of a column.

    NULL comes last. ``text`` is the clause of the query, for EXPLAIN.
    """

    field_id: int
    descending: bool
    count: int
    text: str


class Candidate(Frozen):
    """A file that is left: its entry in a manifest, and how many rows deletes take from it.

    ``deleted`` is None if only the delete files show it. ``left_out`` holds for every row of it
    for which the WHERE is not true.
    """

    entries: ManifestEntries
    index: int
    deleted: int | None
    left_out: Predicate

    @property
    def rows(self) -> int:
        """The rows in the file, deleted ones too; negative where its writer did not say."""
        return self.entries.record_count[self.index]


def is_ordered(value_type: t.IcebergType) -> bool:
    """Whether bounds can locate the extreme values of a column."""
    return isinstance(value_type, t.ORDERED)


def needless(
    files: Sequence[Candidate], whole: Sequence[bool], wanted: Sequence[Extreme], schema: Schema
) -> dict[int, tuple[Extreme, str]]:
    """The positions of files without a wanted row, each with a reason.

    Only files without deletes that are ``whole`` are sure to bring rows.
    """
    sure = [each and file.deleted == 0 for each, file in zip(whole, files, strict=True)]
    kept: set[int] = set()
    reasons: dict[int, tuple[Extreme, str]] = {}
    for extreme in wanted:
        column = schema.field_by_id.get(extreme.field_id)
        if column is None or not is_ordered(column.type):
            return {}
        found = _beyond(files, sure, extreme, schema)
        kept.update(set(range(len(files))) - set(found))
        for position, reason in found.items():
            reasons.setdefault(position, (extreme, reason))
    return {position: reason for position, reason in reasons.items() if position not in kept}


def _beyond(
    files: Sequence[Candidate],
    sure: Sequence[bool],
    extreme: Extreme,
    schema: Schema,
) -> dict[int, str]:
    value_type = schema.field_by_id[extreme.field_id].type
    facts = [_facts(file, extreme.field_id, schema) for file in files]
    near = sorted(
        (
            (each.lower if extreme.descending else each.upper, values)
            for (each, values), certain in zip(facts, sure, strict=True)
            if certain and each.lower is not None and each.upper is not None and values
        ),
        reverse=extreme.descending,
    )
    threshold, missing = None, extreme.count
    for bound, values in near:
        missing -= values
        if missing <= 0:
            threshold = bound
            break
    if threshold is None:
        return {}
    found: dict[int, str] = {}
    shown = render_value(value_type, threshold)
    for position, (each, _) in enumerate(facts):
        if each.all_null:
            found[position] = "all values are NULL"
        elif extreme.descending and each.upper is not None and each.upper < threshold:
            found[position] = f"upper bound is {render_value(value_type, each.upper)} < {shown}"
        elif not extreme.descending and each.lower is not None and each.lower > threshold:
            found[position] = f"lower bound is {render_value(value_type, each.lower)} > {shown}"
    return found


def _facts(file: Candidate, field_id: int, schema: Schema) -> tuple[ColumnSummary, int]:
    """The summary of a column in one file, and how many values surely occur."""
    columns = ColumnStatistics(file.entries, schema)
    found = columns.summary(Leaf(Operation.NOT_NULL, Term(field_id, "")), file.index)
    assert found is not None  # a top-level column of a type with an order
    nulls = null_count(file, field_id)
    return found, 0 if nulls is None else file.rows - nulls


def null_count(file: Candidate, field_id: int) -> int | None:
    """The NULLs of a column in a file, deleted rows included; None where it is not sure."""
    rows, index = file.rows, file.index
    nulls = file.entries.values_of("null_value_counts", field_id)[index]
    counted = file.entries.values_of("value_counts", field_id)[index]
    is_known = nulls is not None and 0 <= nulls <= rows and counted in (None, rows)
    return nulls if is_known else None


def are_whole(files: Sequence[Candidate], schema: Schema) -> list[bool]:
    """For each file whether the WHERE keeps all of its rows."""
    whole = [file.left_out is not ALWAYS_TRUE and file.rows > 0 for file in files]
    for entries, left_out, positions in _by_manifest(files, whole):
        mask = metrics_mask(entries, left_out, schema, [files[each].index for each in positions])
        for position in positions:
            whole[position] = not mask[files[position].index]
    return whole


def _by_manifest(
    files: Sequence[Candidate], wanted: Sequence[bool]
) -> Iterator[tuple[ManifestEntries, Predicate, list[int]]]:
    groups: dict[tuple[int, int], tuple[ManifestEntries, Predicate, list[int]]] = {}
    for position, file in enumerate(files):
        if wanted[position] and file.left_out is not ALWAYS_FALSE:
            key = id(file.entries), id(file.left_out)
            group = groups.setdefault(key, (file.entries, file.left_out, []))
            group[2].append(position)
    yield from groups.values()
