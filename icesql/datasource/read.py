"""Plan the reads of ``format("icesql")``: batches of one snapshot, and a table as a stream.

A stream delivers the files that each new snapshot appends, exactly once. Its offset is a snapshot
and the number of its files that are done; all snapshots before it are done. Spark requests the
first offset again when it repeats a first batch, and by then the table may have lost or gained
snapshots. So a stream starts at START, whatever the options are, and the end offset of its first
batch records the snapshot at which it really began.
Source: Iceberg Java ``SparkMicroBatchStream`` and ``InitialOffsetStore``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.datasource.table import MAIN, ReadRequest, predicate_of
from icesql.engine.spark.worker import ScanJob, pack
from icesql.errors import (
    Error,
    ProgrammingError,
    SnapshotNotFoundError,
    UnsupportedSqlError,
    UnsupportedTableError,
)
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.scan.changes import APPEND, added_files, ancestors, operation_of, snapshots_after
from icesql.scan.plan import TableScan
from icesql.scan.planner import plan

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.iceberg.manifest.data_file import DataFile
    from icesql.iceberg.metadata.snapshot import Snapshot
    from icesql.scan.tasks import CombinedScanTask


# The form of offsets in the checkpoint, which Spark keeps as JSON.
Json = dict[str, int]


class Offset(Frozen):
    """``files`` of ``snapshot_id`` are done, and all files of its ancestors.

    The end offset of the first batch has the stream's beginning in ``first``.
    """

    snapshot_id: int
    files: int
    first: Offset | None = None

    def json(self) -> Json:
        """The form that Spark keeps in the checkpoint."""
        found = {"snapshot_id": self.snapshot_id, "files": self.files}
        if self.first is not None:
            found |= {
                "first_snapshot_id": self.first.snapshot_id,
                "first_files": self.first.files,
            }
        return found

    @classmethod
    def of(cls, json: Mapping[str, int]) -> Offset:
        """The offset that ``json`` wrote. Raises ProgrammingError for one of another reader."""
        if not {"snapshot_id", "files"} <= json.keys():
            raise ProgrammingError(
                "the checkpoint was written by another reader than icesql; give the stream one of "
                'its own, and option("stream-from", …) where the other stopped'
            )
        first = None
        if "first_snapshot_id" in json:
            first = cls(json["first_snapshot_id"], json["first_files"])
        return cls(json["snapshot_id"], json["files"], first)

    @property
    def place(self) -> tuple[int, int]:
        """The offset without ``first``."""
        return self.snapshot_id, self.files


# More files than any snapshot has: the end of a snapshot without reading its manifests.
ALL: Final = 2**31 - 1
# The offsets before the start is determined, and before the first snapshot of an empty table.
START: Final = Offset(-1, -1)
EMPTY: Final = Offset(-1, 0)


class Limits(Frozen):
    """The maximum size of a batch; a single file may have more rows."""

    files: int | None = None
    rows: int | None = None

    def exceeded(self, files: int, rows: int) -> bool:
        """True if a batch of this size is too large."""
        return (self.files is not None and files > self.files) or (
            self.rows is not None and rows > self.rows and files > 1
        )


class StreamPlanning:
    """Plans the micro batches of one stream.

    ``takes_limits``: Spark calls for batches within limits. Raises ProgrammingError for options
    of batch reads, UnsupportedSqlError for limits that Spark would not respect.
    """

    def __init__(self, request: ReadRequest, *, takes_limits: bool = True) -> None:
        request.options.check_stream()
        self._request = request
        self._target: Offset | None = None
        if not takes_limits and self.limits != Limits():
            raise UnsupportedSqlError(
                "max-files-per-batch or max-rows-per-batch on this PySpark",
                hint="a stream with limits needs PySpark 4.2 or newer",
            )

    @property
    def limits(self) -> Limits:
        """The limits of a batch, from the options."""
        options = self._request.options
        return Limits(options.max_files_per_batch, options.max_rows_per_batch)

    # ------------------------------------------------------------------ offsets

    def initial(self) -> Json:
        """The first offset of a new query; a restarted query continues from its checkpoint."""
        return START.json()

    def latest(self, start: Json | None, limits: Limits) -> Json:
        """The offset up to which the next batch may read; ``start`` if there is nothing new.

        ``start`` is None before PySpark 4.2, which neither passes it nor supports limits.
        """
        table = self._request.table()
        self._request.columns_now(table, table.metadata.schema)
        history = self._history(table)
        if start is None:
            return self._newest(table, history).json()
        at = Offset.of(start)
        if at.place != START.place:
            end = self._advanced(table, history, at, limits)
            return start if end.place == at.place else end.json()
        begin = self._begin(table, history)
        if begin is None:
            return start
        return replace(self._advanced(table, history, begin, limits), first=begin).json()

    def stop_at_newest(self) -> None:
        """End this run at the snapshot that is the newest now."""
        table = self._request.table()
        self._target = self._end_of(ancestors(table, self._request.head(table)))

    def _begin(self, table: Table, history: Sequence[Snapshot]) -> Offset | None:
        """The first offset by the options; None until a snapshot is new enough for them."""
        options = self._request.options
        if options.stream_from_timestamp is not None:
            for snapshot in history:
                if snapshot.timestamp_ms >= options.stream_from_timestamp:
                    self._check_start(table, history, snapshot)
                    return Offset(snapshot.snapshot_id, 0)
            return None
        if isinstance(options.stream_from, int):
            if all(each.snapshot_id != options.stream_from for each in history):
                raise SnapshotNotFoundError(
                    f"snapshot {options.stream_from} (stream-from) in the history of "
                    f"{options.branch or MAIN}",
                    table=table.name,
                    **_reach(history),
                )
            return Offset(options.stream_from, 0)
        if options.stream_from == "latest":
            return self._end_of(history)
        if not history:
            return EMPTY
        self._check_start(table, history, history[0])
        return Offset(history[0].snapshot_id, 0)

    def _check_start(self, table: Table, history: Sequence[Snapshot], start: Snapshot) -> None:
        """Raise SnapshotNotFoundError if rows before the start belong to expired snapshots."""
        if start is not history[0] or start.parent_snapshot_id is None:
            return
        raise SnapshotNotFoundError(
            f"snapshot {start.parent_snapshot_id}, the parent of the oldest one, in the history of "
            f"{self._request.options.branch or MAIN}",
            table=table.name,
            **_reach(history),
            hint="it is expired, and a stream cannot deliver the rows that came before: read the "
            f'table as of snapshot-id {start.snapshot_id}, and stream on with option("stream-from-'
            f'timestamp", {start.timestamp_ms + 1}); option("stream-from", "{start.snapshot_id}") '
            "goes without them",
        )

    def _newest(self, table: Table, history: Sequence[Snapshot]) -> Offset:
        try:
            begin = self._begin(table, history)
        except SnapshotNotFoundError:
            # A stream that is past its start does not need it.
            return self._end_of(history)
        return START if begin is None else replace(self._end_of(history), first=begin)

    def _end_of(self, history: Sequence[Snapshot]) -> Offset:
        """The offset after the last snapshot."""
        return Offset(history[-1].snapshot_id, ALL) if history else EMPTY

    def _advanced(
        self, table: Table, history: Sequence[Snapshot], start: Offset, limits: Limits
    ) -> Offset:
        """The end of a batch that starts at ``start``.

        A batch with content ends before a snapshot that must not be read; the next batch raises.
        """
        files = rows = 0
        end = start
        for snapshot in history[self._position(table, history, start) :]:
            at = start.files if snapshot.snapshot_id == start.snapshot_id else 0
            try:
                if at == 0:
                    self._request.takes(table, snapshot)
            except UnsupportedTableError:
                if end.place == start.place:
                    raise
                return end
            if limits != Limits():
                for file in self._left(table, snapshot, at):
                    files, rows = files + 1, rows + max(0, file.record_count)
                    if limits.exceeded(files, rows):
                        return end
                    at += 1
                    end = Offset(snapshot.snapshot_id, at)
            end = Offset(snapshot.snapshot_id, ALL)
        return end

    # ------------------------------------------------------------------ batches

    def partitions(self, start: Json, end: Json) -> list[bytes]:
        """The files after ``start`` up to ``end``, as packed jobs."""
        first, last = Offset.of(start), Offset.of(end)
        if first.place == last.place:
            return []
        table = self._request.table()
        columns = self._request.columns_now(table, table.metadata.schema)
        files = list(self._between(table, first, last))
        return [pack(ScanJob(task)) for task in self._request.whole_files(table, files, columns)]

    def _between(self, table: Table, start: Offset, end: Offset) -> Iterator[DataFile]:
        history = ancestors(table, self._request.head(table))
        if start.place == START.place:
            begin = end.first or self._begin(table, history)
            if begin is None or begin.place == end.place:
                return
            start = begin
        if end.place == EMPTY.place:
            return
        first, last = (self._position(table, history, each) for each in (start, end))
        if end.place == START.place or (first, start.files) > (last, end.files):
            # Rows after ``end`` have been read already.
            raise self._lost(f"snapshot {start.snapshot_id}", table, history, start.snapshot_id)
        for snapshot in history[first : last + 1]:
            at = start.files if snapshot.snapshot_id == start.snapshot_id else 0
            upto = end.files if snapshot.snapshot_id == end.snapshot_id else ALL
            yield from self._left(table, snapshot, at)[: upto - at]

    def _left(self, table: Table, snapshot: Snapshot, done: int) -> tuple[DataFile, ...]:
        """The appended files of a snapshot after the first ``done`` of them."""
        if done == 0:
            return self._request.appended(table, snapshot)
        if done == ALL or operation_of(snapshot, table.name) != APPEND:
            # The stream began after this snapshot, or skipped it.
            return ()
        return added_files(table, snapshot, self._request.query())[done:]

    # ------------------------------------------------------------------ history

    def _history(self, table: Table) -> tuple[Snapshot, ...]:
        """The snapshots that a batch may reach, oldest first."""
        history = ancestors(table, self._request.head(table))
        if self._target is None:
            return history
        if self._target.place == EMPTY.place:
            return ()
        return history[: self._position(table, history, self._target) + 1]

    def _position(self, table: Table, history: Sequence[Snapshot], offset: Offset) -> int:
        """The index of an offset's snapshot in the history; raises if the history has lost it."""
        if offset.snapshot_id == EMPTY.snapshot_id:
            if history and history[0].parent_snapshot_id is not None:
                raise self._lost("the first snapshot", table, history)
            return 0
        for at, snapshot in enumerate(history):
            if snapshot.snapshot_id == offset.snapshot_id:
                return at
        raise self._lost(f"snapshot {offset.snapshot_id}", table, history, offset.snapshot_id)

    def _lost(
        self, what: str, table: Table, history: Sequence[Snapshot], snapshot_id: int | None = None
    ) -> SnapshotNotFoundError:
        branch = self._request.options.branch or MAIN
        is_cut = bool(history) and history[0].parent_snapshot_id is not None
        if snapshot_id in table.metadata.snapshots and not is_cut:
            why = "the table was rolled back or replaced, so what was read after that is not in it"
        else:
            why = "it is expired, and with it perhaps rows that were not read yet"
        return SnapshotNotFoundError(
            f"{what}, the stream's position, in the history of {branch}",
            table=table.name,
            **_reach(history),
            hint=f'{why}; start anew with another checkpoint and option("stream-from", …)',
        )


def _reach(history: Sequence[Snapshot]) -> dict[str, str]:
    """The ends of a history, as arguments of errors."""
    if not history:
        return {}
    return {"oldest": str(history[0].snapshot_id), "newest": str(history[-1].snapshot_id)}


# ------------------------------------------------------------------ batches


class BatchPlanning:
    """Plans one read of a table; the table is loaded once, so the read is consistent."""

    def __init__(self, request: ReadRequest) -> None:
        request.options.check_batch()
        self._request = request
        self._filter: Predicate = ALWAYS_TRUE

    @cached_property
    def _table(self) -> Table:
        return self._request.table()

    def push(self, filters: Sequence[Any]) -> None:
        """Prune by these filters of PySpark; Spark evaluates all of them again.

        This needs the option push-filters: Spark up to 4.3 reuses the partitions that one filter
        left for every other scan of the DataFrame, in the same query and in later ones, so
        ``df.where("x = 1").union(df.where("x = 2"))`` would lose rows.
        """
        if self._request.options.push_filters and self._request.fixed is not None:
            self._filter = predicate_of(filters, self._request.fixed.projection)

    def partitions(self) -> list[bytes]:
        """One packed job for each combined task."""
        return [pack(ScanJob(task)) for task in self._tasks()]

    def _tasks(self) -> Sequence[CombinedScanTask]:
        request, table = self._request, self._table
        if request.options.start_snapshot_id is not None:
            columns = request.columns_now(table, table.metadata.schema)
            end = self._end(request.options.end_snapshot_id)
            snapshots = snapshots_after(table, request.options.start_snapshot_id, end)
            files = [file for each in snapshots for file in request.appended(table, each)]
            return request.whole_files(table, files, columns)
        snapshot, schema = request.selected(table)
        columns = request.columns_now(table, schema)
        scan = TableScan(table, snapshot, columns.schema, columns.projection, self._filter)
        return plan(scan, request.query()).tasks

    def _end(self, snapshot_id: int | None) -> Snapshot:
        """The last snapshot of an incremental read: the requested one, or the newest."""
        table = self._table
        head = self._request.head(table)
        if head is None:
            raise SnapshotNotFoundError(
                f"snapshot {self._request.options.start_snapshot_id}",
                table=table.name,
                hint="the table has no snapshot yet",
            )
        if snapshot_id is None:
            return head
        end = table.metadata.snapshot(snapshot_id)
        if end is None:
            raise SnapshotNotFoundError(
                f"snapshot {snapshot_id} (end-snapshot-id)",
                table=table.name,
                newest=str(head.snapshot_id),
            )
        if self._request.options.branch is not None and end not in ancestors(table, head):
            raise ProgrammingError(
                f"snapshot {snapshot_id} is not in branch {self._request.options.branch}"
            )
        return end


# ------------------------------------------------------------------ errors


class ReadError(Exception):
    """An error that Spark shows with a readable last line, after the name of this class.

    Spark puts the text of Python's traceback into its error, and its SQLSTATE right after it, on a
    new line, since each line of a traceback ends with a line end. Notes that are not a list are
    printed unchanged, without a line end, so that icesql's error and the SQLSTATE share a line.
    """

    def __init__(self, error: Error) -> None:
        super().__init__()
        self.error = error
        vars(self)["__notes__"] = self

    def __repr__(self) -> str:
        kind = type(self.error)
        return f"{kind.__module__}.{kind.__qualname__}: {self.error}"
