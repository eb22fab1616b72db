"""Deletion vectors of data files: their positions, and how many of them are rows.

The cardinality of a vector counts its positions, and some writers include positions beyond the end
of the data file. icesql writes none of these.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.manifest.data_file import DataFile
from icesql.storage.cache import kept
from icesql.storage.open import Storage

Positions: TypeAlias = npt.NDArray[np.int64]

_LONGEST_VECTOR: Final = 1 << 30  # bytes
_LONGEST_REST: Final = 1 << 16


def rows_of_vector(vector: DataFile, rows: int, storage: Storage, table: str) -> int:
    """How many rows of a data file that has ``rows`` a vector deletes; raises as ``read_vector``.

    With unknown (negative) ``rows`` these are all of its positions.
    """
    found = read_vector(vector, storage, table)
    return len(found) if rows < 0 else int(np.searchsorted(found, rows))


def read_vector(vector: DataFile, storage: Storage, table: str) -> Positions:
    """The positions in a deletion vector, sorted; kept for later queries.

    Raises UnsupportedTableError for an encrypted one, CorruptFileError (also if the Puffin footer
    assigns the blob to another data file), StorageError.
    """
    from icesql.iceberg.puffin import read_deletion_vector

    if vector.key_metadata is not None:
        raise UnsupportedTableError("encryption", table=table, path=vector.path)
    location = storage.location(vector.path)
    if vector.content_offset is None or vector.content_size_in_bytes is None:
        raise CorruptFileError(location, "a deletion vector without offset and size")
    offset, length = vector.content_offset, vector.content_size_in_bytes
    cardinality = vector.record_count if vector.record_count >= 0 else None
    if offset < 0 or not 0 <= length <= _longest_vector(cardinality):
        raise CorruptFileError(
            location, f"a deletion vector of {length} bytes for {cardinality} rows"
        )

    def read() -> tuple[Positions, int]:
        data = _with_footer(vector, offset, length, storage)
        _check_data_file(vector, offset, data, storage)
        found = read_deletion_vector(data[:length], path=location, cardinality=cardinality)
        rows = np.frombuffer(found, np.int64) if len(found) else np.empty(0, np.int64)
        return rows, rows.nbytes

    of = vector.referenced_data_file
    key = storage.cache_key("positions", vector.path, offset, length, cardinality, of)
    return kept(storage.cache, key, read)


def _longest_vector(cardinality: int | None) -> int:
    """The greatest bytes of a vector with this many rows, each alone in its container."""
    return _LONGEST_VECTOR if cardinality is None else min(64 * cardinality + 4096, _LONGEST_VECTOR)


def _with_footer(vector: DataFile, offset: int, length: int, storage: Storage) -> bytes:
    """The blob, and the rest of the file if it is short: one request instead of two."""
    rest = vector.file_size_in_bytes - offset - length
    if 0 < rest <= _LONGEST_REST:
        with suppress(CorruptFileError):  # the recorded size is wrong
            return storage.read(vector.path, offset=offset, length=length + rest)
    return storage.read(vector.path, offset=offset, length=length)


def _check_data_file(vector: DataFile, offset: int, data: bytes, storage: Storage) -> None:
    """Refuse a blob that the Puffin's footer assigns to another data file than the manifest does.

    ``data`` are bytes of the Puffin from ``offset`` on. An unreadable footer is ignored.
    """
    from icesql.iceberg.puffin import read_puffin_footer

    def part(at: int, count: int) -> bytes:
        begin = at - offset
        if begin >= 0 and begin + count <= len(data):
            return data[begin : begin + count]
        return storage.read(vector.path, offset=at, length=count)

    def read() -> tuple[dict[int, str | None], int]:
        try:
            blobs = read_puffin_footer(vector.path, vector.file_size_in_bytes, part)
        except (CorruptFileError, UnsupportedTableError):
            return {}, 100
        owners = {each.offset: each.properties.get("referenced-data-file") for each in blobs}
        return owners, 100 + sum(100 + len(each or "") for each in owners.values())

    wanted = vector.referenced_data_file
    key = storage.cache_key("blobs", vector.path, vector.file_size_in_bytes)
    named = kept(storage.cache, key, read).get(offset)
    if named is None or wanted is None or named.split("/")[-2:] == wanted.split("/")[-2:]:
        return  # a table that was copied as it is has the names of the old place in its Puffins
    if storage.same_file_key(named) != storage.same_file_key(wanted):
        raise CorruptFileError(
            storage.location(vector.path),
            f"the deletion vector belongs to {named}, and the manifest gives it to {wanted}",
            offset=offset,
        )
