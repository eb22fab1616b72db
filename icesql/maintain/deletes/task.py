"""One task of a rewrite of deletes: find the deleted rows, and write their positions.

Picklable, and the same on this machine and in a remote worker. Rows of equality deletes are found
by reading the key columns once, other rows from position deletes; a task returns only descriptions
of files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Final

import msgspec
import numpy as np

from icesql.context import QueryContext
from icesql.engine.side_threads import thread_pool
from icesql.errors import InternalError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.maintain.deletes.plan import DeletesPlan
from icesql.maintain.rewrite.task import numbered_file, read_live_rows
from icesql.read.deletes.scan_deletes import PositionDeletes
from icesql.scan.deletes.delete_index import partition_of
from icesql.scan.deletes.vectors import Positions
from icesql.scan.tasks import CombinedScanTask, FileScanTask, content_bytes
from icesql.storage.new_files import Uncommitted
from icesql.write.deletes import write_deletes
from icesql.write.written import Written, decoding

# Rows whose files are read together: a byte for each, and eight for each deleted one.
_MOST_ROWS: Final = 1 << 26
_FEWEST_ROWS: Final = 1 << 20
_PART_OF_MEMORY: Final = 32
_TASK_BYTES: Final = 128 << 20
# A store takes milliseconds for each request; meanwhile other threads write other files.
_WRITERS: Final = 16
# The most positions that wait to be written.
_MOST_WAITING: Final = 1 << 22


class DeletesTask(Frozen):
    """Some data files with their deletes; ``files`` are their numbers in the plan.

    ``number`` is unique among the tasks of the conversion; ``operation`` makes file names unique.
    ``keys``: look up rows by the keys of equality deletes. ``groups`` has the group of each file,
    if the files of a group share one delete file.
    """

    number: int
    files: tuple[int, ...]
    scan: CombinedScanTask
    metadata: TableMetadata
    operation: str
    keys: bool
    groups: tuple[int, ...]

    def run(self, query: QueryContext, attempt: int) -> Written:
        """See ``work.run.Task``: find the rows of the files, and write their deletes.

        Also raises InternalError for a file with more rows than its metadata says.
        """
        made: list[Future[Written]] = []
        # The pool's threads end before ``Uncommitted`` removes their files.
        with (
            Uncommitted(self.scan.context.storage) as new,
            thread_pool(_WRITERS, "icesql-deletes") as pool,
        ):
            waiting: deque[tuple[int, Future[Written]]] = deque()
            held = 0
            of_groups: dict[int, list[tuple[int, Positions]]] = {}
            for place, taken, rows in _found(self, query):
                if self.groups:
                    of_groups.setdefault(self.groups[place], []).append((place, rows))
                    continue
                while waiting and held + len(rows) > _MOST_WAITING:
                    count, oldest = waiting.popleft()
                    oldest.result()
                    held -= count
                made.append(pool.submit(_written, self, [(place, rows)], taken, attempt, new))
                waiting.append((len(rows), made[-1]))
                held += len(rows)
            for part in of_groups.values():
                count = sum(len(rows) for _, rows in part)
                made += [pool.submit(_written, self, part, count, attempt, new)]
            written = Written.of(each.result() for each in made)
            new.hand_over()
        return written


# For each new delete file: the numbers of its data files in the plan, and how many rows only
# equality deletes deleted. A vector also has the rows of older position deletes.
_Note = tuple[tuple[int, ...], int]
_NOTES: Final = msgspec.msgpack.Decoder(_Note)


def found_by(task: DeletesTask, written: Written) -> dict[int, tuple[DataFile, int]]:
    """The new delete file of each data file of a task, by number, and the row count of its note.

    Raises InternalError for a delete file of a data file that is not the task's, or has another.
    """
    found: dict[int, tuple[DataFile, int]] = {}
    with decoding():
        for delete, note in zip(written.deletes, written.notes, strict=True):
            numbers, rows = _NOTES.decode(note)
            files = [task.scan.tasks[task.files.index(each)].data_file.path for each in numbers]
            if delete.referenced_data_file != (files[0] if len(files) == 1 else None):
                raise ValueError(f"{delete.path} is not of {files[0]}")
            if not found.keys().isdisjoint(numbers):
                raise ValueError(f"{files[0]} has two delete files")
            found |= dict.fromkeys(numbers, (delete, rows))
    return found


def tasks_of(
    plan: DeletesPlan, operation: str, query: QueryContext, slots: int
) -> Iterator[DeletesTask]:
    """The tasks of a plan: each file is in one; files of neighbouring partitions stay together."""
    metadata = plan.table.metadata.without_history()
    most = min(_MOST_ROWS, max(_FEWEST_ROWS, query.settings.memory_limit // _PART_OF_MEMORY))
    rows_of = _rows
    if not plan.keys:
        # Tasks hold positions of eight bytes, not marks.
        most, rows_of = max(_FEWEST_ROWS, most // 8), _most_positions
    for number, part in enumerate(divide(plan.tasks, slots, most, rows_of)):
        files = [numbered_file(place, plan.tasks[each]) for place, each in enumerate(part)]
        scan = CombinedScanTask(tuple(files), plan.context)
        groups = tuple(plan.groups[each] for each in part) if plan.one_file else ()
        yield DeletesTask(number, tuple(part), scan, metadata, operation, plan.keys, groups)


def _rows(task: FileScanTask) -> int:
    return task.data_file.record_count


def _most_positions(task: FileScanTask) -> int:
    named = sum(each.record_count for each in task.deletes)
    return min(named, task.data_file.record_count) if task.data_file.record_count >= 0 else named


def divide(
    tasks: Sequence[FileScanTask],
    slots: int,
    most_rows: int,
    rows_of: Callable[[FileScanTask], int] = _rows,
) -> Iterator[list[int]]:
    """The numbers of files in parts of at most ``most_rows`` rows, or of one file.

    There are as many parts as tasks run at once. Further parts have more bytes of data files than
    of equality deletes, which each part reads again: the total size read does not grow with the
    product of both.
    """
    numbers = sorted(range(len(tasks)), key=lambda each: repr(partition_of(tasks[each].data_file)))
    total = sum(each.length for each in tasks)
    share = -(-total // slots)
    part: list[int] = []
    rows = size = of_deletes = 0
    seen: dict[int, tuple[DataFile, ...]] = {}
    deletes: dict[int, DataFile] = {}
    for number in numbers:
        task = tasks[number]
        is_share = size >= share or size >= max(_TASK_BYTES, of_deletes)
        if part and (rows + rows_of(task) > most_rows or (slots > 1 and is_share)):
            yield part
            part, rows, size, of_deletes = [], 0, 0, 0
            seen, deletes = {}, {}
        part.append(number)
        rows += rows_of(task)
        size += task.length
        if id(task.deletes) not in seen:
            seen[id(task.deletes)] = task.deletes
            deletes |= {id(each): each for each in task.deletes}
            of_deletes = content_bytes([*deletes.values()])
    if part:
        yield part


def _found(task: DeletesTask, query: QueryContext) -> Iterator[tuple[int, int, Positions]]:
    """For each file that loses rows: its index, the number of rows, and their sorted positions.

    With keys, a vector also has the positions of older deletes, which are not counted.
    """
    scan, with_older = task.scan, task.metadata.format_version > 2
    older = PositionDeletes(scan.context, scan.tasks, query)
    if not task.keys:
        for place, each in enumerate(scan.tasks):
            query.check()
            known = older.positions(each)
            if known is not None:
                yield place, len(known), known
        return
    counts = np.array([each.data_file.record_count for each in scan.tasks], np.int64)
    starts = np.concatenate(([0], np.cumsum(counts)))
    gone = np.ones(starts[-1], bool)
    for batch in read_live_rows(scan, query):
        query.check()
        places, positions = (each.to_numpy() for each in batch.columns)
        beyond = positions >= counts[places]
        if beyond.any():
            first = int(np.argmax(beyond))
            file = scan.tasks[int(places[first])].data_file
            raise InternalError(
                f"{file.path} has row {int(positions[first]):,}, and its metadata says "
                f"{file.record_count:,} rows; nothing was committed"
            )
        gone[starts[places] + positions] = False
    for place, each in enumerate(scan.tasks):
        query.check()
        mine = gone[starts[place] : starts[place + 1]]
        known = older.positions(each)
        if known is not None:
            mine[known] = False
        taken = np.count_nonzero(mine)
        if not taken:
            continue
        if with_older and known is not None:
            mine[known] = True
        yield place, int(taken), np.flatnonzero(mine)


def _written(
    task: DeletesTask,
    part: Sequence[tuple[int, Positions]],
    taken: int,
    attempt: int,
    new: Uncommitted,
) -> Written:
    """Write the delete file or vector of one data file, or one delete file for several."""
    deleted = [(task.scan.tasks[place].data_file, rows) for place, rows in part]
    operation = f"{task.operation}-{attempt}" if attempt else task.operation
    number = task.files[part[0][0]] + 1
    made = write_deletes(task.metadata, task.scan.context.storage, deleted, operation, number)
    new.take([made.path])
    note = tuple(task.files[place] for place, _ in part), taken
    return Written(deletes=(made,), notes=(msgspec.msgpack.encode(note),))
