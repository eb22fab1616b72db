"""The functions that Spark ships to its workers, for workers without icesql on their path too.

A nested function travels by value, so it can look for the package before it imports it. What it
needs is packed: nothing of it shows in a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import icesql.errors


def _folder() -> str:
    return str(Path(icesql.errors.__file__).resolve().parent.parent)


def writer_of_rows(packed: bytes) -> Callable[[Any], Iterator[Any]]:
    """``job.write_batches`` of a packed job, for ``mapInArrow``."""
    folder = _folder()

    def write(batches: Any) -> Iterator[Any]:
        import sys

        if folder not in sys.path:
            sys.path.append(folder)
        from icesql.engine.spark.writing.job import write_batches

        yield from write_batches(packed, batches)

    return write


def partition_numbers_of_rows(packed: bytes) -> Callable[..., Any]:
    """``job.partition_numbers`` of a packed job, for ``arrow_udf``."""
    folder = _folder()

    def numbers(*arrays: Any) -> Any:
        import sys

        if folder not in sys.path:
            sys.path.append(folder)
        from icesql.engine.spark.writing.job import partition_numbers

        return partition_numbers(packed, arrays)

    # PySpark reads annotations as the kind of the function, and knows none for so many columns.
    numbers.__annotations__.clear()
    return numbers


def numbering_of_rows(packed: bytes, names: list[str]) -> Callable[[Any], Iterator[Any]]:
    """Rows and what ``job.partition_numbers`` of a packed job says of them, for ``mapInArrow``."""
    folder = _folder()

    def numbered(batches: Any) -> Iterator[Any]:
        import sys

        if folder not in sys.path:
            sys.path.append(folder)
        from icesql.engine.spark.writing.job import partition_numbers

        for batch in batches:
            numbers = partition_numbers(packed, [batch.column(name) for name in names])
            yield type(batch).from_arrays(
                [*batch.columns, numbers], names=[*batch.schema.names, "icesql_partition"]
            )

    return numbered


def runner_of_jobs() -> Callable[[Any], Iterator[Any]]:
    """``job.run_jobs`` of the jobs that come as rows, for ``mapInArrow``."""
    folder = _folder()

    def run(batches: Any) -> Iterator[Any]:
        import sys

        if folder not in sys.path:
            sys.path.append(folder)
        from icesql.engine.spark.writing.job import run_jobs

        yield from run_jobs(batches)

    return run
