"""Results over Spark Connect: streaming of rows, cancellation, progress, a dead server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.spark.processes import ROOT, ConnectServer

pytestmark = pytest.mark.cluster


HEAD = """
    import sys, threading, time
    import icesql
    from icesql.engine.spark.scans import FRAGMENTS, SPARK_READER, Scans
    connection = icesql.connect(engine="spark", remote=sys.argv[1])
    connection.register_table("t", sys.argv[2])
    def running():
        session = connection._session.engines.started["spark"].sessions.session("UTC")
        return session.interruptAll()
    slow = ("SELECT count(*) FROM t a, t b, t c, t d WHERE a.x + b.x * c.x = d.x + 3 "
            "AND a.x % 2 = b.x % 2 AND b.x % 2 = c.x % 2 AND c.x % 2 = d.x % 2")
"""


def run(server: ConnectServer, sixteen: str, program: str) -> list[str]:
    """The output of a separate program: a Connect client leaves threads behind."""
    process = server.launch(
        sys.executable, "-c", textwrap.dedent(HEAD) + textwrap.dedent(program),
        server.address, sixteen, str(server.processes[0].pid),
        python_path=(ROOT,), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    out, _ = process.communicate(timeout=200)
    assert process.returncode == 0, out + server.log(process)
    return str(out).splitlines()


STREAM = """
    Scans.ways = frozenset()
    connection.execute("SET split_target_size = 1")
    cursor = connection.execute("SELECT x FROM t ORDER BY k DESC, x")
    rows = [cursor.fetchone(), *cursor.fetchall()]
    assert rows == [(n * 50 + i,) for k in (2, 1, 0)
                    for n in range(16) for i in range(50) if i % 3 == k]
    cursor = connection.execute("SELECT x, k FROM t")
    assert cursor.fetchone() is not None
    cursor.close()
    time.sleep(1.5)
    print(running())
    print(connection.execute("SELECT x FROM t").arrow().num_rows)
    # An answer of gRPC's has 8 kB for what went wrong, unless its client allows more.
    for length in (3_000, 12_000):
        try:
            connection.execute(f"SELECT CAST(k || repeat('é', {length}) AS INT) FROM t").fetchall()
        except icesql.DatabaseError as error:
            print(type(error).__name__, str(error).count("é") > 20)
    connection.close()
"""


def test_rows_come_in_order_and_closing_ends_the_operation(
    server: ConnectServer, sixteen: str
) -> None:
    failed = ["DataError True"] * 2
    assert run(server, sixteen, STREAM) == ["[]", "800", *failed]


CANCEL = """
    for ways in ((), (FRAGMENTS,), (SPARK_READER,)):
        Scans.ways = frozenset(ways)
        cursor, stopped = connection.execute(slow), []
        def stop():
            time.sleep(2)
            stopped.append(time.monotonic())
            cursor.cancel()
        threading.Thread(target=stop).start()
        try:
            cursor.fetchall()
        except icesql.QueryCancelledError:
            print("cancelled", time.monotonic() - stopped[0] < 30)
        time.sleep(max(0, stopped[0] + 2 - time.monotonic()))
        print(running())
    connection.execute("SET query_timeout = 2")
    try:
        connection.execute(slow).fetchall()
    except icesql.QueryCancelledError as error:
        print("time limit" in str(error))
    connection.execute("RESET query_timeout")
    time.sleep(2)
    print(running())
    print(connection.execute("SELECT count(k) FROM t").fetchall())
    connection.close()
"""


def test_cancel_and_time_limits_end_the_operation(server: ConnectServer, sixteen: str) -> None:
    assert run(server, sixteen, CANCEL) == [
        *["cancelled True", "[]"] * 3,
        "True",
        "[]",
        "[(800,)]",
    ]


PROGRESS = """
    for ways in ((), (FRAGMENTS,), (SPARK_READER,)):
        Scans.ways = frozenset(ways)
        cursor, seen = connection.cursor(), []
        cursor.progress = seen.append
        cursor.execute("SELECT k, count(*) FROM t GROUP BY k").fetchall()
        last = [each for each in seen if each.stage == "spark"][-1]
        planned = cursor.scan_reports[0].projected_bytes
        right = 0 < last.bytes_done if SPARK_READER in ways else last.bytes_done == planned
        print(0 < last.done == last.total, right)
    connection.close()
"""


def test_progress_counts_tasks_and_bytes(server: ConnectServer, sixteen: str) -> None:
    assert run(server, sixteen, PROGRESS) == ["True True"] * 3


FROZEN = """
    import os, signal
    print(connection.execute("SELECT count(k) FROM t").fetchall())
    opening = icesql.connect(engine="spark", remote=sys.argv[1])
    opening.register_table("t", sys.argv[2])
    os.killpg(int(sys.argv[3]), signal.SIGSTOP)
    began = time.monotonic()
    for each in (connection, opening):
        each.execute("SET query_timeout = 1")
        try:
            each.execute("SELECT count(k) FROM t").fetchall()
        except icesql.QueryCancelledError as error:
            print("time limit" in str(error))
        each.close()
    print(time.monotonic() - began < 30)
    print([each.name for each in threading.enumerate() if each.name == "icesql-leaving"])
"""


def test_a_server_that_hangs_keeps_nobody_from_closing(server: ConnectServer, sixteen: str) -> None:
    try:
        assert run(server, sixteen, FROZEN) == ["[(800,)]", "True", "True", "True", "[]"]
    finally:
        os.killpg(server.processes[0].pid, signal.SIGCONT)


LEFT = """
    import gc
    from pyspark.sql.connect.client import SparkConnectClient
    def opened():
        gc.collect()
        return sum(isinstance(each, SparkConnectClient) for each in gc.get_objects())
    for _ in range(3):
        connection.close()
        connection = icesql.connect(engine="spark", remote=sys.argv[1])
        connection.register_table("t", sys.argv[2])
        print(connection.execute("SELECT count(k) FROM t").fetchall(), opened())
"""


def test_connections_leave_no_client_behind(server: ConnectServer, sixteen: str) -> None:
    assert run(server, sixteen, LEFT) == ["[(800,)] 2"] * 3


GONE = """
    import os, signal
    print(connection.execute("SELECT count(k) FROM t").fetchall())
    # Of a connection that is not closed, PySpark would tell the server at the end, for minutes.
    other = icesql.connect(engine="spark", remote=sys.argv[1])
    other.execute("SELECT 1").fetchall()
    cursor = connection.execute(slow)
    threading.Timer(2, lambda: os.killpg(int(sys.argv[3]), signal.SIGKILL)).start()
    began = time.monotonic()
    try:
        cursor.fetchall()
    except icesql.OperationalError as error:
        print("Spark has ended or does not answer" in str(error), "Rendezvous" in str(error))
        print(time.monotonic() - began < 60)
    try:
        connection.execute("SELECT count(k) FROM t").fetchall()
    except icesql.OperationalError as error:
        print("cannot connect to Spark at sc://127.0.0.1:" in str(error), "\\n" in str(error))
    connection.close()
"""


def test_the_last_of_all_a_server_that_is_gone_is_said_so(
    server: ConnectServer, sixteen: str
) -> None:
    lines = run(server, sixteen, GONE)
    assert lines == ["[(800,)]", "True False", "True", "True False"]
