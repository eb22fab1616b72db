"""What the tasks of one statement have written: read as data, checked, and put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from icesql.errors import InternalError
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.partitioning import partition_types
from icesql.storage.leftovers import remove_leftovers
from icesql.write.described_files import decode_result
from icesql.write.write_task import WriteResult, WriteTask


def collect_results(task: WriteTask, described: Iterable[tuple[bytes, bool]]) -> WriteResult:
    """All files of the tasks, in the order of the tasks.

    Each tells with its files whether others may be left, of a try that was lost: these are removed.

    If anything fails, the files that tasks have finished until then are removed, also those of
    tasks whose description never came. One that still runs may leave a file that no table has.
    """
    types = partition_types(task.spec, task.schema)
    files: list[DataFile] = []
    rows = size = spilled = 0
    lost = False
    try:
        for data, repeated in described:
            lost = lost or repeated
            found = decode_result(data, types)
            files += found.files
            rows, size = rows + found.rows, size + found.bytes
            spilled += found.spilled_bytes
        paths = {each.path for each in files}
        own = all(
            task.operation in path and path.startswith(task.locations.folder) for path in paths
        )
        if len(paths) != len(files) or not own:
            raise InternalError("a task reported files that it cannot have written")
        if lost:
            kept = {each.rpartition("/")[2] for each in paths}
            remove_leftovers(task.storage, task.locations.folder, [task.operation], kept)
    except BaseException:
        remove_leftovers(task.storage, task.locations.folder, [task.operation])
        raise
    return WriteResult(tuple(files), rows, size, spilled)


def check_own(task: WriteTask, files: Sequence[DataFile]) -> None:
    """Raise InternalError for files reported twice, or that ``task`` cannot have written."""
    paths, folder = {each.path for each in files}, task.locations.folder
    own = all(task.operation in path and path.startswith(folder) for path in paths)
    if len(paths) != len(files) or not own:
        raise InternalError("a task reported files that it cannot have written")
