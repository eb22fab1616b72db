"""Deletes with positions beyond the end of their data file, and files with wrong row counts.

A position is the ordinal of a row: a position without a row deletes nothing, however rows are
counted.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any

import pytest
from msgspec.structs import replace

import icesql
from icesql.catalog.directory import DirectoryCatalog
from icesql.context import QueryContext
from icesql.errors import CorruptFileError, InternalError
from icesql.read.task import read_file
from icesql.scan.plan import TableScan
from icesql.scan.planner import plan
from tests.maintain.rewrite.tables import catalog_of, new_table, rows

LIVE = {0, 1, 2, *range(4, 10)}
UPGRADE = (
    "ALTER TABLE ns.t SET TBLPROPERTIES ('format-version' = '3')",
    "CALL system.rewrite_position_delete_files('ns.t', options => map('rewrite-all', 'true'))",
)
MODES = ("copy-on-write", "merge-on-read")
ALL_REWRITTEN = "CALL system.rewrite_data_files('ns.t', options => map('rewrite-all', 'true'))"
# Each with the remaining ids of LIVE; two that change one file follow one another.
STATEMENTS: dict[str, set[int]] = {
    "DELETE FROM ns.t WHERE id <> 9": {9},
    "DELETE FROM ns.t WHERE id < 9": {9},
    "DELETE FROM ns.t WHERE id % 2 = 1": {0, 2, 4, 6, 8},
    "DELETE FROM ns.t WHERE id >= 0": set(),
    "DELETE FROM ns.t": set(),
    "UPDATE ns.t SET x = 77 WHERE id < 9": LIVE,
    "UPDATE ns.t SET x = 77": LIVE,
    "MERGE INTO ns.t USING (SELECT range AS i FROM range(9)) s ON id = i WHEN MATCHED "
    "THEN DELETE": {9},
    ALL_REWRITTEN: LIVE,
    "CALL system.rewrite_position_delete_files('ns.t', options => map('rewrite-all', 'true'))": LIVE,
    "CALL system.rewrite_manifests('ns.t')": LIVE,
}  # fmt: skip

OF_FALSE_COUNTS = [
    "DELETE FROM ns.t WHERE id <> 9",
    "DELETE FROM ns.t WHERE id < 9",
    "UPDATE ns.t SET x = 77 WHERE id < 9",
    ALL_REWRITTEN,
    "CALL system.rewrite_position_delete_files('ns.t', options => map('rewrite-all', 'true'))",
    "DELETE FROM ns.t",
]


def _deletes(table: Any, file: Any, kind: str, beyond: tuple[int, ...]) -> None:
    positions = [3, *beyond]
    if kind == "vector":
        table.commit(table.deletion_vectors([(file, positions)]))
    elif kind == "two files":
        table.commit([table.position_deletes([(file, 3)])])
        table.commit([table.position_deletes([(file, each)]) for each in beyond])
    else:
        pairs = [(file, each) for each in positions]
        table.commit([table.position_deletes(pairs, referenced=kind == "referenced")])


def _run(folder: str, *statements: str) -> None:
    with icesql.connect(warehouse=folder) as con:
        for each in statements:
            con.execute(each)


def _live(folder: str) -> set[int]:
    """The ids, counted in every way."""
    with icesql.connect(warehouse=folder) as con:
        ids = [each for (each,) in con.execute("SELECT id FROM ns.t").fetchall()]
        for text in (
            "SELECT count(*) FROM ns.t",
            "SELECT count(*) FROM ns.t WHERE id >= 0",
            "SELECT coalesce(sum(n), 0) FROM (SELECT p, count(*) AS n FROM ns.t GROUP BY p)",
            "SELECT count(id) FROM ns.t",
        ):
            assert con.execute(text).fetchone() == (len(ids),), text
    assert len(set(ids)) == len(ids)
    return set(ids)


@pytest.mark.parametrize("kind", ["file", "referenced", "two files", "vector", "upgraded"])
def test_positions_beyond_the_end_delete_nothing(tmp_path, kind: str) -> None:
    for number, (statement, left) in enumerate(STATEMENTS.items()):
        beyond = (1000,) if number % 3 else (*range(10, 18), 1 << 33)
        mode = MODES[number % 4 > 0]
        modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
        version = 3 if kind == "vector" else 2
        table = new_table(tmp_path / str(number), version, **modes)
        file = table.data_file(rows(0, 10))
        table.commit([file])
        _deletes(table, file, kind, beyond)
        folder = catalog_of(table).folder
        if kind == "upgraded":
            _run(folder, *UPGRADE)
        assert _live(folder) == LIVE
        _run(folder, statement)
        assert _live(folder) == left, statement
        again = "DELETE FROM ns.t WHERE id IN (2, 8)"
        _run(folder, again, ALL_REWRITTEN)
        assert _live(folder) == left - {2, 8}, statement


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_no_row_at_all(tmp_path, version: int) -> None:
    for number, statement in enumerate(STATEMENTS):
        table = new_table(tmp_path / str(number), version)
        file = table.data_file(rows(0, 10))
        table.commit([file])
        if version == 3:
            table.commit(table.deletion_vectors([(file, [10, 2000])]))
        else:
            table.commit([table.position_deletes([(file, 10), (file, 11)], referenced=True)])
        folder = catalog_of(table).folder
        assert _live(folder) == {*range(10)}
        _run(folder, statement)
        left = STATEMENTS[statement]
        assert _live(folder) - {3} == left, statement


@pytest.mark.parametrize("count", [5, 8, 12, 2000, -1])
@pytest.mark.parametrize("format", ["parquet", "avro", "orc"])
def test_a_false_row_count_loses_and_brings_no_row(tmp_path, format: str, count: int) -> None:
    """Either the file is refused, or the rows are correct."""
    for number, statement in enumerate(OF_FALSE_COUNTS):
        left, upgraded, mode = STATEMENTS[statement], number % 2 == 1, MODES[number % 3 > 0]
        modes = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
        table = new_table(tmp_path / str(number), 2, **modes)
        file = table.data_file(rows(0, 10), format=format, stats=False)
        file.record["record_count"] = count
        table.commit([file])
        table.commit([table.position_deletes([(file, 3), (file, 8), (file, 1000)])])
        folder = catalog_of(table).folder
        done = count < 0
        # If the file is not opened, wrong counts may go unnoticed.
        with nullcontext() if done else suppress(CorruptFileError, InternalError):
            _run(folder, *(UPGRADE if upgraded else ()), statement)
            done = True
        if count < 0:
            assert _live(folder) == left - {8}, statement
        expected = left if done else LIVE
        assert _uncounted(folder) == sorted(expected - {8}), statement


def _uncounted(folder: str) -> list[int]:
    """The ids of live rows according to the files themselves, ignoring recorded counts."""
    table = DirectoryCatalog(folder).load(("ns", "t"))
    metadata, query = table.metadata, QueryContext()
    planned = plan(
        TableScan(table, metadata.current_snapshot, metadata.schema, metadata.schema), query
    )
    found = []
    for task in planned.files:
        known = replace(task, data_file=replace(task.data_file, record_count=-1))
        for batch in read_file(known, planned.context, query):
            found += batch.column(0).to_pylist()
    return sorted(found)
