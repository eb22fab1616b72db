"""A real cluster: one master and two workers in processes of their own, and Spark Connect."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.writer.table import TableWriter

ROOT = Path(__file__).parents[2]
FIELDS = [
    {"id": 1, "name": "x", "required": False, "type": "long"},
    {"id": 2, "name": "k", "required": False, "type": "string"},
]

pytestmark = pytest.mark.slow


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(port: int, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as tried:
            tried.settimeout(1)
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"nothing listens at port {port}")


class Cluster:
    """Processes of Spark's own launcher script, ended one by one."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self.folder = folder
        self.script = Path(pyspark.__file__).parent / "bin" / "spark-class"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
            "SPARK_NO_DAEMONIZE": "1",
        }
        self.port = free_port()

    def launch(self, *arguments: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{len(self.processes)}.log", "wb") as log:
            process = subprocess.Popen(
                [str(self.script), *arguments],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def start(self) -> None:
        self.launch("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1",
                    "--port", str(self.port), "--webui-port", str(free_port()))  # fmt: skip
        wait_for(self.port)
        for number in range(2):
            self.launch("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1",
                        "--cores", "1", "--memory", "1g", "--webui-port", str(free_port()),
                        "--work-dir", str(self.folder / f"work{number}"),
                        f"spark://127.0.0.1:{self.port}")  # fmt: skip

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)


@pytest.fixture
def cluster(tmp_path: Path, spark_here: None) -> Iterator[Cluster]:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash to start Spark's processes with")
    made = Cluster(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def table(tmp_path: Path) -> TableWriter:
    made = TableWriter(tmp_path / "table", FIELDS)
    files = [
        made.data_file([{"x": x, "k": f"k{x % 3}"} for x in range(start, start + 500)])
        for start in range(0, 6_000, 500)
    ]
    made.commit(files)
    return made


# Runs in a process of its own: a driver holds one context, and the other tests have theirs.
DRIVER = """
    import os, sys, threading, time
    import icesql
    con = icesql.connect(engine="spark", master=sys.argv[1])
    con.register_table("t", sys.argv[2])
    with icesql.connect() as local:
        local.register_table("t", sys.argv[2])
        statements = [
            "SELECT k, count(*), sum(x), avg(x) FROM t GROUP BY k ORDER BY k",
            "SELECT a.k, count(*) FROM t a JOIN t b ON a.x = b.x + 1 GROUP BY a.k ORDER BY 1",
            "SELECT x FROM t WHERE x % 1000 = 7 ORDER BY x",
            "SELECT count(*) FROM t WHERE k IN (SELECT k FROM t WHERE x < 2)",
        ]
        for sql in statements:
            assert con.execute(sql).fetchall() == local.execute(sql).fetchall(), sql
    print("core ok", flush=True)
    con.execute("SET split_target_size = 1")
    from icesql.engine.spark.scans import Scans
    Scans.ways = frozenset()
    cursor = con.execute("SELECT count(*), sum(x), count(DISTINCT x) FROM t")
    print("running", flush=True)
    sys.stdin.readline()
    rows = cursor.fetchall()
    assert rows == [(6000, 17997000, 6000)], rows
    print("right after the kill", flush=True)
    con.close()
"""


def test_core_queries_and_a_killed_worker(cluster: Cluster, table: TableWriter) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(DRIVER), f"spark://127.0.0.1:{cluster.port}",
         str(table.metadata_path)],
        env=cluster.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert driver.stdin is not None
        assert driver.stdout is not None
        lines = []
        for line in driver.stdout:
            lines.append(line.strip())
            if line.startswith("running"):
                break
        assert lines == ["core ok", "running"], driver.communicate()[1][-3000:]
        driver.stdin.write("go\n")
        driver.stdin.flush()
        time.sleep(1.0)
        # The worker and the executor and Python processes below it: all of its session.
        victim = cluster.processes[-1]
        os.killpg(victim.pid, signal.SIGKILL)
        victim.wait(20)
        out, err = driver.communicate(timeout=150)
        assert "right after the kill" in out, err[-3000:]
    finally:
        if driver.poll() is None:
            driver.kill()
            driver.wait(20)


CONNECT = """
    import sys
    from pyspark.sql import SparkSession
    import icesql
    con = icesql.connect(engine="spark", remote=sys.argv[1])
    con.register_table("t", sys.argv[2])
    with icesql.connect() as local:
        local.register_table("t", sys.argv[2])
        for sql in (
            "SELECT k, count(*), sum(x), avg(x) FROM t GROUP BY k ORDER BY k",
            "SELECT x, k FROM t WHERE x % 1000 = 7 ORDER BY x",
            "SELECT count(DISTINCT k) FROM t",
        ):
            assert con.execute(sql).fetchall() == local.execute(sql).fetchall(), sql
    from icesql.engine.spark.source import register
    session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
    register(session)
    assert session.read.format("icesql").load(sys.argv[2]).count() == 6000
    stream = session.readStream.format("icesql").option("max-files-per-batch", 1).load(sys.argv[2])
    writer = stream.writeStream.format("memory").queryName("streamed").trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination(120)
    assert session.table("streamed").count() == 6000
    session.stop()
    con.close()
    print("connect ok", flush=True)
"""


def test_spark_connect(tmp_path: Path, table: TableWriter, spark_here: None) -> None:
    for needed in ("grpc", "grpc_status", "google.rpc"):
        pytest.importorskip(needed, reason=f"Spark Connect needs {needed}: pyspark[connect]")
    server = Cluster(tmp_path)
    port = free_port()
    server.launch(
        "org.apache.spark.deploy.SparkSubmit",
        "--master", "local[2]",
        "--conf", f"spark.connect.grpc.binding.port={port}",
        "--conf", "spark.connect.grpc.binding.address=127.0.0.1",
        "--conf", "spark.ui.enabled=false",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "spark-internal",
    )  # fmt: skip
    try:
        wait_for(port, 120)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(CONNECT), f"sc://127.0.0.1:{port}",
             str(table.metadata_path)],
            env=server.environment, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert "connect ok" in done.stdout, done.stderr[-4000:]
    finally:
        server.stop()
