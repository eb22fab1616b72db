"""The numbers that replace sequence numbers give exactly the pairs of the plan."""

from __future__ import annotations

import random
import time

import pytest

from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.read.deletes.equality_keys import chains
from icesql.scan.tasks import FileScanTask


def file(content: FileContent, path: str) -> DataFile:
    return DataFile(content, path, "PARQUET", 0, (), 1, 1)


def numbered(paired: list[list[bool]]) -> int:
    """The number of chains for a matrix of data files × deletes, which they must reproduce."""
    count = len(paired[0])
    deletes = [file(FileContent.EQUALITY_DELETES, f"d{n}") for n in range(count)]
    tasks = [
        FileScanTask(
            file(FileContent.DATA, f"f{n}"),
            0,
            1,
            tuple(delete for delete, is_paired in zip(deletes, row, strict=True) if is_paired),
        )
        for n, row in enumerate(paired)
    ]
    found = chains(deletes, tasks)
    assert sorted(each.path for chain in found for each in chain.deletes) == sorted(
        each.path for each in deletes
    )
    for chain in found:
        for delete in chain.deletes:
            applied = [
                chain.of_data(task.data_file.path) < chain.delete_numbers[delete.path]
                for task in tasks
            ]
            assert applied == [row[deletes.index(delete)] for row in paired]
    return len(found)


@pytest.mark.parametrize("seed", range(30))
def test_any_pairing_is_reproduced(seed: int) -> None:
    chance = random.Random(seed)
    files, deletes = chance.randint(1, 8), chance.randint(1, 8)
    share = chance.random()
    numbered([[chance.random() < share for _ in range(deletes)] for _ in range(files)])


def test_a_stream_of_upserts_is_one_chain() -> None:
    """Every delete applies to all older files, as sequence numbers would have it."""
    assert numbered([[delete >= data for delete in range(40)] for data in range(40)]) == 1


def test_deletes_of_many_partitions_are_told_apart_at_once() -> None:
    started, count = time.process_time(), 10_000
    deletes = [file(FileContent.EQUALITY_DELETES, f"d{n}") for n in range(count)]
    tasks = [
        FileScanTask(file(FileContent.DATA, f"f{n}"), 0, 1, (each,))
        for n, each in enumerate(deletes)
    ]
    assert len(chains(deletes, tasks)) == count
    assert time.process_time() - started < 15
