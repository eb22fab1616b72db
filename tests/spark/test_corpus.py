"""Tables that other systems wrote give the same answers on Spark, without exceptions.

Two cases of each table, the same in every run; ``check.py … --engine spark`` runs all of them.
"""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import icesql
from tests.corpus.test_check import CASES, check, each_table

__all__ = ["check"]

CASES_OF_A_TABLE = 2


class _OnSpark:
    """icesql as ``check.py`` uses it, on the Spark that the tests share."""

    NotSupportedError = icesql.NotSupportedError

    def __init__(self, connect: Any) -> None:
        self._connect = connect

    def connect(self, **arguments: Any) -> Any:
        arguments.pop("engine")
        return self._connect(**arguments)


@each_table
def test_answers_on_spark_are_those_of_the_publisher(
    check: ModuleType, corpus: Path, connect: Any, table: str
) -> None:
    problems = []
    cases = CASES[table]
    drawn = random.Random(table).sample(cases, min(CASES_OF_A_TABLE, len(cases)))
    for case in drawn:
        outcome, detail = check.run_case(_OnSpark(connect), case, corpus, "spark")
        if outcome != "pass":
            problems.append(f"{case['id']} {outcome}: {case['sql']} | {detail}")
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)
