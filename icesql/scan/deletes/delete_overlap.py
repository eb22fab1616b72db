"""Whether the keys of an equality delete file can occur in a data file, by bounds and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from icesql.iceberg import types as t
from icesql.iceberg.bounds import bound_decoder
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.schema import Schema


class ColumnFacts(NamedTuple):
    """Counts and bounds of one column in one file; unknown counts as "may".

    Bounds are decoded and enclose all values that are neither NULL nor NaN; None when unusable.
    """

    may_be_null: bool
    all_null: bool
    may_be_nan: bool
    lower: Any
    upper: Any


class Overlap:
    """The overlap test of a table; ``schema`` also has the columns that were dropped since."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def columns_of(
        self, field_ids: Iterable[int], deletes: Sequence[DataFile]
    ) -> list[DeleteColumn]:
        """The columns that can separate a delete file from a data file, with their facts.

        Nested types, columns that no schema has, and fields inside lists and maps do not count.
        """
        columns = []
        for field_id in field_ids:
            column = self._schema.field_by_id.get(field_id)
            if (
                column is not None
                and isinstance(column.type, t.PrimitiveType)
                and not self._schema.inside_repeated(field_id)
            ):
                never_null = self._schema.always_present(field_id)
                columns.append(DeleteColumn(column, never_null, deletes))
        return columns


class DeleteColumn:
    """One equality column in the delete files of one group, in their order."""

    def __init__(
        self, column: t.NestedField, never_null: bool, deletes: Sequence[DataFile]
    ) -> None:
        self.field_id = column.field_id
        self._never_null, self._floating = never_null, t.is_floating(column.type)
        self._decode = _decoder(column)
        self._facts = [self.facts_of(delete) for delete in deletes]
        self._any_may_be_null = any(facts.may_be_null for facts in self._facts)
        self._any_all_null = any(facts.all_null for facts in self._facts)
        self._all_bounded = all(
            facts.lower is not None and facts.upper is not None for facts in self._facts
        )
        self._lowers = [facts.lower for facts in self._facts]
        self._uppers = [facts.upper for facts in self._facts]
        # From each delete on; only used where all have bounds.
        known = self._facts if self._all_bounded else ()
        self._greatest_lower = [*accumulate((each.lower for each in reversed(known)), max)][::-1]
        self._least_upper = [*accumulate((each.upper for each in reversed(known)), min)][::-1]

    def facts_of(self, file: DataFile) -> ColumnFacts:
        """The facts about this column in the metrics of a data or delete file."""
        field_id = self.field_id
        nulls = (file.null_value_counts or {}).get(field_id)
        values = (file.value_counts or {}).get(field_id)
        nans = (file.nan_value_counts or {}).get(field_id)
        lower = (file.lower_bounds or {}).get(field_id)
        upper = (file.upper_bounds or {}).get(field_id)
        least = None if lower is None else self._decode(lower)
        greatest = None if upper is None else self._decode(upper)
        if least is not None and greatest is not None and least > greatest:
            # Bounds of a writer with another order, as Java's signed UUIDs.
            least = greatest = None
        return ColumnFacts(
            may_be_null=not self._never_null and nulls != 0,
            all_null=not self._never_null and nulls is not None and nulls == values,
            may_be_nan=self._floating and nans != 0,
            lower=least,
            upper=greatest,
        )

    def overlapping(self, file: ColumnFacts, among: Sequence[int]) -> Sequence[int]:
        """Those of the deletes ``among``, some indexes, that this column does not exclude."""
        lower, upper = file.lower, file.upper
        if (
            self._all_bounded
            and lower is not None
            and upper is not None
            and not (file.may_be_null and self._any_may_be_null)
            and not file.may_be_nan
        ):
            # The usual keys: no null on one side, bounds everywhere. Upsert streams bring
            # hundreds of deletes for each of hundreds of files here, nearly all of which overlap.
            if self._greatest_lower[among[0]] <= upper and lower <= self._least_upper[among[0]]:
                return among
            lowers, uppers = self._lowers, self._uppers
            return [i for i in among if lowers[i] <= upper and lower <= uppers[i]]
        is_unbounded = lower is None or upper is None
        if is_unbounded and not file.all_null and (file.may_be_null or not self._any_all_null):
            return among  # bounds alone tell values apart
        facts = self._facts
        return [index for index in among if not excludes(facts[index], file)]


def excludes(delete: ColumnFacts, file: ColumnFacts) -> bool:
    """True only if no value of the delete's column equals one of the file's.

    NULL equals NULL and NaN equals NaN here, and neither is inside the bounds.
    """
    if delete.may_be_null and file.may_be_null:
        return False
    if (file.all_null and not delete.may_be_null) or (delete.all_null and not file.may_be_null):
        return True
    if delete.may_be_nan and file.may_be_nan:
        return False
    if delete.lower is None or delete.upper is None or file.lower is None or file.upper is None:
        return False
    return bool(delete.lower > file.upper or file.lower > delete.upper)


def _decoder(column: t.NestedField) -> Callable[[bytes], Any]:
    decode = bound_decoder(column.type)
    if isinstance(column.type, t.FixedType):
        length = column.type.length
        # A cut upper bound of another writer may not enclose the values.
        return lambda data: decode(data) if len(data) == length else None
    return decode
