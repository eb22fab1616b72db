"""How many rows are taken at once: many while they are narrow, few where they are wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.result_schema import ResultType

if TYPE_CHECKING:
    from icesql.scan.plan import ScanPlan

MOST_ROWS: Final = 2_048
_FIRST_ROWS: Final = 64
_CHUNK_BYTES: Final = 8 << 20
# Rows measured in a long chunk.
_SAMPLE: Final = 16

_MOST_BATCH_ROWS: Final = 65_536
_BATCH_BYTES: Final = 64 << 20
# A file's bytes are packed.
_PACKED: Final = 4

_VARYING: Final = frozenset({"varchar", "blob", "list", "struct", "tuple", "map", "union"})


class ChunkSize:
    """``rows`` to ask for next, by the widths of the rows that came."""

    def __init__(self, types: Sequence[ResultType]) -> None:
        self._varying = [at for at, each in enumerate(types) if each.kind in _VARYING]
        self.rows = _FIRST_ROWS if self._varying else MOST_ROWS

    def measure(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Learn from rows whose varying columns are text or bytes."""
        if not self._varying or not rows:
            return
        sample = rows[:: max(len(rows) // _SAMPLE, 1)]
        size = sum(
            len(value)
            for at in self._varying
            for row in sample
            if isinstance(value := row[at], str | bytes)
        )
        width = size // len(sample) + 1
        self.rows = min(max(_CHUNK_BYTES // width, 1), MOST_ROWS)


def batch_rows(types: Sequence[ResultType], plans: Sequence[ScanPlan]) -> int:
    """Rows of an Arrow batch, by how wide the rows of the scanned files are."""
    if not any(each.kind in _VARYING for each in types):
        return _MOST_BATCH_ROWS
    widest = 1
    for plan in plans:
        size = sum(max(task.data_file.file_size_in_bytes, 0) for task in plan.files)
        rows = sum(max(task.data_file.record_count, 0) for task in plan.files)
        widest = max(widest, _PACKED * size // max(rows, 1))
    return min(max(_BATCH_BYTES // widest, MOST_ROWS), _MOST_BATCH_ROWS)
