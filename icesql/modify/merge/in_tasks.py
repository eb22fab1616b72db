"""The rows of MERGE's query as changes; in Spark's tasks each task joins some files of the table
with the whole source.

A task cannot know which source rows match no row of the whole table, so each task reports the
source rows that match its files. Afterwards other tasks insert the rest, a part of the source each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from icesql.engine.result_schema import ResultColumn
from icesql.errors import InternalError
from icesql.frozen import Frozen
from icesql.iceberg.schema import Schema
from icesql.modify.merge.changes import MergeChanges
from icesql.modify.merge.relation import Relation
from icesql.modify.merge.source import SourceRows
from icesql.modify.merge.values import OfTable
from icesql.modify.rows.changes import NewRows
from icesql.modify.rows.stored_variants import StoredVariants, has_variants
from icesql.query.views.temporary import TemporaryTable
from icesql.sql.writes.merge.read import SOURCE
from icesql.write.parquet_schema import stored_places

if TYPE_CHECKING:
    from pyroaring import BitMap64

    from icesql.context import QueryContext
    from icesql.modify.rows.new_files import FilesOf


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
