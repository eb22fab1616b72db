"""Start, watch and kill Spark in separate processes, and a program that drives it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.spark.conftest import QUICK_JVM

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def until(condition: Callable[[], Any], what: str, seconds: float = 600) -> Any:
    """The value of ``condition`` as soon as it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise TimeoutError(what)


def listens(port: int) -> bool:
    with socket.socket() as tried:
        tried.settimeout(1)
        return tried.connect_ex(("127.0.0.1", port)) == 0


def members(session: int) -> list[int]:
    """The processes of a session: all that one launched process has started."""
    listed = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=True)
    found = []
    for pid in map(int, listed.stdout.split()):
        try:
            if os.getsid(pid) == session:
                found.append(pid)
        except (ProcessLookupError, PermissionError):
            continue
    return found


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return bool(state.stdout.strip()) and not state.stdout.startswith("Z")


def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a separate process: it ends the JVM that the other tests share."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


class Processes:
    """Processes of Spark's own launcher, each in a session of its own below ``folder``."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self.folder, self.halts = folder, folder / "halts"
        self.halts.mkdir(parents=True)
        self._script = Path(pyspark.__file__).parent / "bin" / "spark-class"
        self.processes: list[subprocess.Popen[Any]] = []
        self.environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
            "SPARK_DAEMON_MEMORY": "1g",
            "PYSPARK_PYTHON": sys.executable,
            "ICESQL_HALTS": str(self.halts),
        }

    def launch(
        self, *arguments: str, python_path: tuple[Path, ...] = (), **more: Any
    ) -> subprocess.Popen[Any]:
        """Start a process whose Python finds modules on ``python_path``."""
        inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        path = [str(each) for each in python_path]
        path += [each for each in inherited if not (Path(each) / "icesql").is_dir()]
        with open(self.folder / f"{len(self.processes)}.log", "wb") as log:
            process = subprocess.Popen(
                arguments,
                env={**self.environment, "PYTHONPATH": os.pathsep.join(filter(None, path))},
                cwd=self.folder,
                stderr=log,
                start_new_session=True,
                **{"stdout": log, **more},
            )
        self.processes.append(process)
        return process

    def launch_class(self, *arguments: str, icesql: bool) -> subprocess.Popen[Any]:
        """Start a Java class of Spark; its Python can be halted, and may find icesql by itself."""
        halting = Path(__file__).parent / "halting"
        return self.launch(
            str(self._script), *arguments, python_path=(halting, *((ROOT,) if icesql else ()))
        )

    def log(self, process: subprocess.Popen[Any]) -> str:
        """The end of a process's output."""
        text = (self.folder / f"{self.processes.index(process)}.log").read_bytes()
        return text[-3000:].decode("utf-8", "replace")

    # ------------------------------------------------------------------ halting

    def arm(self) -> None:
        """Let the next task that returns a batch halt after it."""
        for name in ("halted", "log"):
            (self.halts / name).unlink(missing_ok=True)
        (self.halts / "armed").touch()

    def halted(self, driver: Driver) -> dict[str, int]:
        """The halted task of ``driver``'s query: process, session, stage, partition, attempt."""
        halted = self.halts / "halted"
        until(lambda: halted.exists() or driver.ask("outcome"), "no task has halted", 60)
        assert halted.exists(), driver.ask("outcome")
        return dict(json.loads(halted.read_text(encoding="utf-8")))

    def told(self) -> list[dict[str, Any]]:
        """The actions of tasks since ``arm``, in order."""
        text = (self.halts / "log").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    # ------------------------------------------------------------------ stop and kill

    def kill(self, process: subprocess.Popen[Any]) -> None:
        """SIGKILL a process and all that it started, which may be in other process groups."""
        while found := members(process.pid):
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            process.poll()
        process.wait(20)

    def start(self) -> None:
        """Launch the processes, and wait until they accept connections."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop all processes."""
        for process in self.processes:
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
            self.kill(process)


class Cluster(Processes):
    """A standalone master and two workers of one core."""

    def start(self) -> None:
        self.port = free_port()
        self.address = f"spark://127.0.0.1:{self.port}"
        self.workers: list[subprocess.Popen[Any]] = []
        master = self.launch_class(
            "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1",
            "--port", str(self.port), "--webui-port", str(free_port()), icesql=False,
        )  # fmt: skip
        until(lambda: listens(self.port) or master.poll() is not None, "no master")
        assert master.poll() is None, self.log(master)
        # One worker has icesql on its path, the other does not: tasks bring icesql's folder.
        self.add_worker(icesql=True)
        self.add_worker(icesql=False)

    def add_worker(self, *, icesql: bool = False) -> None:
        number = len(self.processes)
        self.workers.append(
            self.launch_class(
                "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1",
                "--cores", "1", "--memory", "1g", "--webui-port", str(free_port()),
                "--work-dir", str(self.folder / f"work{number}"), self.address, icesql=icesql,
            )
        )  # fmt: skip

    def kill_worker(self, session: int) -> None:
        """Kill the worker that leads a session, with its executor and their Python."""
        (victim,) = [each for each in self.workers if each.pid == session]
        self.workers.remove(victim)
        self.kill(victim)


class ConnectServer(Processes):
    """A Spark Connect server on a local master of two cores, or on the master given."""

    def __init__(self, folder: Path, master: str = "local[2]") -> None:
        super().__init__(folder)
        self._master = master

    def start(self) -> None:
        self.port = free_port()
        self.address = f"sc://127.0.0.1:{self.port}"
        server = self.launch_class(
            "org.apache.spark.deploy.SparkSubmit", "--master", self._master,
            "--driver-java-options", QUICK_JVM,
            "--conf", f"spark.connect.grpc.binding.port={self.port}",
            "--conf", "spark.connect.grpc.binding.address=127.0.0.1",
            "--conf", "spark.ui.enabled=false",
            "--conf", "spark.sql.shuffle.partitions=2",
            "--conf", "spark.python.task.killTimeout=200ms",
            "--conf", "spark.connect.progress.reportInterval=50ms",
            # Before PySpark 4.0 it is a separate jar.
            *(("--jars", jar) if (jar := os.environ.get("SPARK_CONNECT_JAR")) else ()),
            "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
            "spark-internal", icesql=False,
        )  # fmt: skip
        until(lambda: listens(self.port) or server.poll() is not None, "no server")
        assert server.poll() is None, self.log(server)


class Driver:
    """``tests.spark.driver`` in a process of its own: Spark allows one context in each."""

    def __init__(self, processes: Processes, kind: str, address: str, **environment: str) -> None:
        self._processes = processes
        processes.environment = {**processes.environment, **environment}
        self._process = processes.launch(
            sys.executable, "-m", "tests.spark.driver", kind, address,
            python_path=(ROOT,), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, name: str, *arguments: Any) -> Any:
        """The result of a driver's command. Raises AssertionError with its traceback."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps([name, arguments]), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        assert line, f"the driver has gone: {self._processes.log(self._process)}"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["value"]


Launched = TypeVar("Launched", bound=Processes)


@contextmanager
def running(made: Launched) -> Iterator[Launched]:
    """``made`` from start to stop; also stops it after a failed start."""
    try:
        made.start()
        yield made
    finally:
        made.stop()
