"""Tables of other writers may have columns with the names of those that locate rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql
from icesql.errors import UnsupportedTableError
from tests.writer.table import TableWriter


def table_with(folder: Path, name: str, version: int) -> TableWriter:
    target = folder / "wh" / "ns" / "t"
    target.mkdir(parents=True)
    kind = "string" if name.lower() == "_file" else "long"
    fields = [
        {"id": 1, "name": name, "required": False, "type": kind},
        {"id": 2, "name": "v", "required": False, "type": "long"},
    ]
    table = TableWriter(
        str(target), fields, [], version=version,
        properties={"write.delete.mode": "merge-on-read"},
    )  # fmt: skip
    # Positions of other rows.
    values = ["x" * n for n in range(3)] if kind == "string" else [2, 0, 1]
    file = table.data_file([{name: value, "v": n} for n, value in enumerate(values)])
    table.commit([file])
    if version == 2:
        table.commit([table.position_deletes([(file, 2)])])
    else:
        table.commit(table.deletion_vectors([(file, [2])]))
    return table


CHANGES = {
    "delete": "DELETE FROM ns.t WHERE v = 1",
    "update": "UPDATE ns.t SET v = 5 WHERE v = 1",
    "merge": "MERGE INTO ns.t USING (SELECT 1 AS k) s ON t.v = s.k WHEN MATCHED THEN DELETE",
}


@pytest.mark.parametrize("name", ["_pos", "_POS", "_file", "_row_id"])
@pytest.mark.parametrize("version", [2, 3])
def test_rows_are_not_changed_by_the_place_of_others(tmp_path, name: str, version: int) -> None:
    table_with(tmp_path, name, version)
    with icesql.connect(warehouse=str(tmp_path / "wh")) as con:
        for each in ("delete", "update", "merge"):
            with pytest.raises(UnsupportedTableError, match="rename it"):
                con.execute(CHANGES[each])
        assert con.execute("SELECT v FROM ns.t ORDER BY v").fetchall() == [(0,), (1,)]
        con.execute(f'ALTER TABLE ns.t RENAME COLUMN "{name}" TO place')
        for each in ("update", "merge"):
            con.execute(CHANGES[each])
        con.execute("DELETE FROM ns.t WHERE v = 5")
        assert con.execute("SELECT v FROM ns.t ORDER BY v").fetchall() == [(0,)]


@pytest.mark.parametrize("name", ["_pos", "_file"])
@pytest.mark.parametrize("version", [2, 3])
def test_what_a_commit_deleted_is_found_beside_such_a_column(
    tmp_path, name: str, version: int
) -> None:
    table_with(tmp_path, name, version)
    with icesql.connect(warehouse=str(tmp_path / "wh")) as con:
        found = con.execute("SELECT v, _change_type FROM ns.t CHANGES FROM VERSION -1").fetchall()
    assert found == [(2, "delete")]
