"""Check that a file is the one its manifest describes, by facts known once it is open.

Writers record wrong lengths, and some files were rewritten with the same rows: one different figure
proves nothing if the others agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.schema import Schema

# Their bounds in a manifest are bytes of the values as Parquet stores them.
_COMPARED = t.IntegerType | t.LongType | t.DateType | t.StringType


def count_problem(file: DataFile, rows: int) -> str | None:
    """How a file with this row count contradicts its manifest; None if it does not.

    Delete files may hold more: some writers count the keys that they meant to delete.
    """
    wrong = rows < file.record_count
    if file.content is FileContent.DATA:
        wrong = 0 <= file.record_count != rows
    return f"the file holds {rows} rows, the manifest counts {file.record_count}" if wrong else None


def other_file(
    file: DataFile,
    length: int,
    schema: Schema,
    chunks_of: Callable[[int], Sequence[tuple[int, bytes | None]]],
) -> str | None:
    """Why a Parquet file of this length is not the one that the manifest describes.

    ``chunks_of`` gives size in bytes and least value of the chunks of a column (field id). None
    when the length is the recorded one, or when every column has the size or the lower bound that
    is recorded.
    """
    if length == file.file_size_in_bytes:
        return None
    sizes, bounds = file.column_sizes or {}, file.lower_bounds or {}
    for field_id, bound in bounds.items():
        column = schema.field_by_id.get(field_id)
        if column is None or not isinstance(column.type, _COMPARED):
            continue
        chunks = chunks_of(field_id)
        found = [lower for _, lower in chunks if lower is not None]
        if not found:
            continue
        # Text is cut, and an integer that became a long is longer.
        alike = any(each.startswith(bound) or bound.startswith(each) for each in found)
        if not alike and sizes.get(field_id) != sum(size for size, _ in chunks):
            return (
                f"{length} bytes long and of other values in column {column.name}, where the "
                f"manifest says {file.file_size_in_bytes} bytes: another file is in its place"
            )
    return None
