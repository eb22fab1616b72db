"""Turns the rows of MERGE's query into deleted rows and new rows, here and in Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from icesql.engine.result_schema import ResultColumn
from icesql.errors import InternalError, ProgrammingError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.modify.merge.relation import SEEN, Relation
from icesql.modify.merge.source import SourceRows
from icesql.modify.merge.values import Changed, Default, OfSource, OfTable, Value
from icesql.modify.rows.assignments import StoredVariants, has_variants, with_fields
from icesql.modify.rows.new_files import NewRows, RowBatch, empty_batch
from icesql.query.views.temporary import TemporaryTable
from icesql.read.deletes.scan_deletes import by_file
from icesql.sql.writes.merge_reading import SOURCE
from icesql.write.assignment import Assignment
from icesql.write.deletes import as_bitmap
from icesql.write.parquet_schema import stored_places

if TYPE_CHECKING:
    from pyroaring import BitMap64

    from icesql.context import QueryContext
    from icesql.modify.rows.new_files import FilesOf


def repeated_row(path: str, position: int) -> ProgrammingError:
    """The error for a row of the table that several rows of the source would change.

    Its attributes survive the way from a worker to the driver.
    """
    made = ProgrammingError("several rows of the source match one row of the table")
    made.__dict__.update(data_file=path, row_position=position)
    return made


class MergeChanges:
    """The changes that the query's rows make; counts are complete once all batches are read."""

    def __init__(
        self, rows: MergedRows, source: SourceRows, stored: StoredVariants, zone: str
    ) -> None:
        self._relation, self._lineage, self.new = rows.relation, rows.lineage, rows.new
        relation, self._stored = rows.relation, stored
        self._matched = _Matched(relation) if relation.taking else None
        self._matches = as_bitmap(np.empty(0, np.int64)) if relation.shows_matches else None
        self._assignments = [
            None if each.values is None else _Rows(each.values, relation, rows.schema, source, zone)
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
        return b"" if self._matches is None else self._matches.serialize()

    def batches(self, given: Iterable[pa.RecordBatch]) -> Iterator[RowBatch]:
        """All deleted and new rows. Raises ``repeated_row``."""
        relation = self._relation
        for batch in given:
            if not batch.num_rows:
                continue
            actions = batch.column(relation.action)
            if self._matched is not None:
                self._matched.add(batch, actions)
            if self._matches is not None:
                assert relation.source_row is not None
                matched = np.isin(_numbers(actions), relation.matching)
                self._matches |= as_bitmap(_numbers(batch.column(relation.source_row))[matched])
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


class _Rows(Frozen):
    """The new rows of one clause, as the table stores them."""

    values: tuple[Value, ...]
    relation: Relation
    schema: Schema
    source: SourceRows
    zone: str

    @property
    def assignment(self) -> Assignment:
        sources = (None if isinstance(each, Default) else n for n, each in enumerate(self.values))
        return Assignment(self.schema, tuple(sources), self.zone)

    def check(self, empty: pa.RecordBatch) -> None:
        self.assignment.check(self._chosen(empty).schema)

    def convert(
        self, batch: pa.RecordBatch, first_row: int, row_id: int | None, *, lineage: bool
    ) -> pa.RecordBatch:
        """The rows in the table's Parquet schema, followed by ``_row_id`` if ``lineage``."""
        made = self.assignment.convert(self._chosen(batch), first_row)
        if not lineage:
            return made
        ids = pa.nulls(batch.num_rows, pa.int64()) if row_id is None else batch.column(row_id)
        return made.append_column("_row_id", ids)

    def _chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            self._value(value, field, batch)
            for value, field in zip(self.values, self.schema.fields, strict=True)
        ]
        names = [str(index) for index in range(len(columns))]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def _value(self, value: Value, field: t.NestedField, batch: pa.RecordBatch) -> pa.Array:
        places = self.relation.places
        match value:
            case Default():
                return pa.nulls(batch.num_rows)
            case OfSource(name):
                assert self.relation.source_row is not None
                return self.source.taken(name, batch.column(self.relation.source_row))
            case Changed(base, fields):
                values = {each: batch.column(place) for each, place in places.items()}
                return with_fields(values[base], field.type, fields, values)
            case _:
                return batch.column(places[value])


def _numbers(column: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(column.to_numpy(zero_copy_only=False))


class _Matched(Struct):
    """The matching rows of the table, to find one that matches twice and that a clause takes.

    ``rows`` has by data file those that match, that match twice, and that a clause takes.
    """

    relation: Relation
    rows: dict[str, tuple[BitMap64, BitMap64, BitMap64]] = {}

    def add(self, batch: pa.RecordBatch, actions: pa.Array) -> None:
        """Add the matching rows of a batch; raise for a row that matches twice and is taken."""
        from pyroaring import BitMap64

        relation = self.relation
        assert relation.located is not None
        file, pos = relation.located
        numbers = _numbers(actions)
        matched = np.isin(numbers, relation.matching)
        if not matched.all():
            batch, numbers = batch.filter(pa.array(matched)), numbers[matched]
        if not len(numbers):
            return
        takes = np.isin(numbers, relation.taking)
        positions = _numbers(batch.column(pos))
        # Indices into the batch, which ``by_file`` groups by data file.
        rows = np.arange(len(positions))
        for path, places in by_file(batch.column(file), rows):
            found, counts = np.unique(positions[places], return_counts=True)
            here = as_bitmap(found)
            new = BitMap64(), BitMap64(), BitMap64()
            known, twice, taken = self.rows.setdefault(path, new)
            twice |= (known & here) | as_bitmap(found[counts > 1])
            known |= here
            taken |= as_bitmap(positions[places][takes[places]])
            both = twice & taken
            if both:
                raise repeated_row(path, both[0])


# ------------------------------------------------------------------ rows here and in tasks
# In Spark's tasks each task joins some files of the table with the whole source. A task cannot
# know which source rows match no row of the whole table, so each task reports the source rows that
# match its files. Afterwards other tasks insert the rest, a part of the source each.


class MergedRows(Frozen):
    """The changes that the rows of ``relation`` make to a table of ``schema``.

    The source is a table in memory with these ``columns``, and ``row``, which counts its rows.
    """

    relation: Relation
    schema: Schema
    columns: tuple[ResultColumn, ...]
    row: str
    lineage: bool

    once: ClassVar[bool] = False

    @property
    def new(self) -> NewRows:
        """New rows are in the table's Parquet schema, followed by ``_row_id`` in v3."""
        sources = stored_places(self.schema)
        count = len(sources) - sources.count(None)
        return NewRows(sources, row_id=count if self.lineage else None)

    def begin(
        self,
        schema: pa.Schema,
        tables: Sequence[TemporaryTable],
        files_of: FilesOf,
        query: QueryContext,
    ) -> MergeChanges:
        """Start converting batches of this schema."""
        table = next(each for each in tables if each.name == SOURCE)
        source = SourceRows(table, self.columns, self.row)
        places = self.relation.places
        variants = {
            places[own]: each
            for each in self.schema.fields
            if (own := OfTable(each.name)) in places and has_variants(each)
        }
        stored = StoredVariants(files_of, variants, query)
        changes = MergeChanges(self, source, stored, query.settings.timezone)
        changes.check(schema)
        return changes


def all_matches(serialized: Iterable[bytes]) -> BitMap64:
    """The source rows that match in at least one task. Raises InternalError."""
    from pyroaring import BitMap64

    rows = BitMap64()
    for part in serialized:
        try:
            rows |= BitMap64.deserialize(part)
        except (ValueError, OverflowError) as error:
            raise InternalError(f"the matches of a task cannot be decoded: {error}") from error
    return rows
