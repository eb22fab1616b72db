"""Choose the fragments that pay, by stored bytes, parallel tasks, and the memory of a task."""

from __future__ import annotations

import ast
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from sqlglot import parse_one

from icesql.engine.spark.fragments.choice import FragmentChoice
from icesql.engine.spark.fragments.fragment import Division, Fragment
from tests.tables import read_table

MB = 1 << 20
GB = 1 << 30


def table(name: str) -> list[list[Any]]:
    return [[*map(value, row)] for row in read_table(__file__, f"choice/{name}")]


def value(cell: str) -> Any:
    """A number, True, False or None; else the text."""
    with suppress(ValueError, SyntaxError):
        return ast.literal_eval(cell)
    return cell


def plan(megabytes: float, *, rows: int = 1_000, files: int = 4, split: int | None = None) -> Any:
    file = SimpleNamespace(data_file=SimpleNamespace(record_count=rows // files))
    return SimpleNamespace(
        projected_bytes=int(megabytes * MB),
        files=(file,) * files,
        rows_in_files=rows // files * files,
        metadata=None,
        scan=SimpleNamespace(projection=SimpleNamespace(fields=(1, 2))),
        settings=SimpleNamespace(split_target_size=split),
    )


class Tasks:
    def __init__(self, packed: int) -> None:
        self._packed = packed

    def __getitem__(self, scan: int) -> tuple[None, ...]:
        return (None,) * self._packed


def choice(*plans: Any, slots: int = 2, packed: int = 12, memory: int = 4 * GB) -> FragmentChoice:
    return FragmentChoice(plans, Tasks(packed), None, slots, memory)  # type: ignore[arg-type]


def divided(own: Any, other: Any, **options: Any) -> Division | None:
    return choice(own, other, **options).divided([0], [0, 1], ())


@pytest.mark.parametrize(("own", "again", "slots", "tasks"), table("shared.tsv"))
def test_larger_sides_are_read_by_fewer_tasks(own: int, again: int, slots: int, tasks: int) -> None:
    found = divided(plan(own), plan(again), slots=slots)
    assert found is not None
    assert found.tasks == (None if tasks == 12 else tasks)
    rounds = -(-tasks // slots)
    assert found.cost == rounds * (own * MB // tasks + again * MB)


def test_a_side_that_many_workers_would_read_is_left_to_spark() -> None:
    assert divided(plan(1_000), plan(500), slots=2, packed=100) is not None
    assert divided(plan(1_000), plan(500), slots=64, packed=100) is None
    assert divided(plan(1_000), plan(80), slots=64, packed=100) is not None


def test_splits_that_the_user_chose_stay() -> None:
    assert divided(plan(300, split=1), plan(100)) is None
    found = divided(plan(1_200, split=1), plan(50))
    assert found is not None
    assert found.tasks is None


def test_sides_that_do_not_fit_into_memory_are_left_to_spark() -> None:
    assert divided(plan(1_000), plan(400), memory=1_600 * MB) is not None
    assert divided(plan(1_000), plan(401), memory=1_600 * MB) is None
    # Keys stored in one bit each.
    assert divided(plan(1_000), plan(1, rows=100_000_000), memory=1_600 * MB) == Division(
        0, None, 6 * (1_000 * MB // 12 + MB)
    )
    assert divided(plan(1_000), plan(1, rows=100_000_004), memory=1_600_000_000) is None
    assert divided(plan(1_000), plan(1, files=1_001)) is None


@pytest.mark.parametrize(("megabytes", "slots", "alone"), table("alone.tsv"))
def test_one_task_runs_what_costs_it_no_more_than_spark(
    megabytes: int, slots: int, alone: bool
) -> None:
    found = choice(plan(megabytes), slots=slots).undivided([0])
    assert found == (Division(0, 1, megabytes * MB) if alone else None)


def fragment(name: str, scan: int, cost: float, *, is_one_row: bool = False) -> Fragment:
    return Fragment(name, Division(scan, None, int(cost * MB)), (), None, (), is_one_row)  # type: ignore[arg-type]


@pytest.mark.parametrize(("left", "cost", "alone", "dearer"), table("dearer.tsv"))
def test_the_whole_query_runs_in_one_task_where_its_parts_cost_more(
    left: str, cost: int | None, alone: int, dearer: bool
) -> None:
    """A negative cost means a fragment with one row."""
    fragments = [] if cost is None else [fragment("f", 0, abs(cost), is_one_row=cost < 0)]
    whole = fragment("f", 0, alone)
    assert choice(plan(100)).is_dearer(fragments, parse_one(left), whole) is dearer
