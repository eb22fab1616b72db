"""``SET caches = off``: a statement begins with nothing that those before it kept."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import icesql
from icesql.storage.cache import BoundedCache


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[icesql.Connection]:
    """A table of two files, in a catalog of SQLite."""
    with icesql.connect(warehouse=str(tmp_path)) as opened:
        opened.execute("CREATE SCHEMA n")
        opened.execute("USE n")
        opened.execute("CREATE TABLE t (id INT, v INT)")
        for number in range(2):
            opened.execute(f"INSERT INTO t VALUES ({number}, 1), ({number + 10}, 2)")
        yield opened


QUERIES = [
    "SELECT count(*) FROM t",
    "SELECT v, count(*) FROM t GROUP BY v ORDER BY v",
    "SELECT * FROM t WHERE id = 10",
    "SELECT max(id) FROM t",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_nothing_that_was_kept_is_used(
    connection: icesql.Connection, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata is decoded at each statement, as at the first."""
    decoded: list[object] = []
    keep = BoundedCache.put

    def put(self: BoundedCache, key: object, value: object, size: int) -> None:
        if not isinstance(key, str):  # a text is that of a statement
            decoded.append(key)
        keep(self, key, value, size)

    monkeypatch.setattr(BoundedCache, "put", put)
    expected = connection.execute(sql).fetchall()
    connection.execute("SET caches = off")
    counts = []
    for _ in range(20):
        decoded.clear()
        assert connection.execute(sql).fetchall() == expected
        counts.append(len(decoded))
    assert counts[0] > 0
    assert counts == [counts[0]] * 20
    connection.execute("SET caches = on")
    for _ in range(2):  # the second run notes what the text's later runs are to know
        assert connection.execute(sql).fetchall() == expected
    decoded.clear()
    assert connection.execute(sql).fetchall() == expected
    assert not decoded


def test_what_is_switched_off_is_listed(connection: icesql.Connection) -> None:
    rows = {row[0]: row for row in connection.execute("SHOW ALL").fetchall()}
    assert rows["caches"][1:3] == ("on", "on")
    connection.execute("SET caches = off")
    assert connection.execute("SHOW caches").fetchall() == [("off",)]


def test_prepared_statements_and_names_stay(connection: icesql.Connection) -> None:
    connection.execute("PREPARE p AS SELECT id FROM t WHERE v = ? ORDER BY id")
    connection.execute("CREATE TEMP VIEW w AS SELECT id FROM t")
    connection.execute("SET VARIABLE low = 5")
    connection.execute("SET caches = off")
    for _ in range(3):
        assert connection.execute("EXECUTE p(2)").fetchall() == [(10,), (11,)]
        assert connection.execute("SELECT count(*) FROM w").fetchall() == [(4,)]
        sql = "SELECT id FROM t WHERE id > getvariable('low') ORDER BY id"
        assert connection.execute(sql).fetchall() == [(10,), (11,)]


def test_a_table_that_is_replaced_under_its_path_is_read_anew(tmp_path: Path) -> None:
    for name, value in (("a", "1::BIGINT"), ("b", "2::DOUBLE")):
        (tmp_path / name).mkdir()
        with icesql.connect(warehouse=str(tmp_path / name)) as one:
            one.execute("CREATE SCHEMA n")
            one.execute(f"CREATE TABLE n.t AS SELECT {value} AS v, 5 AS id")
    place = tmp_path / "w" / "n" / "t"
    sql = f"SELECT v, count(*) FROM iceberg_scan('{place}') WHERE id = 5 GROUP BY v"
    rows = f"SELECT v FROM iceberg_scan('{place}')"
    with icesql.connect() as connection:
        for name, value in (("a", 1), ("b", 2.0), ("a", 1)):
            shutil.rmtree(tmp_path / "w", ignore_errors=True)
            shutil.copytree(tmp_path / name / "n" / "t", place, copy_function=shutil.copyfile)
            for _ in range(6):
                assert repr(connection.execute(sql).fetchall()) == repr([(value, 1)])
                assert repr(connection.execute(rows).fetchall()) == repr([(value,)])


def test_a_footer_is_that_of_the_file_that_is_there(tmp_path: Path) -> None:
    import duckdb

    from icesql.engine.duckdb.relations.footer import FooterCache
    from icesql.engine.duckdb.relations.opened_files import local_files

    footers, cursor, path = FooterCache(), duckdb.connect(), str(tmp_path / "f.parquet")
    counts = []
    for number in (3, 3, 8):
        duckdb.sql(f"FROM range({number})").write_parquet(path)
        footers.load(cursor, [(path, 1)], [], local_files())
        facts = footers.facts(path, 1)
        assert facts is not None
        counts.append(facts.rows)
    assert counts == [3, 3, 8]
