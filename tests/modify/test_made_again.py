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
from icesql import errors
from icesql.catalog.targets import table_to_change
from icesql.commit import attempts
from icesql.commit.rows import commit_row_delta
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.storage.open import local_spellings

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


@pytest.fixture(params=["_tried", "swapped"], ids=["before-the-look", "before-the-swap"])
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
    catalog, table = table_to_change(con._session.state.names, ("s", "t"))
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
            equality_delete(other, 7)
            return own(*args)

        equality_delete(other, 7)
        monkeypatch.setattr(attempts, "swapped", late)
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


# ------------------------------------------------------------------ tables that are others by now


def replaced(other: icesql.Connection, columns: str) -> Callable[[], Any]:
    return lambda: other.execute(f"CREATE OR REPLACE TABLE s.t ({columns}) PARTITIONED BY (p)")


def left_alone(con: icesql.Connection, other: icesql.Connection, tmp_path: Path) -> None:
    """The table of others is read, and no file of the statement is left."""
    for each in (con, other):
        assert rows(each, "SELECT * FROM s.t") == []
    known = {row[0] for row in rows(other, "SELECT file_path FROM s.t.all_files")}
    there = {str(each) for each in tmp_path.rglob("*.parquet")} - {
        str(tmp_path / "in/p=9/f.parquet")
    }
    assert {each.removeprefix("file:") for each in known} >= there


@pytest.mark.parametrize(
    ("columns", "rows_before"),
    [
        ("a VARCHAR, p INT", True),
        ("a DOUBLE, p INT", False),
        ("x INT, p INT", False),
        ("x INT, p INT, a INT", True),
    ],
)
@pytest.mark.parametrize(
    "sql",
    ["INSERT INTO s.t VALUES (2, 2)", "INSERT OVERWRITE s.t VALUES (2, 2)", "add_files", "BEGIN"],
)
def test_another_table_of_the_same_uuid(
    con, other, meanwhile, tmp_path, sql: str, columns: str, rows_before: bool
) -> None:
    con.execute("CREATE TABLE s.t (a INT, p INT) PARTITIONED BY (p)")
    con.execute("SET partition_overwrite_mode = 'dynamic'")
    if rows_before:
        con.execute("INSERT INTO s.t VALUES (1, 1)")
    if sql == "add_files":
        (tmp_path / "in/p=9").mkdir(parents=True)
        table = pa.table({"a": pa.array([5], pa.int32())})
        pq.write_table(table, tmp_path / "in/p=9/f.parquet")
        sql = f"CALL system.add_files(table => 's.t', source_table => '`parquet`.`{tmp_path}/in`')"
    if sql == "BEGIN":
        con.execute("BEGIN")
        con.execute("INSERT INTO s.t VALUES (2, 2)")
        sql = "COMMIT"
    meanwhile(replaced(other, columns))
    with pytest.raises(errors.CommitConflictError, match="changed since the statement"):
        con.execute(sql)
    left_alone(con, other, tmp_path)


def test_a_replacement_that_also_takes_the_rows(con, other, meanwhile) -> None:
    """Of an empty table nobody knows that it was replaced; the rows are of its columns, too."""
    con.execute("CREATE TABLE s.t (a INT, p INT) PARTITIONED BY (p)")
    meanwhile(replaced(other, "p INT, b VARCHAR, a BIGINT"))
    con.execute("INSERT INTO s.t VALUES (1, 2)")
    assert rows(other, "SELECT p, b, a FROM s.t") == [(2, None, 1)]


def test_a_column_that_has_become_not_null(con, other, meanwhile) -> None:
    con.execute("CREATE TABLE s.t (a INT, p INT) PARTITIONED BY (p)")
    meanwhile(replaced(other, "a INT NOT NULL, p INT"))
    with pytest.raises(errors.CommitConflictError, match='"a" is NOT NULL'):
        con.execute("INSERT INTO s.t VALUES (NULL, 2)")
    meanwhile(replaced(other, "a INT NOT NULL, p INT, b INT NOT NULL"))
    with pytest.raises(errors.CommitConflictError, match='"b" is NOT NULL'):
        con.execute("INSERT INTO s.t VALUES (1, 2)")
    assert rows(other, "SELECT * FROM s.t") == []


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE s.t ADD COLUMN c INT",
        "ALTER TABLE s.t ALTER COLUMN a SET DATA TYPE BIGINT",
        "ALTER TABLE s.t RENAME COLUMN a TO b",
        "ALTER TABLE s.t DROP COLUMN a",
        "ALTER TABLE s.t DROP PARTITION FIELD p",
        "ALTER TABLE s.t ADD PARTITION FIELD bucket(4, a)",
        "CALL system.rollback_to_snapshot('s.t', {first})",
    ],
)
def test_what_is_the_same_table_still_takes_the_rows(con, other, meanwhile, change: str) -> None:
    con.execute("CREATE TABLE s.t (a INT, p INT) PARTITIONED BY (p)")
    con.execute("INSERT INTO s.t VALUES (1, 1)")
    first = rows(con, "SELECT snapshot_id FROM s.t.snapshots")[0][0]
    con.execute("INSERT INTO s.t VALUES (2, 2)")
    meanwhile(lambda: other.execute(change.format(first=first)))
    con.execute("INSERT INTO s.t VALUES (3, 3)")
    found = [row[0] for row in rows(other, "SELECT p FROM s.t ORDER BY p")]
    assert found == ([1, 3] if "rollback" in change else [1, 2, 3])


def test_a_branch_that_was_dropped_is_not_made_again(con, other, meanwhile, tmp_path) -> None:
    con.execute("CREATE TABLE s.t (x INT)")
    con.execute("INSERT INTO s.t VALUES (1)")
    con.execute("ALTER TABLE s.t CREATE BRANCH dev")
    con.execute("INSERT INTO s.t VERSION AS OF 'dev' VALUES (50)")
    con.execute("INSERT INTO s.t VALUES (2)")
    meanwhile(lambda: other.execute("ALTER TABLE s.t DROP BRANCH dev"))
    with pytest.raises(errors.CommitConflictError, match="the branch 'dev' was dropped"):
        con.execute("INSERT INTO s.t VERSION AS OF 'dev' VALUES (51)")
    assert [row[0] for row in rows(other, "SHOW REFS FROM s.t")] == ["main"]


def test_a_name_mapping_that_others_gave_the_table(con, other, meanwhile, tmp_path) -> None:
    """The columns of added files are found by it."""
    con.execute("CREATE TABLE s.t (a INT, b INT)")
    pq.write_table(pa.table({"a": pa.array([5], pa.int32())}), tmp_path / "f.parquet")
    mapping = '[{"field-id": 1, "names": ["b"]}, {"field-id": 2, "names": ["a"]}]'
    call = (
        f"CALL system.add_files(table => 's.t', source_table => '`parquet`.`{tmp_path}/f.parquet`')"
    )

    def swap() -> None:
        other.execute(
            f"ALTER TABLE s.t SET TBLPROPERTIES ('schema.name-mapping.default' = '{mapping}')"
        )

    meanwhile(swap)
    with pytest.raises(errors.CommitConflictError, match="name-mapping"):
        con.execute(call)
    con.execute(call)
    assert rows(con, "SELECT a, b FROM s.t") == [(None, 5)]


# ------------------------------------------------------------------ dynamic INSERT OVERWRITE


@pytest.mark.parametrize(
    ("catalog", "version"),
    [("directory", 1), ("directory", 2), ("sqlite", 3)],
    indirect=["catalog"],
)
def test_the_last_overwrite_of_a_partition_is_right(con, other, meanwhile, version: int) -> None:
    con.execute(
        "CREATE TABLE s.t (p INT, x INT) PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '{version}')"
    )
    con.execute("INSERT INTO s.t VALUES (0, 0)")
    for each in (con, other):
        each.execute("SET partition_overwrite_mode = 'dynamic'")
    meanwhile(lambda: other.execute("INSERT OVERWRITE s.t VALUES (1, 20), (1, 21)"))
    con.execute("INSERT OVERWRITE s.t VALUES (1, 10), (1, 11)")
    assert rows(other, "SELECT p, x FROM s.t ORDER BY p, x") == [(0, 0), (1, 10), (1, 11)]
    meanwhile(lambda: other.execute("DELETE FROM s.t WHERE p = 1"))
    con.execute("INSERT OVERWRITE s.t VALUES (1, 30)")
    assert rows(other, "SELECT p, x FROM s.t ORDER BY p, x") == [(0, 0), (1, 30)]


def test_an_overwrite_over_a_rollback(con, other, meanwhile) -> None:
    """The files that came back are of the partition, too."""
    con.execute("CREATE TABLE s.t (p INT, x INT) PARTITIONED BY (p)")
    con.execute("INSERT INTO s.t VALUES (1, 1), (2, 2)")
    first = rows(con, "SELECT snapshot_id FROM s.t.snapshots")[0][0]
    con.execute("DELETE FROM s.t WHERE p = 1")
    con.execute("SET partition_overwrite_mode = 'dynamic'")
    meanwhile(lambda: other.execute(f"CALL system.rollback_to_snapshot('s.t', {first})"))
    con.execute("INSERT OVERWRITE s.t VALUES (1, 10)")
    assert rows(other, "SELECT p, x FROM s.t ORDER BY p, x") == [(1, 10), (2, 2)]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize(
    ("sql", "change"),
    [
        ("static INSERT OVERWRITE s.t SELECT p, x + 1 FROM s.t", "DELETE FROM s.t WHERE x = 2"),
        ("static INSERT OVERWRITE s.t SELECT p, x + 1 FROM s.t", "INSERT INTO s.t VALUES (1, 9)"),
        ("dynamic INSERT OVERWRITE s.t SELECT p, x + 1 FROM s.t WHERE p = 1", "INSERT INTO s.t VALUES (1, 9)"),
        ("dynamic INSERT OVERWRITE s.t SELECT 3, x FROM s.t WHERE p = 1", "INSERT INTO s.t VALUES (1, 9)"),
        ("dynamic INSERT OVERWRITE s.t SELECT 3, x FROM s.t WHERE p = 1", "DELETE FROM s.t WHERE x = 2"),
        ("static INSERT INTO s.t REPLACE WHERE p = 3 SELECT 3, x FROM s.t WHERE p = 1", "INSERT INTO s.t VALUES (1, 9)"),
        ("static CREATE OR REPLACE TABLE s.t AS SELECT p, x FROM s.t", "INSERT INTO s.t VALUES (1, 9)"),
        ("static CREATE OR REPLACE TABLE s.t AS SELECT p, x FROM s.t", "DELETE FROM s.t WHERE x = 2"),
    ],
)  # fmt: skip
def test_rows_that_were_made_of_the_tables_own(
    con, other, meanwhile, sql: str, change: str, mode: str
) -> None:
    """What others added since would be lost, and what they deleted would be there again."""
    con.execute(
        "CREATE TABLE s.t (p INT, x INT) PARTITIONED BY (p) "
        f"TBLPROPERTIES ('write.delete.mode' = '{mode}')"
    )
    con.execute("INSERT INTO s.t VALUES (1, 1), (1, 2), (2, 3)")
    kind, _, sql = sql.partition(" ")
    con.execute(f"SET partition_overwrite_mode = '{kind}'")
    meanwhile(lambda: other.execute(change))
    with pytest.raises(errors.CommitConflictError, match="conflicts with this statement"):
        con.execute(sql)
    wanted = [1, 3] if "DELETE" in change else [1, 2, 3, 9]
    assert [row[0] for row in rows(other, "SELECT x FROM s.t ORDER BY x")] == wanted
    con.execute(sql)


def test_rows_that_others_read_not_are_no_matter(con, other, meanwhile) -> None:
    con.execute("CREATE TABLE s.t (p INT, x INT) PARTITIONED BY (p)")
    con.execute("INSERT INTO s.t VALUES (1, 1), (2, 3)")
    con.execute("ALTER TABLE s.t CREATE TAG then")
    con.execute("SET partition_overwrite_mode = 'dynamic'")
    meanwhile(lambda: other.execute("INSERT INTO s.t VALUES (2, 9)"))
    con.execute("INSERT OVERWRITE s.t SELECT p, x + 1 FROM s.t WHERE p = 1")
    assert rows(other, "SELECT p, x FROM s.t ORDER BY p, x") == [(1, 2), (2, 3), (2, 9)]
    meanwhile(lambda: other.execute("INSERT INTO s.t VALUES (1, 8)"))
    con.execute("INSERT OVERWRITE s.t SELECT * FROM s.t VERSION AS OF 'then' WHERE p = 1")
    assert rows(other, "SELECT p, x FROM s.t ORDER BY p, x") == [(1, 1), (2, 3), (2, 9)]


# ------------------------------------------------------------------ row lineage


@pytest.mark.parametrize("upgraded", ["before", "meanwhile"])
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE s.t SET x = 1 WHERE id = 2",
        "DELETE FROM s.t WHERE id = 2",
        "MERGE INTO s.t USING (SELECT 2 AS k) ON id = k WHEN MATCHED THEN UPDATE SET x = 1",
        "INSERT INTO s.t REPLACE WHERE id = 2 VALUES (2, 1)",
        "CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))",
    ],
)
def test_rows_that_got_ids_meanwhile_keep_them(
    con, other, meanwhile, sql: str, upgraded: str
) -> None:
    """Rows of before an upgrade get them with the first commit after it."""
    con.execute(
        "CREATE TABLE s.t (id INT, x INT) TBLPROPERTIES ("
        "'write.update.isolation-level' = 'snapshot', 'write.delete.isolation-level' = 'snapshot',"
        "'write.merge.isolation-level' = 'snapshot')"
    )
    con.execute("INSERT INTO s.t SELECT range, 0 FROM range(4)")
    lineage = "SELECT id, _row_id, _last_updated_sequence_number FROM s.t ORDER BY id"
    seen = []

    upgrade = "ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '3')"

    def give_ids() -> None:
        if upgraded == "meanwhile":
            other.execute(upgrade)
        other.execute("INSERT INTO s.t VALUES (9, 9)")
        seen.extend(rows(other, lineage))

    if upgraded == "before":
        con.execute(upgrade)
    meanwhile(give_ids)
    with pytest.raises(errors.CommitConflictError, match="its rows got ids since"):
        con.execute(sql)
    assert rows(other, lineage) == seen
    con.execute(sql)
    kept = {row[0]: row[1:] for row in rows(other, lineage)}
    assert all(kept[row[0]] == row[1:] for row in seen if row[0] != 2)


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
    from icesql.maintain.deletes import options as procedure

    con.execute(
        "CREATE TABLE s.t (p INT, x INT) PARTITIONED BY (p) TBLPROPERTIES ("
        "'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'file')"
    )
    con.execute("INSERT INTO s.t SELECT p, x FROM range(3) a(p), range(6) b(x)")
    for n in range(2):
        con.execute("DELETE FROM s.t WHERE x = ?", [n])
    rewrite = procedure.rewrite_delete_files

    def expired_after(*args: Any, **options: Any) -> Any:
        done = rewrite(*args, **options)
        other.execute(
            "CALL system.expire_snapshots(table => 's.t', "
            "older_than => now() + INTERVAL 1 HOUR, retain_last => 1)"
        )
        return done

    monkeypatch.setattr(procedure, "rewrite_delete_files", expired_after)
    options = "map('rewrite-all', 'true', 'partial-progress.enabled', 'true', 'partial-progress.max-commits', '3')"
    rows(con, f"CALL system.rewrite_position_delete_files(table => 's.t', options => {options})")
    assert rows(other, "SELECT p, count(*) FROM s.t GROUP BY p ORDER BY p") == [
        (n, 4) for n in (0, 1, 2)
    ]


# ------------------------------------------------------------------ columns that come with rows

GROWS = {
    "insert": "INSERT WITH SCHEMA EVOLUTION INTO s.t BY NAME SELECT 5 AS i, 7 AS n",
    "overwrite": "INSERT WITH SCHEMA EVOLUTION OVERWRITE s.t BY NAME SELECT 5 AS i, 7 AS n",
    "merge": (
        "MERGE WITH SCHEMA EVOLUTION INTO s.t USING (SELECT 5 AS i, 7 AS n) q ON s.t.i = q.i "
        "WHEN NOT MATCHED THEN INSERT *"
    ),
}


@pytest.fixture
def growing(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (i INT, x VARCHAR)")


@pytest.mark.parametrize("statement", GROWS.values(), ids=GROWS)
@pytest.mark.parametrize(
    "theirs",
    [
        "ALTER TABLE s.t ADD COLUMN n INT",
        "ALTER TABLE s.t ADD COLUMN N BIGINT",
        "INSERT WITH SCHEMA EVOLUTION INTO s.t BY NAME SELECT 1 AS n WHERE false",
        "ALTER TABLE s.t ALTER COLUMN i TYPE BIGINT",
        "ALTER TABLE s.t RENAME COLUMN x TO y",
    ],
)
def test_a_column_that_others_add_first_is_used(
    con: Any, other: Any, meanwhile: Meanwhile, growing: None, theirs: str, statement: str
) -> None:
    meanwhile(lambda: other.execute(theirs))
    con.execute(statement)
    assert con.execute("SELECT i, n FROM s.t").fetchall() == [(5, 7)]
    names = [each.lower() for each in con.columns("s.t")]
    assert names.count("n") == 1


@pytest.mark.parametrize("statement", GROWS.values(), ids=GROWS)
@pytest.mark.parametrize(
    "theirs",
    [
        "ALTER TABLE s.t ADD COLUMN m INT",  # which has the id that n had to get
        "ALTER TABLE s.t ADD COLUMN n VARCHAR",
        "ALTER TABLE s.t ADD COLUMN n DATE",
        "ALTER TABLE s.t RENAME COLUMN i TO j",
        "ALTER TABLE s.t DROP COLUMN i",
        "ALTER TABLE s.t RENAME COLUMN x TO n",
    ],
)
def test_columns_that_others_change_conflict(
    con: Any, other: Any, meanwhile: Meanwhile, growing: None, theirs: str, statement: str,
    catalog: dict[str, Any],
) -> None:  # fmt: skip
    meanwhile(lambda: other.execute(theirs))
    with pytest.raises(errors.CommitConflictError, match="run the statement again"):
        con.execute(statement)
    left = table_to_change(other._session.state.names, ("s", "t"))[1].metadata
    assert not left.snapshots
    assert len(left.schema.fields) == (1 if "DROP" in theirs else 3 if "ADD" in theirs else 2)
    assert not list(Path(catalog["warehouse"]).rglob("*.parquet")), "no file is left"


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_merge_that_grows_goes_on_with_rows_of_others(
    con: Any, other: Any, meanwhile: Meanwhile, mode: str
) -> None:
    con.execute(
        "CREATE TABLE s.t (i INT, x INT) TBLPROPERTIES "
        f"('write.merge.mode' = '{mode}', 'write.merge.isolation-level' = 'snapshot')"
    )
    con.execute("INSERT INTO s.t VALUES (1, 1), (2, 2)")
    meanwhile(lambda: other.execute("INSERT INTO s.t VALUES (3, 3)"))
    con.execute(
        "MERGE WITH SCHEMA EVOLUTION INTO s.t USING (SELECT 1 AS i, 5000000000 AS x, 7 AS n) q "
        "ON s.t.i = q.i WHEN MATCHED THEN UPDATE SET *"
    )
    assert con.execute("SELECT * FROM s.t ORDER BY i").fetchall() == [
        (1, 5000000000, 7), (2, 2, None), (3, 3, None),
    ]  # fmt: skip


def test_a_transaction_that_grows(con: Any, other: Any, growing: None) -> None:
    con.execute("BEGIN")
    con.execute(GROWS["insert"])
    other.execute("INSERT INTO s.t VALUES (1, 'x')")
    con.execute("COMMIT")
    assert con.execute("SELECT * FROM s.t ORDER BY i").fetchall() == [(1, "x", None), (5, None, 7)]
    con.execute("BEGIN")
    con.execute("INSERT WITH SCHEMA EVOLUTION INTO s.t BY NAME SELECT 8 AS o")
    other.execute("ALTER TABLE s.t ADD COLUMN p INT")
    with pytest.raises(errors.CommitConflictError):
        con.execute("COMMIT")
    assert con.columns("s.t") == ["i", "x", "n", "p"]
