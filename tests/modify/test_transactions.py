"""BEGIN … COMMIT of one table is one commit; ROLLBACK leaves nothing behind."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from tests import warm


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


def test_a_rollback_leaves_nothing(con: icesql.Connection, tmp_path) -> None:
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
        time.sleep(0.02)  # a thread of the last query may still be ending
    assert threading.active_count() <= threads


def begun_and_failed(catalog: dict[str, Any]) -> None:
    with icesql.connect(**catalog) as third:
        third.execute("BEGIN")
        third.execute("INSERT INTO s.t VALUES (8, 'a')")
        third.execute("SELECT nothing FROM s.t")


def test_the_calls_of_the_db_api(
    con: icesql.Connection, other: icesql.Connection, catalog: dict[str, Any], tmp_path
) -> None:
    made(con)
    con.commit()
    con.rollback()
    assert con.autocommit
    con.autocommit = False
    many = con.cursor()
    many.executemany("INSERT INTO s.t VALUES (?, ?)", [(3, "a"), (4, "b")])
    assert many.message.endswith("not committed yet")
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
    catalog: dict[str, Any], tmp_path, error: type[BaseException]
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
    catalog: dict[str, Any], tmp_path, ends: str
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
