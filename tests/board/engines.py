"""The engines of the board, and how each is asked in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tests.benchmarks.process import ROOT, Side, answers
from tests.tables import read_table

JARS: Final = "BOARD_ICEBERG_JARS"


class Engine(Struct, frozen=True):
    """A column of the board: the packages whose versions it shows, and what pip installs for it."""

    name: str
    packages: tuple[str, ...]
    requirements: tuple[str, ...]
    needs: str | None = None  # an environment variable without which it can't be asked


def _engine(name: str, packages: str, requirements: str, needs: str) -> Engine:
    required = (str(ROOT) if each == "." else each for each in requirements.split())
    return Engine(name, tuple(packages.split()), tuple(required), needs.strip("-") or None)


ENGINES: Final = tuple(_engine(*row) for row in read_table(__file__, "engines.tsv"))


def ask(
    engine: Engine, python: Path, questions: Iterable[dict[str, Any]], cwd: Path, seconds: float
) -> Iterator[tuple[dict[str, str], dict[str, Any] | TimeoutError | None]]:
    """The engine's versions with the answer to each question, in order.

    A process that ends or takes longer than `seconds` is started anew for the next question.
    Raises: RuntimeError where the engine does not start.
    """
    opening = partial(
        Side,
        f"adapters:{engine.name.lower()}",
        python=python,
        folder=Path(__file__).parent,
        cwd=cwd,
        packages=engine.packages,
        seconds=seconds,
    )
    for side, answer in answers(opening, questions):
        yield side.versions, answer
