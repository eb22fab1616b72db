"""No column takes a name under which files without field ids have values of another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql
from icesql.errors import CorruptFileError, ProgrammingError, TypeMismatchError

COMPACTION = "CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))"
REFUSED = r'cannot get the name "\w+": files without field ids, .* CALL system.rewrite_data_files'


@pytest.fixture
def con(tmp_path: Path) -> Any:
    (tmp_path / "src").mkdir()
    (tmp_path / "wh").mkdir()
    nested = pa.array([{"x": 7, "y": "deep"}], pa.struct([("x", pa.int32()), ("y", pa.string())]))
    listed = pa.array([[{"x": 8, "y": "deep"}]], pa.list_(nested.type))
    rows = pa.table(
        {"id": pa.array([1], pa.int32()), "b": ["old"], "c": ["other"], "n": nested, "l": listed}
    )
    pq.write_table(rows, tmp_path / "src" / "f.parquet")
    with icesql.connect(warehouse=str(tmp_path / "wh"), files=True, read_only=False) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(
            "CREATE TABLE s.t (id INT, b VARCHAR, c VARCHAR, n STRUCT(x INT, y VARCHAR), "
            "l STRUCT(x INT, y VARCHAR)[])"
        )
        con.execute(f"CALL system.add_files('s.t', '`parquet`.`{tmp_path}/src`')")
        yield con


# What frees a name, what takes it, and what the table gives afterwards.
CASES = [
    ("RENAME COLUMN b TO b_old", "ADD COLUMN b VARCHAR", "b_old, b", ("old", None)),
    ("DROP COLUMN b", "ADD COLUMN b VARCHAR", "b", (None,)),
    ("DROP COLUMN b", "ADD COLUMN b INT", "b", (None,)),
    ("DROP COLUMN b", "ADD COLUMN b STRUCT(z INT)", "b", (None,)),
    ("DROP COLUMN b", "RENAME COLUMN c TO b", "b", ("other",)),
    ("RENAME COLUMN b TO x", "RENAME COLUMN c TO b", "x, b", ("old", "other")),
    ("DROP COLUMN n.x", "ADD COLUMN n.x INT", "n.x", (None,)),
    ("RENAME COLUMN n.x TO z", "ADD COLUMN n.x VARCHAR", "n.z, n.x", (7, None)),
    ("DROP COLUMN n.x", "RENAME COLUMN n.y TO x", "n.x", ("deep",)),
    ("DROP COLUMN l.element.x", "ADD COLUMN l.element.x VARCHAR", "l[1].x", (None,)),
    ("DROP COLUMN n", "ADD COLUMN n STRUCT(x INT)", "n.x", (None,)),
]


@pytest.mark.parametrize(("frees", "takes", "columns", "row"), CASES)
def test_a_name_of_files_without_ids_is_not_taken(
    con: Any, frees: str, takes: str, columns: str, row: tuple[Any, ...]
) -> None:
    con.execute(f"ALTER TABLE s.t {frees}")
    before = con.execute("SELECT * FROM s.t").fetchall()
    for _ in range(2):
        with pytest.raises(ProgrammingError, match=REFUSED):
            con.execute(f"ALTER TABLE s.t {takes}")
    assert con.execute("SELECT * FROM s.t").fetchall() == before
    con.execute(COMPACTION)
    con.execute(f"ALTER TABLE s.t {takes}")
    assert con.execute(f"SELECT {columns} FROM s.t").fetchall() == [row]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT WITH SCHEMA EVOLUTION INTO s.t BY NAME SELECT 2 AS id, 5 AS b",
        "INSERT WITH SCHEMA EVOLUTION INTO s.t BY NAME SELECT 2 AS id, {'q': 1} AS b",
        "MERGE WITH SCHEMA EVOLUTION INTO s.t USING (SELECT 1 AS id, 5 AS b) q ON t.id = q.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    ],
)
def test_schema_evolution_takes_no_such_name(con: Any, statement: str) -> None:
    con.execute("ALTER TABLE s.t DROP COLUMN b")
    with pytest.raises(ProgrammingError, match=REFUSED):
        con.execute(statement)
    con.execute(COMPACTION)
    con.execute(statement)
    assert (None,) in con.execute("SELECT b FROM s.t").fetchall() or "MERGE" in statement


def test_other_names_and_files_are_free(con: Any) -> None:
    """The name of the column itself, one that no file has, one whose files are gone."""
    for change in (
        "RENAME COLUMN b TO b2", "RENAME COLUMN b2 TO b", "ADD COLUMN d INT", "DROP COLUMN d",
        "ADD COLUMN d VARCHAR", "RENAME COLUMN d TO e", "ADD COLUMN d INT", "DROP COLUMN b",
    ):  # fmt: skip
        con.execute(f"ALTER TABLE s.t {change}")
    assert con.execute("SELECT d, e FROM s.t").fetchall() == [(None, None)]
    con.execute("DELETE FROM s.t")
    con.execute("ALTER TABLE s.t ADD COLUMN b INT")
    con.execute("INSERT INTO s.t (id, b) VALUES (3, 4)")
    assert con.execute("SELECT id, b FROM s.t").fetchall() == [(3, 4)]


def test_files_of_a_branch_count(con: Any) -> None:
    con.execute("ALTER TABLE s.t CREATE BRANCH audit")
    con.execute("ALTER TABLE s.t DROP COLUMN b")
    con.execute(COMPACTION)
    with pytest.raises(ProgrammingError, match="branch => 'audit'"):
        con.execute("ALTER TABLE s.t ADD COLUMN b INT")
    con.execute(COMPACTION[:-1] + ", branch => 'audit')")
    con.execute("ALTER TABLE s.t ADD COLUMN b INT")
    assert con.execute("SELECT b FROM s.t").fetchall() == [(None,)]


def test_files_that_came_meanwhile_count(con: Any, tmp_path: Path) -> None:
    con.execute("ALTER TABLE s.t DROP COLUMN b")
    con.execute("DELETE FROM s.t")
    con.execute("BEGIN")
    con.execute("ALTER TABLE s.t ADD COLUMN b INT")
    with icesql.connect(warehouse=str(tmp_path / "wh"), files=True, read_only=False) as other:
        other.execute(f"CALL system.add_files('s.t', '`parquet`.`{tmp_path}/src`')")
    with pytest.raises(ProgrammingError, match=REFUSED):
        con.execute("COMMIT")


def test_a_table_that_has_it_already_is_not_corrupt(
    con: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("icesql.modify.definitions.columns.check_mapped_names", lambda *_: None)
        con.execute("ALTER TABLE s.t DROP COLUMN b")
        con.execute("ALTER TABLE s.t ADD COLUMN b INT")
    for text in ("SELECT b FROM s.t", COMPACTION, "DELETE FROM s.t WHERE b = 1"):
        with pytest.raises(TypeMismatchError, match=r"no field ids.*Drop the column") as e:
            con.execute(text).fetchall()
        assert not isinstance(e.value, CorruptFileError)
    con.execute("ALTER TABLE s.t DROP COLUMN b")
    con.execute(COMPACTION)
    con.execute("ALTER TABLE s.t ADD COLUMN b INT")
    assert con.execute("SELECT id, b FROM s.t").fetchall() == [(1, None)]
