"""convert_equality_deletes in tasks: on Spark's workers, in parts, in bounded memory."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

import icesql
from icesql.context import QueryContext
from icesql.errors import DataError, InternalError, OperationalError
from icesql.maintain.deletes import task
from icesql.maintain.deletes.plan import DeletesPlan, plan_conversion
from icesql.maintain.deletes.run import convert
from icesql.maintain.deletes.task import DeletesTask, divide, tasks_of
from icesql.read.deletes.equality_keys import EqualityGroup
from icesql.work.run import run_here, run_in_spark
from icesql.write import deletes
from tests.maintain.rewrite.tables import asked, catalog_of, everything, new_table, read, rows
from tests.maintain.rewrite.test_meanwhile import execute, set_merge_on_read
from tests.maintain.rewrite.test_on_spark import Workers
from tests.maintain.rewrite.test_on_spark import attempts as attempts
from tests.maintain.rewrite.test_run import with_deletes
from tests.maintain.test_convert import contents, converted, plainly


def again(file: Any) -> Any:
    """A data file to add a second time, as a new one."""
    return dataclasses.replace(file, sequence_number=None, snapshot_id=None, first_row_id=None)


def files_below(table: Any) -> set[str]:
    """The data files and delete files below a table."""
    return {str(each) for each in Path(table.folder, "data").rglob("*") if each.is_file()}


def plan_of(catalog: Any) -> DeletesPlan:
    return plan_conversion(catalog.load(("ns", "t")), QueryContext())


@pytest.fixture
def one_file_a_task(monkeypatch) -> None:
    """Divide small tables as if they were large."""
    monkeypatch.setattr(task, "_MOST_ROWS", 1)
    monkeypatch.setattr(task, "_FEWEST_ROWS", 1)


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("version", [2, 3])
def test_workers_convert_what_this_machine_does(tmp_path, version: int, partitioned: bool) -> None:
    tables = [with_deletes(tmp_path / each, version, partitioned=partitioned) for each in "ab"]
    here, there = map(catalog_of, tables)
    before = everything(here, version)
    old = files_below(tables[1])
    workers: Any = Workers(lambda number: True)  # each first attempt is lost with its files
    local, remote = converted(here), converted(there, run=run_in_spark(workers))
    assert sum(workers.chunks) == 2
    for each in ("removed", "added", "rows", "left"):
        assert getattr(local, each) == getattr(remote, each)
    assert remote.rows == remote.added == 3
    assert everything(there, version) == before
    assert plainly(there) == read(there) == read(here)
    assert 2 not in contents(there)
    assert len(files_below(tables[1]) - old) == 3


@pytest.mark.parametrize("version", [2, 3])
def test_what_others_delete_while_workers_read_is_united(
    tmp_path, version: int, one_file_a_task: None
) -> None:
    table = with_deletes(tmp_path, version)
    catalog, expected = catalog_of(table), list[Any]()
    set_merge_on_read(catalog)
    workers: Any = Workers()
    done = converted(
        catalog,
        lambda: execute(catalog, "DELETE FROM ns.t WHERE id % 7 = 1 OR id IN (4, 24)"),
        lambda: expected.extend(everything(catalog, version)),
        run=run_in_spark(workers),
    )
    assert workers.chunks == [2, 1]
    assert (done.removed, done.left) == (1, 0)
    assert everything(catalog, version) == expected
    assert plainly(catalog) == read(catalog)


@pytest.mark.parametrize("runner", ["local", "spark"])
@pytest.mark.parametrize("number", [0, 2])
def test_a_task_that_fails_leaves_no_file(
    tmp_path,
    runner: str,
    number: int,
    one_file_a_task: None,
    monkeypatch,
) -> None:
    real = task._written

    def failing(given: Any, place: int, *others: Any) -> Any:
        made = real(given, place, *others)
        if given.number == number:
            raise DataError("not this one")
        return made

    monkeypatch.setattr(task, "_written", failing)
    table = with_deletes(tmp_path, 2)
    catalog, old = catalog_of(table), files_below(table)
    before = everything(catalog, 2)
    workers: Any = Workers()
    run = run_here if runner == "local" else run_in_spark(workers)
    with pytest.raises(DataError, match="not this one"):
        converted(catalog, run=run)
    assert files_below(table) == old
    assert everything(catalog, 2) == before


def test_one_file_of_many_that_fails_takes_the_others_with_it(tmp_path, monkeypatch) -> None:
    real, begun = deletes.write_position_deletes, itertools.count()

    def failing(*given: Any, **named: Any) -> Any:
        if next(begun) == 2:  # of several threads exactly one
            raise OperationalError("the disk is full")
        return real(*given, **named)

    monkeypatch.setattr(deletes, "write_position_deletes", failing)
    table = with_deletes(tmp_path, 2)
    catalog, old = catalog_of(table), files_below(table)
    with pytest.raises(OperationalError, match="full"):
        converted(catalog)
    assert files_below(table) == old


def test_what_nobody_was_told_of_is_removed(tmp_path, one_file_a_task: None) -> None:
    table = with_deletes(tmp_path, 2)
    catalog, old = catalog_of(table), files_below(table)

    def dies(number: int) -> bool:
        if number == 2:
            raise OperationalError("Spark has ended")
        return number == 1

    workers: Any = Workers(dies)
    with pytest.raises(OperationalError, match="Spark has ended"):
        converted(catalog, run=run_in_spark(workers))
    assert files_below(table) == old


@pytest.mark.parametrize("change", ["path", "file", "twice", "bytes", "notes", "reference"])
def test_a_result_that_cannot_be_is_refused(tmp_path, change: str, monkeypatch) -> None:
    real = DeletesTask.run

    def other(*given: Any) -> Any:
        done = real(*given)
        if not done.deletes:
            return done
        (delete, *deletes), (note, *notes) = done.deletes, done.notes
        numbers, rows = msgspec.msgpack.decode(note)
        if change == "path":
            delete = replace(delete, path="/etc/passwd")
        elif change == "file":
            numbers = [77]
        elif change == "twice":
            again = replace(delete, path=delete.path.replace("00001-0-", "00009-0-"))
            deletes, notes = [*deletes, again], [*notes, note]
        elif change == "reference":
            delete = replace(delete, referenced_data_file="x")
        elif change == "notes":
            notes = []
        else:
            rows = "many"
        note = msgspec.msgpack.encode((numbers, rows))
        return replace(done, deletes=(delete, *deletes), notes=(note, *notes))

    monkeypatch.setattr(DeletesTask, "run", other)
    table = with_deletes(tmp_path, 2)
    catalog = catalog_of(table)
    before = everything(catalog, 2)
    workers: Any = Workers()
    with pytest.raises(InternalError):
        converted(catalog, run=run_in_spark(workers))
    assert everything(catalog, 2) == before


def test_files_that_no_task_read_are_noticed(tmp_path) -> None:
    catalog = catalog_of(with_deletes(tmp_path, 2))
    before = everything(catalog, 2)
    with pytest.raises(InternalError, match="read 0 of 3 data files"):
        convert(
            catalog,
            plan_of(catalog),
            QueryContext(),
            run=lambda work: (each for each in ()),
        )
    assert everything(catalog, 2) == before


def test_a_table_that_is_upgraded_meanwhile_gets_vectors(tmp_path) -> None:
    table = with_deletes(tmp_path, 2)
    catalog = catalog_of(table)
    before = read(catalog)
    done = converted(
        catalog,
        lambda: execute(catalog, "ALTER TABLE ns.t SET TBLPROPERTIES ('format-version' = '3')"),
    )
    assert (done.removed, done.added) == (1, 3)
    assert plainly(catalog) == read(catalog) == before
    formats = asked(
        catalog, "SELECT file_format, count(*) FROM ns.t.delete_files GROUP BY ALL ORDER BY ALL"
    )
    assert ("PUFFIN", 3) in formats


@pytest.mark.parametrize("version", [2, 3])
def test_files_that_are_listed_twice_keep_their_deletes(tmp_path, version: int) -> None:
    table = new_table(tmp_path, version)
    files = table.append(rows(0, 10), rows(10, 10))
    table.delete_keys(3, 14)
    table.commit([again(files[0])])  # younger than its delete
    catalog = catalog_of(table)
    before = read(catalog)
    assert len(before) == 28
    done = converted(catalog)
    assert (done.removed, done.added, done.left) == (0, 1, 1)
    assert plainly(catalog) == read(catalog) == before


def test_a_file_that_is_listed_again_meanwhile_conflicts(tmp_path) -> None:
    table = new_table(tmp_path, 2)
    files = table.append(rows(0, 10), rows(10, 10))
    table.delete_keys(3, 14)
    catalog = catalog_of(table)
    known = files_below(table)
    with pytest.raises(icesql.CommitConflictError, match="a second time"):
        converted(catalog, lambda: table.commit([again(files[0])]))
    assert {each for each in files_below(table) - known if "deletes" in str(each)} == set()
    assert len(plainly(catalog)) == 28


# ------------------------------------------------------------------ parts


def stream(folder: Path, count: int, *, disjoint: bool, version: int = 2) -> Any:
    """``count`` commits, each with a data file and equality deletes of two older rows."""
    table = new_table(folder, version)
    for number in range(count):
        added = [table.data_file(rows(10 * number, 10))]
        if number:
            older = [10 * number - 3] if disjoint else [2, 10 * number - 3]
            added.append(table.equality_deletes([{"id": each} for each in older], [1]))
        table.commit(added)
    return table


def test_parts_have_every_file_once_and_stay_small(tmp_path) -> None:
    table = stream(tmp_path, 12, disjoint=False)
    tasks = plan_of(catalog_of(table)).tasks
    assert len(tasks) == 11
    for slots, most in [(1, 1 << 20), (1, 25), (1, 1), (3, 1 << 20), (50, 1 << 20), (4, 20)]:
        parts = [*divide(tasks, slots, most)]
        assert sorted(each for part in parts for each in part) == [*range(11)]
        assert all(
            len(part) == 1 or sum(tasks[each].data_file.record_count for each in part) <= most
            for part in parts
        )
        if most > 100:
            assert len(parts) <= slots


def test_key_files_are_read_once_for_all_data_files(tmp_path, monkeypatch) -> None:
    counts = [0]
    real = EqualityGroup._file_batches

    def counted(self: Any, file: Any) -> Iterator[Any]:
        counts[0] += 1
        yield from real(self, file)

    monkeypatch.setattr(EqualityGroup, "_file_batches", counted)
    read_files = []
    for count in (10, 40):
        table = stream(tmp_path / str(count), count, disjoint=False)
        catalog = catalog_of(table)
        before = plainly(catalog)
        counts[0] = 0
        plan = plan_conversion(
            catalog.load(("ns", "t")),
            QueryContext(settings=icesql.config.Settings(local_reader="arrow")),
        )
        query = QueryContext(settings=icesql.config.Settings(local_reader="arrow"))
        done = convert(catalog, plan, query)
        read_files.append(counts[0])
        assert (done.removed, done.left) == (count - 1, 0)
        assert plainly(catalog) == before
    assert read_files == [9, 39]


def test_deletes_whose_bounds_exclude_a_file_do_not_travel_with_it(
    tmp_path, one_file_a_task: None
) -> None:
    table = stream(tmp_path, 8, disjoint=True)
    catalog = catalog_of(table)
    plan = plan_of(catalog)
    tasks = [*tasks_of(plan, "x", QueryContext(), 1)]
    assert len(tasks) == 7
    assert {len(each.scan.tasks[0].deletes) for each in tasks} == {1}
    before = read(catalog)
    done = converted(catalog)
    assert (done.removed, done.added, done.rows, done.left) == (7, 7, 7, 0)
    assert plainly(catalog) == before


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_random_streams(tmp_path, version: int, seed: int, one_file_a_task: None) -> None:
    chance = random.Random(seed)
    table = new_table(tmp_path, version, partitioned=seed == 2)
    files: list[tuple[Any, str]] = []
    for _ in range(12):
        place = chance.choice("ab")
        partition = (place,) if seed == 2 else ()
        made = [{"id": chance.randrange(40), "p": place, "x": 1} for _ in range(20)]
        commit = [table.data_file(made, partition=partition)]
        keys = [{"id": chance.randrange(40)} for _ in range(chance.randrange(3))]
        if keys:
            commit.append(table.equality_deletes(keys, [1], partition=partition))
        if files and version == 2 and chance.random() < 0.4:
            file, place = chance.choice(files)
            partition = (place,) if seed == 2 else ()
            gone = sorted(chance.sample(range(20), 3))
            commit.append(
                table.position_deletes([(file, each) for each in gone], partition=partition)
            )
        files.append((commit[0], place))
        table.commit(commit)
    catalog = catalog_of(table)
    before = plainly(catalog)
    workers: Any = Workers(lambda number: number % 3 == 0)
    done = converted(catalog, run=run_in_spark(workers) if seed else run_here)
    assert done.left == 0
    assert plainly(catalog) == read(catalog) == before


@pytest.mark.parametrize("version", [2, 3])
def test_many_rows_of_one_file(tmp_path, version: int, monkeypatch) -> None:
    from icesql.write import deletes

    monkeypatch.setattr(deletes, "_ROWS_AT_ONCE", 7)
    monkeypatch.setattr(task, "_MOST_WAITING", 10)
    table = new_table(tmp_path, version)
    table.commit([table.data_file(rows(100 * each, 100)) for each in range(4)])
    gone = sorted(np.random.default_rng(1).choice(400, 150, replace=False).tolist())
    table.commit([table.equality_deletes([{"id": each} for each in gone], [1])])
    catalog = catalog_of(table)
    before = read(catalog)
    done = converted(catalog)
    assert (done.rows, done.added, len(before)) == (150, 4, 250)
    assert plainly(catalog) == read(catalog) == before
    if version == 2:
        found = asked(catalog, "SELECT sum(record_count), count(*) FROM ns.t.delete_files")
        assert found == [(150, 4)]
