"""What manifests let suspect is decided by reading: right tables are maintained, wrong ones named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.health import live_rows
from tests.maintain.rewrite.tables import catalog_of, new_table, rows
from tests.writer.table import TableWriter

DAMAGE = {"rows changed", "deletes dropped"}
REWRITE = "CALL system.rewrite_position_delete_files('ns.t', options => map('rewrite-all', 'true'))"


def ids(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": each, "p": "a", "x": 1.0} for each in numbers]


def compacted(drop: bool, rows_back: bool = False) -> Callable[[TableWriter], None]:
    """Five files become one beside an upsert of new keys, of one of theirs with ``rows_back``."""

    def make(t: TableWriter) -> None:
        old = [t.data_file(ids(*range(first, 1000, 10))) for first in range(0, 10, 2)]
        t.commit(old)
        keys = ids(4 if rows_back else 5, 17)
        deletes = t.equality_deletes([{"id": each["id"]} for each in keys], [1])
        t.commit([deletes, t.data_file(keys)])
        new = t.data_file(ids(*range(0, 1000, 2)))
        t.commit([new], [*old, deletes] if drop else old, "replace")

    return make


def converted(operation: str, positions: list[int]) -> Callable[[TableWriter], None]:
    """Another engine writes positions in the place of equality deletes of ids 4 and 88."""

    def make(t: TableWriter) -> None:
        even, odd = t.data_file(ids(*range(0, 100, 2))), t.data_file(ids(*range(1, 100, 2)))
        t.commit([even, odd])
        deletes = t.equality_deletes([{"id": 4}, {"id": 88}], [1])
        t.commit([deletes, t.data_file(ids(4))])
        if t.version == 3:
            new = t.deletion_vectors([(even, positions)])
        else:
            new = [t.position_deletes([(even, each) for each in positions], referenced=True)]
        t.commit(new, [deletes], operation)

    return make


def converted_twice_then_compacted(t: TableWriter) -> None:
    (f,) = t.append(ids(*range(0, 20, 2)))
    held: list[Any] = []
    for id, places in ((4, [2]), (8, [2, 4])):
        deletes = t.delete_keys(id)
        new = (
            t.deletion_vectors([(f, places)])
            if t.version == 3
            else [t.position_deletes([(f, each) for each in places], referenced=True)]
        )
        t.commit(new, [deletes, *held], "replace")
        held = new
    g = t.data_file(ids(*(each for each in range(0, 20, 2) if each not in (4, 8))))
    t.commit([g], [f, *held], "replace")


def twice(extra: int, *, referenced: bool = False) -> Callable[[TableWriter], None]:
    """A delete file of row 1 and once more of row ``extra``, and what another engine made of it."""

    def make(t: TableWriter) -> None:
        f, g = t.data_file(rows(0, 10)), t.data_file(rows(10, 10))
        t.commit([f, g])
        if referenced:
            old = [t.position_deletes([(f, 1), (f, extra)], referenced=True)]
        else:
            old = [t.position_deletes([(f, 1), (f, extra), (g, 2)])]
        t.commit(old)
        new = [t.position_deletes([(f, 1)], referenced=True)]
        if not referenced:
            new.append(t.position_deletes([(g, 2)], referenced=True))
        t.commit(new, old, "replace")

    return make


def compacted_with_a_row_named_twice(t: TableWriter) -> None:
    (f,) = t.append(rows(0, 10))
    deletes = t.position_deletes([(f, 1), (f, 1), (f, 2), (f, 1000)], referenced=True)
    t.commit([deletes])
    new = t.data_file([each for each in rows(0, 10) if each["id"] not in (1, 2)])
    t.commit([new], [f, deletes], "replace")


def dropped_keys(t: TableWriter) -> None:
    t.append(ids(*range(0, 20, 2)))
    deletes = t.delete_keys(4, 5)
    t.commit([], [deletes], "delete")


def dropped_positions(t: TableWriter) -> None:
    f, g = t.data_file(rows(0, 10)), t.data_file(rows(10, 10))
    t.commit([f, g])
    old = t.position_deletes([(f, 1), (f, 3), (g, 2)])
    t.commit([old])
    kept = [(f, 1), (g, 2)]
    t.commit([t.position_deletes([each], referenced=True) for each in kept], [old], "replace")


def names(t: TableWriter) -> tuple[set[str], set[str]]:
    """The kinds of damage that the doctor tells, and the status of a maintenance."""
    with icesql.connect(warehouse=catalog_of(t).folder) as con:
        found = {each.name: each.weight for each in con.doctor("ns.t").findings}
        (report,) = con.maintain(["ns.t"], actions=["convert", "compact", "deletes"]).tables
    weights = {f"{each} {weight}" for each, weight in found.items() if each in DAMAGE}
    return weights, {report.status} | ({report.note} if report.note else set())


RIGHT = {
    "compacted beside new keys": compacted(False),
    "compacted beside new keys, their deletes dropped": compacted(True),
    "converted by a replace": converted("replace", [2, 44]),
    "converted by an overwrite": converted("overwrite", [2, 44]),
    "converted by a delete": converted("delete", [2, 44]),
    "converted twice, then compacted": converted_twice_then_compacted,
    "a row twice in a delete file": twice(1),
    "a row beyond the end in a delete file": twice(1000),
    "a row twice in the delete file of one data file": twice(1, referenced=True),
    "a row beyond the end in the delete file of one": twice(1000, referenced=True),
    "compacted with a row named twice": compacted_with_a_row_named_twice,
}
WRONG = {
    "compacted over deletes by equality": (compacted(True, rows_back=True), "rows changed high"),
    "converted but for one row": (converted("replace", [2]), "deletes dropped high"),
    "converted to another row": (converted("overwrite", [2, 43]), "deletes dropped high"),
    "deletes by equality dropped": (dropped_keys, "deletes dropped high"),
    "a position dropped": (dropped_positions, "deletes dropped high"),
}


def make(folder: Path, version: int, how: Callable[[TableWriter], None]) -> TableWriter:
    table = new_table(folder, version)
    how(table)
    return table


def positional(name: str) -> bool:
    return "delete file" in name or "row named" in name or "position" in name


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_no_damage_and_is_maintained(
    tmp_path: Path, name: str, version: int
) -> None:
    if version == 3 and positional(name):
        version = 2  # no new position delete files there
    damage, status = names(make(tmp_path, version, RIGHT[name]))
    assert damage == set()
    assert status <= {"nothing", "done"}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_certain(tmp_path: Path, name: str) -> None:
    how, wanted = WRONG[name]
    damage, status = names(make(tmp_path, 2, how))
    assert damage == {wanted}
    assert "damaged" in status


@pytest.mark.parametrize("name", ["compacted beside new keys", "converted by an overwrite"])
def test_a_doubt_that_cannot_be_read_is_a_finding_and_no_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(live_rows, "_MOST_BYTES", 0)
    damage, status = names(make(tmp_path, 2, RIGHT[name]))
    assert damage in ({"rows changed medium"}, {"deletes dropped medium"})
    assert {"damaged", "failed"}.isdisjoint(status)
    assert any("icesql doctor ns.t" in each for each in status)  # the report names the doubt


@pytest.mark.parametrize("upgrade", [False, True])
@pytest.mark.parametrize("extra", [1, 1000])
def test_a_rewrite_of_delete_files_by_icesql_is_no_damage(
    tmp_path: Path, extra: int, upgrade: bool
) -> None:
    table = new_table(tmp_path, 2)
    f, g = table.data_file(rows(0, 10)), table.data_file(rows(10, 10))
    table.commit([f, g])
    table.commit([table.position_deletes([(f, 1), (f, extra), (g, 2)])])
    with icesql.connect(warehouse=catalog_of(table).folder) as con:
        if upgrade:
            con.execute("ALTER TABLE ns.t SET TBLPROPERTIES ('format-version' = '3')")
        con.execute(REWRITE).fetchall()
        assert len(con.execute("SELECT id FROM ns.t").fetchall()) == 18
    damage, status = names(table)
    assert damage == set()
    assert status <= {"nothing", "done"}


def test_the_keys_of_a_file_are_read_once_for_all_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path, 2)
    (f,) = table.append(ids(*range(0, 100, 2)))
    held: list[Any] = []
    for number in range(6):
        deletes = table.delete_keys(2 * number, 2 * number + 1)
        places = [(f, each) for each in range(number + 1)]
        new = [table.position_deletes(places, referenced=True)]
        table.commit(new, [deletes, *held], "overwrite")
        held = new
    read: list[int] = []
    real = live_rows.read_live_rows

    def counted(scan: Any, query: Any) -> Any:
        read.append(len(scan.tasks))
        return real(scan, query)

    monkeypatch.setattr(live_rows, "read_live_rows", counted)
    with icesql.connect(warehouse=catalog_of(table).folder) as con:
        assert DAMAGE.isdisjoint(each.name for each in con.doctor("ns.t").findings)
    assert read == [1]
