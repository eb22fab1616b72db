"""Appends: what other readers see, conflicts, retries, and what is left behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icesql.catalog.writes.change import Conflict, Done, Unknown
from icesql.commit.rows import commit_append
from icesql.context import QueryContext
from icesql.errors import CatalogError, CommitConflictError, CommitStateUnknownError
from tests.commit.tables import (
    CATALOGS,
    create,
    fake,
    files_on_disk,
    head,
    live,
    sqlite,
    written,
)  # fmt: skip


@pytest.fixture(params=CATALOGS)
def catalog(request, tmp_path):
    return CATALOGS[request.param](tmp_path)


class Odd:
    """A catalog whose first swaps have the given outcomes, one each; later swaps are real."""

    def __init__(self, catalog, *outcomes):
        self.catalog, self.outcomes, self.swaps = catalog, list(outcomes), 0

    def __getattr__(self, name):
        return getattr(self.catalog, name)

    def swap(self, identifier, base, change):
        self.swaps += 1
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is None:
            return self.catalog.swap(identifier, base, change)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome(identifier, base, change) if callable(outcome) else outcome


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_that_were_appended_are_read(catalog, version) -> None:
    import icesql

    table = create(catalog, version=version, partitioned=True)
    first = [
        written(table, "a", [(1, "x"), (2, "x")], ("x",)),
        written(table, "b", [(3, None)], (None,)),
    ]
    one = commit_append(catalog, table, first, query=QueryContext(summary={"who": "me"}))
    two = commit_append(catalog, one.table, [written(table, "c", [(4, "y")], ("y",))])
    assert two.snapshot_id == two.table.metadata.current_snapshot_id
    assert two.metadata_location == catalog.load(("ns", "t")).metadata_location
    assert one.summary["operation"] == "append"
    assert one.summary["who"] == "me"
    assert two.summary["total-records"] == "4"
    with icesql.connect(tables_by_path=True) as connection:
        found = connection.execute(
            f"SELECT id, p FROM iceberg_scan('{two.metadata_location}') ORDER BY id"
        ).fetchall()
        assert found == [(1, "x"), (2, "x"), (3, None), (4, "y")]
        pruned = connection.execute(
            f"SELECT id FROM iceberg_scan('{two.metadata_location}') WHERE p = 'y'"
        ).fetchall()
        assert pruned == [(4,)]


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_what_was_appended(tmp_path, version) -> None:
    from pyiceberg.table import StaticTable

    catalog = sqlite(tmp_path)
    table = create(catalog, version=version, partitioned=True)
    table = commit_append(catalog, table, [written(table, "a", [(1, "x")], ("x",))]).table
    table = commit_append(catalog, table, [written(table, "b", [(2, None)], (None,))]).table
    theirs = StaticTable.from_metadata(table.metadata_location)
    assert sorted(theirs.scan().to_arrow()["id"].to_pylist()) == [1, 2]
    assert theirs.scan("p = 'x'").to_arrow()["id"].to_pylist() == [1]
    assert len(theirs.history()) == 2


def test_a_catalog_of_pyiceberg_goes_on_after_our_commit(tmp_path) -> None:
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = sqlite(tmp_path)
    table = create(catalog)
    table = commit_append(catalog, table, [written(table, "a", [(1, "x")])]).table
    theirs = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    foreign = theirs.load_table("ns.t")
    foreign.append(pa.table({"id": pa.array([2], pa.int64()), "p": ["y"]}))
    theirs.close()
    table = catalog.load(("ns", "t"))
    after = commit_append(catalog, table, [written(table, "c", [(3, "z")])])
    assert after.summary["total-records"] == "3"
    assert len(live(after.table)) == 3


def test_the_metadata_of_a_commit_follows_its_base(catalog) -> None:
    table = create(catalog)
    after = commit_append(catalog, table, [fake("a")]).table
    (entry,) = after.metadata.metadata_log
    assert entry.metadata_file.endswith(table.metadata_location.rpartition("/")[2])
    assert entry.timestamp_ms == table.metadata.last_updated_ms
    snapshot = head(after)
    assert snapshot.sequence_number == 1
    assert snapshot.manifest_list.rpartition("/")[2].startswith(f"snap-{snapshot.snapshot_id}-1-")
    assert 0 < snapshot.snapshot_id < 1 << 63


def test_all_attempts_may_lose(catalog) -> None:
    table = create(catalog, **{"commit.retry.num-retries": "2"})
    file = written(table, "a", [(1, "x")])
    odd = Odd(catalog, *[Conflict("another was first")] * 5)
    with pytest.raises(CommitConflictError, match="after 3 attempts: another was first"):
        commit_append(odd, table, [file])
    assert odd.swaps == 3
    assert files_on_disk(table, "*.avro") == set()
    assert not Path(file.path).exists(), "the files of a failed commit are deleted"
    assert catalog.load(("ns", "t")).metadata_location == table.metadata_location


def test_an_unknown_outcome_deletes_nothing(catalog, monkeypatch) -> None:
    monkeypatch.setattr("icesql.commit.attempts._STATUS_WAIT_SECONDS", 0.0)
    table = create(catalog)
    file = written(table, "a", [(1, "x")])
    with pytest.raises(CommitStateUnknownError, match="outcome is unknown: it hung up"):
        commit_append(Odd(catalog, Unknown("it hung up")), table, [file])
    assert Path(file.path).exists()
    assert len(files_on_disk(table, "*.avro")) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("bug"), MemoryError()])
def test_what_interrupts_a_swap_leaves_its_outcome_unknown(catalog, error) -> None:
    table = create(catalog)
    file = written(table, "a", [(1, "x")])
    with pytest.raises(CommitStateUnknownError, match="interrupted"):
        commit_append(Odd(catalog, error), table, [file])
    assert Path(file.path).exists()


def test_a_swap_that_was_applied_and_not_answered_is_found(catalog, monkeypatch) -> None:
    monkeypatch.setattr("icesql.commit.attempts._STATUS_WAIT_SECONDS", 0.0)

    def lost_answer(identifier, base, change):
        assert isinstance(catalog.swap(identifier, base, change), Done)
        return Unknown("no answer came")

    table = create(catalog)
    done = commit_append(Odd(catalog, lost_answer), table, [fake("a")])
    assert live(done.table) == {"a"}
    assert len(done.table.metadata.snapshots) == 1


def test_a_conflict_of_a_commit_that_was_applied_is_no_second_commit(catalog) -> None:
    """A proxy may send a request twice: the second response is a conflict with the first."""

    def sent_twice(identifier, base, change):
        assert isinstance(catalog.swap(identifier, base, change), Done)
        return Conflict("the table is no longer there")

    table = create(catalog)
    done = commit_append(Odd(catalog, sent_twice), table, [fake("a")])
    assert len(done.table.metadata.snapshots) == 1
    assert len(files_on_disk(done.table, "*.avro")) == 2


def test_the_last_attempt_may_be_one_that_was_applied(catalog) -> None:
    def sent_twice(identifier, base, change):
        assert isinstance(catalog.swap(identifier, base, change), Done)
        return Conflict("the table is no longer there")

    table = create(catalog, **{"commit.retry.num-retries": "0"})
    file = written(table, "a", [(1, "x")])
    done = commit_append(Odd(catalog, sent_twice), table, [file])
    assert live(done.table) == {"a"}
    assert Path(file.path).exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("bug")])
def test_what_interrupts_the_look_at_an_outcome_deletes_nothing(catalog, error) -> None:
    class Interrupted(Odd):
        def load(self, identifier):
            if self.swaps:
                raise error
            return self.catalog.load(identifier)

    table = create(catalog)
    file = written(table, "a", [(1, "x")])
    with pytest.raises(CommitStateUnknownError, match="it hung up"):
        commit_append(Interrupted(catalog, Unknown("it hung up")), table, [file])
    assert Path(file.path).exists()


def test_an_error_before_the_swap_leaves_nothing(catalog) -> None:
    table = create(catalog)
    file = written(table, "a", [(1, "x")])
    with pytest.raises(CatalogError):
        commit_append(Odd(catalog, CatalogError("no")), table, [file])
    assert files_on_disk(table, "*.avro") == set()
    assert not Path(file.path).exists()


def test_another_table_of_the_name_is_not_written_to(tmp_path) -> None:
    catalog = sqlite(tmp_path)
    table = create(catalog)
    catalog.drop(("ns", "t"))
    catalog.rename(create(catalog, name="u").identifier, ("ns", "t"))
    with pytest.raises(CommitConflictError, match="replaced by another"):
        commit_append(catalog, table, [fake("a")])


def test_partition_counts_are_told_where_they_are_few(catalog) -> None:
    table = create(catalog, partitioned=True, **{"write.summary.partition-limit": "2"})
    files = [
        fake("a", partition=("x y",)),
        fake("b", partition=("x y",)),
        fake("c", partition=(None,)),
    ]
    done = commit_append(catalog, table, files)
    assert done.summary["changed-partition-count"] == "2"
    assert done.summary["partition-summaries-included"] == "true"
    assert done.summary["partitions.p=x+y"] == (
        "added-data-files=2,added-records=2,added-files-size=20"
    )
    assert done.summary["partitions.p=null"].startswith("added-data-files=1")


def test_a_moved_copy_of_a_table_is_not_written_to(tmp_path) -> None:
    import shutil

    from icesql.catalog.open import open_table
    from icesql.errors import UnsupportedTableError

    catalog = CATALOGS["directory"](tmp_path)
    table = create(catalog)
    shutil.copytree(tmp_path / "wh/ns/t", tmp_path / "copy")
    moved = open_table(tmp_path / "copy")
    with pytest.raises(UnsupportedTableError, match="writing to a table that lies in"):
        commit_append(catalog, moved, [fake("a")])
    assert catalog.load(("ns", "t")).metadata_location == table.metadata_location


def test_old_metadata_files_are_deleted_where_the_table_says_so(catalog) -> None:
    short = {"write.metadata.previous-versions-max": "2"}
    table = create(catalog, **short)
    for name in "abcd":
        table = commit_append(catalog, table, [fake(name)]).table
    assert len(files_on_disk(table, "*.metadata.json")) == 5
    table = create(
        catalog, name="u", **short, **{"write.metadata.delete-after-commit.enabled": "true"}
    )
    for name in "abcd":
        table = commit_append(catalog, table, [fake(name)]).table
    left = files_on_disk(table, "*.metadata.json")
    log = {each.metadata_file.rpartition("/")[2] for each in table.metadata.metadata_log}
    assert left == log | {table.metadata_location.rpartition("/")[2]}
    assert len(left) == 3


def test_a_log_that_names_other_files_deletes_none(tmp_path) -> None:
    catalog = sqlite(tmp_path)
    table = create(
        catalog, **{"write.metadata.previous-versions-max": "1",
                    "write.metadata.delete-after-commit.enabled": "true"},
    )  # fmt: skip
    file = written(table, "a", [(1, "x")])
    table = commit_append(catalog, table, [file]).table
    place = Path(table.metadata_location)
    document = json.loads(place.read_bytes())
    document["metadata-log"] = [{"timestamp-ms": 1, "metadata-file": file.path}]
    place.write_text(json.dumps(document))
    commit_append(catalog, catalog.load(("ns", "t")), [fake("b")])
    assert Path(file.path).exists()
