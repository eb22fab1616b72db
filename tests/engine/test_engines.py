"""The engine that ``auto`` chooses."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql


def test_auto_leaves_to_the_local_engine_what_it_alone_has(tmp_path: Path) -> None:
    with icesql.connect(warehouse=str(tmp_path)) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t AS SELECT 1 AS i")
        ((first,),) = con.execute("SELECT snapshot_id FROM s.t.snapshots").fetchall()
        con.execute("INSERT INTO s.t VALUES (2)")
        con.execute("SET engine = 'auto'")
        con.execute("SET spark_threshold = 1")
        found = con.execute(f"SELECT i, _change_type FROM s.t CHANGES FROM VERSION {first}")
        assert found.fetchall() == [(2, "insert")]
        assert "engine local: it alone has CHANGES" in found.notes


def test_a_merge_runs_where_its_source_is(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="its source is in Spark")
    with icesql.connect(warehouse=str(tmp_path)) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t AS SELECT 1 AS i, 'old' AS n")
        con.execute("SET engine = 'auto'")
        con.execute("SET spark_threshold = 1")
        con.execute(
            "MERGE INTO s.t USING (VALUES (1, 'new'), (2, 'new')) AS u(i, n) ON t.i = u.i "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        con.execute("SET engine = 'local'")
        found = con.execute("SELECT * FROM s.t ORDER BY i").fetchall()
    assert found == [(1, "new"), (2, "new")]
