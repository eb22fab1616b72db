"""The engine's instance is locked, and what it spills to is no way in."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

import icesql
from icesql.config import Settings
from icesql.engine.duckdb.instance import Instance, InstancePool, _started
from icesql.errors import ProgrammingError
from tests.rows import rows_of
from tests.sessions import answer, fetched
from tests.waits import wait_until

SPILLS = "SELECT count(*) FROM (SELECT DISTINCT i, i::VARCHAR || repeat('x', 30) FROM range(300000) t(i))"


@rows_of(__file__, "closed_engine.tsv", "sql")
@pytest.mark.parametrize("keeps_footers", [False, True])
def test_an_instance_that_has_started_cannot_be_changed(
    sql: str, keeps_footers: bool, tmp_path: Path
) -> None:
    settings = Settings(temp_directory=str(tmp_path / "spill"))
    instance = Instance(frozenset(), settings, _started(settings), keeps_footers=keeps_footers)
    cursor = instance.cursor()
    with pytest.raises(duckdb.Error):
        cursor.execute(sql).fetchall()
    instance.release(cursor)
    instance.let_go()


def test_each_time_zone_has_the_instance_it_needs(tmp_path: Path) -> None:
    pool = InstancePool()
    here = Settings(temp_directory=str(tmp_path))
    one = pool.acquire((), here)
    assert pool.acquire((), here) is one
    assert pool.acquire((), here.with_text("timezone", "Asia/Tokyo")) is not one
    pool.close()
    with icesql.connect() as connection:
        hours = []
        for zone in ("UTC", "Asia/Tokyo", "UTC"):
            connection.execute(f"SET timezone = '{zone}'")
            sql = "SELECT CAST(TIMESTAMPTZ '2026-01-01 00:00:00+00' AS VARCHAR)"
            hours += fetched(connection, sql)
    assert hours == [
        ("2026-01-01 00:00:00+00",),
        ("2026-01-01 09:00:00+09",),
        ("2026-01-01 00:00:00+00",),
    ]


def test_spilling_leaves_nothing_behind(tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    settings = {"temp_directory": str(spill), "memory_limit": "25MB", "threads": 1}
    assert answer(SPILLS, settings=settings) == [(300000,)]
    # The engine ends in a thread of its own, which may be a moment behind.
    wait_until(lambda: not os.listdir(spill))


def test_files_beside_the_spilled_ones_are_not_readable(tmp_path: Path) -> None:
    duckdb.sql(f"COPY (SELECT 42 AS secret) TO '{tmp_path}/secret.parquet'")
    settings = Settings(temp_directory=str(tmp_path))
    instance = Instance(frozenset(), settings, _started(settings))
    cursor = instance.cursor()
    with pytest.raises(duckdb.PermissionException):
        cursor.execute("SELECT * FROM read_parquet(?)", [f"{tmp_path}/secret.parquet"]).fetchall()
    instance.release(cursor)
    instance.let_go()


def test_sql_makes_no_chain_of_folders(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    refused = ["/proc/icesql/x", tmp_path / "a" / "b", tmp_path / "file", tmp_path / "file" / "x"]
    with icesql.connect() as connection:
        texts = set()
        for folder in refused:
            with pytest.raises(ProgrammingError) as caught:
                connection.execute(f"SET temp_directory = '{folder}'")
            texts.add(str(caught.value).replace(str(folder), ""))
            assert fetched(connection, "SELECT 1") == [(1,)]
        assert len(texts) == 1
        connection.execute(f"SET temp_directory = '{tmp_path / 'new'}'")
        assert fetched(connection, "SELECT 1") == [(1,)]
    assert not (tmp_path / "a").exists()
