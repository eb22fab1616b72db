"""What other writers do between the files of a statement and its commit.

A statement is made again of what they left, or refused; it never does what it would not have done
of either table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import icesql
from icesql.commit import attempts

SHORT = (
    "'write.metadata.delete-after-commit.enabled' = 'true', "
    "'write.metadata.previous-versions-max' = '1'"
)


@pytest.fixture
def other(catalog: dict[str, Any], con: icesql.Connection) -> Iterator[icesql.Connection]:
    """Another connection to the same catalog."""
    with icesql.connect(**catalog) as connection:
        yield connection


@pytest.fixture
def before_commit(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Do something once, after the files of the next statement are written and before it commits."""
    tried = attempts._tried

    def once(action: Callable[[], Any]) -> None:
        def first(*args: Any) -> Any:
            monkeypatch.setattr(attempts, "_tried", tried)
            action()
            return tried(*args)

        monkeypatch.setattr(attempts, "_tried", first)

    return once


def rows(con: icesql.Connection, sql: str) -> list[tuple[Any, ...]]:
    return con.execute(sql).fetchall()


BOTH = pytest.mark.parametrize("catalog", ["directory", "sqlite"], indirect=True)

# ------------------------------------------------------------------ metadata files that are gone


@BOTH
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO s.t (x) VALUES (1)",
        "ALTER TABLE s.t ADD COLUMN y INT",
        "DELETE FROM s.t WHERE x = 0",
        "BEGIN; INSERT INTO s.t (x) VALUES (1)",
    ],
)
def test_the_metadata_file_of_the_start_was_deleted(con, other, before_commit, sql) -> None:
    con.execute(f"CREATE TABLE s.t (x INT) TBLPROPERTIES ({SHORT})")
    con.execute("INSERT INTO s.t VALUES (0)")

    def commits() -> None:
        for _ in range(3):
            other.execute("INSERT INTO s.t (x) VALUES (100)")

    first, _, second = sql.partition("; ")
    if second:
        con.execute(first)
        con.execute(second)
        commits()
        con.execute("COMMIT")
    else:
        before_commit(commits)
        con.execute(sql)
    found = [row[0] for row in rows(other, "SELECT x FROM s.t ORDER BY x")]
    wanted = {"A": [0], "D": []}.get(sql[0], [0, 1])
    assert found == [*wanted, 100, 100, 100]


@BOTH
def test_a_transaction_may_begin_long_before_its_first_commit(
    con, other, before_commit, monkeypatch
) -> None:
    """The first statement of a transaction is made of the table as it is once its files are."""
    from icesql.commit.transaction import Transaction

    con.execute(f"CREATE TABLE s.t (x INT) TBLPROPERTIES ({SHORT})")
    con.execute("INSERT INTO s.t VALUES (0)")
    take = Transaction.take

    def late(*args: Any) -> Any:
        monkeypatch.setattr(Transaction, "take", take)
        for _ in range(3):
            other.execute("INSERT INTO s.t (x) VALUES (100)")
        return take(*args)

    monkeypatch.setattr(Transaction, "take", late)
    con.execute("BEGIN")
    con.execute("INSERT INTO s.t VALUES (1)")
    con.execute("COMMIT")
    assert rows(other, "SELECT x FROM s.t ORDER BY x") == [(0,), (1,), (100,), (100,), (100,)]


@BOTH
def test_a_reader_is_overtaken_between_the_catalog_and_the_file(con, other, monkeypatch) -> None:
    import icesql.catalog.table as table

    con.execute(f"CREATE TABLE s.t (x INT) TBLPROPERTIES ({SHORT})")
    read, left = table.read_metadata, [3]

    def late(path: str, storage: Any) -> Any:
        if left[0]:
            left[0] -= 1
            monkeypatch.setattr(table, "read_metadata", read)
            for _ in range(3):
                other.execute("INSERT INTO s.t VALUES (1)")
            monkeypatch.setattr(table, "read_metadata", late)
        return read(path, storage)

    monkeypatch.setattr(table, "read_metadata", late)
    assert rows(con, "SELECT count(*) FROM s.t") == [(9,)]


def test_a_metadata_file_that_nobody_replaced_is_an_error_at_once(con, other, tmp_path) -> None:
    con.execute("CREATE TABLE s.t (x INT)")
    (file,) = (tmp_path / "warehouse/s/t/metadata").glob("*.metadata.json")
    path = str(file)
    with icesql.connect(tables_by_path=True) as reader:
        assert rows(reader, f"SELECT * FROM iceberg_scan('{path}')") == []
        file.unlink()
        with pytest.raises(icesql.Error, match=r"metadata\.json"):
            reader.execute(f"SELECT * FROM iceberg_scan('{path}')")
