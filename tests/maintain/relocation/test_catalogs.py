"""Copies of tables that a catalog names the metadata files of, with logs, gzip and statistics."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import icesql
from icesql.catalog.open import open_table
from icesql.catalog.sqlite import SqliteCatalog
from tests.maintain.relocation.test_copy import history


@pytest.fixture(params=["none", "gzip"])
def con(request, tmp_path) -> Iterator[icesql.Connection]:
    (tmp_path / "lake").mkdir()
    with icesql.connect(
        uri=f"sqlite:///{tmp_path}/lake/c.db",
        warehouse=str(tmp_path / "lake"),
        properties={"init_catalog_tables": "true"},
    ) as opened:
        opened.execute("CREATE SCHEMA s")
        opened.execute(
            "CREATE TABLE s.t (id BIGINT, p VARCHAR) PARTITIONED BY (p) TBLPROPERTIES "
            f"('format-version' = '3', 'write.metadata.compression-codec' = '{request.param}', "
            "'write.delete.mode' = 'merge-on-read')"
        )
        opened.execute("INSERT INTO s.t SELECT range, 'a/b=' || (range % 2) FROM range(20)")
        opened.execute("DELETE FROM s.t WHERE id < 4")
        opened.execute("ALTER TABLE s.t CREATE BRANCH side")
        opened.execute("INSERT INTO s.t.branch_side VALUES (100, 'ü %')")
        opened.execute("CALL system.compute_table_stats('s.t')")
        opened.execute("CALL system.compute_partition_stats('s.t')")
        yield opened


def current(tmp_path: Path) -> str:
    return SqliteCatalog(str(tmp_path / "lake" / "c.db")).load(("s", "t")).metadata_location


def test_all_of_it_comes_along(con: icesql.Connection, tmp_path) -> None:
    target = tmp_path / "copy"
    for round_ in range(2):
        (done,) = con.execute(
            "CALL system.copy_table('s.t', ?, verify => true)", [str(target)]
        ).fetchall()
        assert Path(done[0]).name == Path(current(tmp_path)).name
        before = history(current(tmp_path))
        assert history(target) == before
        metadata = open_table(target).metadata
        assert [Path(each.metadata_file).exists() for each in metadata.metadata_log] == (
            [True] * len(metadata.metadata_log)
        )
        named = [*metadata.statistics, *metadata.partition_statistics]
        assert len(named) == 2
        assert all(each.statistics_path.startswith(f"{target}/") for each in named)
        for each in metadata.metadata_log:
            assert open_table(each.metadata_file).metadata.location == str(target)
        con.execute("INSERT INTO s.t VALUES (?, 'a')", [200 + round_])
        con.execute("DELETE FROM s.t WHERE id = 7")
    table = Path(json.loads((target / "metadata" / "copy-of.json").read_bytes())["location"])
    con.execute("CALL system.copy_table('s.t', ?, since => 'latest')", [str(target)])
    before = history(current(tmp_path))
    shutil.rmtree(table)
    assert history(target) == before
    with icesql.connect() as other:
        other.register_table("t", str(target))
        names = [row[0] for row in other.execute("SELECT name FROM t.refs").fetchall()]
        assert sorted(names) == ["main", "side"]
        assert (100,) in other.execute("SELECT id FROM t VERSION AS OF 'side'").fetchall()


def test_a_restored_table_is_written_to_and_copied(con: icesql.Connection, tmp_path) -> None:
    first, second = str(tmp_path / "copy"), str(tmp_path / "copy2")
    con.execute("CALL system.copy_table('s.t', ?)", [first])
    con.execute("DROP TABLE s.t PURGE")
    shown = con.execute("CALL system.restore_table(?, 's.t')", [first]).fetchall()
    assert {row[0]: row[5] for row in shown} == {"main": 16, "side": 17}
    con.execute("INSERT INTO s.t VALUES (5000, 'new')")
    con.execute("UPDATE s.t SET id = id + 1 WHERE id = 10")
    con.execute("CALL system.copy_table('s.t', ?, verify => true)", [second])
    assert history(second) == history(current(tmp_path))
