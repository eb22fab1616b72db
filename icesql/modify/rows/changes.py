"""Row changes of a statement, batch by batch: rows that go and rows that come."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from icesql.errors import ProgrammingError

if TYPE_CHECKING:
    from pyroaring import BitMap64

Positions = npt.NDArray[np.int64]


class RowBatch(Struct, frozen=True):
    """Rows that go, by their ``_file`` and ``_pos`` (no NULL in either), and rows that come.

    ``files`` are texts or a dictionary of such, ``positions`` int64. An updated row goes and
    comes; the two parts of a batch need not be of the same rows.
    """

    files: pa.Array | None = None
    positions: pa.Array | None = None
    rows: pa.RecordBatch | None = None


class NewRows(Struct, frozen=True):
    """The columns of the rows that come.

    ``sources`` has the place of each column of the table, None for its default; see
    ``Assignment``. ``row_id`` is the place of ``_row_id``, which an updated row keeps in v3 and
    an inserted row has not. ``schema`` is that of the batches, checked before one is asked for.
    """

    sources: tuple[int | None, ...]
    row_id: int | None = None
    schema: pa.Schema | None = None


class GoneRows:
    """The rows that go, as one bitmap of positions for each data file.

    ``once``: a row that goes again is refused, for which ``repeated`` is the error's text.
    """

    def __init__(self, *, once: bool, repeated: str = "") -> None:
        self._once, self._repeated = once, repeated
        self._by_file: dict[str, BitMap64] = {}

    def add(self, files: pa.Array, positions: pa.Array) -> None:
        """Note some rows. Raises ProgrammingError for one that is noted already."""
        from pyroaring import BitMap64

        for path, rows in by_file(files, positions.to_numpy(zero_copy_only=False)):
            part = BitMap64(array("Q", rows.astype(np.uint64).tobytes()))
            known = self._by_file.get(path)
            if known is None:
                self._by_file[path] = part
            if self._once and (
                len(part) < len(rows) or (known is not None and part.intersect(known))
            ):
                raise ProgrammingError(self._repeated)
            if known is not None:
                known |= part

    @property
    def paths(self) -> set[str]:
        """The data files that lose rows."""
        return {*self._by_file}

    @property
    def count(self) -> int:
        """How many rows go."""
        return sum(map(len, self._by_file.values()))

    def bitmap(self, path: str) -> BitMap64:
        """The positions in a file."""
        return self._by_file[path]

    def positions(self, path: str) -> Positions:
        """The same, ascending."""
        return as_positions(self._by_file[path])


def as_positions(bitmap: BitMap64) -> Positions:
    """The members of a bitmap, ascending."""
    return np.frombuffer(bitmap.to_array(), np.int64) if len(bitmap) else np.empty(0, np.int64)


def by_file(files: pa.Array, positions: Positions) -> Iterator[tuple[str, Positions]]:
    """The positions by their files, in the order in which they come."""
    encoded: Any = files if pa.types.is_dictionary(files.type) else files.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    paths = encoded.dictionary.to_pylist()
    if len(paths) == 1:
        yield paths[0], positions
        return
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(paths) + 1))
    for code, path in enumerate(paths):
        found = positions[order[bounds[code] : bounds[code + 1]]]
        if len(found):
            yield path, found
