"""Damage that old writers did, made by hand: it is found, and the advice mends it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import icesql
from icesql.catalog.table import Table
from icesql.commit.change import change_table
from icesql.commit.manifests.store import ManifestStore, OwnFiles
from icesql.commit.rows import commit_row_delta
from icesql.commit.snapshots.branches import moved_ref, new_snapshot_id
from icesql.context import QueryContext
from icesql.health.finding import Finding
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.manifest.writing.list_writer import ListHeader
from icesql.iceberg.manifest.writing.manifest_writer import added_entry, existing_entry
from icesql.iceberg.metadata.changes.updates import AddSnapshot, SetSnapshotRef
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.scan.manifest_reader import ManifestReader
from tests.read.read_tables import (
    data_file,
    equality_deletes,
    facts,
    position_deletes,
    write_parquet,
)

DATA, DELETES = FileContent.DATA, FileContent.POSITION_DELETES


class Ward:
    """A connection and the table ns.t, whose snapshots may also be written by hand."""

    def __init__(self, place: Path) -> None:
        self.folder = str(place)
        self.con = icesql.connect(warehouse=self.folder)
        self.con.execute("CREATE SCHEMA ns")

    def create(self, version: int = 2, mode: str = "merge-on-read", more: str = "") -> None:
        self.con.execute(
            f"CREATE TABLE ns.t (id BIGINT, x INT) TBLPROPERTIES ('format-version' = '{version}', "
            f"'write.delete.mode' = '{mode}', 'write.update.mode' = '{mode}'{more})"
        )

    def sql(self, *statements: str) -> Any:
        """Run statements; the rows of the last one."""
        rows: list[Any] = []
        for each in statements:
            cursor = self.con.execute(each)
            rows = cursor.fetchall() if cursor.description else []
        return rows

    def insert(self, first: int, count: int = 5) -> None:
        self.con.execute(f"INSERT INTO ns.t SELECT range, 0 FROM range({first}, {first + count})")

    @property
    def table(self) -> Table:
        found: Table = self.con.catalog.load(("ns", "t"))
        return found

    @property
    def ids(self) -> list[int]:
        with icesql.connect(warehouse=self.folder) as fresh:
            return [row[0] for row in fresh.execute("SELECT id FROM ns.t ORDER BY id").fetchall()]

    def head(self) -> int:
        found = self.table.metadata.current_snapshot_id
        assert found is not None
        return found

    def files(self, content: FileContent) -> list[DataFile]:
        """The live files of main, data or deletes."""
        table = self.table
        reader = ManifestReader(table, QueryContext())
        snapshot = table.metadata.current_snapshot
        assert snapshot is not None
        return [
            entries.data_file(index)
            for entries, index in reader.live(reader.manifests_of(snapshot))
            if entries.content[index] == content
        ]

    def write(
        self,
        operation: str,
        existing: Sequence[DataFile],
        added: Sequence[DataFile] = (),
        *,
        data_number: int | None = None,
        first_row_id: int | None = None,
        branch: str = "main",
    ) -> int:
        """A snapshot of these files, as a writer that checks nothing makes it."""
        table, number = self.table, new_snapshot_id(self.table.metadata.snapshots)
        metadata = table.metadata
        store = ManifestStore(table, number, OwnFiles(table.storage), QueryContext())
        made = []
        for content in (ManifestContent.DATA, ManifestContent.DELETES):
            for entries in (
                [existing_entry(each, number) for each in existing],
                [added_entry(each, number, data_number) for each in added],
            ):
                own = [e for e in entries if (e.file.content is FileContent.DATA) == (content == 0)]
                if own:
                    made.append(store.write(own, store.form(0, content)))
        if first_row_id is not None:
            made[-1] = replace(made[-1], first_row_id=first_row_id)
        sequence = metadata.last_sequence_number + 1
        is_v3 = metadata.format_version > 2
        first = metadata.next_row_id if is_v3 else None
        known = metadata.refs.get(branch)
        parent = None if known is None else known.snapshot_id
        header = ListHeader(metadata.format_version, number, parent, sequence, first)
        path, _, rows = store.write_list(made, 1, header)
        snapshot = Snapshot(
            number, parent, sequence, metadata.last_updated_ms + 1, path, operation=operation,
            summary={}, schema_id=metadata.current_schema_id, first_row_id=first,
            added_rows=rows if is_v3 else None,
        )  # fmt: skip
        updates = AddSnapshot(snapshot), SetSnapshotRef(branch, moved_ref(metadata, branch, number))
        change_table(self.con.catalog, table, lambda _: updates)
        return number

    @property
    def data(self) -> Path:
        return Path(self.table.metadata.location, "data")

    def parquet(self, ids: list[int]) -> DataFile:
        """A data file of these ids, with bounds."""
        path = write_parquet(self.data, "1 id long, 2 x int", [ids, [0] * len(ids)])
        return data_file(path, **facts(ids))

    def delete_keys(self, ids: list[int]) -> None:
        """An equality delete on id."""
        table = self.table
        file = equality_deletes(self.data, "1 id long!", [ids], sequence_number=None, **facts(ids))
        commit_row_delta(
            self.con.catalog, table, deletes=[file], command="delete",
            start_id=table.metadata.current_snapshot_id,
        )  # fmt: skip

    def delete_positions(self, rows: list[tuple[str, int]]) -> DataFile:
        """Position deletes (path, position), with the bounds of the paths."""
        rows = sorted(rows)
        least, greatest = ({2147483546: rows[place][0].encode()} for place in (0, -1))
        return position_deletes(self.data, rows, lower_bounds=least, upper_bounds=greatest)

    def findings(self) -> list[Finding]:
        names = (
            "rows changed", "deletes dropped", "file twice", "row ids twice", "missing files",
            "broken snapshots",
        )  # fmt: skip
        return [each for each in self.con.doctor("ns.t").findings if each.name in names]

    def finding(self, name: str, snapshot_id: int, last_good: int) -> Finding:
        (found,) = self.findings()
        assert found.name == name
        assert f"snapshot {snapshot_id} " in found.told
        assert f"the last good snapshot is {last_good}," in found.cost
        return found

    def mend(self, finding: Finding) -> None:
        for cursor in self.con.execute_script(finding.statement):
            cursor.fetchall() if cursor.description else None
        assert self.findings() == []


@pytest.fixture
def ward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ward]:
    monkeypatch.setattr(os, "fsync", lambda file: None)
    found = Ward(tmp_path)
    yield found
    found.con.close()


@pytest.mark.parametrize("version", [2, 3])
def test_a_rewrite_that_brought_rows_back(ward: Ward, version: int) -> None:
    """It did not apply the deletes of the file that it rewrote."""
    ward.create(version)
    ward.insert(0)
    ward.sql("DELETE FROM ns.t WHERE id = 3")
    good = ward.head()
    bad = ward.write("replace", [], [ward.parquet([*range(5)])])
    assert ward.ids == [*range(5)]
    found = ward.finding("rows changed", bad, good)
    assert found.weight == "high"
    assert "of 4 live rows they made 5, so that rows came back" in found.told
    assert (
        found.statement
        == f"CALL system.rollback_to_snapshot(table => 'ns.t', snapshot_id => {good})"
    )
    ward.mend(found)
    assert ward.ids == [0, 1, 2, 4]


def test_a_rewrite_that_lost_rows_and_what_came_later(ward: Ward) -> None:
    ward.create()
    ward.insert(0)
    good = ward.head()
    bad = ward.write("replace", [], [ward.parquet([0, 1, 2, 3])])
    ward.insert(10, 2)
    ward.insert(20, 1)
    found = ward.finding("rows changed", bad, good)
    assert "were lost" in found.told
    assert found.statement.count("cherrypick_snapshot") == 2
    ward.mend(found)
    assert ward.ids == [0, 1, 2, 3, 4, 10, 11, 20]


def test_a_delete_that_came_later_is_to_be_made_again(ward: Ward) -> None:
    ward.create(mode="copy-on-write")
    ward.insert(0)
    good = ward.head()
    bad = ward.write("replace", [], [ward.parquet([0, 1, 2, 3])])
    ward.insert(10, 1)
    ward.sql("DELETE FROM ns.t WHERE id = 1")
    late = ward.head()
    ward.insert(20, 1)
    found = ward.finding("rows changed", bad, good)
    assert f"to be made again: snapshot {late} (overwrite)" in found.cost
    # What followed the delete waits for it.
    assert found.statement.count("cherrypick_snapshot") == 1
    ward.mend(found)
    assert ward.ids == [0, 1, 2, 3, 4, 10]


def test_a_rewrite_over_deletes_by_equality_has_brought_rows_back(ward: Ward) -> None:
    ward.create()
    ward.insert(0)
    ward.delete_keys([3])
    good = ward.head()
    deletes = ward.files(FileContent.EQUALITY_DELETES)
    bad = ward.write("replace", deletes, [ward.parquet([*range(5)])], data_number=2)
    assert ward.ids == [*range(5)]
    found = ward.finding("rows changed", bad, good)
    assert found.weight == "high"  # the keys were read
    assert "of 4 live rows they made 5, so that rows came back" in found.told
    ward.mend(found)
    assert ward.ids == [0, 1, 2, 4]


@pytest.mark.parametrize("partial", ["true", "false"])
def test_a_rewrite_that_looked_keys_up_and_found_none_is_not_blamed(
    ward: Ward, partial: str
) -> None:
    ward.create()
    ward.sql("INSERT INTO ns.t VALUES (0, 0), (9, 0)")
    ward.insert(100)
    ward.delete_keys([5])  # between the ids, and none of them
    options = f"map('rewrite-all', 'true', 'partial-progress.enabled', '{partial}')"
    ward.sql(f"CALL system.rewrite_data_files('ns.t', options => {options})")
    assert ward.ids == [0, 9, 100, 101, 102, 103, 104]
    assert ward.findings() == []


@pytest.mark.parametrize("version", [2, 3])
def test_rewrites_that_are_right_are_not_blamed(ward: Ward, version: int) -> None:
    ward.create(version, more=", 'commit.manifest.min-count-to-merge' = '2'")
    for number in range(6):
        ward.insert(10 * number)
        ward.sql(f"DELETE FROM ns.t WHERE id = {10 * number + 1}")
    ward.sql("CALL system.rewrite_manifests('ns.t')")
    if version == 2:
        ward.sql(
            "CALL system.rewrite_position_delete_files('ns.t', "
            "options => map('rewrite-all', 'true'))"
        )
        ward.delete_keys([12])
        ward.delete_keys([1000])
    rewrite = "CALL system.rewrite_data_files('ns.t', options => map('rewrite-all', 'true'{}))"
    ward.sql(rewrite.format(""))
    ward.sql("UPDATE ns.t SET x = 1 WHERE id < 20")
    ward.sql("DELETE FROM ns.t WHERE id = 2")
    ward.sql("DELETE FROM ns.t WHERE id = 3")
    ward.sql(rewrite.format(""))
    ward.sql("ALTER TABLE ns.t CREATE BRANCH dev")
    ward.sql("INSERT INTO ns.t VERSION AS OF 'dev' VALUES (77, 7)")
    ward.sql("INSERT OVERWRITE ns.t VALUES (1, 1)")
    if version == 2:
        ward.sql("ALTER TABLE ns.t SET TBLPROPERTIES ('format-version' = '3')")
        ward.insert(30)
        ward.sql("DELETE FROM ns.t WHERE id = 31")
    assert ward.findings() == []


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_files_that_are_still_there_were_dropped(ward: Ward, version: int) -> None:
    ward.create(version)
    ward.insert(0)
    ward.insert(10)
    ward.sql("DELETE FROM ns.t WHERE id IN (3, 12, 13)")
    good = ward.head()
    data, deletes = ward.files(DATA), ward.files(DELETES)
    assert len(deletes) == 2
    gone = next(each for each in deletes if each.record_count == 1)
    kept = [each for each in deletes if each is not gone]
    # A compaction of nothing, as far as the data files are concerned.
    bad = ward.write("replace", [*data, *kept])
    assert ward.ids == [0, 1, 2, 3, 4, 10, 11, 14]
    found = ward.finding("deletes dropped", bad, good)
    assert str(gone.referenced_data_file or "data") in found.told
    ward.mend(found)
    assert ward.ids == [0, 1, 2, 4, 10, 11, 14]


def test_deletes_of_several_files_were_rewritten_without_one_of_them(ward: Ward) -> None:
    ward.create()
    ward.insert(0)
    ward.insert(10)
    data = ward.files(DATA)
    both = ward.delete_positions([(each.path, 2) for each in data])
    good = ward.write("overwrite", data, [both])
    assert len(ward.ids) == 8
    (both,) = ward.files(DELETES)
    one = ward.delete_positions([(data[1].path, 2)])
    bad = ward.write("replace", data, [one], data_number=both.sequence_number)
    found = ward.finding("deletes dropped", bad, good)
    assert data[0].path in found.told
    assert data[1].path not in found.told
    ward.mend(found)
    assert len(ward.ids) == 8


def test_deletes_without_bounds_were_rewritten_without_one_of_their_files(ward: Ward) -> None:
    ward.create(more=", 'write.delete.granularity' = 'partition'")
    ward.insert(0)
    ward.insert(10)
    ward.sql("DELETE FROM ns.t WHERE id IN (3, 12)")
    ward.sql(
        "CALL system.rewrite_position_delete_files('ns.t', options => map('rewrite-all', 'true'))"
    )
    good = ward.head()
    data, (both,) = ward.files(DATA), ward.files(DELETES)
    assert (both.record_count, both.referenced_data_file) == (2, None)
    one = ward.delete_positions([(data[1].path, 2)])
    bad = ward.write("replace", data, [one], data_number=both.sequence_number)
    ward.mend(ward.finding("deletes dropped", bad, good))
    assert len(ward.ids) == 8


def test_deletes_of_files_that_are_gone_may_be_left_out(ward: Ward) -> None:
    ward.create(more=", 'write.delete.granularity' = 'partition'")
    ward.insert(0)
    ward.insert(10)
    rewrite = (
        "CALL system.rewrite_position_delete_files('ns.t', options => map('rewrite-all', 'true'))"
    )
    ward.sql("DELETE FROM ns.t WHERE id IN (3, 12)")
    ward.sql(rewrite)
    ward.sql("DELETE FROM ns.t WHERE id < 5")
    assert ward.sql(rewrite)[0][:2] == (1, 1)
    assert sum(each.record_count for each in ward.files(DELETES)) == 1
    assert ward.findings() == []


def test_a_vector_with_fewer_rows_took_the_place_of_one(ward: Ward) -> None:
    ward.create(3)
    ward.insert(0)
    ward.sql("DELETE FROM ns.t WHERE id = 1")
    (small,) = ward.files(DELETES)
    ward.sql("DELETE FROM ns.t WHERE id = 2")
    good = ward.head()
    bad = ward.write("replace", [*ward.files(DATA), small])
    ward.mend(ward.finding("deletes dropped", bad, good))
    assert ward.ids == [0, 3, 4]


def test_a_file_is_listed_twice(ward: Ward) -> None:
    ward.create()
    ward.insert(0)
    good = ward.head()
    (file,) = ward.files(DATA)
    bad = ward.write("append", [file], [file])
    ward.insert(10, 1)
    ward.mend(ward.finding("file twice", bad, good))
    assert ward.ids == [0, 1, 2, 3, 4, 10]


def test_row_ids_were_given_twice(ward: Ward) -> None:
    ward.create(3)
    ward.insert(0)
    good = ward.head()
    (file,) = ward.files(DATA)
    other = ward.parquet([7, 8])
    bad = ward.write("append", [file], [other], first_row_id=file.first_row_id)
    alone = ward.finding("row ids twice", bad, good)
    assert "cherrypick" not in alone.statement, "it would come back as it is"
    assert f"is to be made again: snapshot {bad} (append)" in alone.cost
    ward.insert(10, 1)
    number = "SELECT count(DISTINCT _row_id) FROM ns.t"
    assert ward.sql(number) == [(6,)]
    found = ward.finding("row ids twice", bad, good)
    assert other.path in found.told
    ward.mend(found)
    assert ward.ids == [0, 1, 2, 3, 4, 7, 8, 10]
    assert ward.sql(number) == [(8,)]


def test_row_ids_of_a_branch_were_given_to_main(ward: Ward) -> None:
    ward.create(3)
    ward.insert(0)
    ward.sql("ALTER TABLE ns.t CREATE BRANCH dev")
    (file,) = ward.files(DATA)
    ward.insert(10, 2)
    (late,) = (each for each in ward.files(DATA) if each.path != file.path)
    other = ward.parquet([7, 8])
    good = ward.table.metadata.refs["dev"].snapshot_id
    bad = ward.write("append", [file], [other], first_row_id=late.first_row_id, branch="dev")
    (found,) = ward.findings()
    assert found.name == "row ids twice"
    assert f"snapshot {bad} (append) of dev" in found.told
    assert found.statement == f"ALTER TABLE ns.t REPLACE BRANCH dev AS OF VERSION {good}"
    ward.mend(found)


@pytest.mark.parametrize("what", ["data", "delete", "manifest", "list"])
def test_files_that_the_table_needs_are_missing(ward: Ward, what: str) -> None:
    ward.create()
    ward.insert(0)
    good = ward.head()
    before = {*Path(ward.table.metadata.location).rglob("*")}
    ward.insert(10, 2)
    if what == "delete":
        good = ward.head()
        before = {*Path(ward.table.metadata.location).rglob("*")}
        ward.sql("DELETE FROM ns.t WHERE id = 10")
    bad = ward.head()
    new = {*Path(ward.table.metadata.location).rglob("*")} - before
    patterns = {"data": "*.parquet", "delete": "*.parquet", "manifest": "*-m*.avro",
                "list": "snap-*.avro"}  # fmt: skip
    for each in new:
        if each.match(patterns[what]):
            each.unlink()
    if what in ("manifest", "list"):
        ward.con.close()
        ward.con = icesql.connect(warehouse=ward.folder)
    found = ward.finding("missing files", bad, good)
    assert found.weight == "high"
    ward.mend(found)
    assert ward.ids == ([*range(5)] + ([10, 11] if what == "delete" else []))


def test_old_snapshots_that_cannot_be_read_are_taken_away(ward: Ward) -> None:
    ward.create(mode="copy-on-write")
    ward.insert(0)
    first = ward.table.metadata.current_snapshot
    ward.insert(10, 1)
    assert first is not None
    Path(str(first.manifest_list)).unlink()
    (found,) = ward.findings()
    assert (found.name, found.weight, found.now) == ("broken snapshots", "low", 1)
    ward.mend(found)
    assert len(ward.ids) == 6


def test_an_expiry_that_would_remove_the_last_good_snapshot(ward: Ward) -> None:
    ward.create()
    ward.sql("ALTER TABLE ns.t SET TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '1')")
    for number in range(6):
        ward.insert(10 * number, 1)
    good = ward.head()
    bad = ward.write("replace", [], [ward.parquet([0])])
    found = ward.finding("rows changed", bad, good)
    assert "expire_snapshots removes it now: ALTER TABLE ns.t CREATE TAG last_good" in found.cost
    names = [each.name for each in ward.con.doctor("ns.t").findings]
    assert "old snapshots" not in names, "that advice would remove what mends the table"
    ward.sql(found.cost.partition("now: ")[2].partition(" keeps it")[0])
    ward.sql("CALL system.expire_snapshots('ns.t')")
    assert "a branch or tag keeps it" in ward.finding("rows changed", bad, good).cost
    ward.mend(ward.findings()[0])
    assert ward.ids == [0, 10, 20, 30, 40, 50]


def test_nothing_is_left_to_go_back_to(ward: Ward) -> None:
    ward.create()
    ward.insert(0)
    good = ward.head()
    ward.write("replace", [], [ward.parquet([0])])
    ward.insert(10, 1)
    assert ward.con.doctor("ns.t").findings
    ward.sql(f"CALL system.expire_snapshots('ns.t', snapshot_ids => array({good}))")
    assert ward.findings() == [], "nobody can tell any more"


def test_two_kinds_of_damage_lead_to_one_snapshot(ward: Ward) -> None:
    ward.create()
    ward.insert(0)
    good = ward.head()
    ward.write("replace", [], [ward.parquet([0, 1])])
    (file,) = ward.files(DATA)
    ward.write("append", [file], [file])
    found = ward.findings()
    assert [each.name for each in found] == ["rows changed", "file twice"]
    for each in found:
        assert f"the last good snapshot is {good}," in each.cost
    ward.mend(found[0])
    assert ward.ids == [*range(5)]
