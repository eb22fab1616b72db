"""Spark's tasks without Spark: jobs are pickled and run as by workers, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import icesql
from icesql.engine.engines import EngineChoice
from icesql.engine.spark.engine import SparkEngine
from tests.maintain.rewrite.test_on_spark import Workers

Connect = Callable[[str], icesql.Connection]


@pytest.fixture
def workers(monkeypatch) -> Workers:
    """Runs the jobs of statements on a connection with the engine ``auto``."""
    pytest.importorskip("pyspark", reason="a worker asks PySpark for the number of its task")
    made = Workers()
    numbers = iter(range(10_000))
    monkeypatch.setattr("icesql.engine.spark.writing.job.task_numbers", lambda: (0, next(numbers)))
    monkeypatch.setattr(
        SparkEngine, "run_jobs", lambda engine, *given, **named: made.run_jobs(*given, **named)
    )
    # Queries are below the threshold and run here; statements that change tables use tasks.
    monkeypatch.setattr(
        "icesql.modify.tasks.run.engine_for",
        lambda size, settings: EngineChoice("spark"),
    )
    return made


@pytest.fixture
def connect(tmp_path) -> Iterator[Connect]:
    """Creates connections by engine, each with its own warehouse."""
    made: list[Any] = []

    def connected(engine: str) -> icesql.Connection:
        folder = tmp_path / engine
        folder.mkdir()
        made.append(icesql.connect(warehouse=str(folder), engine=engine))
        return made[-1]

    yield connected
    for each in made:
        each.close()
