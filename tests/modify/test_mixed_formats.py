"""Tables in ORC or Avro: statements that write no data file work, others if Parquet is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.errors import UnsupportedTableError
from tests.maintain.rewrite.tables import new_table, rows

MIXED = "'write.icesql.mix-parquet.enabled' = 'true'"
CHANGES = (
    "INSERT INTO ns.t VALUES (100, 'c', 1.5)",
    "INSERT OVERWRITE ns.t SELECT * FROM ns.t WHERE id < 3",
    "UPDATE ns.t SET x = 7 WHERE id = 2",
    "MERGE INTO ns.t USING (SELECT 1 AS id) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET x = 9",
    "CALL system.rewrite_data_files('ns.t', options => map('rewrite-all', 'true'))",
)


def made(folder: Path, version: int, form: str, **properties: str) -> str:
    given = {"write.format.default": form, "write.delete.mode": "merge-on-read"} | properties
    table = new_table(folder, version, **given)
    for first in (0, 10):
        table.commit([table.data_file(rows(first, 10), format=form)])
    return str(folder / "wh")


def ids(con: icesql.Connection) -> list[int]:
    found = [row[0] for row in con.execute("SELECT id FROM ns.t ORDER BY id").fetchall()]
    assert con.execute("SELECT count(*) FROM ns.t").fetchall() == [(len(found),)]
    return found


def formats(con: icesql.Connection, table: str = "files") -> set[Any]:
    return {row[0] for row in con.execute(f"SELECT file_format FROM ns.t.{table}").fetchall()}


@pytest.mark.parametrize("form", ["orc", "avro"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_merge_on_read_delete_writes_no_data_file(tmp_path, version: int, form: str) -> None:
    with icesql.connect(warehouse=made(tmp_path, version, form), read_only=False) as con:
        con.execute("DELETE FROM ns.t WHERE id IN (3, 12)")
        con.execute("DELETE FROM ns.t WHERE id = 4")
        assert ids(con) == [n for n in range(20) if n not in (3, 4, 12)]
        con.execute("CALL system.rewrite_position_delete_files('ns.t')")
        assert formats(con, "data_files") == {form.upper()}
        con.execute("DELETE FROM ns.t WHERE id >= 10")
        assert ids(con) == [0, 1, 2, 5, 6, 7, 8, 9]
        con.execute("TRUNCATE TABLE ns.t")
        assert ids(con) == []


@pytest.mark.parametrize("form", ["orc", "avro"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_other_changes_need_a_word_of_the_user(tmp_path, version: int, form: str) -> None:
    with icesql.connect(warehouse=made(tmp_path, version, form), read_only=False) as con:
        for sql in CHANGES:
            with pytest.raises(UnsupportedTableError, match=r"write\.icesql\.mix-parquet\.enabled"):
                con.execute(sql)
        assert ids(con) == [*range(20)]
        con.execute(f"ALTER TABLE ns.t SET TBLPROPERTIES ({MIXED})")
        con.execute(CHANGES[0])
        assert formats(con) == {form.upper(), "PARQUET"}
        con.execute("UPDATE ns.t SET x = 7 WHERE id = 2")
        con.execute("DELETE FROM ns.t WHERE id = 5")
        assert con.execute("SELECT x FROM ns.t WHERE id IN (2, 5)").fetchall() == [(7.0,)]
        con.execute(CHANGES[-1])
        assert formats(con) == {"PARQUET"}
        assert ids(con) == [*(n for n in range(20) if n != 5), 100]


def test_deletes_have_the_format_that_a_property_names(tmp_path) -> None:
    warehouse = made(tmp_path, 2, "orc", **{"write.delete.format.default": "orc"})
    with icesql.connect(warehouse=warehouse, read_only=False) as con:
        with pytest.raises(UnsupportedTableError, match=r"write\.delete\.format\.default"):
            con.execute("DELETE FROM ns.t WHERE id = 3")
        con.execute(f"ALTER TABLE ns.t SET TBLPROPERTIES ({MIXED})")
        con.execute("DELETE FROM ns.t WHERE id = 3")
        assert ids(con) == [n for n in range(20) if n != 3]
