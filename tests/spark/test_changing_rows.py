"""DELETE and UPDATE with engine = spark: it finds the rows; the tables become the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

STATEMENTS = [
    "DELETE FROM s.t WHERE k = 3 AND id > 20",
    "DELETE FROM s.t WHERE id IN (SELECT id FROM s.source WHERE k = 1)",
    "UPDATE s.t SET v = v + 1000, n = upper(n) WHERE k = 2",
    "UPDATE s.t SET v = r.v, k = r.k FROM s.source r WHERE r.id = t.id AND r.k = 4",
    "UPDATE s.t SET v = -1 WHERE id < 0",
]


@pytest.mark.parametrize(("version", "mode"), [(2, "copy-on-write"), (3, "merge-on-read")])
def test_the_tables_become_the_same(connect: Any, tmp_path: Path, version: int, mode: str) -> None:
    modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update"))
    found: dict[str, list[Any]] = {}
    for engine in ("local", "spark"):
        (tmp_path / engine).mkdir()
        with connect(warehouse=str(tmp_path / engine)) as con:
            con.execute("SET engine = 'local'")
            con.execute("CREATE SCHEMA s")
            con.execute(
                "CREATE TABLE s.t (id BIGINT, k INT, v DOUBLE, n VARCHAR) PARTITIONED BY (k) "
                f"TBLPROPERTIES ('format-version' = '{version}', {modes})"
            )
            con.execute("CREATE TABLE s.source (id BIGINT, k INT, v DOUBLE, n VARCHAR)")
            con.execute(
                "INSERT INTO s.t SELECT i, (i % 5)::INT, i / 4, 'a' || i FROM range(60) r(i)"
            )
            con.execute(
                "INSERT INTO s.source SELECT i, (i % 7)::INT, i, 'b' || i FROM range(40, 80) r(i)"
            )
            lineage = ", _last_updated_sequence_number, _row_id" if version > 2 else ""
            told: list[Any] = []
            numbers: dict[int, int] = {}
            for each in ("SELECT 1", *STATEMENTS):
                con.execute(f"SET engine = '{engine}'")
                told.append(con.execute(each).rowcount)
                con.execute("SET engine = 'local'")
                rows = con.execute(f"SELECT *{lineage} FROM s.t ORDER BY id").fetchall()
                if lineage:
                    # Which of several new rows comes first is not told; each keeps its number.
                    now = {row[0]: row[-1] for row in rows}
                    assert all(numbers.get(key, own) == own for key, own in now.items()), each
                    numbers = now
                told.append([row[:5] for row in rows])
            found[engine] = told
    for place, (mine, other) in enumerate(zip(found["spark"], found["local"], strict=True)):
        assert mine == other, ("SELECT 1", *STATEMENTS)[place // 2]
