"""convert_equality_deletes: rows stay the same, and deletes stay as long as they are needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, ProgrammingError
from icesql.maintain.deletes.plan import plan_conversion
from icesql.maintain.deletes.run import Converted, convert
from icesql.work.run import run_here
from tests.columns import json_columns
from tests.maintain.rewrite.tables import (
    BY_P,
    asked,
    catalog_of,
    everything,
    new_table,
    planned,
    read,
    rewrite,
    rows,
)
from tests.maintain.rewrite.test_meanwhile import execute, set_merge_on_read
from tests.maintain.rewrite.test_run import with_deletes
from tests.writer.table import TableWriter

CALL = "CALL system.convert_equality_deletes('ns.t')"


def converted(
    catalog: Any, *others: Callable[[], Any], run: Any = run_here, **named: Any
) -> Converted:
    """A conversion; ``others`` act between its reading and its commit."""
    query = QueryContext()
    conversion = plan_conversion(catalog.load(("ns", "t")), query, **named)

    def and_others(work: Any) -> Any:
        yield from run(work)
        for each in others:
            each()

    return convert(catalog, conversion, query, run=and_others)


def contents(catalog: Any) -> dict[int, int]:
    """The numbers of live data, position delete and equality delete files."""
    found = asked(catalog, "SELECT content, count(*) FROM ns.t.files GROUP BY ALL")
    return dict(found)


def plainly(catalog: Any) -> list[Any]:
    return read(catalog, caches=False, prune=False, local_reader="arrow")


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_stay_and_equality_deletes_go(tmp_path, version: int, partitioned: bool) -> None:
    table = with_deletes(tmp_path, version, partitioned=partitioned)
    catalog = catalog_of(table)
    before = everything(catalog, version)
    data = {str(each) for each in Path(table.folder, "data").rglob("*.parquet")}
    with icesql.connect(warehouse=catalog.folder) as con:
        (start,) = con.execute("SELECT max(snapshot_id) FROM ns.t.snapshots").fetchone()
        deletes = 0 if version == 1 else 3 if partitioned else 1
        steps = con.execute(f"EXPLAIN {CALL}").fetchall()
        kinds = {"deletion vector" if version > 2 else "position delete file": 1} if deletes else {}
        for kind, count in {
            "data file": 3 * bool(deletes),
            "equality delete file": deletes,
        }.items():
            assert len([each for each in steps if each[:2] == ("read", kind)]) == count
        assert {each[1]: 1 for each in steps if each[0] == "write"} == kinds
        assert con.execute(CALL).fetchall() == [
            (deletes, 3 if deletes else 0, 3 if deletes else 0, 0)
        ]
        assert everything(catalog, version) == before
        assert plainly(catalog) == read(catalog)
        assert 2 not in contents(catalog)
        if deletes:
            (operation, *_), *_ = con.execute(
                "SELECT operation FROM ns.t.snapshots ORDER BY committed_at DESC"
            ).fetchall()
            assert operation == "replace"
        # Nothing is left to do, and a rollback restores the same rows.
        assert con.execute(CALL).fetchall() == [(0, 0, 0, 0)]
        con.execute(f"CALL system.rollback_to_snapshot('ns.t', {start})")
        assert everything(catalog, version) == before
        assert con.execute(CALL).fetchall()[0][0] == deletes
    assert everything(catalog, version) == before
    new = {str(each) for each in Path(table.folder, "data").rglob("*.parquet")} - data
    assert all("deletes" in each for each in new)


def test_pyiceberg_reads_the_same(tmp_path) -> None:
    table = new_table(tmp_path, 2)
    table.append(rows(0, 10), rows(10, 10))
    table.delete_keys(4, 14)
    catalog = catalog_of(table)
    with icesql.connect(warehouse=catalog.folder) as con:
        con.execute(CALL)
    from pyiceberg.table import StaticTable

    found = StaticTable.from_metadata(catalog.load(("ns", "t")).metadata_location)
    ids = found.scan().to_arrow()["id"].to_pylist()
    assert sorted(ids) == [n for n in range(20) if n not in (4, 14)]


FIELDS = json_columns("1 k int, 2 d double, 3 s struct<4 x string>, 5 old long")
NAN = float("nan")


@pytest.mark.parametrize("version", [2, 3])
def test_keys_of_every_kind(tmp_path, version: int) -> None:
    target = tmp_path / "wh" / "ns" / "t"
    target.mkdir(parents=True)
    table = TableWriter(str(target), FIELDS, [], version=version)
    values = [None, 0.0, -0.0, NAN, 1.5]
    made = [
        {"k": n % 4 or None, "d": values[n % 5], "s": {"x": None if n % 3 else "é"}, "old": n}
        for n in range(60)
    ]
    table.append(made[:30], made[30:])
    table.commit(
        [
            table.equality_deletes([{"k": None, "d": 0.0}, {"k": 1, "d": NAN}], [1, 2]),
            table.equality_deletes([{"d": -0.0}], [2]),
            table.equality_deletes([{"old": 7}, {"old": 33}], [5]),
        ]
    )
    # A promoted key, a dropped one, and rows that are newer than deletes of their keys.
    table.set_fields([{**FIELDS[0], "type": "long"}, *FIELDS[1:3]])
    table.append([{"k": 1, "d": NAN, "s": None}])
    table.commit([table.equality_deletes([{"k": 2}], [1])])
    catalog = catalog_of(table)
    before = read(catalog)
    assert 20 < len(before) < 61
    done = converted(catalog)
    assert (done.removed, done.left) == (4, 0)
    assert repr(read(catalog)) == repr(before)
    assert repr(plainly(catalog)) == repr(before)
    assert 2 not in contents(catalog)
    assert done.rows == 61 - len(before)


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_stay_while_other_files_need_them(tmp_path, version: int) -> None:
    table = new_table(tmp_path, version, partitioned=True)
    table.commit([table.data_file(rows(0, 10, p), partition=(p,)) for p in "ab"])
    table.set_spec([])
    table.delete_keys(3)  # in all partitions
    table.append(rows(100, 5, "c"))
    catalog = catalog_of(table)
    before = read(catalog)
    with icesql.connect(warehouse=catalog.folder) as con:
        where = "CALL system.convert_equality_deletes('ns.t', where => 'p = ''a''')"
        cursor = con.execute(where)
        assert cursor.fetchall() == [(0, 1, 1, 1)]
        assert any("stay" in each for each in cursor.notes)
        assert con.execute(where).fetchall() == [(0, 0, 0, 1)]
        assert read(catalog) == before
        assert con.execute(CALL).fetchall() == [(1, 1, 1, 0)]
        assert plainly(catalog) == before
        explained = con.execute(f"EXPLAIN {CALL}").fetchall()
    assert explained == []


def test_what_applies_to_nothing_goes(tmp_path) -> None:
    table = new_table(tmp_path, 2)
    (file,) = table.append(rows(0, 10))
    table.delete_keys(3)
    table.commit([table.data_file(rows(50, 5))], removed=[file])
    catalog = catalog_of(table)
    done = converted(catalog)
    assert (done.removed, done.added, done.left) == (1, 0, 0)
    assert len(plainly(catalog)) == 5


@pytest.mark.parametrize("version", [2, 3])
def test_what_others_delete_meanwhile_is_united(tmp_path, version: int) -> None:
    table = with_deletes(tmp_path, version)
    catalog = catalog_of(table)
    set_merge_on_read(catalog)
    expected: list[Any] = []
    done = converted(
        catalog,
        lambda: execute(
            catalog,
            "DELETE FROM ns.t WHERE id % 7 = 1",
            "INSERT INTO ns.t VALUES (4, 'a', 1)",  # younger than the delete of this key
            "DELETE FROM ns.t WHERE id % 11 = 2",
        ),
        lambda: expected.extend(everything(catalog, version)),
    )
    assert (done.removed, done.left) == (1, 0)
    assert everything(catalog, version) == expected
    assert plainly(catalog) == read(catalog)


@pytest.mark.parametrize("version", [2, 3])
def test_each_attempt_looks_again(tmp_path, version: int, monkeypatch) -> None:
    table = with_deletes(tmp_path, version)
    catalog = catalog_of(table)
    set_merge_on_read(catalog)
    left = ["DELETE FROM ns.t WHERE id = 7", "DELETE FROM ns.t WHERE id = 17"]
    swap = catalog.swap
    expected: list[Any] = []

    def racing(*given: Any, **named: Any) -> Any:
        if left:
            execute(catalog, left.pop())
            expected[:] = everything(catalog, version)
        return swap(*given, **named)

    monkeypatch.setattr(catalog, "swap", racing)
    assert converted(catalog).removed == 1
    assert everything(catalog, version) == expected
    with icesql.connect(warehouse=catalog.folder) as con:
        named = {r[0] for r in con.execute("SELECT file_path FROM ns.t.all_files").fetchall()}
    there = {each.name for each in Path(table.folder, "data").rglob("*") if each.is_file()}
    assert there <= {Path(each).name for each in named}


@pytest.mark.parametrize("keeps_age", [True, False])
def test_older_rows_that_come_meanwhile_keep_their_deletes(tmp_path, keeps_age: bool) -> None:
    table = new_table(tmp_path, 2)
    table.append(rows(0, 10), rows(10, 10))
    plan_before_deletes = planned(catalog_of(table), rewrite_all=True)
    table.delete_keys(3, 14)
    catalog = catalog_of(table)

    def compacts() -> None:
        if keeps_age:
            rewrite(catalog, plan_before_deletes)
        else:
            execute(
                catalog,
                "CALL system.rewrite_data_files('ns.t', options => map('rewrite-all', 'true'))",
            )

    done = converted(catalog, compacts)
    assert done.added == 0
    # The other compaction applied the deletes, which now apply to no file.
    assert (done.removed, done.left) == ((0, 1) if keeps_age else (1, 0))
    assert len(plainly(catalog)) == 18
    assert converted(catalog).removed == keeps_age
    assert len(plainly(catalog)) == 18


def test_newer_deletes_stay(tmp_path) -> None:
    table = new_table(tmp_path, 2)
    table.append(rows(0, 10))
    table.delete_keys(3)
    catalog = catalog_of(table)
    done = converted(catalog, lambda: table.delete_keys(5))
    assert (done.removed, done.added, done.left) == (1, 1, 1)
    assert len(plainly(catalog)) == 8


@pytest.mark.parametrize("kind", ["positions", "equality"])
def test_deletes_that_are_taken_back_conflict(tmp_path, kind: str) -> None:
    table = new_table(tmp_path, 2)
    (file,) = table.append(rows(0, 10))
    positions, equality = (
        [table.position_deletes([(file, 1), (file, 3)])],
        [table.equality_deletes([{"id": 3}, {"id": 4}], [1])],
    )
    table.commit([*positions, *equality])
    catalog = catalog_of(table)
    removed = positions if kind == "positions" else equality
    known = {str(each) for each in Path(table.folder, "data").rglob("*.parquet")}
    with pytest.raises(CommitConflictError, match=r"were (taken back|removed)"):
        converted(catalog, lambda: table.commit([], removed=removed))
    assert len(plainly(catalog)) == 8
    assert {str(each) for each in Path(table.folder, "data").rglob("*.parquet")} == known


def test_a_branch_alone(tmp_path) -> None:
    table = new_table(tmp_path, 2)
    table.append(rows(0, 10))
    table.delete_keys(3)
    catalog = catalog_of(table)
    with icesql.connect(warehouse=catalog.folder) as con:
        con.execute("ALTER TABLE ns.t CREATE BRANCH b")
        call = "CALL system.convert_equality_deletes('ns.t', branch => '{}')"
        assert con.execute(call.format("b")).fetchall() == [(1, 1, 1, 0)]
        assert contents(catalog)[2] == 1  # main still has it
        count = "SELECT count(*) FROM ns.t VERSION AS OF 'b'"
        assert con.execute(count).fetchall() == [(9,)]
        with pytest.raises(ProgrammingError, match="no branch 'nosuch'"):
            con.execute(call.format("nosuch"))
        con.execute("CREATE TABLE ns.empty (a INT)")
        assert con.execute("CALL system.convert_equality_deletes('ns.empty')").fetchall() == [
            (0, 0, 0, 0)
        ]
    assert len(read(catalog)) == 9


def test_partitions_of_another_spec(tmp_path) -> None:
    table = new_table(tmp_path, 2)
    table.append(rows(0, 10, "a"))
    table.set_spec(BY_P)
    table.append(rows(10, 10, "a"), partition=("a",))
    table.delete_keys(3, 14, partition=("a",))
    catalog = catalog_of(table)
    before = read(catalog)
    assert len(before) == 19  # a delete of a partition reaches its own spec alone
    done = converted(catalog)
    assert (done.removed, done.added, done.rows) == (1, 1, 1)
    assert plainly(catalog) == before


def test_a_number_of_rows_that_cannot_be_is_refused(tmp_path) -> None:
    table = new_table(tmp_path, 2)
    file = table.data_file(rows(0, 10))
    file.record["record_count"] = 1 << 41
    table.commit([file])
    table.delete_keys(3)
    with pytest.raises(icesql.Error, match="rows"):
        converted(catalog_of(table))


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_without_a_number_of_rows_is_converted(tmp_path, version: int) -> None:
    table = new_table(tmp_path, version)
    files = [table.data_file(rows(0, 10)), table.data_file(rows(10, 10))]
    files[0].record["record_count"] = -1
    table.commit(files)
    table.delete_keys(4, 15)
    catalog = catalog_of(table)
    with icesql.connect(warehouse=catalog.folder) as con:
        con.execute("CALL system.convert_equality_deletes('ns.t')").fetchall()
        assert len(con.execute("SELECT id FROM ns.t").fetchall()) == 18
        assert con.execute(
            "SELECT count(*) FROM ns.t.delete_files WHERE content = 2"
        ).fetchone() == (0,)
        assert [each.status for each in con.maintain(["ns.t"], actions=["convert"]).tables] == [
            "nothing"
        ]
