"""MERGE INTO: syntax, names, values, branches, conflicts, and refusals."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import icesql

WAYS = [(1, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"), (3, "merge-on-read")]


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_values_of_every_kind(con: icesql.Connection, version: int, mode: str) -> None:
    """Fields of structs, defaults, subqueries, CASE, old values, NULL and parameters."""
    default = "DEFAULT 5" if version == 3 else ""
    con.execute(
        f"CREATE TABLE s.t (k BIGINT NOT NULL, p STRUCT<x: INT, q: STRUCT<y: INT, z: VARCHAR>>, d INT {default}, "
        f"l INT[]) TBLPROPERTIES ('format-version' = '{version}', 'write.merge.mode' = '{mode}')"
    )
    con.execute(
        "INSERT INTO s.t VALUES (1, {'x': 1, 'q': {'y': 2, 'z': 'z'}}, 1, [1]), (2, NULL, 2, NULL), (3, NULL, 3, [3])"
    )
    con.execute("CREATE TABLE s.u (n INT)")
    con.execute("INSERT INTO s.u VALUES (7), (8)")
    cursor = con.execute(
        "WITH src AS (SELECT k, k * ? AS v FROM range(1, 6) r(k)) MERGE INTO s.t USING src ON t.k = src.k AND src.k <> ? "
        "WHEN MATCHED AND CASE WHEN t.k = 1 THEN v > ? ELSE false END THEN UPDATE SET p.x = v, t.p.q.z = 'new' || ?, d = d + t.k "
        "WHEN MATCHED AND t.p IS NULL THEN UPDATE SET p.q.y = (SELECT max(n) FROM s.u), d = DEFAULT, l = [v, v] "
        "WHEN NOT MATCHED AND k = 5 THEN INSERT (k, d) VALUES (k, DEFAULT) WHEN NOT MATCHED AND k < ? THEN DO NOTHING "
        "WHEN NOT MATCHED THEN INSERT (k, p, l) VALUES (k, {'q': {'z': 'z', 'y': NULL}, 'x': v}, NULL)",
        [10, 3, 9, "er", 4],
    )
    five = 5 if version == 3 else None
    assert cursor.rowcount == 4
    assert con.execute("SELECT * FROM s.t ORDER BY k").fetchall() == [
        (1, {"x": 10, "q": {"y": 2, "z": "newer"}}, 2, [1]),
        (2, {"x": None, "q": {"y": 8, "z": None}}, five, [20, 20]),
        (3, None, 3, [3]),
        (4, {"x": 40, "q": {"y": None, "z": "z"}}, five, None),
        (5, None, five, None),
    ]


def test_a_frame_is_merged(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t AS SELECT 2 AS k, 20 AS a, 'two' AS w")
    frame = pa.table({"k": pa.array([2, 9], pa.int64()), "a": [1, 2], "w": ["b", None]})
    con.register("given", frame)
    cursor = con.execute(
        "MERGE INTO s.t USING given ON t.k = given.k WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert cursor.rowcount == 2
    assert con.execute("SELECT * FROM s.t ORDER BY k").fetchall() == [(2, 1, "b"), (9, 2, None)]


def test_a_large_source_waits_on_disk(con: icesql.Connection, tmp_path, monkeypatch) -> None:
    """Beyond its share of memory it is spilled to a mapped file, which is unlinked."""
    import icesql.modify.merge.source as module

    monkeypatch.setattr(module, "_MOST_BYTES", 1 << 20)
    spilled = []
    real = module._Spilled._on_disk

    def on_disk(self: Any, *given: Any) -> Any:
        spilled.append(1)
        yield from real(self, *given)

    monkeypatch.setattr(module._Spilled, "_on_disk", on_disk)
    folder = tmp_path / "waiting"
    con.execute(f"SET temp_directory = '{folder}'")
    con.execute("CREATE TABLE s.t (k INT, w VARCHAR)")
    con.execute("INSERT INTO s.t SELECT i, NULL FROM range(0, 300000, 3) r(i)")
    cursor = con.execute(
        "MERGE INTO s.t USING (SELECT i AS k, 'w' || i AS w FROM range(200000) r(i)) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert cursor.rowcount == 200_000
    assert spilled
    assert not list(folder.rglob("icesql-merge-*"))
    sql = "SELECT count(*), count(*) FILTER (WHERE w = 'w' || k), count(w) FROM s.t"
    assert con.execute(sql).fetchone() == (233_333, 200_000, 200_000)
