"""The engines of the board, an environment for each, and how they are asked."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

ADAPTERS: Final = Path(__file__).parent / "adapters"
ROOT: Final = Path(__file__).parents[2]
JARS: Final = "BOARD_ICEBERG_JARS"
START_SECONDS: Final = 120.0


class Engine(Struct, frozen=True):
    """A column of the board: its adapter, and what pip installs for it."""

    name: str
    adapter: str
    requirements: tuple[str, ...]
    needs: str | None = None  # an environment variable without which it can't be asked


# pandas has a type for nanoseconds, in which Arrow hands them over.
_ARROW: Final = ("pyarrow", "pandas")
_PYICEBERG: Final = ("pyiceberg[pyarrow]", *_ARROW)
ENGINES: Final = (
    Engine("icesql", "ask_icesql", (str(ROOT),)),
    Engine("PyIceberg", "ask_pyiceberg", ("pyiceberg[pyarrow,pyiceberg-core]", *_ARROW)),
    Engine(
        "DuckDB",
        "ask_duckdb",
        # The releases of the extension that PyPI has are for these of DuckDB.
        (
            "pytz",
            "duckdb==1.5.5",
            "duckdb-extensions==1.5.5",
            "duckdb-extension-avro==1.5.5",
            "duckdb-extension-httpfs==1.5.5",
            "duckdb-extension-iceberg==1.5.5",
        ),
    ),
    Engine("Polars", "ask_polars", ("polars", "fastavro", *_PYICEBERG)),
    Engine("Daft", "ask_daft", ("daft", *_PYICEBERG)),
    # The two hand tables over in a binary interface that changes with DataFusion's releases.
    Engine(
        "DataFusion",
        "ask_datafusion",
        ("pyiceberg-core>=0.10,<0.11", "datafusion>=53,<54", *_ARROW),
    ),
    Engine("chDB", "ask_chdb", ("chdb", *_ARROW)),
    Engine("Sail", "ask_sail", ("pysail", "pyspark-client", "pandas<3", "pyarrow")),
    Engine("Spark", "ask_spark", ("pyspark==4.1.*",), needs=JARS),
)


def environment(engine: Engine, folder: Path) -> Path:
    """The Python of the engine's virtual environment below `folder`, made where it isn't there."""
    place = folder / engine.adapter.removeprefix("ask_")
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        install = [python, "-m", "pip", "install", "--quiet", *engine.requirements]
        subprocess.run(install, check=True)
    return python


class Process:
    """A running adapter: send a question, wait for its answer."""

    def __init__(self, engine: Engine, python: Path, cwd: Path) -> None:
        self._process = subprocess.Popen(
            [python, ADAPTERS / f"{engine.adapter}.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"TZ": "UTC", "PYTHONWARNINGS": "ignore"},
            cwd=cwd,
            start_new_session=True,
        )
        self._buffer = b""

    def ask(self, question: dict[str, Any], seconds: float) -> dict[str, Any] | None:
        """The answer, or None where the process ended. Raises: TimeoutError."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        return self.reply(seconds)

    def reply(self, seconds: float) -> dict[str, Any] | None:
        """The next line that the adapter says, or None. Raises: TimeoutError."""
        assert self._process.stdout is not None
        until = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            ready, _, _ = select.select(
                [self._process.stdout], [], [], max(0, until - time.monotonic())
            )
            if not ready:
                raise TimeoutError
            piece = os.read(self._process.stdout.fileno(), 1 << 16)
            if not piece:
                return None
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def end(self) -> None:
        """Kill the adapter with what it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


def ask(
    engine: Engine, python: Path, questions: Iterable[dict[str, Any]], cwd: Path, seconds: float
) -> Iterator[tuple[dict[str, str], dict[str, Any] | TimeoutError | None]]:
    """The engine's versions with the answer to each question, in order.

    A process that ends or takes longer than `seconds` is started anew for the next question.
    Raises: RuntimeError where the engine does not start.
    """
    process: Process | None = None
    versions: dict[str, str] = {}
    try:
        for question in questions:
            if process is None:
                process = Process(engine, python, cwd)
                hello = process.reply(START_SECONDS)
                if hello is None:
                    raise RuntimeError(f"{engine.name} does not start")
                versions = hello["versions"]
            answer: dict[str, Any] | TimeoutError | None
            try:
                answer = process.ask(question, seconds)
            except TimeoutError as error:
                answer = error
            if answer is None or isinstance(answer, TimeoutError):
                process.end()
                process = None
            yield versions, answer
    finally:
        if process is not None:
            process.end()
