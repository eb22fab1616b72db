"""Read the variants of rows from their files, for columns that a statement does not assign.

The engine returns a variant as JSON text, which loses type information: a date becomes a string.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from icesql.iceberg import types as t
from icesql.iceberg.metadata_columns import POS
from icesql.iceberg.schema import Schema
from icesql.read.columns.arrow_schema import arrow_type
from icesql.read.deletes.positions import by_file
from icesql.read.task import read_file
from icesql.write.parquet_schema import with_binary_variants

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.modify.rows.new_files import FilesOf


_KEPT_BYTES: Final = 256 << 20


def has_variants(field: t.NestedField) -> bool:
    """True if the field is or contains a variant."""
    return any(isinstance(each.type, t.VariantType) for each in t.walk((field,)))


class StoredVariants(Struct):
    """Columns of a table that contain variants, read file by file on demand.

    ``places`` maps the indices of batch columns to replace to their fields; ``kept`` has the files
    that were read last.
    """

    files_of: FilesOf
    places: Mapping[int, t.NestedField]
    query: QueryContext
    kept: dict[str, pa.Table] = {}

    @property
    def projection(self) -> Schema:
        """The columns to read, followed by the position."""
        return with_binary_variants(Schema((*self.places.values(), POS)))

    def put_into(self, batch: pa.RecordBatch, file: int, pos: int) -> pa.RecordBatch:
        """Replace variant columns by stored values; columns ``file`` and ``pos`` locate the rows.

        Raises what reading a file raises.
        """
        if not self.places:
            return batch
        found = self._rows(batch.column(file), batch.column(pos)) if batch.num_rows else None
        columns, fields = [*batch.columns], [*batch.schema]
        for number, (place, own) in enumerate(
            zip(self.places, self.projection.fields, strict=False)
        ):
            kind = arrow_type(own.type)
            columns[place] = pa.nulls(0, kind) if found is None else found.column(number)
            fields[place] = fields[place].with_type(kind)
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _rows(self, files: pa.Array, positions: pa.Array) -> pa.RecordBatch:
        wanted = positions.to_numpy(zero_copy_only=False)
        parts, order = [], []
        for path, rows in by_file(files, np.arange(len(files))):
            table = self._of_file(path)
            places = table.column(table.num_columns - 1).to_numpy()
            parts.append(table.take(pa.array(np.searchsorted(places, wanted[rows]))))
            order.append(rows)
        back = np.argsort(np.concatenate(order))
        return pa.concat_tables(parts).take(pa.array(back)).combine_chunks().to_batches()[0]

    def _of_file(self, path: str) -> pa.Table:
        """The columns of all rows of a file, including deleted rows, ordered by position."""
        known = self.kept.pop(path, None)
        if known is None:
            known = self._read(path)
        self.kept[path] = known
        while len(self.kept) > 1 and sum(each.nbytes for each in self.kept.values()) > (
            _KEPT_BYTES
        ):
            self.kept.pop(next(iter(self.kept)))
        return known

    def _read(self, path: str) -> pa.Table:
        (task,), context = self.files_of(self.projection, {path})
        whole = replace(task, deletes=())
        batches = list(read_file(whole, context, self.query))
        found = pa.Table.from_batches(batches)
        order = pc.sort_indices(found.column(found.num_columns - 1))
        return found.take(order)
