"""Generated statements: both engines return the same answer, or Spark refuses by name.

The statements are the same in every run, and few: each has a kind, a function or a value that no
earlier one has. ICESQL_BOTH_ENGINES=5000 runs so many, drawn with another seed.
"""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any

import pytest

from tests.spark.comparison import DIFFERENT, REFUSED, SAME, both, compared
from tests.spark.generated import Generator

DRAWN = 600
SEED = 20_261_122
MORE = int(os.environ.get("ICESQL_BOTH_ENGINES", "0"))
# Spark plans one statement on one core while it executes another.
AT_ONCE = 3


def first_of_each() -> list[str]:
    """Of the drawn statements, the first ones with each feature that the generator counts."""
    generator = Generator(SEED)
    first = []
    for _ in range(DRAWN):
        seen = len(generator.drawn)
        statement = generator.statement()
        if len(generator.drawn) > seen:
            first.append(statement)
    return first


def test_both_engines_give_one_answer(connect: Any, all_types: str) -> None:
    more = Generator(SEED + MORE)
    statements = [more.statement() for _ in range(MORE)] or first_of_each()
    connections: SimpleQueue[tuple[Any, Any]] = SimpleQueue()

    def ask(sql: str) -> tuple[str, str]:
        pair = connections.get()
        try:
            return compared(*pair, sql)
        finally:
            connections.put(pair)

    with ExitStack() as stack:
        for _ in range(AT_ONCE):
            connections.put(stack.enter_context(both(connect, {"t": all_types})))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(ask, statements))
    wrong = [
        f"{statement}\n    {words}"
        for statement, (outcome, words) in zip(statements, answers, strict=True)
        if outcome == DIFFERENT
    ]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
    outcomes = Counter(outcome for outcome, _ in answers)
    assert outcomes[SAME] > 0.8 * len(statements), outcomes
    assert outcomes[REFUSED] < 0.15 * len(statements), outcomes


def test_the_generator_draws_of_every_kind() -> None:
    generator = Generator(SEED)
    for _ in range(DRAWN):
        generator.statement()
    for kind in (
        "expressions", "aggregates", "group_by", "grouping_sets", "windows", "qualify",
        "set_operation", "join", "subquery", "with", "distinct", "limit", "nested", "unnest", "NULL",
        "nan", "IGNORE NULLS", "names_distinct", "names_group_by", "names_subquery", "names_with",
    ):  # fmt: skip
        assert generator.drawn[kind] >= 2, (kind, generator.drawn)
    functions = [name for name in generator.drawn if name.startswith("function ")]
    assert len(functions) > 70
