"""Merge-on-read: one vector or delete file for each data file, with all that was deleted before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.catalog.directory import DirectoryCatalog
from icesql.commit.change import change_table
from icesql.iceberg.metadata.changes import updates as u

DELETES = (
    "SELECT file_format, record_count, referenced_data_file FROM s.t.delete_files ORDER BY 2, 3"
)


def table(con: icesql.Connection, version: int) -> None:
    """Rows 0 to 9 in one file and 10 to 19 in another."""
    con.execute(
        "CREATE TABLE s.t (i INT, s VARCHAR) TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    for start in (0, 10):
        con.execute(f"INSERT INTO s.t SELECT i, 'x' || i FROM range({start}, {start + 10}) r(i)")


def numbers(con: icesql.Connection) -> list[int]:
    con.execute("SET local_reader = 'arrow'")
    found = con.execute("SELECT i FROM s.t ORDER BY i").fetchall()
    con.execute("SET local_reader = 'auto'")
    assert found == con.execute("SELECT i FROM s.t ORDER BY i").fetchall()
    return [i for (i,) in found]


@pytest.mark.parametrize("version", [2, 3])
def test_each_file_has_one_with_all_positions(con: icesql.Connection, version: int) -> None:
    table(con, version)
    data = con.execute("SELECT file_path FROM s.t.data_files ORDER BY 1").fetchall()
    for condition in ("i IN (3, 12)", "i IN (5, 6)", "i = 19"):
        con.execute(f"DELETE FROM s.t WHERE {condition}")
    assert numbers(con) == [i for i in range(20) if i not in (3, 12, 5, 6, 19)]
    form = "PARQUET" if version == 2 else "PUFFIN"
    found = con.execute(DELETES).fetchall()
    assert [each[:2] for each in found] == [(form, 2), (form, 3)]
    assert sorted((each[2],) for each in found) == data
    (last,) = con.execute(
        "SELECT summary FROM s.t.snapshots ORDER BY committed_at DESC LIMIT 1"
    ).fetchone()
    last = dict(last)
    assert last["removed-delete-files"] == "1"
    assert last["total-position-deletes"] == "5"
    assert last["total-delete-files"] == "2"


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_without_rows_goes_as_a_whole(con: icesql.Connection, version: int) -> None:
    table(con, version)
    con.execute("DELETE FROM s.t WHERE i IN (3, 12)")
    con.execute("DELETE FROM s.t WHERE i < 8")
    done = con.execute("DELETE FROM s.t WHERE i < 10")
    assert done.rowcount == 2
    assert numbers(con) == [10, 11, *range(13, 20)]
    assert con.execute("SELECT count(*) FROM s.t.data_files").fetchone() == (1,)
    assert [each[1] for each in con.execute(DELETES).fetchall()] == [1]


def test_a_vector_takes_the_place_of_delete_files_of_version_2(con: icesql.Connection) -> None:
    table(con, 2)
    con.execute("DELETE FROM s.t WHERE i IN (3, 12)")
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '3')")
    con.execute("DELETE FROM s.t WHERE i = 4")
    assert numbers(con) == [i for i in range(20) if i not in (3, 4, 12)]
    assert [each[:2] for each in con.execute(DELETES).fetchall()] == [("PARQUET", 1), ("PUFFIN", 2)]


def test_another_vector_meanwhile(
    con: icesql.Connection, catalog: dict[str, Any], monkeypatch: Any
) -> None:
    """Two commits add a vector of one file: the second would bring rows back."""
    import icesql.modify.rows.commit as module

    table(con, 3)
    con.execute("SET conflict_retries = 0")
    real = module.commit_row_delta

    def meanwhile(*given: Any, **more: Any) -> Any:
        monkeypatch.setattr(module, "commit_row_delta", real)
        with icesql.connect(**catalog) as other:
            other.execute("DELETE FROM s.t WHERE i = 2")
        return real(*given, **more)

    monkeypatch.setattr(module, "commit_row_delta", meanwhile)
    with pytest.raises(errors.CommitConflictError, match="run the statement again"):
        con.execute("DELETE FROM s.t WHERE i = 1")
    assert numbers(con) == [i for i in range(20) if i != 2]
    assert len(con.execute(DELETES).fetchall()) == 1


def test_a_write_that_fails_leaves_no_file(
    con: icesql.Connection, catalog: dict[str, Any], monkeypatch: Any
) -> None:
    from pathlib import Path

    import icesql.modify.rows.delete_files as module

    table(con, 3)
    before = sorted(Path(catalog["warehouse"]).rglob("*"))
    real = module.write_deletion_vector

    def fails(metadata: Any, storage: Any, file: Any, *given: Any, **more: Any) -> Any:
        if more["number"] == 2:
            raise errors.StorageError(file.path, "the disk is full", verb="write")
        return real(metadata, storage, file, *given, **more)

    monkeypatch.setattr(module, "write_deletion_vector", fails)
    with pytest.raises(errors.StorageError, match="the disk is full"):
        con.execute("DELETE FROM s.t WHERE i IN (1, 11)")
    assert sorted(Path(catalog["warehouse"]).rglob("*")) == before


@pytest.mark.parametrize("name", ["mode", "isolation-level"])
def test_a_property_that_says_nothing_known(con: icesql.Connection, name: str) -> None:
    table(con, 2)
    (path,) = con.execute("SELECT file_path FROM s.t.files LIMIT 1").fetchone()
    folder = DirectoryCatalog(str(Path(path).parents[3]))
    # Another writer's: here it could not be set.
    spoiled = u.SetProperties({f"write.delete.{name}": "x"})
    change_table(folder, folder.load(("s", "t")), lambda _: [spoiled])
    with pytest.raises(errors.UnsupportedTableError, match=f"write.delete.{name} = 'x'; it is"):
        con.execute("DELETE FROM s.t WHERE i = 1")
