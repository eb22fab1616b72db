"""Merge-on-read: write delete files and deletion vectors for deleted rows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.engine.threads.pool import thread_pool
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.modify.rows.changes import GoneRows, as_positions
from icesql.read.deletes.positions import PositionDeletes
from icesql.storage.open import Storage
from icesql.storage.uncommitted import Uncommitted
from icesql.write.deletion_vectors import as_bitmap
from icesql.write.position_deletes import write_deletes
from icesql.write.written import Written

if TYPE_CHECKING:
    from icesql.scan.tasks.task import FileScanTask, ScanContext

# A store takes milliseconds for each request; meanwhile other threads write other files.
_WRITERS: Final = 16


def write_delete_files(
    metadata: TableMetadata,
    storage: Storage,
    tasks: Sequence[FileScanTask],
    context: ScanContext,
    gone: GoneRows,
    query: QueryContext,
    operation: str,
) -> Written:
    """Write a delete file (v2) or vector (v3) for each data file that loses some of its rows.

    Older deletes that the new ones include are removed; so are data files with no row left, with
    their vectors. A vector includes all positions deleted before; a delete file includes those of
    earlier delete files for this data file alone. ``operation`` makes file names unique. If
    anything fails, no file is left.
    """
    vectors = metadata.format_version > 2

    def of_file(number: int, task: FileScanTask) -> Written:
        query.check()
        file = task.data_file
        older = [each for each in task.deletes if each.content is FileContent.POSITION_DELETES]
        replaced = tuple(each for each in older if _is_of(each, file))
        known = tuple(older) if vectors else replaced
        positions = gone.bitmap(file.path)
        if known:
            alone = replace(task, deletes=known)
            found = PositionDeletes(context, (alone,), query).positions(alone)
            if found is not None:
                positions = positions | as_bitmap(found)
        if len(positions) == file.record_count:
            return Written(removed=(file, *replaced))
        rows = as_positions(positions)
        made = write_deletes(metadata, storage, [(file, rows)], operation, number + 1)
        new.take([made.path])
        return Written(deletes=(made,), removed=replaced, referenced=(file.path,))

    # The pool's threads end before ``Uncommitted`` removes their files.
    with Uncommitted(storage) as new, thread_pool(_WRITERS, "icesql-deletes") as pool:
        made = [pool.submit(of_file, n, task) for n, task in enumerate(tasks)]
        while wait(made, timeout=0.1, return_when=FIRST_EXCEPTION).not_done:
            query.check()
            if any(each.done() and each.exception() for each in made):
                break
        written = Written.of(each.result() for each in made)
        new.hand_over()
    return written


def _is_of(delete: DataFile, file: DataFile) -> bool:
    """True if position deletes are for one data file only, as far as the manifest shows.

    A vector always is, however it spells the path.
    """
    return delete.is_deletion_vector or delete.referenced_data_file == file.path
