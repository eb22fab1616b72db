"""Tables that other systems wrote give the same answers on Spark, without exceptions.

One case of each table, the same in every run; ``check.py … --engine spark`` runs all of them.
"""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType
from typing import Any

import icesql
from tests.corpus.test_check import CASES, check, each_table

__all__ = ["check"]


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
    case = random.Random(table).choice(CASES[table])
    outcome, detail = check.run_case(_OnSpark(connect), case, corpus, "spark")
    assert outcome == "pass", f"{case['id']}: {case['sql']} | {detail}"
