"""BEGIN … COMMIT of one table is one commit; ROLLBACK leaves nothing behind."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.catalog.targets import table_to_change
from tests import warm


@pytest.fixture
def other(catalog: dict[str, Any], con: icesql.Connection) -> Any:
    """Another connection to the same catalog."""
    with icesql.connect(**catalog) as connection:
        yield connection


def values(con: icesql.Connection, what: str = "s.t") -> list[int]:
    return [row[0] for row in con.execute(f"SELECT a FROM {what} ORDER BY a")]


def made(con: icesql.Connection, version: int = 2) -> None:
    con.execute(
        f"CREATE TABLE s.t (a INT, b VARCHAR) TBLPROPERTIES ('format-version' = '{version}')"
    )
    con.execute("INSERT INTO s.t VALUES (1, 'x'), (2, 'y')")


def files(tmp_path: Path) -> set[Path]:
    found = {each for each in tmp_path.rglob("*") if each.is_file()}
    return {each for each in found if not each.name.startswith(("version-hint", "catalog.db"))}


@pytest.mark.parametrize(
    ("catalog", "version"), [("directory", 1), ("sqlite", 2), ("directory", 3)], indirect=["catalog"]
)  # fmt: skip
def test_all_changes_are_one_commit(
    con: icesql.Connection, other: icesql.Connection, tmp_path: Path, version: int
) -> None:
    made(con, version)
    before = {each for each in files(tmp_path) if each.name.endswith(".metadata.json")}
    con.execute("BEGIN")
    con.execute("INSERT INTO s.t VALUES (3, 'z')")
    assert values(con) == [1, 2, 3]
    assert con.execute("SELECT count(*) FROM s.t").fetchone() == (3,)
    con.execute("DELETE FROM s.t WHERE a < 2")
    con.execute("ALTER TABLE s.t ADD COLUMN c INT")
    con.execute("INSERT INTO s.t (a, c) SELECT a + 10, a FROM s.t")
    con.execute("UPDATE s.t SET b = 'new' WHERE a = 3")
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('x' = '1')")
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('x' = '0')")
    con.execute("ALTER TABLE s.t CREATE TAG loaded")
    seen = con.execute("SELECT * FROM s.t ORDER BY a").fetchall()
    assert seen == [(2, "y", None), (3, "new", None), (12, None, 2), (13, None, 3)]
    assert len(con.execute("SELECT * FROM s.t.snapshots").fetchall()) == 5
    assert values(other) == [1, 2], "nobody else sees it"
    con.execute("COMMIT")
    for each in (con, other):
        assert each.execute("SELECT * FROM s.t ORDER BY a").fetchall() == seen
        assert values(each, "s.t VERSION AS OF 'loaded'") == [2, 3, 12, 13]
    after = {each for each in files(tmp_path) if each.name.endswith(".metadata.json")}
    assert len(after - before) == 1
    metadata = table_to_change(other._session.state.names, ("s", "t"))[1].metadata
    assert len(metadata.snapshot_log) == 2, "what was superseded inside is not in the history"
    assert metadata.properties["x"] == "0"
    numbers = [each.sequence_number for each in metadata.snapshots.values()]
    assert numbers == ([0] * 5 if version == 1 else [1, 2, 3, 4, 5])
    con.execute("INSERT INTO s.t (a) VALUES (99)")
    assert values(other)[-1] == 99


def test_a_rollback_leaves_nothing(con: icesql.Connection, tmp_path: Path) -> None:
    made(con)
    before, threads = files(tmp_path), 0
    for number in range(10):
        threads = threads or threading.active_count()
        con.execute("START TRANSACTION")
        con.execute(f"INSERT INTO s.t VALUES ({number}, 'x')")
        con.execute("DELETE FROM s.t WHERE a = 1")
        assert files(tmp_path) > before
        con.execute("ROLLBACK") if number % 2 else con.rollback()
        assert values(con) == [1, 2]
        assert files(tmp_path) == before
    until = time.monotonic() + 5
    while threading.active_count() > threads and time.monotonic() < until:
        time.sleep(0.02)  # one of the last query may be ending
    assert threading.active_count() <= threads


def test_a_failed_statement_leaves_the_transaction_as_it_was(
    con: icesql.Connection, tmp_path: Path
) -> None:
    made(con)
    con.execute("CREATE TABLE s.u (a INT)")
    con.execute("BEGIN TRANSACTION")
    con.execute("INSERT INTO s.t VALUES (3, 'z')")
    before = files(tmp_path)
    for sql, kind, message in (
        ("INSERT INTO s.t VALUES ('x', 'y')", "Error", "CAST it"),
        ("INSERT INTO s.t SELECT 1 / 0, error('stop')", "Error", "stop"),
        ("ALTER TABLE s.t DROP COLUMN nothing", "ProgrammingError", "nothing"),
        ("INSERT INTO s.u VALUES (1)", "NotSupportedError", r"several tables \(s.t and s.u\)"),
        ("DELETE FROM s.u", "NotSupportedError", "COMMIT first"),
        ("CREATE TABLE s.v (a INT)", "UnsupportedSqlError", "in a transaction"),
        ("DROP TABLE s.u", "UnsupportedSqlError", "in a transaction"),
        ("CREATE SCHEMA r", "UnsupportedSqlError", "in a transaction"),
        ("ALTER TABLE s.u RENAME TO s.v", "UnsupportedSqlError", "in a transaction"),
        ("BEGIN", "ProgrammingError", "open already"),
        ("SAVEPOINT x", "UnsupportedSqlError", "SAVEPOINT"),
        ("ROLLBACK TO SAVEPOINT x", "UnsupportedSqlError", "ROLLBACK TO"),
        ("START TRANSACTION READ ONLY", "UnsupportedSqlError", "READ"),
    ):
        with pytest.raises(getattr(errors, kind), match=message):
            con.execute(sql)
        assert files(tmp_path) == before
    assert values(con) == [1, 2, 3]
    con.commit()
    assert values(con) == [1, 2, 3]
    con.execute("INSERT INTO s.u VALUES (1)")


@pytest.mark.parametrize("catalog", ["directory", "sqlite"], indirect=True)
def test_another_writer_was_first(
    con: icesql.Connection, other: icesql.Connection, tmp_path: Path
) -> None:
    made(con)
    con.execute("BEGIN")
    con.execute("INSERT INTO s.t VALUES (3, 'a')")
    con.execute("ALTER TABLE s.t ADD COLUMN c INT")
    con.execute("INSERT INTO s.t VALUES (4, 'a', 4)")
    other.execute("INSERT INTO s.t VALUES (10, 'b')")
    con.execute("COMMIT")
    assert values(con) == values(other) == [1, 2, 3, 4, 10], "appends are made again"
    con.execute("BEGIN")
    con.execute("INSERT INTO s.t VALUES (5, 'a', NULL)")
    con.execute("DELETE FROM s.t WHERE a = 10")
    assert values(con) == [1, 2, 3, 4, 5]
    other.execute("INSERT INTO s.t (a) VALUES (11)")
    before = files(tmp_path)
    with pytest.raises(errors.CommitConflictError, match="run the transaction again"):
        con.execute("COMMIT")
    assert files(tmp_path) < before
    assert values(con) == values(other) == [1, 2, 3, 4, 10, 11]
    assert con.execute("COMMIT").notes, "it is over"
    referenced = {row[0] for row in con.execute("SELECT file_path FROM s.t.all_files").fetchall()}
    data = {each for each in files(tmp_path) if each.suffix == ".parquet"}
    assert {each.name for each in data} == {each.rpartition("/")[2] for each in referenced}


@pytest.mark.parametrize(
    ("own", "others"),
    [
        ("ADD COLUMN x INT", "ADD COLUMN y INT"),
        ("ADD PARTITION FIELD b", "ADD PARTITION FIELD bucket(4, a)"),
        ("WRITE ORDERED BY a", "WRITE ORDERED BY b"),
    ],
)
def test_files_that_name_what_another_writer_took(
    con: icesql.Connection, other: icesql.Connection, tmp_path: Path, own: str, others: str
) -> None:
    """The files name columns, specs and orders by ids that mean the other writer's by now."""
    made(con)
    con.execute("BEGIN")
    con.execute(f"ALTER TABLE s.t {own}")
    con.execute("INSERT INTO s.t BY NAME SELECT 3 AS a, 'z' AS b")
    other.execute(f"ALTER TABLE s.t {others}")
    with pytest.raises(errors.CommitConflictError, match="run the transaction again"):
        con.execute("COMMIT")
    assert values(other) == [1, 2]
    con.execute("BEGIN")
    con.execute("INSERT INTO s.t BY NAME SELECT 3 AS a, 'z' AS b")
    other.execute("ALTER TABLE s.t SET TBLPROPERTIES ('x' = '1')")
    con.execute("COMMIT")
    assert values(other) == [1, 2, 3]


def begun_and_failed(catalog: dict[str, Any]) -> None:
    with icesql.connect(**catalog) as third:
        third.execute("BEGIN")
        third.execute("INSERT INTO s.t VALUES (8, 'a')")
        third.execute("SELECT nothing FROM s.t")


def test_the_calls_of_the_db_api(
    con: icesql.Connection, other: icesql.Connection, catalog: dict[str, Any], tmp_path: Path
) -> None:
    made(con)
    con.commit()
    con.rollback()
    assert con.autocommit
    con.autocommit = False
    con.cursor().executemany("INSERT INTO s.t VALUES (?, ?)", [(3, "a"), (4, "b")])
    con.execute("DELETE FROM s.t WHERE a = 1")
    assert (values(con), values(other)) == ([2, 3, 4], [1, 2])
    con.rollback()
    assert values(con) == [1, 2]
    con.execute("INSERT INTO s.t VALUES (5, 'a')")
    con.commit()
    con.execute("INSERT INTO s.t VALUES (6, 'a')")
    con.autocommit = True
    assert values(other) == [1, 2, 5, 6]
    with icesql.connect(**catalog) as third:
        third.execute("BEGIN")
        third.execute("INSERT INTO s.t VALUES (7, 'a')")
    assert values(other) == [1, 2, 5, 6, 7]
    before = files(tmp_path)
    with pytest.raises(errors.ColumnNotFoundError):
        begun_and_failed(catalog)
    fourth = icesql.connect(**catalog)
    fourth.execute("BEGIN")
    fourth.execute("INSERT INTO s.t VALUES (9, 'a')")
    fourth.close()
    assert values(other) == [1, 2, 5, 6, 7]
    assert files(tmp_path) == before


def test_a_connection_that_only_reads(con: icesql.Connection, catalog: dict[str, Any]) -> None:
    made(con)
    with icesql.connect(**catalog, read_only=True) as reader:
        reader.execute("BEGIN")
        with pytest.raises(errors.AccessDeniedError, match="only reads"):
            reader.execute("INSERT INTO s.t VALUES (3, 'z')")
        assert values(reader) == [1, 2]
        assert reader.execute("COMMIT").notes == ["the transaction changed nothing"]
        assert reader.execute("ROLLBACK").notes == ["no transaction is open; nothing was done"]


def test_a_change_in_a_transaction_says_that_it_is_not_committed(con: icesql.Connection) -> None:
    made(con)
    con.execute("BEGIN")
    for text, rows in (
        ("INSERT INTO s.t VALUES (3, 'z')", 1),
        ("UPDATE s.t SET b = 'q' WHERE a = 1", 1),
        ("DELETE FROM s.t WHERE a = 2", 1),
        ("MERGE INTO s.t USING (SELECT 3 AS n) o ON t.a = o.n WHEN MATCHED THEN DELETE", 1),
    ):
        cursor = con.execute(text)
        assert cursor.message.endswith("not committed yet"), text
        assert "snapshot" not in cursor.message
        assert cursor.notes == ["not committed yet: COMMIT applies it, ROLLBACK forgets it"]
        row = cursor.fetchone()
        # The snapshot may never be.
        assert row is not None
        assert (row[0], row[3]) == (rows, None)
    cursor = con.execute("ALTER TABLE s.t ADD COLUMN c INT")
    assert cursor.notes == ["not committed yet: COMMIT applies it, ROLLBACK forgets it"]
    nothing = con.execute("DELETE FROM s.t WHERE a = 77")
    assert nothing.message == "0 rows, nothing to commit"
    assert nothing.notes == []
    many = con.cursor()
    many.executemany("INSERT INTO s.t (a) VALUES (?)", [[5], [6]])
    assert many.message.endswith("not committed yet")
    assert con.execute("COMMIT").notes == []
    done = con.execute("DELETE FROM s.t")
    assert "snapshot" in done.message
    assert done.notes == []


def test_a_connection_that_begins_by_itself_says_so_too(catalog: dict[str, Any]) -> None:
    with icesql.connect(**catalog) as con:
        con.execute("CREATE SCHEMA s")
        made(con)
        con.autocommit = False
        assert con.execute("DELETE FROM s.t").message.endswith("not committed yet")
        con.rollback()
        assert values(con) == [1, 2]


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_an_exception_rolls_back_and_a_clean_end_commits(
    catalog: dict[str, Any], tmp_path: Path, error: type[BaseException]
) -> None:
    with icesql.connect(**catalog) as con:
        con.execute("CREATE SCHEMA s")
        made(con)
    before = files(tmp_path)

    def leave() -> None:
        with icesql.connect(**catalog) as con:
            con.execute("BEGIN")
            con.execute("DELETE FROM s.t WHERE a = 1")
            raise error

    with pytest.raises(error):
        leave()
    assert files(tmp_path) == before
    with icesql.connect(**catalog) as con:
        assert values(con) == [1, 2]
        con.execute("BEGIN")
        con.execute("DELETE FROM s.t WHERE a = 1")
        with pytest.raises(errors.Error):
            con.execute("SELECT nope")
    with icesql.connect(**catalog) as con:
        assert values(con) == [2], "in Python a failed statement leaves the transaction as it was"


@pytest.mark.parametrize("ends", ["next", "exit", "fork"])
def test_a_connection_that_is_garbage_leaves_nothing(
    catalog: dict[str, Any], tmp_path: Path, ends: str
) -> None:
    with icesql.connect(**catalog) as con:
        con.execute("CREATE SCHEMA s")
        made(con)
    before = files(tmp_path)
    program = (
        "import gc, os, sys, icesql\n"
        f"con = icesql.connect(**{catalog!r})\n"
        "con.execute('BEGIN'); con.execute('DELETE FROM s.t WHERE a = 1')\n"
        "con.execute(\"INSERT INTO s.t VALUES (3, 'z')\")\n"
    )
    if ends == "fork":
        program += (
            "if os.fork() == 0:\n    del con; gc.collect()\n    sys.exit()\n"
            "assert os.wait()[1] == 0\ncon.commit()\n"
        )
    else:
        program += "del con; gc.collect()\n"
    if ends == "next":
        program += (
            f"con = icesql.connect(**{catalog!r})\ncon.execute('BEGIN')\n"
            "sys.stdout.flush(); os._exit(0)\n"
        )
    done = warm.python(program)
    assert done.returncode == 0, done.stderr
    with icesql.connect(**catalog) as con:
        if ends == "fork":
            assert values(con) == [2, 3], "the child's copy is not the parent's transaction"
        else:
            assert values(con) == [1, 2]
            assert files(tmp_path) == before


def test_files_that_another_expires_are_a_conflict(tmp_path: Path) -> None:
    """Merging manifests opens those of the table that the transaction began with."""
    with icesql.connect(warehouse=str(tmp_path)) as con:
        con.execute("CREATE SCHEMA s")
        properties = "TBLPROPERTIES ('commit.manifest.min-count-to-merge' = '2')"
        con.execute(f"CREATE TABLE s.t (a INT) {properties}")
        con.execute("INSERT INTO s.t VALUES (1)")
        con.execute("BEGIN")
        con.execute("UPDATE s.t SET a = 2 WHERE a = 3")
        con.execute("ALTER TABLE s.t ADD COLUMN b INT")
        with icesql.connect(warehouse=str(tmp_path)) as other:
            other.execute(f"CREATE OR REPLACE TABLE s.t (a INT) {properties}")
            other.execute("INSERT INTO s.t VALUES (5)")
            other.execute(
                "CALL system.expire_snapshots('s.t', retain_last => 1, "
                "older_than => now() + INTERVAL 1 HOUR)"
            )
        with pytest.raises(icesql.CommitConflictError, match="run the transaction again"):
            con.execute("INSERT INTO s.t VALUES (4, 4)")
        con.execute("ROLLBACK")
        assert con.execute("SELECT a FROM s.t").fetchall() == [(5,)]
