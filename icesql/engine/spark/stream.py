"""A table as a stream: the files that each new snapshot appends, exactly once.

Options:
    stream-from            earliest (default) · latest · a snapshot id (itself included)
    stream-from-timestamp  ms since 1970: the first snapshot at or after it
    branch                 the history that is followed; main without it
    max-files-per-batch    at most so many files a batch
    max-rows-per-batch     at most so many rows a batch, unless one file has more
    on-overwrite, on-delete   fail (default) or skip such snapshots; skipped changes are not seen

An offset is a snapshot and how many of its files are done; what came before it is done.
Source: Iceberg's ``SparkMicroBatchStream``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from icesql.engine.spark.worker import ScanJob, pack, run, unpack
from icesql.errors import ProgrammingError, SnapshotNotFoundError, UnsupportedTableError
from icesql.scan.incremental import added_files, ancestors
from icesql.scan.packing import Packing, pack_files
from icesql.scan.planner import scan_context
from icesql.scan.task import CombinedScanTask, FileScanTask

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.catalog.open import Table
    from icesql.engine.spark.table import TableSource
    from icesql.iceberg.data_file import DataFile
    from icesql.iceberg.snapshot import Snapshot


def _available_now() -> Any:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # before PySpark 4.2
        return object
    return SupportsTriggerAvailableNow


_AvailableNow: Any = _available_now()

# The offset of a table that has no snapshot yet.
_NOTHING: Final = {"snapshot_id": -1, "files": 0}
_MODES: Final = ("fail", "skip")


@dataclass(frozen=True)
class _Limits:
    files: int | None = None
    rows: int | None = None


def _done(snapshot: Snapshot, files: int) -> dict[str, int]:
    """The offset after all of a snapshot; at least one, since 0 is before all of it."""
    return {"snapshot_id": snapshot.snapshot_id, "files": max(1, files)}


class IcesqlStreamReader(DataSourceStreamReader, _AvailableNow):  # type: ignore[misc, unused-ignore]
    """Micro batches of appended files."""

    def __init__(self, source: TableSource) -> None:
        self._source = source
        self._schema = source.scan(source.table()).schema
        self._target: dict[str, int] | None = None
        self._skip = {
            operation: self._mode(f"on-{operation}") == "skip"
            for operation in ("overwrite", "delete")
        }
        self._limits = _Limits(
            self._number("max-files-per-batch"), self._number("max-rows-per-batch")
        )

    # ------------------------------------------------------------------ offsets

    def initialOffset(self) -> dict[str, int]:
        """Where a new query starts; a restarted one goes on from its checkpoint."""
        table = self._source.table()
        history = self._history(table)
        start = self._source.option("stream-from")
        instant = self._source.option("stream-from-timestamp")
        if start is not None and instant is not None:
            raise ProgrammingError("give one of stream-from and stream-from-timestamp, not both")
        if instant is not None:
            return self._from_instant(table, history, int(instant))
        if start in (None, "earliest"):
            return {"snapshot_id": history[0].snapshot_id, "files": 0} if history else _NOTHING
        if start == "latest":
            return self._end_of(table, history[-1]) if history else _NOTHING
        if not str(start).isdigit():
            raise ProgrammingError(
                f'option "stream-from": {start!r} is not earliest, latest or a snapshot id'
            )
        self._position(table, history, {"snapshot_id": int(str(start)), "files": 0})
        return {"snapshot_id": int(str(start)), "files": 0}

    def _from_instant(
        self, table: Table, history: Sequence[Snapshot], timestamp_ms: int
    ) -> dict[str, int]:
        for snapshot in history:
            if snapshot.timestamp_ms >= timestamp_ms:
                return {"snapshot_id": snapshot.snapshot_id, "files": 0}
        # Nothing is that new yet: wait for what comes.
        return self._end_of(table, history[-1]) if history else _NOTHING

    def _end_of(self, table: Table, snapshot: Snapshot) -> dict[str, int]:
        return _done(snapshot, len(added_files(table, snapshot, self._source.query())))

    def latestOffset(
        self, start: dict[str, int] | None = None, limit: Any = None
    ) -> dict[str, int]:
        """The offset up to which the next batch may read; ``start`` when there is nothing new."""
        start = start or self.initialOffset()
        limits = self._limits
        if limit is None or type(limit).__name__ == "ReadAllAvailable":
            limits = _Limits()
        table = self._source.table()
        files = rows = 0
        end = start
        for snapshot, first, added in self._new(table, start, self._target):
            for number, file in enumerate(added[first:], start=first):
                files, rows = files + 1, rows + max(0, file.record_count)
                over = (limits.files is not None and files > limits.files) or (
                    limits.rows is not None and rows > limits.rows and files > 1
                )
                if over:
                    return end
                end = {"snapshot_id": snapshot.snapshot_id, "files": number + 1}
            end = _done(snapshot, max(len(added), first))
            if self._target is not None and snapshot.snapshot_id == self._target["snapshot_id"]:
                break
        return end

    def getDefaultReadLimit(self) -> Any:
        """The limits of the options, as far as Spark has words for them."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, ReadMaxRows

        if self._limits.files is not None:
            return ReadMaxFiles(self._limits.files)
        if self._limits.rows is not None:
            return ReadMaxRows(self._limits.rows)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """What is there now is all that this run reads."""
        table = self._source.table()
        history = self._history(table)
        self._target = self._end_of(table, history[-1]) if history else dict(_NOTHING)

    # ------------------------------------------------------------------ batches

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The files after ``start`` up to ``end``, in combined tasks."""
        if start == end:
            return []
        table = self._source.table()
        tasks: list[FileScanTask] = []
        for snapshot, first, added in self._new(table, start, end):
            last = end["files"] if snapshot.snapshot_id == end["snapshot_id"] else len(added)
            tasks += [FileScanTask(file, 0, file.file_size_in_bytes) for file in added[first:last]]
        from icesql.scan.table_scan import TableScan

        projection = self._source.projection(self._schema)
        context = scan_context(TableScan(table, None, self._schema, projection))
        packing = Packing.choose(self._source.query().settings, table.metadata.properties)
        return [
            InputPartition(pack(ScanJob(CombinedScanTask(group, context))))
            for group in pack_files(tasks, packing)
        ]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of one partition; of an empty one, which Spark makes when there are none."""
        if partition is None or partition.value is None:
            return iter(())
        return run(unpack(partition.value))

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to do: Spark's checkpoint remembers."""

    def stop(self) -> None:
        """Nothing is open."""

    # ------------------------------------------------------------------ history

    def _history(self, table: Table) -> tuple[Snapshot, ...]:
        branch = self._source.option("branch")
        if branch is None:
            return ancestors(table, table.metadata.current_snapshot)
        ref = table.metadata.refs.get(branch)
        if ref is None or ref.kind != "branch":
            raise SnapshotNotFoundError(f'branch "{branch}"', table=table.name)
        return ancestors(table, table.metadata.snapshot(ref.snapshot_id))

    def _position(self, table: Table, history: Sequence[Snapshot], offset: dict[str, int]) -> int:
        """Where the snapshot of an offset stands; raises when the history has lost it."""
        if offset["snapshot_id"] == _NOTHING["snapshot_id"]:
            return 0
        for at, snapshot in enumerate(history):
            if snapshot.snapshot_id == offset["snapshot_id"]:
                return at
        raise SnapshotNotFoundError(
            f"snapshot {offset['snapshot_id']}, where the stream stands,",
            table=table.name,
            hint="it was expired or rolled back; start anew with another checkpoint",
        )

    def _new(
        self, table: Table, start: dict[str, int], end: dict[str, int] | None
    ) -> Iterator[tuple[Snapshot, int, tuple[DataFile, ...]]]:
        """(snapshot, files already done, all its added files) from ``start`` to ``end``."""
        history = self._history(table)
        if end is not None and end["snapshot_id"] == _NOTHING["snapshot_id"]:
            return
        first = self._position(table, history, start)
        last = len(history) - 1 if end is None else self._position(table, history, end)
        for snapshot in history[first : last + 1]:
            resumed = snapshot.snapshot_id == start["snapshot_id"]
            done = start["files"] if resumed else 0
            added = self._added(table, snapshot, resumed=resumed and done > 0)
            yield snapshot, done, added

    def _added(self, table: Table, snapshot: Snapshot, *, resumed: bool) -> tuple[DataFile, ...]:
        operation = snapshot.operation or "append"
        if operation == "append":
            return added_files(table, snapshot, self._source.query())
        if operation == "replace" or self._skip.get(operation, False):
            return ()
        if resumed:
            # The stream began after this snapshot.
            return added_files(table, snapshot, self._source.query())
        raise UnsupportedTableError(
            f"a stream over snapshot {snapshot.snapshot_id}, whose operation is {operation}",
            table=table.name,
            hint=f'option("on-{operation}", "skip") leaves it out, and what it changed with it',
        )

    # ------------------------------------------------------------------ options

    def _mode(self, name: str) -> str:
        text = (self._source.option(name) or "fail").lower()
        if text not in _MODES:
            raise ProgrammingError(f'option "{name}": {text!r} is not fail or skip')
        return text

    def _number(self, name: str) -> int | None:
        text = self._source.option(name)
        if text is None:
            return None
        if not text.isdigit() or int(text) == 0:
            raise ProgrammingError(f'option "{name}": {text!r} is not a positive number')
        return int(text)
