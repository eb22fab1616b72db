"""What other writers do between the files of a statement and its commit.

A statement is made again of what they left, or refused; it never does what it would not have done
of either table.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql
from icesql.catalog.targets import table_to_change
from icesql.commit import attempts
from icesql.commit.rows import commit_row_delta
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.storage.reroot import local_spellings

Meanwhile = Callable[[Callable[[], Any]], None]
SHORT = (
    "'write.metadata.delete-after-commit.enabled' = 'true', "
    "'write.metadata.previous-versions-max' = '1'"
)


@pytest.fixture
def other(catalog: dict[str, Any], con: icesql.Connection) -> Iterator[icesql.Connection]:
    """Another connection to the same catalog."""
    with icesql.connect(**catalog) as connection:
        yield connection


@pytest.fixture(params=["_tried", "_swapped"], ids=["before-the-look", "before-the-swap"])
def meanwhile(request: Any, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Do something once while a statement commits.

    Its files are written then: before the commit looks at the table, so that the first attempt
    sees it, and between that look and the swap, so that the second one does.
    """
    own = getattr(attempts, request.param)

    def once(action: Callable[[], Any]) -> None:
        def first(*args: Any) -> Any:
            monkeypatch.setattr(attempts, request.param, own)
            action()
            return own(*args)

        monkeypatch.setattr(attempts, request.param, first)

    return once


def rows(con: icesql.Connection, sql: str) -> list[tuple[Any, ...]]:
    return con.execute(sql).fetchall()


def equality_delete(con: icesql.Connection, *ids: int) -> None:
    """Delete rows of s.t by a key, its first column ``id`` of type BIGINT, as Flink does."""
    catalog, table = table_to_change(con._session.names, ("s", "t"))
    place = f"{table.metadata.location}/data/{uuid.uuid4()}.parquet"
    field = pa.field("id", pa.int64(), False, metadata={"PARQUET:field_id": "1"})
    local = Path(local_spellings(place)[0])
    pq.write_table(pa.table([pa.array(ids, pa.int64())], schema=pa.schema([field])), local)
    low, high = (struct.pack("<q", each) for each in (min(ids), max(ids)))
    file = DataFile(
        FileContent.EQUALITY_DELETES, place, "PARQUET", 0, (), len(ids), local.stat().st_size,
        value_counts={1: len(ids)}, null_value_counts={1: 0}, lower_bounds={1: low},
        upper_bounds={1: high}, equality_ids=(1,),
    )  # fmt: skip
    start = table.metadata.current_snapshot_id
    commit_row_delta(catalog, table, deletes=[file], start_id=start, command="delete")


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
def test_the_metadata_file_of_the_start_was_deleted(con, other, meanwhile, sql) -> None:
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
        meanwhile(commits)
        con.execute(sql)
    found = [row[0] for row in rows(other, "SELECT x FROM s.t ORDER BY x")]
    wanted = {"A": [0], "D": []}.get(sql[0], [0, 1])
    assert found == [*wanted, 100, 100, 100]


@BOTH
def test_a_transaction_may_begin_long_before_its_first_commit(con, other, monkeypatch) -> None:
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


# ------------------------------------------------------------------ manifests

LINEAGE = "SELECT id, _row_id FROM s.t WHERE id < 100 ORDER BY id"


@pytest.mark.parametrize(
    "sql", ["INSERT INTO s.t VALUES (100, 0)", "CALL system.rewrite_manifests('s.t')"]
)
def test_row_ids_that_others_gave_to_old_manifests_stay(con, other, meanwhile, sql: str) -> None:
    con.execute(
        "CREATE TABLE s.t (id INT, x INT) TBLPROPERTIES "
        "('write.delete.mode' = 'merge-on-read', 'commit.manifest.min-count-to-merge' = '4')"
    )
    for start in (0, 10, 20):
        con.execute(f"INSERT INTO s.t SELECT range + {start}, 0 FROM range(3)")
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '3')")
    seen = []

    def delete() -> None:
        other.execute("DELETE FROM s.t WHERE id = 0")
        seen.extend(rows(other, LINEAGE))

    meanwhile(delete)
    con.execute(sql)
    assert rows(other, LINEAGE) == seen
    assert len({row_id for _, row_id in seen}) == len(seen) == 8


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("moment", ["_updates", "_swapped"])
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
    if moment == "_swapped":
        own = attempts._swapped

        def late(*args: Any) -> Any:
            monkeypatch.setattr(attempts, "_swapped", own)
            equality_delete(other, 7)
            return own(*args)

        equality_delete(other, 7)
        monkeypatch.setattr(attempts, "_swapped", late)
    else:
        equality_delete(other, 7)
        equality_delete(other, 7)
    con.execute("COMMIT")
    for each in (con, other):
        assert rows(each, "SELECT id, x FROM s.t ORDER BY x") == [(1, 1), (7, 70), (7, 71)]


def test_row_ids_of_a_transaction_that_another_branch_took(con, other) -> None:
    con.execute(
        "CREATE TABLE s.t (id INT) TBLPROPERTIES "
        "('format-version' = '3', 'commit.manifest.min-count-to-merge' = '3')"
    )
    con.execute("INSERT INTO s.t VALUES (1)")
    con.execute("ALTER TABLE s.t CREATE BRANCH dev")
    con.execute("BEGIN")
    con.execute("INSERT INTO s.t VALUES (2)")
    con.execute("INSERT INTO s.t VALUES (3)")
    other.execute("INSERT INTO s.t VERSION AS OF 'dev' VALUES (50), (51)")
    con.execute("COMMIT")
    sql = "SELECT id, _row_id FROM s.t"
    found = {*rows(other, sql), *rows(other, f"{sql} VERSION AS OF 'dev'")}
    assert sorted(row_id for _, row_id in found) == [0, 1, 2, 3, 4]
    assert len({row_id for _, row_id in found}) == 5


def test_manifests_are_sorted_by_the_partitioning_of_the_attempt(con, other, meanwhile) -> None:
    con.execute("CREATE TABLE s.t (id INT, p INT, q INT) PARTITIONED BY (p, q)")
    for n in range(3):
        con.execute("INSERT INTO s.t VALUES (?, 1, ?)", [n, n])

    def change() -> None:
        other.execute("ALTER TABLE s.t DROP PARTITION FIELD p")
        other.execute("ALTER TABLE s.t DROP PARTITION FIELD q")
        for n in range(3):
            other.execute("INSERT INTO s.t VALUES (?, 1, 1)", [n])

    meanwhile(change)
    assert rows(con, "CALL system.rewrite_manifests('s.t')") == [(3, 1)]
    assert rows(other, "SELECT count(*) FROM s.t") == [(6,)]
