"""Changes by other writers between a statement's files and its commit.

The statement is applied to the changed table again, or refused; it never does something that it
would not have done on either state of the table.
"""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from icesql.catalog.targets import table_to_change
from icesql.commit import attempts
from tests.campaigns.histories.others import equality_delete

SHORT = (
    "'write.metadata.delete-after-commit.enabled' = 'true', "
    "'write.metadata.previous-versions-max' = '1'"
)


def rows(con: icesql.Connection, sql: str) -> list[tuple[Any, ...]]:
    return con.execute(sql).fetchall()


def delete_key(con: icesql.Connection) -> None:
    """Delete rows of s.t whose first column is 7, as Flink does."""
    catalog, table = table_to_change(con._session.state.names, ("s", "t"))
    equality_delete(catalog, table, [7], field=1)


BOTH = pytest.mark.parametrize("catalog", ["directory", "sqlite"], indirect=True)

# ------------------------------------------------------------------ removed metadata files


@BOTH
def test_a_transaction_may_begin_long_before_its_first_commit(con, other, monkeypatch) -> None:
    """The first statement of a transaction sees the table as it is once its files are written."""
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


# ------------------------------------------------------------------ manifests


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("moment", ["_updates", "swapped"])
def test_rows_of_a_transaction_are_younger_than_the_deletes_before_it(
    con, other, monkeypatch, version: int, moment: str
) -> None:
    con.execute(
        "CREATE TABLE s.t (id BIGINT NOT NULL, x INT) TBLPROPERTIES "
        f"('format-version' = '{version}', 'commit.manifest.min-count-to-merge' = '3')"
    )
    con.execute("INSERT INTO s.t VALUES (1, 1)")
    con.execute("BEGIN")
    con.execute("INSERT INTO s.t VALUES (7, 70)")
    con.execute("INSERT INTO s.t VALUES (7, 71)")
    if moment == "swapped":
        own = attempts.swapped

        def late(*args: Any) -> Any:
            monkeypatch.setattr(attempts, "swapped", own)
            delete_key(other)
            return own(*args)

        delete_key(other)
        monkeypatch.setattr(attempts, "swapped", late)
    else:
        delete_key(other)
        delete_key(other)
    con.execute("COMMIT")
    for each in (con, other):
        assert rows(each, "SELECT id, x FROM s.t ORDER BY x") == [(1, 1), (7, 70), (7, 71)]


# ------------------------------------------------------------------ maintenance


def test_partial_progress_survives_the_expiry_of_another_session(
    con, other, monkeypatch, tmp_path
) -> None:
    import icesql.maintain.rewrite.run as run

    con.execute("CREATE TABLE s.t (p INT, x INT) PARTITIONED BY (p)")
    for n in range(3):
        con.execute("INSERT INTO s.t VALUES (1, ?), (2, ?), (3, ?), (4, ?)", [n] * 4)
    commit = run.commit_rewrite

    def expired_after(*args: Any, **options: Any) -> Any:
        done = commit(*args, **options)
        other.execute(
            "CALL system.expire_snapshots(table => 's.t', "
            "older_than => now() + INTERVAL 1 HOUR, retain_last => 1)"
        )
        return done

    monkeypatch.setattr(run, "commit_rewrite", expired_after)
    options = "map('rewrite-all', 'true', 'partial-progress.enabled', 'true', 'partial-progress.max-commits', '4')"
    (done,) = rows(con, f"CALL system.rewrite_data_files(table => 's.t', options => {options})")
    assert (done[0], done[1], done[3]) == (12, 4, 0)
    assert rows(other, "SELECT p, count(*) FROM s.t GROUP BY p ORDER BY p") == [
        (n, 3) for n in (1, 2, 3, 4)
    ]
    live = {
        row[0].removeprefix("file:") for row in rows(other, "SELECT file_path FROM s.t.all_files")
    }
    assert {str(each) for each in tmp_path.rglob("*.parquet")} == live


def test_deletes_are_rewritten_over_the_expiry_of_another_session(con, other, monkeypatch) -> None:
    from icesql.maintain.deletes import run as procedure

    con.execute(
        "CREATE TABLE s.t (p INT, x INT) PARTITIONED BY (p) TBLPROPERTIES ("
        "'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'file')"
    )
    con.execute("INSERT INTO s.t SELECT p, x FROM range(3) a(p), range(6) b(x)")
    for n in range(2):
        con.execute("DELETE FROM s.t WHERE x = ?", [n])
    rewrite = procedure.convert

    def expired_after(*args: Any, **options: Any) -> Any:
        done = rewrite(*args, **options)
        other.execute(
            "CALL system.expire_snapshots(table => 's.t', "
            "older_than => now() + INTERVAL 1 HOUR, retain_last => 1)"
        )
        return done

    monkeypatch.setattr(procedure, "convert", expired_after)
    options = "map('rewrite-all', 'true', 'partial-progress.enabled', 'true', 'partial-progress.max-commits', '3')"
    rows(con, f"CALL system.rewrite_position_delete_files(table => 's.t', options => {options})")
    assert rows(other, "SELECT p, count(*) FROM s.t GROUP BY p ORDER BY p") == [
        (n, 4) for n in (0, 1, 2)
    ]
