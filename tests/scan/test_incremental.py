"""Files that snapshots add: histories, operations, and a stable order of files."""

from __future__ import annotations

from typing import Any

import pytest

from icesql.catalog.open import open_table
from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import CorruptFileError, SnapshotNotFoundError, UnsupportedTableError
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.scan.changes import added_files, ancestors, operation_of, snapshots_after
from tests.writer.table import TableWriter

FIELDS = [{"id": 1, "name": "x", "required": False, "type": "long"}]


def append(writer: TableWriter, *numbers: int, **more: Any) -> int:
    """One snapshot with a file for each number."""
    files = [writer.data_file([{"x": number}]) for number in numbers]
    snapshot_id: int = writer.commit(files, **more)
    return snapshot_id


@pytest.fixture(params=[1, 2, 3])
def writer(request, tmp_path) -> TableWriter:
    return TableWriter(tmp_path / "t", FIELDS, version=request.param)


def snapshot(table: Table, snapshot_id: int) -> Snapshot:
    found = table.metadata.snapshot(snapshot_id)
    assert found is not None
    return found


def ids(snapshots: tuple[Snapshot, ...]) -> list[int]:
    return [each.snapshot_id for each in snapshots]


@pytest.mark.parametrize("rewrite", [True, False])
def test_only_what_a_snapshot_added_is_its_own(writer: TableWriter, rewrite: bool) -> None:
    """Whether the manifests before it were merged into its own or carried on."""
    first = append(writer, 1, 2)
    second = append(writer, 3, 4, 5, rewrite=rewrite)
    third = writer.commit([], [writer.live[0]], "delete", rewrite=rewrite)
    table = open_table(writer.folder)
    for snapshot_id, expected in ((first, 2), (second, 3), (third, 0)):
        files = added_files(table, snapshot(table, snapshot_id), QueryContext())
        again = added_files(open_table(writer.folder), snapshot(table, snapshot_id), QueryContext())
        assert len(files) == expected
        assert [each.path for each in files] == [each.path for each in again]


def test_files_under_another_snapshots_id_are_not_lost_silently(writer: TableWriter) -> None:
    """Metadata that went through a tool which rounds large numbers."""
    append(writer, 1)
    writer.snapshots[0]["summary"]["added-data-files"] = "1"
    writer.snapshots[0]["snapshot-id"] = writer.current = 999
    writer.log[0]["snapshot-id"] = 999
    writer.write_metadata()
    table = open_table(writer.folder)
    with pytest.raises(CorruptFileError, match="says that it added 1 data files"):
        added_files(table, snapshot(table, 999), QueryContext())


def test_an_encrypted_file_is_refused(tmp_path) -> None:
    writer = TableWriter(tmp_path / "t", FIELDS)
    file = writer.data_file([{"x": 1}])
    file.record["key_metadata"] = b"secret"
    writer.commit([file])
    table = open_table(writer.folder)
    with pytest.raises(UnsupportedTableError, match="encrypt"):
        added_files(table, snapshot(table, 1000), QueryContext())


def test_a_history_leaves_out_what_was_rolled_back(writer: TableWriter) -> None:
    first = append(writer, 1)
    rolled_back = append(writer, 2)
    writer.rollback(first)
    third = append(writer, 3)
    table = open_table(writer.folder)
    assert ids(ancestors(table, table.metadata.current_snapshot)) == [first, third]
    assert ids(ancestors(table, snapshot(table, rolled_back))) == [first, rolled_back]
    assert ancestors(table, None) == ()


def test_snapshots_after_one_end_at_the_other(writer: TableWriter) -> None:
    made = [append(writer, number) for number in range(4)]
    table = open_table(writer.folder)
    end = snapshot(table, made[2])
    assert ids(snapshots_after(table, made[0], end)) == made[1:3]
    assert snapshots_after(table, made[2], end) == ()
    with pytest.raises(SnapshotNotFoundError, match="rolled back or belongs to a branch"):
        snapshots_after(table, made[3], end)


def test_an_expired_start_will_do_while_its_successor_is_kept(writer: TableWriter) -> None:
    made = [append(writer, number) for number in range(4)]
    writer.snapshots, writer.log = writer.snapshots[2:], writer.log[2:]
    writer.write_metadata()
    table = open_table(writer.folder)
    end = snapshot(table, made[3])
    assert ids(snapshots_after(table, made[1], end)) == made[2:]
    with pytest.raises(SnapshotNotFoundError, match="is expired or never was"):
        snapshots_after(table, made[0], end)


def test_a_snapshot_that_does_not_say_may_have_done_anything() -> None:
    for operation, expected in (
        ("append", "append"),
        ("replace", "replace"),
        ("DELETE", "delete"),
        (None, "overwrite"),
        ("", "overwrite"),
    ):
        assert operation_of(Snapshot(1, operation=operation), "t") == expected
    with pytest.raises(UnsupportedTableError, match="operation is upsert"):
        operation_of(Snapshot(1, operation="upsert"), "t")
