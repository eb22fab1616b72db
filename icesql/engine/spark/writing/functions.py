"""The functions that Spark sends to its workers, also to workers without icesql on their path.

A nested function is pickled by value, so it can add the path before it imports the package. Its
arguments are packed, so that no plan shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import icesql.errors


def _folder() -> str:
    return str(Path(icesql.errors.__file__).resolve().parent.parent)


def _by_name(name: str, *given: Any) -> Callable[[Any], Iterator[Any]]:
    """For ``mapInArrow``: a function of ``job``, called with ``given`` and the batches."""
    folder = _folder()

    def run(batches: Any) -> Iterator[Any]:
        import sys
        from importlib import import_module

        if folder not in sys.path:
            sys.path.append(folder)
        job = import_module("icesql.engine.spark.writing.job")
        yield from getattr(job, name)(*given, batches)

    return run


def writer_of_rows(packed: bytes) -> Callable[[Any], Iterator[Any]]:
    """``job.write_batches`` of a packed job."""
    return _by_name("write_batches", packed)


def numbering_of_rows(packed: bytes, names: list[str]) -> Callable[[Any], Iterator[Any]]:
    """``job.numbered`` of a packed job and the columns that it reads."""
    return _by_name("numbered", packed, names)


def runner_of_jobs() -> Callable[[Any], Iterator[Any]]:
    """``job.run_jobs`` of the jobs in the rows."""
    return _by_name("run_jobs")


def partition_numbers_of_rows(packed: bytes) -> Callable[..., Any]:
    """``job.partition_numbers`` of a packed job, for ``arrow_udf``."""
    folder = _folder()

    def numbers(*arrays: Any) -> Any:
        import sys

        if folder not in sys.path:
            sys.path.append(folder)
        from icesql.engine.spark.writing.job import partition_numbers

        return partition_numbers(packed, arrays)

    # PySpark infers the kind of a function from annotations; none fits a variable argument list.
    numbers.__annotations__.clear()
    return numbers
