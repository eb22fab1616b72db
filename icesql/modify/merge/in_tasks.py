"""MERGE in Spark's tasks: each task joins some files of the table with the whole source.

A task cannot know which source rows match no row of the whole table, so each task reports the
source rows that match its files. Afterwards other tasks insert the rest, a part of the source each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from msgspec import Struct

from icesql.engine.result_schema import ResultColumn
from icesql.errors import InternalError, ProgrammingError
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.modify.merge.changes import MergeChanges
from icesql.modify.merge.relation import Relation
from icesql.modify.merge.source import SourceRows
from icesql.modify.merge.values import OfTable
from icesql.modify.rows.changes import NewRows, RowBatch
from icesql.modify.rows.stored_variants import StoredVariants, has_variants
from icesql.query.views.temporary import TemporaryTable

if TYPE_CHECKING:
    from pyroaring import BitMap64

    from icesql.context import QueryContext
    from icesql.modify.rows.new_files import FilesOf


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


class MergedRows(Struct, frozen=True):
    """The changes that the rows of ``relation`` make to a table of ``schema``.

    The source is the table ``name`` in memory with these ``columns``, and ``row``, which counts
    its rows. ``new`` describes the columns of new rows.
    """

    relation: Relation
    schema: Schema
    name: str
    columns: tuple[ResultColumn, ...]
    row: str
    zone: str
    lineage: bool
    new: NewRows

    once: ClassVar[bool] = False

    def begin(
        self,
        schema: pa.Schema,
        tables: Sequence[TemporaryTable],
        files_of: FilesOf,
        query: QueryContext,
    ) -> _OpenRows:
        """Start converting batches of this schema."""
        table = next(each for each in tables if each.name == self.name)
        source = SourceRows(table, self.columns, self.row)
        changes = MergeChanges(
            self.relation,
            self.schema,
            source,
            self.zone,
            lineage=self.lineage,
            refuse=_refuse,
            stored=StoredVariants(files_of, variants_of(self.relation, self.schema), query),
        )
        changes.check(schema)
        return _OpenRows(changes, schema, self.new)


def variants_of(relation: Relation, schema: Schema) -> dict[int, t.NestedField]:
    """The columns of the relation that have variants of the table, by position."""
    return {
        relation.places[OfTable(each.name)]: each
        for each in schema.fields
        if OfTable(each.name) in relation.places and has_variants(each)
    }


def _refuse(path: str, position: int) -> None:
    raise RepeatedRow(path, position).error()


class _OpenRows:
    def __init__(self, changes: MergeChanges, schema: pa.Schema, new: NewRows) -> None:
        self._changes, self._schema, self.new = changes, schema, new

    def batches(self, given: Iterable[pa.RecordBatch]) -> Iterator[RowBatch]:
        return self._changes.batches(pa.RecordBatchReader.from_batches(self._schema, given))

    def matches(self) -> bytes:
        matches = self._changes.matches
        return b"" if matches is None else matches.rows.serialize()


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
