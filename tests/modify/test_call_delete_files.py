"""rewrite_position_delete_files: the same rows with fewer delete files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import icesql
from icesql.catalog.directory import DirectoryCatalog
from icesql.catalog.table import CatalogPlan
from icesql.catalog.targets import table_to_change
from icesql.commit.rows import commit_row_delta
from icesql.context import QueryContext
from icesql.maintain.deletes import run as room
from icesql.maintain.deletes.plan import plan_delete_files, plan_deletes
from icesql.maintain.rewrite.plan import rewrite_options
from icesql.scan.plan import TableScan
from icesql.scan.planner import plan
from icesql.write.deletes import write_position_deletes


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


def test_a_vector_has_the_positions_of_files_that_stay(con: icesql.Connection) -> None:
    """A reader that finds a vector ignores other position deletes of the data file."""
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
        made = write_position_deletes(
            table.metadata,
            table.storage,
            [(file.data_file, np.array(positions, np.int64))],
            f"0-{positions[0]}-deletes",
        )
        made = replace(made, referenced_data_file=None, lower_bounds={}, upper_bounds={})
        commit_row_delta(
            folder, table, deletes=[made], referenced=[file.data_file.path],
            start_id=table.metadata.current_snapshot_id, command="delete",
        )  # fmt: skip
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '3')")
    before = rows(con)
    assert [row[0] for row in before] == [0, 2, 4, 6, 7, 8, 9]
    table = folder.load(("s", "t"))
    options = rewrite_options({"rewrite-all": "true"}, table.metadata, "deletes")
    (group,) = plan_delete_files(table, options, QueryContext())
    alone = replace(group, files=group.files[1:2])
    planned = plan_deletes(table, [alone], QueryContext())
    done = room.convert(folder, planned, QueryContext())
    assert (done.removed, [each.record_count for each in done.written]) == (1, [3])
    assert rows(con) == before


@pytest.mark.parametrize("granularity", ["file", "partition"])
@pytest.mark.parametrize(
    ("more", "left"), [(None, [0, 2, 4, 10, 12, 14]), ("i = 2", [0, 4, 10, 12, 14])]
)
def test_an_upgrade_meanwhile_is_followed(
    con: icesql.Connection, monkeypatch, granularity: str, more: Any, left: Any
) -> None:
    """After the new deletes are written, and before they are committed."""
    filled(con, 2, **{"write.delete.granularity": granularity})
    con.execute("DELETE FROM s.t WHERE i = 11 OR i = 1")
    old = {row[0] for row in con.execute("SELECT file_path FROM s.t.delete_files").fetchall()}
    plain = room.commit_rewrite

    def upgraded_first(*args: Any, **given: Any) -> Any:
        monkeypatch.setattr(room, "commit_rewrite", plain)
        con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '3')")
        if more:
            con.execute(f"DELETE FROM s.t WHERE {more}")
        return plain(*args, **given)

    monkeypatch.setattr(room, "commit_rewrite", upgraded_first)
    con.execute(
        "CALL system.rewrite_position_delete_files('s.t', options => map('rewrite-all', 'true'))"
    )
    assert [row[0] for row in rows(con)] == [*left, 901]
    found = con.execute("SELECT file_path, file_format FROM s.t.delete_files").fetchall()
    assert old.isdisjoint(row[0] for row in found)
    assert {row[1] for row in found} <= {"PUFFIN"}


def test_no_plan_of_a_catalog_is_asked_for(con: icesql.Connection) -> None:
    """Deletes that a catalog leaves out of a plan, as it may, would be lost."""

    class Nothing:
        def plan(self, *_: object) -> CatalogPlan:
            return CatalogPlan((), None, "nothing")

    filled(con, 2)
    before = rows(con)
    catalog, table = table_to_change(con._session.state.names, ("s", "t"))
    given = rewrite_options({"rewrite-all": "true"}, table.metadata, "deletes")
    query = QueryContext()
    table = replace(table, planning=Nothing())
    planned = plan_deletes(table, plan_delete_files(table, given, query), query)
    room.convert(catalog, planned, query)
    assert rows(con) == before
