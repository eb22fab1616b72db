"""Row changes of a statement, batch by batch: deleted rows and new rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from icesql.errors import ProgrammingError
from icesql.frozen import Frozen
from icesql.read.deletes.positions import by_file
from icesql.write.deletion_vectors import as_bitmap

if TYPE_CHECKING:
    from pyroaring import BitMap64

Positions = npt.NDArray[np.int64]


class RowBatch(Frozen):
    """Deleted rows, by their ``_file`` and ``_pos`` (never NULL), and new rows.

    ``files`` is a string or dictionary array, ``positions`` int64. An updated row is in both parts,
    which need not be in the same batch.
    """

    files: pa.Array | None = None
    positions: pa.Array | None = None
    rows: pa.RecordBatch | None = None


class NewRows(Frozen):
    """The columns of the new rows.

    ``sources`` has the index of each column of the table, None for its default; see
    ``Assignment``. ``row_id`` is the index of ``_row_id``, which an updated row keeps in v3 and
    an inserted row lacks. ``schema`` is that of the batches, checked before the first one is read.
    """

    sources: tuple[int | None, ...]
    row_id: int | None = None
    schema: pa.Schema | None = None


class GoneRows(Struct):
    """The deleted rows, as one bitmap of positions for each data file.

    ``rows`` are the positions by path. ``once``: deleting a row twice is an error, with the text
    ``repeated``.
    """

    once: bool
    repeated: str
    rows: dict[str, BitMap64] = {}

    def add(self, files: pa.Array, positions: pa.Array) -> None:
        """Add rows. With ``once``, raises ProgrammingError for a row that was added before."""
        for path, rows in by_file(files, positions.to_numpy(zero_copy_only=False)):
            part = as_bitmap(rows)
            known = self.rows.setdefault(path, part)
            again = known is not part
            if self.once and (len(part) < len(rows) or (again and part.intersect(known))):
                raise ProgrammingError(self.repeated)
            if again:
                known |= part

    @property
    def count(self) -> int:
        """The number of deleted rows."""
        return sum(map(len, self.rows.values()))


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows; pyarrow's ``empty_table`` fails for a uuid inside of a struct."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


def as_positions(bitmap: BitMap64) -> Positions:
    """The members of a bitmap, ascending."""
    return np.frombuffer(bitmap.to_array(), np.int64) if len(bitmap) else np.empty(0, np.int64)
