"""The files of one statement's tasks: read as data, checked, and put together."""

from __future__ import annotations

from collections.abc import Iterable

from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.partitioning import partition_types
from icesql.storage.uncommitted import Uncommitted
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
    with Uncommitted(task.storage, task.locations.folder, task.operation) as new:
        for data, repeated in described:
            new.lost = new.lost or repeated
            found = decode_result(data, types)
            new.report(each.path for each in found.files)
            files += found.files
            rows, size = rows + found.rows, size + found.bytes
            spilled += found.spilled_bytes
        new.hand_over()
    return WriteResult(tuple(files), rows, size, spilled)
