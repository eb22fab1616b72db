"""rewrite_position_delete_files: the same rows by fewer delete files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import icesql
from icesql import errors
from icesql.catalog.directory import DirectoryCatalog
from icesql.catalog.table import CatalogPlan
from icesql.catalog.targets import table_to_change
from icesql.commit.rows import commit_row_delta
from icesql.context import QueryContext
from icesql.maintain.deletes.options import (
    DeleteOptions,
    plan_delete_files,
    rewrite_delete_files,
)
from icesql.scan.planner import plan
from icesql.scan.table_scan import TableScan
from icesql.write.position_deletes import write_partition_deletes

FILES = "SELECT file_path, record_count, referenced_data_file FROM s.t.delete_files ORDER BY 1"


def filled(con: icesql.Connection, count: int = 6, **properties: str) -> None:
    given = {"format-version": "2", "write.delete.mode": "merge-on-read"} | properties
    told = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    con.execute(f"CREATE TABLE s.t (i INT, p VARCHAR) PARTITIONED BY (p) TBLPROPERTIES ({told})")
    for number in range(count):
        rows = ", ".join(f"({number * 10 + k}, 'a')" for k in range(5))
        con.execute(f"INSERT INTO s.t VALUES {rows}")
        con.execute(f"DELETE FROM s.t WHERE i IN ({number * 10 + 1}, {number * 10 + 3})")
    con.execute("INSERT INTO s.t VALUES (900, 'b'), (901, 'b')")
    con.execute("DELETE FROM s.t WHERE i = 900")


def rows(con: icesql.Connection) -> list[Any]:
    found = con.execute("SELECT i, p FROM s.t ORDER BY i").fetchall()
    con.execute("SET local_reader = 'arrow'")
    assert con.execute("SELECT i, p FROM s.t ORDER BY i").fetchall() == found
    con.execute("RESET local_reader")
    return found


def call(con: icesql.Connection, options: str = "") -> tuple[Any, ...]:
    given = f", options => map({options})" if options else ""
    return con.execute(f"CALL system.rewrite_position_delete_files('s.t'{given})").fetchall()[0]


def test_one_file_of_a_partition(con: icesql.Connection) -> None:
    filled(con, **{"write.delete.granularity": "partition"})
    before, size = (
        rows(con),
        con.execute(
            "SELECT sum(file_size_in_bytes) FROM s.t.delete_files WHERE partition.p = 'a'"
        ).fetchall()[0][0],
    )
    plan = con.execute("EXPLAIN CALL system.rewrite_position_delete_files('s.t')").fetchall()
    assert [row[0] for row in plan] == ["remove"] * 6 + ["write"]
    removed, added, removed_bytes, added_bytes = call(con)
    assert (removed, added, removed_bytes) == (6, 1, size)
    assert 0 < added_bytes < size
    assert rows(con) == before
    found = con.execute(FILES).fetchall()
    assert sorted(row[1] for row in found) == [1, 12]
    assert [row[2] for row in found if row[1] == 12] == [None]
    ages = con.execute(
        "SELECT sequence_number, file_sequence_number FROM s.t.entries "
        "WHERE data_file.content = 1 AND data_file.record_count = 12 AND status <> 2"
    ).fetchall()
    assert ages == [(12, 15)]
    told = con.execute(
        "SELECT operation, summary['removed-position-delete-files'], summary['total-position-deletes'] "
        "FROM s.t.snapshots ORDER BY committed_at DESC LIMIT 1"
    ).fetchall()
    assert told == [("replace", "6", "13")]
    assert call(con) == (0, 0, 0, 0)
    con.execute("DELETE FROM s.t WHERE i = 2")
    assert rows(con) == [row for row in before if row[0] != 2]


def test_one_file_for_each_data_file(con: icesql.Connection) -> None:
    """As Spark has it where the table asks for nothing."""
    filled(con, 2)
    before = rows(con)
    assert call(con, "'min-input-files', '2'")[:2] == (2, 2)
    assert rows(con) == before
    assert all(row[2] is not None for row in con.execute(FILES).fetchall())


def test_deletes_of_files_that_are_gone_are_left_out(con: icesql.Connection) -> None:
    filled(con, 2, **{"write.delete.granularity": "partition"})
    call(con, "'min-input-files', '2'")
    before = rows(con)
    con.execute("CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))")
    assert rows(con) == before
    assert call(con, "'rewrite-all', 'true'")[1] == 0
    assert con.execute(FILES).fetchall() == []
    assert rows(con) == before


def test_few_files_stay(con: icesql.Connection) -> None:
    filled(con, 3)
    assert call(con) == (0, 0, 0, 0)
    assert call(con, "'min-input-files', '2'")[:2] == (3, 3)
    for options, told in (
        ("'min-input-files', 'x'", "a number"), ("'nope', '1'", "no option nope"),
        ("'target-file-size-bytes', '10', 'min-file-size-bytes', '20'", "sizes of delete files"),
        ("'rewrite-all', 'perhaps'", "true or false"),
    ):  # fmt: skip
        with pytest.raises(errors.ProgrammingError, match=told):
            call(con, options)


def test_files_of_before_the_upgrade(con: icesql.Connection) -> None:
    """They become vectors, which hold all positions of their data file."""
    filled(con, 3, **{"write.delete.granularity": "partition"})
    con.execute("DELETE FROM s.t WHERE i % 10 = 0 AND i < 20")
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '3')")
    con.execute("DELETE FROM s.t WHERE i = 2")  # the first file has a vector by now
    before, ids = rows(con), con.execute("SELECT i, _row_id FROM s.t ORDER BY i").fetchall()
    old = con.execute("SELECT count(*) FROM s.t.delete_files WHERE file_format = 'PARQUET'")
    count = old.fetchone()[0]
    removed, added, _, _ = call(con, "'rewrite-all', 'true', 'partial-progress.enabled', 'true'")
    assert (removed, added) == (count, 3)
    found = con.execute("SELECT file_format, count(*) FROM s.t.delete_files GROUP BY 1").fetchall()
    assert found == [("PUFFIN", 4)]
    assert rows(con) == before
    assert con.execute("SELECT i, _row_id FROM s.t ORDER BY i").fetchall() == ids
    assert call(con, "'rewrite-all', 'true'") == (0, 0, 0, 0)
    con.execute("DELETE FROM s.t WHERE i = 901")
    con.execute("DELETE FROM s.t WHERE i = 4")
    assert rows(con) == [row for row in before if row[0] not in (4, 901)]


def test_a_vector_has_the_positions_of_files_that_stay(con: icesql.Connection) -> None:
    """A reader that finds a vector looks at no other position deletes of the data file."""
    con.execute(
        "CREATE TABLE s.t (i INT, p VARCHAR) TBLPROPERTIES ('format-version' = '2', "
        "'write.delete.mode' = 'merge-on-read')"
    )
    con.execute("INSERT INTO s.t SELECT i, 'a' FROM range(10) r(i)")
    folder = DirectoryCatalog(
        str(Path(con.execute("SELECT file_path FROM s.t.files").fetchone()[0]).parents[3])
    )
    for positions in ([1], [3], [5]):
        table = folder.load(("s", "t"))
        (file,) = plan(
            TableScan(
                table, table.metadata.current_snapshot, table.metadata.schema, table.metadata.schema
            ),
            QueryContext(),
        ).files
        made = write_partition_deletes(
            table.metadata, table.storage, [(file.data_file, np.array(positions, np.int64))]
        )
        commit_row_delta(
            folder, table, deletes=[made], referenced=[file.data_file.path],
            start_id=table.metadata.current_snapshot_id, command="delete",
        )  # fmt: skip
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '3')")
    before = rows(con)
    assert [row[0] for row in before] == [0, 2, 4, 6, 7, 8, 9]
    table = folder.load(("s", "t"))
    options = DeleteOptions.of({"rewrite-all": "true"}, {})
    (group,) = plan_delete_files(table, options, QueryContext())
    alone = replace(group, files=group.files[1:2])
    done = rewrite_delete_files(folder, table, [alone], summary={}, query=QueryContext())
    assert (done.removed, [each.record_count for each in done.written]) == (1, [3])
    assert rows(con) == before


# What another commit does after the new deletes were written, and the rows that it leaves of 0, 2,
# 4, 10, 12, 14 and 901.
MEANWHILE = {
    "a row of a file": ("DELETE FROM s.t WHERE i = 2", {2}),
    "a row of each": ("DELETE FROM s.t WHERE i IN (2, 12)", {2, 12}),
    "all of a file": ("DELETE FROM s.t WHERE i BETWEEN 0 AND 9", {0, 2, 4}),
    "a partition": ("DELETE FROM s.t WHERE p = 'a'", {0, 2, 4, 10, 12, 14}),
    "an insert": ("INSERT INTO s.t VALUES (1, 'a')", set()),
    "a row is new": ("UPDATE s.t SET i = 1 WHERE i = 2", {2}),
    "compaction": ("CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))", set()),
    "the same": ("CALL system.rewrite_position_delete_files('s.t', options => map('rewrite-all', 'true'))", set()),
    "upgrade": ("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '3')", set()),
    "upgrade and a row": (
        "ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '3'); DELETE FROM s.t WHERE i = 2", {2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("version", ["2", "upgraded"])
@pytest.mark.parametrize("granularity", ["file", "partition"])
@pytest.mark.parametrize("name", MEANWHILE)
def test_others_are_followed(
    con: icesql.Connection,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    granularity: str,
    version: str,
) -> None:
    """Rows are what the other commit left, and no delete file stays that was to go."""
    from icesql.maintain.deletes import run as room

    filled(con, 2, **{"write.delete.granularity": granularity})
    con.execute("DELETE FROM s.t WHERE i = 11 OR i = 1")
    if version == "upgraded":
        if "upgrade" in name:
            return
        con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '3')")
    plain, (text, gone) = room.commit_rewrite, MEANWHILE[name]
    left = [0, 2, 4, 10, 12, 14, 901]
    expected = [each for each in left if each not in gone]
    if name in ("an insert", "a row is new"):
        expected = sorted([*expected, 1])
    old = {row[0] for row in con.execute("SELECT file_path FROM s.t.delete_files").fetchall()}

    def others_first(*args: Any, **given: Any) -> Any:
        monkeypatch.setattr(room, "commit_rewrite", plain)
        for each in text.split(";"):
            con.execute(each)
        return plain(*args, **given)

    monkeypatch.setattr(room, "commit_rewrite", others_first)
    call(con, "'rewrite-all', 'true'")
    assert [row[0] for row in rows(con)] == expected
    found = con.execute("SELECT file_path, file_format FROM s.t.delete_files").fetchall()
    assert old.isdisjoint(row[0] for row in found)
    if version == "upgraded" or "upgrade" in name:
        assert {row[1] for row in found} <= {"PUFFIN"}
    assert con.execute("SELECT count(*) FROM s.t").fetchone()[0] == len(expected)


def test_deletes_that_were_taken_back_are_a_conflict(
    con: icesql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.maintain.deletes import run as room

    filled(con, 2)
    first = con.execute(
        "SELECT snapshot_id FROM s.t.snapshots ORDER BY committed_at LIMIT 1"
    ).fetchone()[0]
    plain = room.commit_rewrite

    def others_first(*args: Any, **given: Any) -> Any:
        con.execute(f"CALL system.rollback_to_snapshot('s.t', {first})")
        return plain(*args, **given)

    monkeypatch.setattr(room, "commit_rewrite", others_first)
    with pytest.raises(errors.CommitConflictError, match="not part of"):
        call(con, "'rewrite-all', 'true'")
    assert [row[0] for row in rows(con)] == [0, 1, 2, 3, 4]


def test_partitions_of_odd_floats(con: icesql.Connection) -> None:
    """-0.0 and 0.0 are two partitions: a file of deletes is of one of them."""
    con.execute(
        "CREATE TABLE s.t (i INT, p DOUBLE) PARTITIONED BY (p) TBLPROPERTIES ("
        "'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'partition')"
    )
    for value in ("-0.0", "0.0", "NaN"):
        for start in (0, 10):
            rows = ", ".join(f"({start + i}, '{value}'::DOUBLE)" for i in range(2))
            con.execute(f"INSERT INTO s.t VALUES {rows}")
    for i in (0, 10):
        con.execute(f"DELETE FROM s.t WHERE i = {i}")
    con.execute("SET local_reader = 'arrow'")
    left = [(1,)] * 3 + [(11,)] * 3
    assert con.execute("SELECT i FROM s.t ORDER BY i").fetchall() == left
    assert call(con, "'rewrite-all', 'true'")[:2] == (6, 3)
    assert con.execute("SELECT i FROM s.t ORDER BY i").fetchall() == left


def test_no_plan_of_a_catalog_is_asked_for(con: icesql.Connection) -> None:
    """What a catalog leaves out of a plan, as it may, would lose its deletes."""

    class Nothing:
        def plan(self, *_: object) -> CatalogPlan:
            return CatalogPlan((), None, "nothing")

    filled(con, 2)
    before = rows(con)
    catalog, table = table_to_change(con._session.state.names, ("s", "t"))
    given, query = DeleteOptions.of({"rewrite-all": "true"}, {}), QueryContext()
    table = replace(table, planning=Nothing())
    rewrite_delete_files(
        catalog, table, plan_delete_files(table, given, query), summary={}, query=query
    )
    assert rows(con) == before


def test_only_partitions_that_may_match(con: icesql.Connection) -> None:
    filled(con)
    before = rows(con)
    everything = "options => map('rewrite-all', 'true')"
    name = "CALL system.rewrite_position_delete_files('s.t', "
    assert con.execute(f"{name}where => 'p = ''b'' AND true', {everything})").fetchall()[0][:2] == (
        1,
        1,
    )
    assert con.execute(f"{name}where => 'p > ''b'' AND true', {everything})").fetchall()[0][:2] == (
        0,
        0,
    )
    with pytest.raises(errors.ProgrammingError, match="nope"):
        con.execute(f"{name}where => 'nope = 1')")
    assert rows(con) == before


def test_partial_progress_is_several_commits(con: icesql.Connection) -> None:
    filled(con)
    before = rows(con)
    count = "SELECT count(*) FROM s.t.snapshots WHERE operation = 'replace'"
    found = call(
        con,
        "'rewrite-all', 'true', 'partial-progress.enabled', 'true', "
        "'partial-progress.max-commits', '5'",
    )
    assert found[0] == 7
    assert con.execute(count).fetchall() == [(2,)]
    assert rows(con) == before
    with pytest.raises(errors.ProgrammingError, match="from 1 on"):
        call(con, "'partial-progress.max-commits', '0'")
