"""Branches, tags, and going back and forth between snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from icesql.commit.file_changes import change_table
from icesql.commit.refs import (
    cherry_pick,
    drop_ref,
    rollback_to_timestamp,
)  # fmt: skip
from icesql.commit.rows import commit_append
from icesql.errors import CatalogError, ProgrammingError, SnapshotNotFoundError
from icesql.maintain.expire import expire_snapshots
from tests.commit.tables import Overtaken, create, directory, fake, head, live, written


@pytest.fixture
def catalog(tmp_path):
    return directory(tmp_path)


def appended(catalog, table, name):
    done = commit_append(catalog, table, [fake(name)])
    return done.table, done.snapshot_id


def changed(catalog, table, make):
    return change_table(catalog, table, make).table


def test_a_rollback_to_a_time_is_strictly_before_it(catalog) -> None:
    table, first = appended(catalog, create(catalog), "a")
    table, _ = appended(catalog, table, "b")
    moments = [each.timestamp_ms for each in table.metadata.snapshots.values()]
    if moments[0] == moments[1]:
        pytest.skip("two commits in one millisecond")
    back = changed(catalog, table, rollback_to_timestamp(moments[1]))
    assert back.metadata.current_snapshot_id == first
    with pytest.raises(SnapshotNotFoundError):
        changed(catalog, back, rollback_to_timestamp(moments[0]))


def test_snapshots_that_are_their_own_ancestors_end(catalog) -> None:
    table, first = appended(catalog, create(catalog), "a")
    own = replace(head(table), parent_snapshot_id=first)
    metadata = replace(table.metadata, snapshots={first: own})
    with pytest.raises(SnapshotNotFoundError):
        rollback_to_timestamp(own.timestamp_ms)(metadata)
    with pytest.raises(ProgrammingError, match="part of main"):
        cherry_pick(catalog, replace(table, metadata=metadata), first)


def forked(catalog):
    """A table with one appended snapshot on a branch, and later snapshots on main."""
    table, _ = appended(catalog, create(catalog), "a")
    done = commit_append(catalog, table, [written(table, "b", [(1, "x")])], branch="audit")
    table, _ = appended(catalog, done.table, "c")
    (file,) = Path(table.metadata.location).rglob("b.parquet")
    return table, done.snapshot_id, file


def test_a_pick_that_fails_leaves_the_files_of_the_picked_snapshot(catalog) -> None:
    def fails():
        raise CatalogError("no")

    table, audited, file = forked(catalog)
    with pytest.raises(CatalogError):
        cherry_pick(Overtaken(catalog, fails), table, audited)
    assert file.exists()


def test_a_snapshot_that_is_expired_meanwhile_is_not_picked(catalog) -> None:
    table, audited, _ = forked(catalog)

    def expired():
        gone = changed(catalog, table, drop_ref("audit", "branch"))
        expire_snapshots(catalog, gone, snapshot_ids=[audited])

    with pytest.raises(SnapshotNotFoundError):
        cherry_pick(Overtaken(catalog, expired), table, audited)
    assert live(catalog.load(("ns", "t"))) == {"a", "c"}
