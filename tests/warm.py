"""Programs in processes of their own, forked from one that has imported what they need.

For tests that want a fresh process (its streams, environment, folder or memory) and say nothing of
how an interpreter starts or ends: a start costs many times what most of their programs do.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Any

ROOT = Path(__file__).parents[1]
# Seconds until a process counts as hanging: a busy machine starts one in more than a minute.
PATIENCE = 600


def icesql(
    *arguments: str | Path,
    stdin: str = "",
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    timeout: float = PATIENCE,
) -> subprocess.CompletedProcess[str]:
    """As ``python -m icesql`` with these arguments; ``env`` is the whole environment."""
    return _parent().run(None, arguments, stdin, cwd, env, timeout)


def python(
    program: str,
    *arguments: str | Path,
    stdin: str = "",
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    timeout: float = PATIENCE,
) -> subprocess.CompletedProcess[str]:
    """As ``python -c`` of a program with these arguments."""
    return _parent().run(program, arguments, stdin, cwd, env, timeout)


def fresh_python(program: str, *arguments: str | Path, timeout: float = PATIENCE) -> str:
    """What a program prints in a process of its own that has imported nothing before."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@cache
def _parent() -> _Parent:
    return _Parent()


class _Parent:
    """The process that is forked, one fork at a time; it ends with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.warm", str(theirs.fileno())],
                cwd=ROOT,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(sys.path),
                    "OPENBLAS_NUM_THREADS": "1",  # numpy's threads would not be there in a fork
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self._channel.close()
        self._process.wait(60)

    def run(
        self,
        program: str | None,
        arguments: tuple[str | Path, ...],
        stdin: str,
        cwd: Path,
        env: Mapping[str, str] | None,
        timeout: float,
    ) -> subprocess.CompletedProcess[str]:
        request = {
            "program": program,
            "arguments": [str(each) for each in arguments],
            "folder": str(cwd),
            "environment": dict(os.environ if env is None else env),
        }
        with ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(4)]
            for file, text in zip(files, (json.dumps(request), stdin), strict=False):
                file.write(text.encode())
                file.seek(0)
            with self._lock:
                status = self._ended(files, timeout)
            texts = []
            for file in files[2:]:
                file.seek(0)
                texts.append(file.read().decode())
        return subprocess.CompletedProcess([], os.waitstatus_to_exitcode(status), *texts)

    def _ended(self, files: Sequence[IO[bytes]], timeout: float) -> int:
        """The wait status of a fork whose request and three streams are ``files``."""
        socket.send_fds(self._channel, [b"r"], [file.fileno() for file in files])
        child = int(self._line(PATIENCE))
        try:
            return int(self._line(timeout))
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            self._line(PATIENCE)
            raise subprocess.TimeoutExpired("a warm process", timeout) from None

    def _line(self, seconds: float) -> bytes:
        """The next line of what the parent says."""
        self._channel.settimeout(seconds)
        line = b""
        while not line.endswith(b"\n"):
            part = self._channel.recv(1)
            if not part:
                raise RuntimeError(f"the warm process has ended with {self._process.wait()}")
            line += part
        return line


# ---------------------------------------------------------------- in the process that is forked


def _modules_of_a_query() -> list[str]:
    """What a query imports, found in a fork: this process must start no thread."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        import icesql
        import icesql.cli

        with icesql.connect() as connection:
            connection.execute("SELECT a, count(*) FROM range(3) t(a) GROUP BY a").arrow()
            connection.execute("SELECT 1").fetchall()
        with os.fdopen(writer, "w") as names:
            json.dump([*sys.modules], names)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as names:
        found: list[str] = json.load(names)
    os.waitpid(child, 0)
    return found


def _requested(channel: socket.socket) -> dict[str, Any]:
    """Returns in a fork for each request, with the streams of that request."""
    for name in _modules_of_a_query():
        with suppress(ImportError):
            import_module(name)
    gc.freeze()
    assert threading.active_count() == 1, threading.enumerate()
    while True:
        _, files, _, _ = socket.recv_fds(channel, 1, 4)
        if not files:
            os._exit(0)
        child = os.fork()
        if child == 0:
            break
        for file in files:
            os.close(file)
        channel.sendall(b"%d\n" % child)
        channel.sendall(b"%d\n" % os.waitpid(child, 0)[1])
    channel.close()
    with os.fdopen(files[0]) as text:
        request: dict[str, Any] = json.load(text)
    for number, file in enumerate(files[1:]):
        os.dup2(file, number)
        os.close(file)
    return request


def _run(request: dict[str, Any]) -> None:
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    sys.path[0] = ""
    program = request["program"]
    sys.argv = ["-c" if program else "icesql", *request["arguments"]]
    if program is None:
        runpy.run_module("icesql", run_name="__main__", alter_sys=True)
        return
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(compile(program, "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    _run(_requested(socket.socket(fileno=int(sys.argv[1]))))
