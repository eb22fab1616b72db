"""Number deletes and files so that each delete applies as the plan lists, without sequence numbers.

A catalog that plans a scan names the delete files of every data file and sends no sequence
numbers. icesql numbers the files itself: delete files are put into chains, in each of which every
file applies wherever the ones before it do, and are numbered along the chain. Streams of upserts,
where each delete applies to all older data, stay one chain, and any other pairing is correct as
well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.scan.tasks.task import FileScanTask

# Greater than the number of any delete file: no delete of the chain applies.
NO_DELETES: Final = 1 << 62


class Chain(Frozen):
    """Delete files and their numbers, from 1 on by path; and those of data files by path.

    A delete applies to a data file whose number is smaller.
    """

    deletes: tuple[DataFile, ...]
    delete_numbers: Mapping[str, int]
    data_numbers: Mapping[str, int]

    def of_data(self, path: str) -> int:
        """The number of a data file."""
        return self.data_numbers.get(path, NO_DELETES)


def chains(deletes: Sequence[DataFile], tasks: Iterable[FileScanTask]) -> list[Chain]:
    """The chains of ``deletes`` by the tasks that name them; each delete file is in one."""
    members: dict[str, set[str]] = {each.path: set() for each in deletes}
    for task in tasks:
        for delete in task.deletes:
            if delete.content is FileContent.EQUALITY_DELETES and delete.path in members:
                members[delete.path].add(task.data_file.path)
    ordered = sorted(deletes, key=lambda each: len(members[each.path]))
    found: list[list[DataFile]] = []
    # Chains by one file to which their first delete applies, and so do all of its others: where
    # deletes are of 10,000 partitions there are as many chains, and few that one may go on.
    starting: dict[str | None, list[int]] = {}
    for delete in ordered:
        files = members[delete.path]
        # The longest chain first: that of the stream that made most of the table.
        near = [number for path in (None, *files) for number in starting.get(path, ())]
        for number in sorted(near, key=lambda each: (-len(found[each]), each)):
            if members[found[number][-1].path] <= files:
                found[number].append(delete)
                break
        else:
            starting.setdefault(min(files, default=None), []).append(len(found))
            found.append([delete])
    return [_chain(each, members) for each in found]


def _chain(deletes: Sequence[DataFile], members: Mapping[str, set[str]]) -> Chain:
    delete_numbers: dict[str, int] = {}
    data_numbers: dict[str, int] = {}
    number = 0
    previous: set[str] | None = None
    for delete in deletes:
        of_delete = members[delete.path]
        if of_delete != previous:
            number += 1
            for path in of_delete:
                data_numbers.setdefault(path, number - 1)
            previous = of_delete
        delete_numbers[delete.path] = number
    return Chain(tuple(deletes), delete_numbers, data_numbers)
