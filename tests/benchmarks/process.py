"""Sides: engines in processes and environments of their own, asked line by line."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
START_SECONDS = 600.0  # a busy machine starts slowly


def environment(folder: Path, *requirements: str) -> Path:
    """The Python of a virtual environment with these packages, made once."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *requirements], check=True)
    return python


class Side:
    """A process of ``worker.py`` in which ``make`` of a module in ``folder`` opened an engine.

    ``root`` is the checkout whose icesql it imports. Raises RuntimeError where it does not open.
    """

    def __init__(
        self,
        make: str,
        given: Mapping[str, Any] | None = None,
        *,
        python: Path = Path(sys.executable),
        root: Path = ROOT,
        folder: Path = HERE,
        cwd: Path | None = None,
        packages: Sequence[str] = (),
        seconds: float = 600,
    ) -> None:
        paths = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [python, HERE / "worker.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TZ": "UTC", "PYTHONPATH": paths},
            cwd=cwd,
            start_new_session=True,
        )
        self._buffer, self._seconds = b"", START_SECONDS
        asked = {"make": make, "folder": str(folder), "given": given or {}, "packages": packages}
        try:
            hello = self._ask(asked)
        except TimeoutError:
            hello = None
        if hello is None or "error" in hello:
            self.end()
            raise RuntimeError(f"{make} does not start: {hello and hello['text']}")
        self.versions = hello["versions"]
        self._seconds = seconds

    def __call__(self, *arguments: Any) -> dict[str, Any] | None:
        """Run once; None where the process ended. Raises TimeoutError."""
        return self._ask(arguments)

    def _ask(self, content: Any) -> dict[str, Any] | None:
        if self._process.returncode is not None:
            return None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(content).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        until = time.monotonic() + self._seconds
        while b"\n" not in self._buffer:
            wait = max(0, until - time.monotonic())
            if not select.select([self._process.stdout], [], [], wait)[0]:
                self.end()  # its answer would be taken for that of the next question
                raise TimeoutError(f"no answer within {self._seconds:g} seconds")
            piece = os.read(self._process.stdout.fileno(), 1 << 16)
            if not piece:
                return None
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def end(self) -> None:
        """Kill the process with what it started."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()


def answers(
    opening: Callable[[], Side], questions: Iterable[Any]
) -> Iterator[tuple[Side, dict[str, Any] | TimeoutError | None]]:
    """The answer to each question, in order, and who gave it.

    A process that ends or takes too long is started anew for the next question.
    Raises RuntimeError where it does not start.
    """
    side: Side | None = None
    try:
        for question in questions:
            asked = side = side or opening()
            try:
                answer: dict[str, Any] | TimeoutError | None = side(question)
            except TimeoutError as error:
                answer = error
            if answer is None or isinstance(answer, TimeoutError):
                side.end()
                side = None
            yield asked, answer
    finally:
        if side is not None:
            side.end()
