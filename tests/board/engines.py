"""The engines of the board, and how each is asked in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tests.benchmarks.process import ROOT, Side

JARS: Final = "BOARD_ICEBERG_JARS"


class Engine(Struct, frozen=True):
    """A column of the board: the packages whose versions it shows, and what pip installs for it."""

    name: str
    packages: tuple[str, ...]
    requirements: tuple[str, ...]
    needs: str | None = None  # an environment variable without which it can't be asked


# pandas has a type for nanoseconds, in which Arrow hands them over.
_ARROW: Final = ("pyarrow", "pandas")
_PYICEBERG: Final = ("pyiceberg[pyarrow]", *_ARROW)
ENGINES: Final = (
    Engine("icesql", ("icesql", "duckdb"), (str(ROOT),)),
    Engine(
        "PyIceberg",
        ("pyiceberg", "pyiceberg-core", "pyarrow"),
        ("pyiceberg[pyarrow,pyiceberg-core]", *_ARROW),
    ),
    Engine(
        "DuckDB",
        ("duckdb", "duckdb-extension-iceberg"),
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
    Engine("Polars", ("polars", "pyiceberg", "pyarrow"), ("polars", "fastavro", *_PYICEBERG)),
    Engine("Daft", ("daft", "pyiceberg", "pyarrow"), ("daft", *_PYICEBERG)),
    # The two hand tables over in a binary interface that changes with DataFusion's releases.
    Engine(
        "DataFusion",
        ("pyiceberg-core", "datafusion", "pyarrow"),
        ("pyiceberg-core>=0.10,<0.11", "datafusion>=53,<54", *_ARROW),
    ),
    Engine("chDB", ("chdb", "chdb-core"), ("chdb", *_ARROW)),
    Engine(
        "Sail", ("pysail", "pyspark-client"), ("pysail", "pyspark-client", "pandas<3", "pyarrow")
    ),
    Engine("Spark", ("pyspark",), ("pyspark==4.1.*",), needs=JARS),
)


def ask(
    engine: Engine, python: Path, questions: Iterable[dict[str, Any]], cwd: Path, seconds: float
) -> Iterator[tuple[dict[str, str], dict[str, Any] | TimeoutError | None]]:
    """The engine's versions with the answer to each question, in order.

    A process that ends or takes longer than `seconds` is started anew for the next question.
    Raises: RuntimeError where the engine does not start.
    """
    side: Side | None = None
    answer: dict[str, Any] | TimeoutError | None
    try:
        for question in questions:
            if side is None:
                side = Side(
                    f"adapters:{engine.name.lower()}",
                    python=python,
                    folder=Path(__file__).parent,
                    cwd=cwd,
                    packages=engine.packages,
                    seconds=seconds,
                )
            versions = side.versions
            try:
                answer = side(question)
            except TimeoutError as error:
                answer = error
            if answer is None or isinstance(answer, TimeoutError):
                side.end()
                side = None
            yield versions, answer
    finally:
        if side is not None:
            side.end()
