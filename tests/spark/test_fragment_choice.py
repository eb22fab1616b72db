"""Which fragments pay: by stored bytes, tasks at once, and the memory of a task."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from sqlglot import parse_one

from icesql.engine.spark.fragments.choice import FragmentChoice
from icesql.engine.spark.fragments.fragment import Division, Fragment

MB = 1 << 20
GB = 1 << 30


def plan(megabytes: float, *, rows: int = 1_000, files: int = 4, split: int | None = None) -> Any:
    file = SimpleNamespace(data_file=SimpleNamespace(record_count=rows // files))
    return SimpleNamespace(
        projected_bytes=int(megabytes * MB),
        files=(file,) * files,
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


@pytest.mark.parametrize(
    ("own", "again", "slots", "tasks"),
    [
        # Reading the small side with every task costs less than a quarter of the large one.
        (1_200, 20, 2, 12),
        (1_200, 30, 2, 10),
        (1_200, 100, 2, 2),
        (1_200, 70, 3, 3),
        (1_200, 600, 2, 2),
        # Three of them would read four times what there is.
        (100, 600, 4, 3),
        (100, 600, 2, 2),
        (1, 600, 2, 2),
    ],
)
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
    # Keys that are stored in a bit each.
    assert divided(plan(1_000), plan(1, rows=100_000_000), memory=1_600 * MB) == Division(
        0, None, 6 * (1_000 * MB // 12 + MB)
    )
    assert divided(plan(1_000), plan(1, rows=100_000_004), memory=1_600_000_000) is None
    assert divided(plan(1_000), plan(1, files=1_001)) is None


@pytest.mark.parametrize(
    ("megabytes", "slots", "alone"),
    [(128, 64, True), (129, 64, False), (700, 2, True), (700, 5, True), (700, 6, False)],
)
def test_one_task_runs_what_costs_it_no_more_than_spark(
    megabytes: int, slots: int, alone: bool
) -> None:
    found = choice(plan(megabytes), slots=slots).undivided([0])
    assert found == (Division(0, 1, megabytes * MB) if alone else None)


def fragment(name: str, scan: int, cost: float, *, is_one_row: bool = False) -> Fragment:
    return Fragment(name, Division(scan, None, int(cost * MB)), (), None, (), is_one_row)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("left", "fragments", "alone", "dearer"),
    [
        # An exchange against the time of one more worker.
        ("SELECT * FROM f", [fragment("f", 0, 60)], 120, True),
        ("SELECT * FROM f", [fragment("f", 0, 80)], 160, False),
        ("SELECT * FROM f", [fragment("f", 0, 60, is_one_row=True)], 120, False),
        # Spark computes what WITH names each time.
        ("WITH q AS (SELECT * FROM f) SELECT * FROM q", [fragment("f", 0, 80)], 160, False),
        ("WITH q AS (SELECT * FROM f) SELECT * FROM q, q AS r", [fragment("f", 0, 80)], 160, True),
        ("SELECT * FROM __scan_0", [], 100, True),
        ("SELECT 1", [], 0, False),
    ],
)
def test_the_whole_query_runs_in_one_task_where_its_parts_cost_more(
    left: str, fragments: Sequence[Fragment], alone: int, dearer: bool
) -> None:
    whole = fragment("f", 0, alone)
    assert choice(plan(100)).is_dearer(fragments, parse_one(left), whole) is dearer
