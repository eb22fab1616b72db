"""How many rows are taken at once: many while they are narrow, few where they are wide."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.result_schema import ResultType

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan

# So many stay in the processor's cache from one step to the next: 8,192 take half as long again.
MOST_ROWS: Final = 2_048
# Waiting for another thread takes as long as many rows: it brings what comes in a moment at once.
_MOMENT_SECONDS: Final = 0.005
_MOST_STEPS: Final = 8
_FIRST_ROWS: Final = 64
_CHUNK_BYTES: Final = 8 << 20
# Rows measured in a long chunk.
_SAMPLE: Final = 16

_MOST_BATCH_ROWS: Final = 65_536
_BATCH_BYTES: Final = 64 << 20
# A file's bytes are packed.
_PACKED: Final = 4
# What a tuple and each value in it take beside the bytes that Arrow has for it, and what those of
# nested values become.
_ROW_BYTES, _VALUE_BYTES, _UNPACKED = 64, 40, 4

# Their Python values take as long as Arrow takes to be imported.
_MANY_ROWS: Final = 100_000

_VARYING: Final = frozenset({"varchar", "blob", "list", "struct", "tuple", "map", "union"})


class ChunkSize:
    """``rows`` to ask for next, by the widths of the rows that came.

    ``is_over`` is whether fewer came.
    """

    def __init__(self, types: Sequence[ResultType]) -> None:
        self._varying = [at for at, each in enumerate(types) if each.kind in _VARYING]
        self.rows = _FIRST_ROWS if self._varying else MOST_ROWS
        self.is_over = False

    def fetch(self, fetchmany: Callable[[int], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
        """The next rows: narrow ones in several steps, as long as they come quickly."""
        end = time.perf_counter() + _MOMENT_SECONDS
        rows: list[tuple[Any, ...]] = []
        for _ in range(_MOST_STEPS):
            wanted = self.rows
            part = fetchmany(wanted)
            self.is_over = len(part) < wanted
            self.measure(part)
            rows = rows + part if rows else part
            if self.is_over or self.rows < MOST_ROWS or time.perf_counter() > end:
                break
        return rows

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


def batches(reader: Iterator[pa.RecordBatch], *, several: bool) -> list[pa.RecordBatch]:
    """The next batch, or ``several`` if they are narrow and come quickly; empty at the end."""
    end = time.perf_counter() + _MOMENT_SECONDS
    found = []
    size = 0
    for batch in islice(reader, _MOST_STEPS if several else 1):
        found.append(batch)
        size += batch.nbytes
        if size > _CHUNK_BYTES or time.perf_counter() > end:
            break
    return found


def rows_at_once(batch: pa.RecordBatch) -> int:
    """Rows of a batch whose Python values take about as much as a chunk may have."""
    inside = _UNPACKED * batch.nbytes // max(batch.num_rows, 1)
    width: int = _ROW_BYTES + _VALUE_BYTES * batch.num_columns + inside
    return max(_CHUNK_BYTES // width, 1)


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


def are_many(bound: BoundQuery, plans: Sequence[ScanPlan], *, at_once: bool) -> bool:
    """Whether a query seems to give many rows: no aggregate and no LIMIT over a long scan.

    They are read as Arrow, whose columns become Python values in three quarters of the time that
    the engine takes. With a WHERE they may be few, and whoever does not ask for all ``at_once`` may
    stop: only where Arrow was imported already.
    """
    is_imported = "pyarrow.compute" in sys.modules
    if not (at_once or is_imported):
        return False
    scanned = (sum(max(task.data_file.record_count, 0) for task in plan.files) for plan in plans)
    if max(scanned, default=0) < _MANY_ROWS:
        return False
    from sqlglot import exp

    tree = bound.tree
    if not isinstance(tree, exp.Select) or tree.args.get("limit") or tree.args.get("group"):
        return False
    if any(each.find(exp.AggFunc) for each in tree.expressions):
        return False
    is_open = not tree.args.get("where") and not tree.args.get("having")
    return is_open or is_imported
