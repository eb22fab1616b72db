"""Merge-on-read: one vector or delete file for each data file, including all earlier deletes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.catalog.directory import DirectoryCatalog
from icesql.commit.file_changes import change_table
from icesql.iceberg.metadata.changes import updates as u


def table(con: icesql.Connection, version: int) -> None:
    """Rows 0 to 9 in one file and 10 to 19 in another."""
    con.execute(
        "CREATE TABLE s.t (i INT, s VARCHAR) TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
    )
    for start in (0, 10):
        con.execute(f"INSERT INTO s.t SELECT i, 'x' || i FROM range({start}, {start + 10}) r(i)")


def test_a_write_that_fails_leaves_no_file(
    con: icesql.Connection, catalog: dict[str, Any], monkeypatch
) -> None:
    from pathlib import Path

    import icesql.write.deletes as module

    table(con, 3)
    before = sorted(Path(catalog["warehouse"]).rglob("*"))
    real = module.write_deletion_vector

    def fails(metadata: Any, storage: Any, file: Any, positions: Any, name: str) -> Any:
        if name.startswith("00002-"):
            raise errors.StorageError(file.path, "the disk is full", verb="write")
        return real(metadata, storage, file, positions, name)

    monkeypatch.setattr(module, "write_deletion_vector", fails)
    with pytest.raises(errors.StorageError, match="the disk is full"):
        con.execute("DELETE FROM s.t WHERE i IN (1, 11)")
    assert sorted(Path(catalog["warehouse"]).rglob("*")) == before


@pytest.mark.parametrize("name", ["mode", "isolation-level"])
def test_a_property_that_says_nothing_known(con: icesql.Connection, name: str) -> None:
    table(con, 2)
    (path,) = con.execute("SELECT file_path FROM s.t.files LIMIT 1").fetchone()
    folder = DirectoryCatalog(str(Path(path).parents[3]))
    # Set by another writer: icesql refuses it.
    spoiled = u.SetProperties({f"write.delete.{name}": "x"})
    change_table(folder, folder.load(("s", "t")), lambda _: [spoiled])
    with pytest.raises(errors.UnsupportedTableError, match=f"write.delete.{name} = 'x'; it is"):
        con.execute("DELETE FROM s.t WHERE i = 1")
