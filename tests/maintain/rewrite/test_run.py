from __future__ import annotations

import pickle
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import icesql
from icesql.config import Settings
from icesql.context import QueryContext
from icesql.engine.duckdb import task_rows as task_reader
from icesql.engine.duckdb.task_rows import task_rows
from icesql.errors import CommitConflictError, InternalError, QueryCancelledError
from icesql.maintain.rewrite.row_order import RowOrder
from icesql.maintain.rewrite.task import tasks_of
from icesql.write.ordering import SortKey
from tests.columns import json_columns
from tests.maintain.rewrite.tables import (
    asked,
    catalog_of,
    everything,
    files_below,
    new_table,
    planned,
    read,
    rewrite,
    rows,
)
from tests.writer.table import TableWriter

ORDERS = {
    "binpack": None,
    "sort": RowOrder((SortKey(3, "identity", True, True), SortKey(1, "identity", False, False))),
    "zorder": RowOrder(z_columns=(1, 2)),
}


def with_deletes(folder: Path, version: int, *, partitioned: bool = False):
    """Files of two commits with positions or vectors, and older and newer equality deletes."""
    table = new_table(folder, version, partitioned=partitioned)
    places = [("a",), ("b",), (None,)] if partitioned else [()] * 3
    values = ["a", "b", None] if partitioned else ["a"] * 3
    first = [
        table.data_file(rows(10 * n, 10, value), partition=place)
        for n, (place, value) in enumerate(zip(places, values, strict=True))
    ]
    table.commit(first)
    gone = [(file, [0, 3]) for file in first]
    if version == 3:
        table.commit(table.deletion_vectors(gone))
    elif version == 2 and partitioned:
        table.commit(
            [
                table.position_deletes([(file, at) for at in places_], partition=place)
                for (file, places_), place in zip(gone, places, strict=True)
            ]
        )
    elif version == 2:
        table.commit([table.position_deletes([(f, at) for f, ats in gone for at in ats])])
    if version > 1:
        deletes = [
            table.equality_deletes([{"id": each} for each in (4, 14, 24)], [1], partition=place)
            for place in (places if partitioned else [()])
        ]
        table.commit(deletes)
    second = [
        table.data_file(rows(10 * n + 100, 5, value), partition=place)
        for n, (place, value) in enumerate(zip(places, values, strict=True))
    ]
    table.commit([*second, table.data_file(rows(4, 1, values[0]), partition=places[0])])
    return table


@pytest.mark.parametrize("strategy", ["binpack", "sort", "zorder"])
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_and_their_lineage_stay(tmp_path, version, partitioned, strategy):
    table = with_deletes(tmp_path, version, partitioned=partitioned)
    catalog = catalog_of(table)
    before, history = everything(catalog, version), read(catalog, "count(*)")
    plan = planned(catalog, strategy, ORDERS[strategy], rewrite_all=True)
    assert len(plan.groups) == (3 if partitioned else 1)
    done = rewrite(catalog, plan)
    assert done.rewritten_data_files_count == 7
    assert done.added_data_files_count == len(plan.groups)
    assert done.failures == ()
    assert everything(catalog, version) == before
    assert read(catalog, "*", local_reader="arrow") == read(catalog)
    snapshot = done.table.metadata.current_snapshot
    assert snapshot.operation == "replace"
    assert snapshot.summary["added-records"] == str(len(before))
    # The snapshot before still has the same rows.
    with icesql.connect(warehouse=catalog.folder) as con:
        old = con.execute(f"SELECT count(*) FROM ns.t VERSION AS OF {plan.start.snapshot_id}")
        assert old.fetchall() == history
    assert done.removed_delete_files_count == (3 if version == 3 else 0)


@pytest.mark.parametrize("version", [2, 3])
def test_a_task_is_read_in_parts(tmp_path, monkeypatch, version):
    catalog = catalog_of(with_deletes(tmp_path, version))
    plan = planned(catalog, rewrite_all=True)
    task = tasks_of(plan, plan.groups[0], 0, "x")[0]

    # The engine opens a cursor for each part, and rows with deletes come in any order.
    opened: list[int] = []
    batches = task_reader.engine_batches

    def counted(*given: Any) -> Any:
        opened.append(1)
        return batches(*given)

    monkeypatch.setattr(task_reader, "engine_batches", counted)

    def read_rows() -> list[str]:
        opened.clear()
        found = chain(*(each.to_pylist() for each in task_rows(task.scan, QueryContext())))
        return sorted(map(repr, found))

    whole = read_rows()
    assert len(opened) == 1
    monkeypatch.setattr(task_reader, "_FIRST_FILES", 1)
    monkeypatch.setattr(task_reader, "_PART_FILES", 3)
    # These deletes are as large as the rows, so that the task is not divided.
    assert read_rows() == whole
    assert len(opened) == 1
    monkeypatch.setattr(task_reader, "_PART_DELETES", 0)
    assert read_rows() == whole
    assert len(opened) == 4  # 1, 2, 3 and 1 of 7 files
    before = everything(catalog, version)
    assert rewrite(catalog, plan).rewritten_data_files_count == 7
    assert everything(catalog, version) == before


def test_a_sorted_rewrite_is_sorted_and_a_z_curve_keeps_neighbours(tmp_path):
    table = new_table(tmp_path)
    table.commit([table.data_file(rows(n, 3)) for n in (30, 0, 20)])
    catalog = catalog_of(table)
    rewrite(catalog, planned(catalog, "sort", ORDERS["sort"], rewrite_all=True))
    found = asked(catalog, "SELECT x, id, _pos FROM ns.t ORDER BY _pos")
    nulls = [each for each in found if each[0] is None]
    assert found[: len(nulls)] == nulls
    assert [each[0] for each in found[len(nulls) :]] == sorted(
        (each[0] for each in found[len(nulls) :]), reverse=True
    )


def test_tasks_are_picklable_and_split_large_groups(tmp_path):
    table = new_table(tmp_path)
    table.commit([table.data_file(rows(1000 * n, 1000)) for n in range(6)])
    catalog = catalog_of(table)
    before = read(catalog)
    size = Path(next(iter(files_below(table)))).stat().st_size
    plan = planned(catalog, rewrite_all=True, target_file_size_bytes=2 * size)
    (group,) = plan.groups
    tasks = tasks_of(plan, group, 5, "x")
    assert len(tasks) == 3
    assert [each.number for each in tasks] == [5, 6, 7]
    assert [len(each.scan.tasks) for each in tasks] == [2, 2, 2]

    def elsewhere(work):
        for each in [pickle.loads(pickle.dumps(task)) for task in work.tasks(1)][::-1]:
            yield each, pickle.loads(pickle.dumps(each.run(work.query, 7)))

    done = rewrite(catalog, plan, run=elsewhere)
    assert done.added_data_files_count == 3
    assert read(catalog) == before
    names = [each.path.rpartition("/")[2] for each in tasks_files(catalog)]
    assert all(name.split("-")[1] == "7" for name in names)


def tasks_files(catalog):
    return [each.data_file for each in [*planned(catalog, rewrite_all=True).groups[0].files]]


# ------------------------------------------------------------------ conflicts and failures


def test_deletes_that_came_meanwhile(tmp_path):
    table = new_table(tmp_path)
    file = table.data_file(rows(0, 10))
    table.commit([file, table.data_file(rows(10, 10))])
    catalog = catalog_of(table)
    plan = planned(catalog, rewrite_all=True)
    table.delete_keys(3)
    done = rewrite(catalog, plan)
    # The rewritten rows keep their sequence number, so that the new deletes apply to them.
    assert read(catalog, "count(*)") == [(19,)]
    assert done.rewritten_data_files_count == 2

    plan = planned(catalog, rewrite_all=True, use_starting_sequence_number=False)
    with icesql.connect(warehouse=catalog.folder) as con:
        con.execute("ALTER TABLE ns.t SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')")
        con.execute("DELETE FROM ns.t WHERE id = 5")
    known = files_below(table)
    with pytest.raises(CommitConflictError, match=r"is no longer part of the table"):
        rewrite(catalog, plan)
    assert read(catalog, "count(*)") == [(18,)]
    assert files_below(table) == known


def test_without_partial_progress_a_failure_leaves_nothing(tmp_path):
    table = new_table(tmp_path, partitioned=True)
    for p in "abc":
        table.append(rows(0, 5, p), partition=(p,))
    catalog = catalog_of(table)
    before, known = read(catalog), files_below(table)
    plan = planned(catalog, rewrite_all=True)

    def failing(work):
        for each in work.tasks(1):
            fails = each.group == 1
            yield each, CommitConflictError("a disk is full") if fails else each.run(work.query, 0)

    with pytest.raises(CommitConflictError, match="a disk is full"):
        rewrite(catalog, plan, run=failing)
    assert (read(catalog), files_below(table)) == (before, known)

    plan = planned(catalog, rewrite_all=True, partial_progress__enabled=True)
    done = rewrite(catalog, plan, run=failing)
    assert (done.rewritten_data_files_count, done.failed_data_files_count) == (2, 1)
    assert done.failures == ("a disk is full",)
    assert len(done.snapshot_ids) == 2
    assert read(catalog) == before
    assert len(files_below(table)) == len(known) + 2


def test_partial_progress_commits_groups_as_they_are_done(tmp_path):
    table = new_table(tmp_path, 3, partitioned=True)
    for p in "abcde":
        table.append(rows(0, 5, p), partition=(p,))
    catalog = catalog_of(table)
    before = everything(catalog, 3)
    plan = planned(
        catalog, rewrite_all=True, partial_progress__enabled=True, partial_progress__max_commits=2
    )
    done = rewrite(catalog, plan)
    assert len(done.snapshot_ids) == 2
    assert everything(catalog, 3) == before


def test_a_conflict_costs_its_own_commit_alone(tmp_path):
    table = new_table(tmp_path, partitioned=True)
    files = [table.data_file(rows(0, 5, p), partition=(p,)) for p in "ab"]
    table.commit(files)
    catalog = catalog_of(table)
    plan = planned(catalog, rewrite_all=True, partial_progress__enabled=True)
    table.commit([table.data_file(rows(0, 4, "a"), partition=("a",))], removed=files[:1])
    known = files_below(table)
    done = rewrite(catalog, plan)
    assert (done.rewritten_data_files_count, done.failed_data_files_count) == (1, 1)
    assert "is no longer part of the table" in done.failures[0]
    assert read(catalog, "count(*)") == [(9,)]
    assert len(files_below(table)) == len(known) + 1


def done_version(catalog):
    return int(Path(catalog.folder, "ns/t/metadata/version-hint.text").read_text())


def test_rows_that_are_lost_are_noticed(tmp_path):
    table = new_table(tmp_path)
    table.append(rows(0, 10), rows(10, 10))
    catalog = catalog_of(table)
    before, known = read(catalog), files_below(table)

    def careless(work):
        for each in work.tasks(1):
            done = each.run(work.query, 0)
            yield each, replace(done, rows=done.rows - 1)

    with pytest.raises(InternalError, match=r"19 rows where their metadata says 20"):
        rewrite(catalog, planned(catalog, rewrite_all=True), run=careless)
    assert (read(catalog), files_below(table)) == (before, known)


def test_small_memory_and_one_thread(tmp_path):
    table = with_deletes(tmp_path, 2)
    catalog = catalog_of(table)
    before = read(catalog)
    query = QueryContext(settings=Settings(memory_limit=64 << 20, threads=1))
    rewrite(catalog, planned(catalog, "sort", ORDERS["sort"], rewrite_all=True), query)
    assert read(catalog) == before


def test_columns_that_no_file_holds_move_no_other(tmp_path):
    folder = tmp_path / "wh" / "ns" / "t"
    folder.mkdir(parents=True)
    fields = json_columns(
        "1 id long, 2 un unknown, 3 x long, 4 y long, 5 s struct<6 k unknown, 7 a.b int>"
    )
    stored = json_columns("1 id long, 3 x long, 4 y long, 5 s struct<7 a.b int>")
    table = TableWriter(str(folder), fields, version=3)
    for first in (5, 0):
        found = [
            {"id": n, "x": n + 10, "y": n + 20, "s": {"a.b": n}} for n in range(first, first + 5)
        ]
        table.append(found, fields=stored)
    catalog = catalog_of(table)
    before = everything(catalog, 3)
    assert before[0][:4] == (0, None, 10, 20)
    for strategy, order in (
        ("binpack", None),
        ("sort", RowOrder((SortKey(3, "identity", True, True),))),
    ):
        rewrite(catalog, planned(catalog, strategy, order, rewrite_all=True))
        assert everything(catalog, 3) == before


def test_too_many_failed_commits_are_an_error(tmp_path):
    table = new_table(tmp_path, partitioned=True)
    files = [table.data_file(rows(0, 5, p), partition=(p,)) for p in "ab"]
    table.commit(files)
    catalog = catalog_of(table)
    plan = planned(
        catalog, rewrite_all=True, partial_progress__enabled=True,
        partial_progress__max_failed_commits=0,
    )  # fmt: skip
    table.commit([table.data_file(rows(0, 4, "a"), partition=("a",))], removed=files[:1])
    known = files_below(table)
    with pytest.raises(icesql.OperationalError, match="1 commits of the rewrite failed"):
        rewrite(catalog, plan)
    # Only the files of the successful commits stay.
    assert len(files_below(table)) == len(known) + 1
    assert read(catalog, "count(*)") == [(9,)]


def test_a_cancelled_rewrite_leaves_nothing(tmp_path):
    table = new_table(tmp_path, partitioned=True)
    for p in "abc":
        table.append(rows(0, 5, p), partition=(p,))
    catalog = catalog_of(table)
    known = files_below(table)
    query = QueryContext()

    def cancelled(work):
        for each in work.tasks(1):
            yield each, each.run(work.query, 0)
            query.cancel.set()

    with pytest.raises(QueryCancelledError):
        rewrite(catalog, planned(catalog, rewrite_all=True), query, run=cancelled)
    assert files_below(table) == known
    with pytest.raises(QueryCancelledError):
        rewrite(catalog, planned(catalog, rewrite_all=True), query)
    assert files_below(table) == known
    assert done_version(catalog) == table.metadata_version


@pytest.mark.parametrize("partial", [False, True])
def test_an_error_after_a_commit_leaves_its_files(tmp_path, monkeypatch, partial):
    """A cancelled statement may be about to read what its own commit has done."""
    table = new_table(tmp_path, partitioned=True)
    for p in "ab":
        table.append(rows(0, 5, p), partition=(p,))
    catalog = catalog_of(table)
    before = read(catalog)

    def cancelled(*_):
        raise QueryCancelledError("the statement was cancelled")

    monkeypatch.setattr("icesql.maintain.rewrite.run._Rewrite._note", cancelled)
    plan = planned(catalog, rewrite_all=True, partial_progress__enabled=partial)
    with pytest.raises(QueryCancelledError):
        rewrite(catalog, plan)
    assert done_version(catalog) == table.metadata_version + 1
    assert read(catalog) == before
