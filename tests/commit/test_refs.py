"""Branches, tags, and going back and forth between snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from icesql.commit.append import commit_append
from icesql.commit.change import change_table
from icesql.commit.refs import (
    cherry_pick,
    create_ref,
    drop_ref,
    fast_forward,
    rollback_to_snapshot,
    rollback_to_timestamp,
    set_current_snapshot,
)  # fmt: skip
from icesql.errors import CatalogError, ProgrammingError, SnapshotNotFoundError
from icesql.maintain.expire import expire_snapshots
from tests.commit.tables import create, directory, entries, fake, head, live, manifests, written
from tests.commit.test_rows import in_table, overwritten


@pytest.fixture
def catalog(tmp_path: Path):
    return directory(tmp_path)


def appended(catalog, table, *names, branch="main"):
    done = commit_append(catalog, table, [fake(name) for name in names], branch=branch)
    return done.table, done.snapshot_id


def changed(catalog, table, make):
    return change_table(catalog, table, make).table


def test_refs_are_made_replaced_and_dropped(catalog) -> None:
    table = create(catalog)
    with pytest.raises(ProgrammingError, match="no snapshot yet"):
        changed(catalog, table, create_ref("b", "branch"))
    table, first = appended(catalog, table, "a")
    table = changed(catalog, table, create_ref("v1", "tag", max_ref_age_ms=5))
    table, second = appended(catalog, table, "b")
    table = changed(catalog, table, create_ref("b", "branch", min_snapshots_to_keep=3))
    assert {name: each.snapshot_id for name, each in table.metadata.refs.items()} == {
        "main": second, "v1": first, "b": second,
    }  # fmt: skip
    assert table.metadata.refs["b"].min_snapshots_to_keep == 3
    for make, told in (
        (create_ref("v1", "tag"), "already exists"), (create_ref("v1", "branch"), "is a tag"),
        (create_ref("n", "tag", must_exist=True), "to replace"), (drop_ref("main", "branch"), "main"),
        (drop_ref("v1", "branch"), "no branch"), (drop_ref("n", "tag"), "no tag"),
    ):  # fmt: skip
        with pytest.raises(ProgrammingError, match=told):
            changed(catalog, table, make)
    before = table.metadata_location
    for make in (create_ref("v1", "tag", if_exists="keep"), drop_ref("n", "tag", if_exists=True)):
        assert changed(catalog, table, make).metadata_location == before
    table = changed(catalog, table, create_ref("v1", "tag", if_exists="replace"))
    assert table.metadata.refs["v1"].snapshot_id == second
    table = changed(catalog, table, drop_ref("v1", "tag"))
    assert "v1" not in table.metadata.refs
    with pytest.raises(SnapshotNotFoundError):
        changed(catalog, table, create_ref("x", "tag", snapshot_id=7))


def test_an_append_after_a_rollback_goes_on_counting(catalog) -> None:
    table, first = appended(catalog, create(catalog), "a")
    table, second = appended(catalog, table, "b")
    table = changed(catalog, table, rollback_to_snapshot(first))
    assert live(table) == {"a"}
    assert table.metadata.snapshot_log[-1].snapshot_id == first
    table, _ = appended(catalog, table, "c")
    assert head(table).sequence_number == 3
    with pytest.raises(ProgrammingError, match="did not lead to"):
        changed(catalog, table, rollback_to_snapshot(second))
    assert live(changed(catalog, table, set_current_snapshot(second))) == {"a", "b"}


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


def test_a_branch_is_published_by_fast_forward(catalog) -> None:
    table, _ = appended(catalog, create(catalog), "a")
    table, audited = appended(catalog, table, "b", branch="audit")
    forward = changed(catalog, table, fast_forward("main", "audit"))
    assert forward.metadata.current_snapshot_id == audited
    same = changed(catalog, forward, fast_forward("main", "audit"))
    assert same.metadata_location == forward.metadata_location
    made = changed(catalog, forward, fast_forward("new", "audit"))
    assert made.metadata.refs["new"].snapshot_id == audited
    table, _ = appended(catalog, made, "c")
    table, _ = appended(catalog, table, "d", branch="audit")
    with pytest.raises(ProgrammingError, match="snapshots of its own"):
        changed(catalog, table, fast_forward("main", "audit"))


def test_appended_rows_are_picked_with_new_numbers(catalog) -> None:
    # Java's vectors: A 125 rows, B 100 on a branch, C 90, then B is picked.
    table = commit_append(catalog, create(catalog, version=3), [fake("a", rows=125)]).table
    done = commit_append(
        catalog, table, [fake("b", rows=100)], branch="audit", summary={"wap.id": "w"}
    )
    table = commit_append(catalog, done.table, [fake("c", rows=90)]).table
    picked = cherry_pick(catalog, table, done.snapshot_id)
    assert live(picked.table) == {"a", "b", "c"}
    assert picked.summary["source-snapshot-id"] == str(done.snapshot_id)
    assert picked.summary["published-wap-id"] == "w"
    (b,) = in_table(picked.table, "b")
    assert (b.sequence_number, b.first_row_id) == (4, 315)
    assert picked.table.metadata.next_row_id == 415
    with pytest.raises(ProgrammingError, match="was picked already"):
        cherry_pick(catalog, picked.table, done.snapshot_id)
    again = commit_append(
        catalog, picked.table, [fake("d")], branch="audit", summary={"wap.id": "w"}
    )
    with pytest.raises(ProgrammingError, match="published already"):
        cherry_pick(catalog, again.table, again.snapshot_id)


class Meanwhile:
    """A catalog in which something happens before its first swap, or instead of it."""

    def __init__(self, catalog, happens):
        self.catalog, self.happens = catalog, happens

    def __getattr__(self, name):
        return getattr(self.catalog, name)

    def swap(self, identifier, base, change):
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()
        return self.catalog.swap(identifier, base, change)


def forked(catalog):
    """A table with one appended snapshot on a branch, which main has gone past."""
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
        cherry_pick(Meanwhile(catalog, fails), table, audited)
    assert file.exists()


def test_a_snapshot_that_two_sessions_pick_is_there_once(catalog) -> None:
    table, audited, file = forked(catalog)
    first = Meanwhile(catalog, lambda: cherry_pick(catalog, table, audited))
    with pytest.raises(ProgrammingError, match="was picked already"):
        cherry_pick(first, table, audited)
    assert live(catalog.load(("ns", "t"))) == {"a", "b", "c"}
    assert file.exists()


def test_a_snapshot_that_is_expired_meanwhile_is_not_picked(catalog) -> None:
    table, audited, _ = forked(catalog)

    def expired():
        gone = changed(catalog, table, drop_ref("audit", "branch"))
        expire_snapshots(catalog, gone, snapshot_ids=[audited])

    with pytest.raises(SnapshotNotFoundError):
        cherry_pick(Meanwhile(catalog, expired), table, audited)
    assert live(catalog.load(("ns", "t"))) == {"a", "c"}


def test_what_follows_main_becomes_it(catalog) -> None:
    table, _ = appended(catalog, create(catalog), "a")
    table, audited = appended(catalog, table, "b", branch="audit")
    count = len(table.metadata.snapshots)
    done = cherry_pick(catalog, table, audited)
    assert done.table.metadata.current_snapshot_id == audited
    assert len(done.table.metadata.snapshots) == count
    with pytest.raises(ProgrammingError, match="part of main already"):
        cherry_pick(catalog, done.table, audited)


def test_other_changes_are_not_picked_out_of_their_place(catalog) -> None:
    table, start = appended(catalog, create(catalog), "a", "b")
    forked = changed(catalog, table, create_ref("audit", "branch"))
    done = overwritten(catalog, forked, in_table(table, "a"), [], branch="audit", start_id=start)
    table, _ = appended(catalog, done.table, "c")
    with pytest.raises(ProgrammingError, match="does not follow the head"):
        cherry_pick(catalog, table, done.snapshot_id)
    assert manifests(table)
    assert entries(table)
