"""A DELETE, UPDATE or MERGE that lost to another writer is evaluated again as a whole.

The result is that of a serial order: the other's commit, then the statement, at the time when
it began.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import icesql
from icesql.catalog.writes.change import Unknown
from icesql.commit import attempts
from icesql.errors import CommitConflictError

Before = Callable[..., list[int]]
MODES = ("copy-on-write", "merge-on-read")


@pytest.fixture
def before(monkeypatch) -> Before:
    """Call a function before the first commits, and count all commits."""
    own = attempts._until_known

    def install(action: Callable[[], Any], times: int = 1) -> list[int]:
        counted, inside = [0], []

        def tried(*given: Any) -> Any:
            if not inside:
                counted[0] += 1
                inside.append(1)
                try:
                    if counted[0] <= times:
                        action()
                finally:
                    inside.clear()
            return own(*given)

        monkeypatch.setattr(attempts, "_until_known", tried)
        return counted

    return install


def make(con: icesql.Connection, mode: str = MODES[0], version: int = 2, more: str = "") -> None:
    modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge"))
    con.execute(
        f"CREATE TABLE s.t (id INT, v INT{more}) "
        f"TBLPROPERTIES ({modes}, 'format-version' = '{version}')"
    )
    columns = "range, 0" if not more else "range, 0, NULL"
    con.execute(f"INSERT INTO s.t SELECT {columns} FROM range(6)")


def rows(con: icesql.Connection, what: str = "*") -> list[tuple[Any, ...]]:
    return con.execute(f"SELECT {what} FROM s.t ORDER BY ALL").fetchall()


def left_over(con: icesql.Connection) -> set[str]:
    """Data files in the table's folder that no snapshot references."""
    known = {row[0] for row in con.execute("SELECT file_path FROM s.t.all_files").fetchall()}
    folder = Path(next(iter(known)).removeprefix("file://")).parent
    names = {Path(each).name for each in known}
    return {each.name for each in folder.glob("*.p*")} - names


STATEMENTS = {
    "delete": "DELETE FROM s.t WHERE v = 0 AND id < 3",
    "update": "UPDATE s.t SET v = v + 1 WHERE id < 3",
    "update from": "UPDATE s.t SET v = q.n FROM (SELECT max(v) + 1 AS n FROM s.t) AS q WHERE id < 3",
    "merge": (
        "MERGE INTO s.t AS t USING (SELECT * FROM (VALUES (2, 7), (9, 7)) AS w(id, v)) AS q "
        "ON t.id = q.id WHEN MATCHED THEN UPDATE SET v = t.v + q.v WHEN NOT MATCHED THEN INSERT *"
    ),
    "merge of itself": (
        "MERGE INTO s.t AS t USING (SELECT id + 1 AS id, v FROM s.t) AS q ON t.id = q.id "
        "WHEN MATCHED THEN UPDATE SET v = q.v + 1 WHEN NOT MATCHED THEN INSERT *"
    ),
}
OTHERS = {
    "update": "UPDATE s.t SET v = 5 WHERE id IN (1, 2)",
    "delete": "DELETE FROM s.t WHERE id = 1",
    "insert": "INSERT INTO s.t VALUES (2, 9), (9, 1)",
    "compaction": "CALL system.rewrite_data_files(table => 's.t', options => map('rewrite-all', 'true'))",
}


# Each pair of statements with both modes and both versions: two of the four.
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", STATEMENTS)
@pytest.mark.parametrize("another", OTHERS)
def test_it_is_as_if_the_other_had_been_first(
    con, other, before, mode: str, kind: str, another: str
) -> None:
    places = [*STATEMENTS].index(kind), [*OTHERS].index(another), MODES.index(mode)
    version = 2 + sum(places) % 2
    make(con, mode, version)
    other.execute(OTHERS[another])
    wanted: Any
    try:
        count = other.execute(STATEMENTS[kind]).fetchall()[0][0]
        wanted = rows(other)
    except icesql.ProgrammingError:  # two rows of the source match one of the table
        wanted = None
    con.execute("DROP TABLE s.t PURGE")
    make(con, mode, version)
    counted = before(lambda: other.execute(OTHERS[another]).fetchall())
    if wanted is None:
        with pytest.raises(icesql.ProgrammingError, match="several rows"):
            con.execute(STATEMENTS[kind])
        return
    found = con.execute(STATEMENTS[kind]).fetchall()
    assert rows(con) == wanted
    assert counted[0] in (1, 2)
    if counted[0] == 2:
        assert found[0][0] == count, "the count is the last attempt's"
    assert left_over(con) == set()


@pytest.mark.parametrize("retries", [1, 2])
def test_it_is_planned_again_so_often_and_no_more(con, other, before, retries: int) -> None:
    make(con)
    con.execute(f"SET conflict_retries = {retries}")
    counted = before(lambda: other.execute("UPDATE s.t SET v = v + 10"), times=99)
    with pytest.raises(CommitConflictError, match=f"it was planned {retries + 1} times"):
        con.execute(STATEMENTS["update"])
    assert counted == [retries + 1]
    assert {row[1] for row in rows(con)} == {10 * (retries + 1)}
    assert left_over(con) == set()


@pytest.mark.parametrize("clock", ["now()", "current_timestamp", "localtimestamp"])
def test_the_time_is_that_of_the_first_attempt(con, other, before, clock: str) -> None:
    make(con, more=", seen TIMESTAMP")
    moments: list[datetime] = []

    def act() -> None:
        moments.append(datetime.now(UTC))
        other.execute(OTHERS["update"])

    before(act)
    con.execute(f"UPDATE s.t SET v = v + 1, seen = {clock}::TIMESTAMP WHERE id < 3")
    found = rows(con)
    assert [row[1] for row in found] == [1, 6, 6, 0, 0, 0]
    assert all(row[2].replace(tzinfo=UTC) < moments[0] for row in found if row[2] is not None)
    assert len({row[2] for row in found if row[2] is not None}) == 1


def test_all_that_it_reads_is_read_again(con, other, before, tmp_path) -> None:
    make(con)
    con.execute("CREATE TABLE s.u AS SELECT 0 AS id")
    con.register("given", pa.table({"id": [1]}))
    reader = pa.RecordBatchReader.from_batches(
        pa.schema([("id", pa.int64())]), [pa.record_batch({"id": [2]})]
    )
    con.register("once", reader)

    def act() -> None:
        other.execute("UPDATE s.u SET id = 5")
        other.execute("UPDATE s.t SET v = 5 WHERE id < 3")

    before(act)
    con.execute(
        "DELETE FROM s.t WHERE id IN (SELECT id FROM s.u UNION ALL SELECT id FROM given "
        "UNION ALL SELECT id FROM once)"
    )
    assert rows(con) == [(0, 5), (3, 0), (4, 0)]


def test_files_are_read_again(con, other, before, tmp_path) -> None:
    make(con)
    file = tmp_path / "ids.csv"
    file.write_text("id\n1\n")

    def act() -> None:
        file.write_text("id\n2\n")
        other.execute(OTHERS["update"])

    before(act)
    con.execute(f"DELETE FROM s.t WHERE id IN (SELECT id FROM read_csv('{file}'))")
    assert rows(con, "id") == [(0,), (1,), (3,), (4,), (5,)]


def test_after_an_unknown_outcome_nothing_is_planned_again(con, other, before, monkeypatch) -> None:
    make(con)
    monkeypatch.setattr(attempts, "_STATUS_WAIT_SECONDS", 0.0)
    own, seen = attempts.swapped, list[int]()

    def lost(*given: Any) -> Any:
        if seen:
            return own(*given)
        seen.append(1)
        other.execute(OTHERS["update"])
        return Unknown("it hung up", is_busy=True)

    monkeypatch.setattr(attempts, "swapped", lost)
    counted = before(lambda: None)
    with pytest.raises((CommitConflictError, icesql.errors.CommitStateUnknownError)) as caught:
        con.execute(STATEMENTS["update"])
    assert counted == [2], f"ours and the other's: {caught.value}"
    assert {row[1] for row in rows(con)} == {0, 5}


def test_the_time_limit_covers_all_attempts(con, other, before, monkeypatch) -> None:
    make(con)
    con.execute("SET query_timeout = 600")
    own = time.monotonic

    def act() -> None:
        other.execute("UPDATE s.t SET v = v + 10")
        later = SimpleNamespace(monotonic=lambda: own() + 601)
        monkeypatch.setattr("icesql.context.time", later)

    counted = before(act, times=9)
    with pytest.raises(icesql.errors.QueryCancelledError, match="query_timeout"):
        con.execute(STATEMENTS["update"])
    assert counted == [1]
    assert {row[1] for row in rows(other)} == {10}
