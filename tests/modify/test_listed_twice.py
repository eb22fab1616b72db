"""A table that lists a data file twice: its rows occur twice, and a CALL fixes that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

import icesql
from icesql.catalog.directory import DirectoryCatalog
from icesql.commit.rows import commit_append, commit_overwrite, commit_row_delta
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, ProgrammingError
from icesql.scan.plan import TableScan
from icesql.scan.planner import plan
from icesql.write.deletes import write_deletes
from tests.writer.table import TableWriter

MEND = "CALL system.rewrite_data_files(table => 's.t', options => map('rewrite-all', 'true'))"


def twice(
    con: icesql.Connection, folder: Path, version: int = 2, mode: str = "copy-on-write"
) -> None:
    """Three rows in a file that is added twice, and one row in another file."""
    modes = "".join(f", 'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge"))
    con.execute(f"CREATE TABLE s.t (id INT) TBLPROPERTIES ('format-version' = '{version}'{modes})")
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int32())}), folder / "x.parquet")
    call = f"CALL system.add_files('s.t', '`parquet`.`{folder}`'"
    con.execute(f"{call})")
    with pytest.raises(ProgrammingError, match="all of their rows twice"):
        con.execute(f"{call})")
    con.execute(f"{call}, check_duplicate_files => false)")
    con.execute("INSERT INTO s.t VALUES (9)")


def ids(con: icesql.Connection) -> list[int]:
    """The ids by both readers, checked against counts."""
    found = []
    for reader in ("auto", "arrow"):
        con.execute(f"SET local_reader = '{reader}'")
        rows = [row[0] for row in con.execute("SELECT id FROM s.t ORDER BY id").fetchall()]
        assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(len(rows),)]
        big = [row for row in rows if row > 1]
        assert con.execute("SELECT count(*) FROM s.t WHERE id > 1").fetchall() == [(len(big),)]
        assert con.execute("SELECT max(id), min(id), sum(id) FROM s.t").fetchall() == [
            (max(rows), min(rows), sum(rows))
        ]
        assert len(con.execute("SELECT id FROM s.t LIMIT 5").fetchall()) == min(5, len(rows))
        groups = con.execute("SELECT id, count(*) FROM s.t GROUP BY id ORDER BY id").fetchall()
        assert groups == [(n, rows.count(n)) for n in sorted(set(rows))]
        found.append(rows)
    con.execute("RESET local_reader")
    assert found[0] == found[1]
    return found[0]


def file_of(table: Any) -> Any:
    schema = table.metadata.schema
    scan = TableScan(table, table.metadata.current_snapshot, schema, schema)
    return plan(scan, QueryContext()).files[0].data_file


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_others_concern_both(
    con: icesql.Connection, catalog: dict[str, Any], tmp_path, version: int
) -> None:
    """As in Java: by the path of the file."""
    twice(con, tmp_path / "in", version)
    folder = DirectoryCatalog(catalog["warehouse"])
    table = folder.load(("s", "t"))
    (file,) = {
        each.data_file.path: each.data_file
        for each in plan(
            TableScan(
                table, table.metadata.current_snapshot, table.metadata.schema, table.metadata.schema
            ),
            QueryContext(),
        ).files
        if each.data_file.path.endswith("x.parquet")
    }.values()
    made = write_deletes(table.metadata, table.storage, [(file, np.array([1]))])
    commit_row_delta(
        folder, table, deletes=[made], referenced=[file.path],
        start_id=table.metadata.current_snapshot_id, command="delete",
    )  # fmt: skip
    assert ids(con) == [1, 1, 3, 3, 9]
    con.execute(MEND)
    assert ids(con) == [1, 1, 3, 3, 9]


def test_equality_deletes_concern_both(tmp_path) -> None:
    fields = [{"id": 1, "name": "id", "required": False, "type": "long"}]
    target = tmp_path / "wh" / "s" / "t"
    target.mkdir(parents=True)
    writer = TableWriter(str(target), fields, [], version=2)
    file = writer.data_file([{"id": n} for n in range(4)])
    writer.commit([file])
    folder = DirectoryCatalog(str(tmp_path / "wh"))
    table = folder.load(("s", "t"))
    writer.commit([writer.equality_deletes([{"id": 2}], [1])])
    table = folder.load(("s", "t"))
    commit_append(folder, table, [replace(file_of(table), sequence_number=0)])
    with icesql.connect(warehouse=str(tmp_path / "wh"), read_only=False) as con:
        # The second listing is newer than the delete.
        assert ids(con) == [0, 0, 1, 1, 2, 3, 3]
        con.execute(MEND)
        assert ids(con) == [0, 0, 1, 1, 2, 3, 3]


def test_a_listing_that_came_meanwhile_is_a_conflict(
    con: icesql.Connection, catalog: dict[str, Any]
) -> None:
    """Removing the file by its path would remove rows that were not read."""
    con.execute("CREATE TABLE s.t AS SELECT 1 AS id")
    folder = DirectoryCatalog(catalog["warehouse"])
    before = folder.load(("s", "t"))
    file = file_of(before)
    commit_append(folder, before, [file])
    with pytest.raises(CommitConflictError, match="part of the table 2 times"):
        commit_overwrite(
            folder, before, removed=[file], isolation="snapshot",
            start_id=before.metadata.current_snapshot_id,
        )  # fmt: skip
    assert ids(con) == [1, 1]


def test_in_two_partitions(con: icesql.Connection, catalog: dict[str, Any]) -> None:
    con.execute("CREATE TABLE s.t (id INT, p INT) PARTITIONED BY (p)")
    con.execute("INSERT INTO s.t VALUES (1, 1), (2, 1)")
    folder = DirectoryCatalog(catalog["warehouse"])
    table = folder.load(("s", "t"))
    commit_append(folder, table, [replace(file_of(table), partition=(7,))])
    before = con.execute("SELECT * FROM s.t ORDER BY ALL").fetchall()
    assert len(before) == 4
    with pytest.raises(icesql.Error):
        con.execute("DELETE FROM s.t WHERE id = 1")
    con.execute(MEND)
    assert con.execute("SELECT * FROM s.t ORDER BY ALL").fetchall() == before
