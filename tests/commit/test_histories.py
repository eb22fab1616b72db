"""Random histories: what snapshots and manifest lists say is what their manifests hold."""

from __future__ import annotations

import itertools
import random

import pytest

from icesql.commit.rows import commit_append, commit_overwrite, commit_rewrite, commit_row_delta
from icesql.iceberg.manifest.data_file import FileContent
from icesql.iceberg.manifest.manifest import ManifestContent
from tests.commit.tables import create, directory, entries, fake, fake_deletes, head, manifests


def live_files(table):
    return [
        each.data_file(index)
        for each in entries(table)
        for index in range(each.count)
        if each.status[index] != 2
    ]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_told_is_what_is_there(version, seed, tmp_path) -> None:
    chance, catalog = random.Random(seed), directory(tmp_path)
    table = create(
        catalog, version=version, partitioned=True, **{"commit.manifest.min-count-to-merge": "3"}
    )
    for number in range(14):
        files = live_files(table) if table.metadata.current_snapshot_id else []
        data = [each for each in files if each.content is FileContent.DATA]
        step = (
            chance.choice(("append", "append", "overwrite", "delta", "compact"))
            if data
            else "append"
        )
        start = table.metadata.current_snapshot_id
        new = [
            fake(f"{number}-{n}", partition=(chance.choice("xyz"),), rows=chance.randint(5, 9), size=chance.randint(10, 99))
            for n in range(chance.randint(1, 3))
        ]  # fmt: skip
        one = chance.choice(data) if data else None
        match step:
            case "append":
                done = commit_append(catalog, table, new)
            case "overwrite":
                gone = vectors_of(files, one) if version == 3 else []
                done = commit_overwrite(
                    catalog, table, added=new, removed=[one, *gone], start_id=start
                )
            case "delta":
                old = vectors_of(files, one) if version == 3 else []
                deleted = fake_deletes(
                    f"d{number}", partition=one.partition, rows=1 + sum(o.record_count for o in old),
                    **({"vector_of": one.path} if version == 3 else {"referenced_data_file": one.path}),
                )  # fmt: skip
                done = commit_row_delta(
                    catalog, table, deletes=[deleted], removed=old, referenced=[one.path],
                    start_id=start, command="delete",
                )  # fmt: skip
            case _:
                gone = vectors_of(files, one) if version == 3 else []
                live = one.record_count - sum(each.record_count for each in gone)
                same = fake(f"{number}-c", partition=one.partition, rows=live)
                done = commit_rewrite(
                    catalog, table, added=[same], removed=[one, *gone], start_id=start
                )
        table = done.table
        check(table, version)


def vectors_of(files, data):
    return [
        each for each in files if each.is_deletion_vector and each.referenced_data_file == data.path
    ]


def check(table, version) -> None:
    files = live_files(table)
    data = [each for each in files if each.content is FileContent.DATA]
    deletes = [each for each in files if each.content is not FileContent.DATA]
    told = head(table).summary
    size = sum(
        d.content_size_in_bytes if d.is_deletion_vector else d.file_size_in_bytes for d in files
    )
    assert {key: int(text) for key, text in told.items() if key.startswith("total-")} == {
        "total-records": sum(each.record_count for each in data),
        "total-data-files": len(data),
        "total-delete-files": len(deletes),
        "total-position-deletes": sum(each.record_count for each in deletes),
        "total-equality-deletes": 0,
        "total-files-size": size,
    }
    for manifest, found in zip(manifests(table), entries(table), strict=True):
        statuses = [found.status.count(status) for status in (0, 1, 2)]
        assert statuses == [
            manifest.existing_files_count, manifest.added_files_count, manifest.deleted_files_count,
        ]  # fmt: skip
        numbers = [n for n, s in zip(found.sequence_number, found.status, strict=True) if s != 2]
        assert manifest.min_sequence_number == min(numbers, default=manifest.sequence_number)
        assert all(
            own == manifest.added_snapshot_id
            for own, status in zip(found.snapshot_id, found.status, strict=True)
            if status != 0
        )
    if version == 3:
        ranges = sorted((each.first_row_id, each.first_row_id + each.record_count) for each in data)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ranges))
        assert not ranges or ranges[-1][1] <= table.metadata.next_row_id
        assert all(
            (each.first_row_id is None) == (each.content is ManifestContent.DELETES)
            for each in manifests(table)
        )
        vectors = [each.referenced_data_file for each in deletes]
        assert len(vectors) == len({*vectors})
        assert {*vectors} <= {each.path for each in data}
