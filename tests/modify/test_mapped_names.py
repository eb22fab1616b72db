"""No column gets a name under which files without field ids have another column's values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql
from icesql.errors import CorruptFileError, TypeMismatchError

COMPACTION = "CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))"


@pytest.fixture
def con(tmp_path) -> Any:
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


def test_a_table_that_has_it_already_is_not_corrupt(con: Any, monkeypatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("icesql.modify.alter_columns.check_mapped_names", lambda *_: None)
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
