"""The memory that a Spark task may use outside the JVM, by the configuration of its cluster."""

from __future__ import annotations

import pytest

from icesql.engine.spark import task_memory
from icesql.engine.spark.task_memory import TaskMemory, memory_of
from tests.tables import read_cases

GIB, MIB = 1 << 30, 1 << 20
PYTHON = 256 * MIB


def of(master: str, **settings: str) -> TaskMemory:
    given = {"spark.master": master}
    given |= {f"spark.{name.replace('__', '.')}": value for name, value in settings.items()}
    return memory_of(given.get)


@pytest.mark.parametrize(
    ("master", "settings", "total", "slots"), read_cases(__file__, "spark_containers.tsv", 1, 2, 3)
)
def test_the_container_is_divided_by_the_tasks_at_once(
    master: str, settings: dict[str, str], total: int | None, slots: int | None
) -> None:
    found = of(master, **settings)
    assert (found.total, found.slots) == (total, slots)


def test_a_local_master_shares_the_machine_with_its_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_memory, "available_memory", lambda: 20 * GIB)
    found = of("local[3]", driver__memory="3g")
    assert found == TaskMemory(9 * GIB, 3)
    assert found.limit() == 3 * GIB - PYTHON


def test_the_machine_of_a_task_limits_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_memory, "available_memory", lambda: 10 * GIB)
    assert TaskMemory(100 * GIB, 4).limit() == int(1.5 * GIB) - PYTHON
    assert TaskMemory(None, 3).limit() == 2 * GIB - PYTHON
    assert TaskMemory(384 * MIB, 4).limit() == 256 * MIB


def test_a_container_that_is_too_small_is_told_with_what_helps() -> None:
    note = of("yarn", executor__cores="4").note
    assert note is not None
    assert "each Spark task has 96 MiB" in note
    assert "set spark.executor.pyspark.memory to 4096m" in note
    enough = of("yarn", executor__cores="4", executor__pyspark__memory="4096m")
    assert enough.note is None
    assert of("spark://host:7077").note is None
