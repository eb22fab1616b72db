"""Notice two files of a scan that stand in each other's place."""

from __future__ import annotations

import os
from collections.abc import Iterable

from icesql.errors import CorruptFileError
from icesql.scan.task import FileScanTask
from icesql.storage.open import Storage


def refuse_swapped_files(tasks: Iterable[FileScanTask], storage: Storage) -> None:
    """Raises CorruptFileError for two local files, each of the length recorded for the other.

    Lengths alone prove nothing, as some writers record wrong ones; this exchange is no accident.
    A swapped file would be pruned by another file's bounds and lose another file's rows.
    """
    recorded: dict[str, int] = {}
    for task in tasks:
        for file in (task.data_file, *task.deletes):
            location = storage.local_path(file.path)
            if location is not None:
                recorded[location] = file.file_size_in_bytes
    if len(recorded) < 2:
        return
    odd: dict[tuple[int, int], str] = {}
    for location, length in recorded.items():
        try:
            actual = os.stat(location).st_size
        except OSError:
            continue  # reading it will say so
        if actual == length:
            continue
        other = odd.get((actual, length))
        if other is not None:
            raise CorruptFileError(
                location,
                f"it has the length recorded for {other}, which has that of this file: "
                "one is in the other's place",
            )
        odd[length, actual] = location
