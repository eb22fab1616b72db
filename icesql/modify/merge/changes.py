"""Turn batches of the joined rows into deleted rows and new rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from icesql.errors import ProgrammingError
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.modify.merge.relation import SEEN, Action, Relation
from icesql.modify.merge.source import SourceRows
from icesql.modify.merge.values import Changed, Default, OfSource, Value
from icesql.modify.rows.assignments import with_fields
from icesql.modify.rows.changes import RowBatch, empty_batch
from icesql.modify.rows.stored_variants import StoredVariants
from icesql.read.deletes.positions import by_file
from icesql.write.assignment import Assignment
from icesql.write.deletion_vectors import as_bitmap

if TYPE_CHECKING:
    from pyroaring import BitMap64

    from icesql.modify.merge.in_tasks import MergedRows


class RepeatedRow(Struct, frozen=True):
    """A row of the table that several rows of the source would change."""

    path: str
    position: int

    def error(self) -> ProgrammingError:
        """The error for this row; its attributes survive the way from a worker to the driver."""
        made = ProgrammingError("several rows of the source match one row of the table")
        made.__dict__["data_file"], made.__dict__["row_position"] = self.path, self.position
        return made

    @classmethod
    def of(cls, error: ProgrammingError) -> RepeatedRow | None:
        """The repeated row of an error; None for another error."""
        path, position = (error.__dict__.get(each) for each in ("data_file", "row_position"))
        return cls(path, position) if isinstance(path, str) and isinstance(position, int) else None


class MergeChanges:
    """The changes that the query's rows make; counts are complete once all batches are read."""

    def __init__(
        self, rows: MergedRows, source: SourceRows, stored: StoredVariants, zone: str
    ) -> None:
        self._relation, self._lineage, self.new = rows.relation, rows.lineage, rows.new
        relation, self._stored = rows.relation, stored
        self._matched = _Matched(relation) if relation.taking else None
        self._matches = Matches(relation) if relation.shows_matches else None
        self._assignments = [
            None if each.values is None else _Rows(each, relation, rows.schema, source, zone)
            for each in relation.actions
        ]
        # For each clause, the number of rows that it has added.
        self._counts = [0] * len(relation.actions)

    @property
    def inserted(self) -> int:
        """The number of inserted rows."""
        actions = self._relation.actions
        return sum(
            count for count, each in zip(self._counts, actions, strict=True) if not each.goes
        )

    def check(self, given: pa.Schema) -> None:
        """Raise TypeMismatchError for a column whose values can never be stored."""
        empty = empty_batch(given)
        for each, action in zip(self._assignments, self._relation.actions, strict=True):
            if each is not None:
                each.check(self._with_stored(empty) if action.goes else empty)

    def matches(self) -> bytes:
        """The source rows that match, serialized; empty if nobody needs them."""
        return b"" if self._matches is None else self._matches.rows.serialize()

    def batches(self, given: Iterable[pa.RecordBatch]) -> Iterator[RowBatch]:
        """All deleted and new rows. Raises the error of a ``RepeatedRow``."""
        relation = self._relation
        for batch in given:
            if not batch.num_rows:
                continue
            actions = batch.column(relation.action)
            if self._matched is not None:
                self._matched.add(batch, actions)
            if self._matches is not None:
                self._matches.add(batch, actions)
            numbers = pc.unique(actions).to_pylist()
            for number in sorted(n for n in numbers if n not in (None, SEEN)):
                rows = batch
                if len(numbers) > 1:
                    rows = batch.filter(pc.equal(actions, number))
                yield self._of_clause(number - 1, rows)

    def _with_stored(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the table, with variants as files store them."""
        assert self._relation.located is not None
        return self._stored.put_into(rows, *self._relation.located)

    def _of_clause(self, index: int, rows: pa.RecordBatch) -> RowBatch:
        relation, action = self._relation, self._relation.actions[index]
        made = self._assignments[index]
        come = None
        if made is not None:
            row_id = relation.row_id if action.goes else None
            given = self._with_stored(rows) if action.goes else rows
            come = made.convert(given, self._counts[index], row_id, lineage=self._lineage)
            self._counts[index] += rows.num_rows
        if not action.goes:
            return RowBatch(rows=come)
        assert relation.located is not None
        file, pos = relation.located
        return RowBatch(rows.column(file), rows.column(pos), come)


class _Rows:
    """The new rows of one clause, as the table stores them."""

    def __init__(
        self, action: Action, relation: Relation, schema: Schema, source: SourceRows, zone: str
    ) -> None:
        assert action.values is not None
        self._values, self._relation = action.values, relation
        self._schema, self._source = schema, source
        sources = [
            None if isinstance(each, Default) else index for index, each in enumerate(self._values)
        ]
        self._assignment = Assignment(schema, tuple(sources), zone)

    def check(self, empty: pa.RecordBatch) -> None:
        made = self._chosen(empty)
        self._assignment.check(made.schema)

    def convert(
        self, batch: pa.RecordBatch, first_row: int, row_id: int | None, *, lineage: bool
    ) -> pa.RecordBatch:
        """The rows in the table's Parquet schema, followed by ``_row_id`` if ``lineage``."""
        made = self._assignment.convert(self._chosen(batch), first_row)
        if not lineage:
            return made
        ids = pa.nulls(batch.num_rows, pa.int64()) if row_id is None else batch.column(row_id)
        return made.append_column("_row_id", ids)

    def _chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            self._value(value, field, batch)
            for value, field in zip(self._values, self._schema.fields, strict=True)
        ]
        names = [str(index) for index in range(len(columns))]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def _value(self, value: Value, field: t.NestedField, batch: pa.RecordBatch) -> pa.Array:
        places = self._relation.places
        match value:
            case Default():
                return pa.nulls(batch.num_rows)
            case OfSource(name):
                assert self._relation.source_row is not None
                return self._source.taken(name, batch.column(self._relation.source_row))
            case Changed(base, fields):
                given: dict[int, Any] = {}
                for path, inner in fields:
                    below = given
                    for each in path[:-1]:
                        below = below.setdefault(each, {})
                    is_default = isinstance(inner, Default)
                    below[path[-1]] = None if is_default else self._value(inner, field, batch)
                return with_fields(batch.column(places[base]), field.type, given)
            case _:
                return batch.column(places[value])


class Matches:
    """The numbers of the source rows that match a row of the table."""

    def __init__(self, relation: Relation) -> None:
        from pyroaring import BitMap64

        self._relation, self.rows = relation, BitMap64()

    def add(self, batch: pa.RecordBatch, actions: pa.Array) -> None:
        """Add the matches of a batch."""
        assert self._relation.source_row is not None
        numbers = actions.to_numpy(zero_copy_only=False)
        rows = batch.column(self._relation.source_row).to_numpy(zero_copy_only=False)
        self.rows |= as_bitmap(rows[np.isin(numbers, self._relation.matching)])


class _Matched:
    """The matching rows of the table, to find one that matches twice and that a clause takes."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        # By data file: rows that match, that match twice, and that a clause takes.
        self._rows: dict[str, tuple[BitMap64, BitMap64, BitMap64]] = {}

    def add(self, batch: pa.RecordBatch, actions: pa.Array) -> None:
        """Add the matching rows of a batch; raise for a row that matches twice and is taken."""
        from pyroaring import BitMap64

        relation = self._relation
        assert relation.located is not None
        file, pos = relation.located
        numbers = actions.to_numpy(zero_copy_only=False)
        matched = np.isin(numbers, relation.matching)
        if not matched.all():
            batch, numbers = batch.filter(pa.array(matched)), numbers[matched]
        if not len(numbers):
            return
        takes = np.isin(numbers, relation.taking)
        positions = batch.column(pos).to_numpy(zero_copy_only=False)
        # Indices into the batch, which ``by_file`` groups by data file.
        rows = np.arange(len(positions))
        for path, places in by_file(batch.column(file), rows):
            found, counts = np.unique(positions[places], return_counts=True)
            here = as_bitmap(found)
            new = BitMap64(), BitMap64(), BitMap64()
            known, twice, taken = self._rows.setdefault(path, new)
            twice |= (known & here) | as_bitmap(found[counts > 1])
            known |= here
            taken |= as_bitmap(positions[places][takes[places]])
            both = twice & taken
            if both:
                raise RepeatedRow(path, both[0]).error()
