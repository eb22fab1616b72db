"""The functions that Spark sends to its workers, also to workers without icesql on their path.

A nested function is pickled by value, so it can add the path before it imports the package. Its
arguments are packed, so that no plan shows them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import icesql.errors


def finder() -> Callable[[], None]:
    """A function that lets a process, which Spark started, import this icesql."""
    folder = str(Path(icesql.errors.__file__).resolve().parent.parent)

    def find() -> None:
        import sys

        if folder not in sys.path:
            sys.path.append(folder)

    return find


def by_name(module: str, name: str, *given: Any) -> Callable[..., Any]:
    """A function that calls ``name`` in a module of this room with ``given`` and its arguments."""
    find = finder()

    def run(*rows: Any) -> Any:
        from importlib import import_module

        find()
        return getattr(import_module(f"icesql.engine.spark.{module}"), name)(*given, *rows)

    # PySpark infers the kind of a function from annotations; none fits a variable argument list.
    run.__annotations__.clear()
    return run
