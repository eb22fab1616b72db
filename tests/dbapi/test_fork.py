"""In a fork of the process a connection refuses to be used, and nothing hangs or crashes."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from tests import warm

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

START = """
    import gc, os, sys, threading, time
    import icesql

    warehouse = sys.argv[1]
    connection = icesql.connect(warehouse=warehouse)
    cursor = connection.execute("SELECT range FROM range(9000)")
    cursor.fetchone()
    stream = connection.execute("SELECT range FROM range(900000)").arrow_reader()
    stream.read_next_batch()

    def refused(use):
        try:
            use()
        except icesql.InterfaceError as error:
            return "fork" in str(error) or str(error)
        return "no error"

    def in_child(work):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                work()
                sys.stdout.flush()
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        print("child ended with", status)
"""


def ran(warehouse: Path, script: str) -> list[str]:
    done = warm.python(textwrap.dedent(START) + textwrap.dedent(script), warehouse)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_use_is_refused_at_once(warehouse: Path) -> None:
    script = """
        def work():
            for use in (
                lambda: connection.execute("SELECT 1"),
                lambda: connection.cursor(),
                lambda: connection.tables(),
                lambda: cursor.execute("SELECT 1"),
                lambda: cursor.fetchone(),
                lambda: cursor.fetchall(),
                lambda: next(cursor),
                lambda: cursor.arrow(),
            ):
                print(refused(use))
            try:
                stream.read_all()
            except Exception as error:
                print("forked" in str(error))

        in_child(work)
        print(len(cursor.fetchall()), stream.read_all().num_rows > 0)
    """
    expected = ["True"] * 9 + ["child ended with 0", "8999 True"]
    assert ran(warehouse, script) == expected


def test_closing_and_collecting_in_a_child_does_no_harm(warehouse: Path) -> None:
    script = """
        def work():
            global connection, cursor, stream
            with connection, cursor:
                pass
            connection.cancel()
            del connection, cursor, stream
            gc.collect()
            print("collected")

        in_child(work)
        print(len(cursor.fetchall()), connection.execute("SELECT 1").fetchall())
    """
    assert ran(warehouse, script) == ["collected", "child ended with 0", "8999 [(1,)]"]


def test_a_new_connection_in_a_child_works(warehouse: Path) -> None:
    script = """
        def work():
            with icesql.connect(warehouse=warehouse) as own:
                print(own.execute("SELECT count(id) FROM shop.customers").fetchall())
                print(len(own.execute("SELECT range FROM range(9000)").fetchall()))

        in_child(work)
        in_child(work)
    """
    assert ran(warehouse, script) == ["[(4,)]", "9000", "child ended with 0"] * 2


def test_a_child_that_ends_as_programs_do_ends(warehouse: Path) -> None:
    script = """
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            print("child", refused(cursor.fetchall), flush=True)
            sys.exit(7)
        _, status = os.waitpid(child, 0)
        print("child ended with", os.waitstatus_to_exitcode(status))
    """
    assert ran(warehouse, script) == ["child True", "child ended with 7"]


@pytest.mark.parametrize("drop", ["pass", "del connection"], ids=["at its end", "at once"])
def test_an_idle_engine_is_not_torn_down_in_a_child(warehouse: Path, drop: str) -> None:
    # Its threads are idle, so no query's thread keeps it; DuckDB's destructor would join them.
    script = f"""
        cursor.close()
        stream.read_all()
        del cursor, stream
        connection.execute("SET threads = 4")
        connection.execute("SELECT count(*) FROM range(900000) WHERE range % 7 = 1").fetchall()
        while threading.active_count() > 1:
            time.sleep(0.01)
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            {drop}
            gc.collect()
            sys.exit(7)
        print("child ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert ran(warehouse, script) == ["child ended with 7"]


def test_a_pool_of_forks_works(warehouse: Path) -> None:
    script = """
        import multiprocessing

        def count(number):
            with icesql.connect(warehouse=warehouse) as own:
                return own.execute("SELECT count(id) + ? FROM shop.customers", [number]).fetchone()

        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(count, range(4)))
    """
    assert ran(warehouse, script) == ["[(4,), (5,), (6,), (7,)]"]
