"""A process that ends with results still open ends quietly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import processes

CONNECT = """
import sys, threading, time
import icesql
connection = icesql.connect(warehouse=sys.argv[1])
"""
ORDERS = "SELECT a.id, b.region FROM shop.orders a, shop.orders b, shop.orders c"
ENDLESS = (
    "SELECT count(*) FROM range(100000) a, range(100000) b, range(100000) c "
    "WHERE a.range + b.range + c.range = 3"
)

QUIET = {
    "a half read cursor": f"cursor = connection.execute({ORDERS!r}); cursor.fetchone()",
    "a loop that was left": f"rows = iter(connection.execute({ORDERS!r})); next(rows)",
    "a half read Arrow reader": f"""
reader = connection.execute({ORDERS!r}).arrow_reader()
reader.read_next_batch()
""",
    "an Arrow reader alone": f"""
reader = connection.execute({ORDERS!r}).arrow_reader()
del connection
""",
    "an error that is kept": """
try:
    connection.execute("SELECT CAST(region AS INTEGER) FROM shop.orders").fetchall()
except icesql.Error as error:
    kept = error
""",
    "a thread at work": f"""
def work():
    try:
        connection.execute({ENDLESS!r}).fetchall()
    except icesql.Error:
        pass  # that its query was stopped is for the program to tell
threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
""",
    # DuckDB's module waits for running queries in an exit function of its own.
    "a query that runs when an earlier exit function is called": f"""
import atexit, duckdb
from icesql.engine import query_thread
atexit.register(lambda: query_thread._LIVE and print("still running"))
def work():
    try:
        connection.execute({ENDLESS!r}).fetchall()
    except icesql.Error:
        pass
threading.Thread(target=work, daemon=True).start()
while not query_thread._LIVE:
    time.sleep(0.01)
""",
    "an exit function that queries": """
import atexit
atexit.register(lambda: connection.execute("SELECT 1").fetchall() == [(1,)] or print("no row"))
connection.execute("SELECT 1").fetchall()
""",
    "a circle of references": f"""
cursor = connection.execute({ORDERS!r})
cursor.fetchone()
cursor.progress = lambda _: cursor
""",
}
FAILING = {
    "a row": 'connection.execute("SELECT CAST(region AS INTEGER) FROM shop.orders").fetchall()',
    "a row as Arrow": 'connection.execute("SELECT CAST(region AS INTEGER) FROM shop.orders").arrow()',
    "a column": 'connection.execute("SELECT nothing FROM shop.orders").fetchall()',
    "something else": f"""
def work():
    cursor = connection.execute({ORDERS!r})
    reader = connection.execute({ORDERS!r}).arrow_reader()
    for row in cursor:
        raise ValueError("of the user")
work()
""",
    "sys.exit": f"cursor = connection.execute({ORDERS!r}); cursor.fetchone(); sys.exit('leaving')",
}


def ran(script: str, warehouse: Path) -> subprocess.CompletedProcess[str]:
    return processes.ran(
        [sys.executable, "-c", CONNECT + script, str(warehouse)],
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize("script", QUIET.values(), ids=QUIET.keys())
def test_what_is_open_at_exit_makes_no_noise(script: str, warehouse: Path) -> None:
    done = ran(f"connection.execute('SET local_reader = arrow')\n{script}", warehouse)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("script", FAILING.values(), ids=FAILING.keys())
def test_an_error_that_ends_the_program_is_the_last_word(script: str, warehouse: Path) -> None:
    done = ran(script, warehouse)
    assert done.returncode == 1
    assert "leaked" not in done.stderr
    assert not done.stdout
