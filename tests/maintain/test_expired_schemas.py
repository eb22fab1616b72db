"""Schemas that an old partition spec or an equality delete still needs outlive an expiry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.catalog.directory import DirectoryCatalog
from icesql.commit.rows import commit_row_delta
from tests.read.read_tables import equality_deletes, facts

EXPIRE = (
    "CALL system.expire_snapshots(table => 's.t', older_than => now() + INTERVAL 1 HOUR, "
    "retain_last => 1, clean_expired_metadata => true)"
)


@pytest.fixture
def con(tmp_path) -> Any:
    with icesql.connect(warehouse=str(tmp_path)) as connection:
        connection.execute("CREATE SCHEMA s")
        yield connection


def rows(con: Any, sql: str) -> list[Any]:
    return con.execute(sql).fetchall()


def schemas(folder: Path) -> list[int]:
    return sorted(DirectoryCatalog(str(folder)).load(("s", "t")).metadata.schemas)


def delete_by_id(folder: Path, ids: list[int]) -> None:
    """An equality delete on the column of field id 1, with bounds, as Flink writes them."""
    catalog = DirectoryCatalog(str(folder))
    table = catalog.load(("s", "t"))
    place = Path(table.metadata.location, "data")
    file = equality_deletes(place, "1 id long!", [ids], sequence_number=None, **facts(ids))
    start = table.metadata.current_snapshot_id
    commit_row_delta(catalog, table, deletes=[file], start_id=start, command="delete")


def test_equality_deletes_by_a_column_that_was_dropped(con: Any, tmp_path) -> None:
    con.execute("CREATE TABLE s.t (id BIGINT, x INT)")
    con.execute("INSERT INTO s.t SELECT range, range FROM range(5)")
    delete_by_id(tmp_path, [3])
    con.execute("ALTER TABLE s.t DROP COLUMN id")
    con.execute("INSERT INTO s.t VALUES (100)")
    rows(con, EXPIRE)
    with icesql.connect(warehouse=str(tmp_path)) as fresh:
        assert rows(fresh, "SELECT x FROM s.t ORDER BY x") == [(0,), (1,), (2,), (4,), (100,)]
    # Once the delete is applied, the column is not needed any more.
    rows(
        con,
        "CALL system.rewrite_data_files(table => 's.t', options => map('rewrite-all', 'true'))",
    )
    con.execute("INSERT INTO s.t VALUES (101)")
    rows(con, EXPIRE)
    assert schemas(tmp_path) == [1]
    assert rows(con, "SELECT count(*) FROM s.t") == [(6,)]


def test_only_the_latest_schema_that_knows_the_column_stays(con: Any, tmp_path) -> None:
    con.execute("CREATE TABLE s.t (id BIGINT, c INT) PARTITIONED BY (c)")
    con.execute("INSERT INTO s.t VALUES (1, 1)")
    con.execute("ALTER TABLE s.t ADD COLUMN y INT")
    con.execute("ALTER TABLE s.t ALTER COLUMN c TYPE BIGINT")
    con.execute("ALTER TABLE s.t DROP PARTITION FIELD c")
    con.execute("ALTER TABLE s.t DROP COLUMN c")
    con.execute("ALTER TABLE s.t ADD COLUMN z INT")
    con.execute("INSERT INTO s.t VALUES (2, 2, 2)")
    rows(con, EXPIRE)
    assert schemas(tmp_path) == [2, 4]
    con.execute("DELETE FROM s.t WHERE id = 1")
    assert rows(con, "SELECT * FROM s.t") == [(2, 2, 2)]
