"""Queries with Spark's pipe operator: each step reads the rows of the step before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.tables import read_cases, read_table

_T = "(VALUES (1, 10), (2, 20), (1, 30)) t(x, y)"


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[icesql.Connection]:
    folder: Path = tmp_path_factory.mktemp("empty")
    with icesql.connect(warehouse=str(folder), dialect="spark") as opened:
        yield opened


@pytest.mark.parametrize(("sql", "names", "rows"), read_cases(__file__, "pipes.tsv", 2))
def test_a_step_takes_the_rows_of_the_step_before(
    sql: str, names: str, rows: list[Any], connection: icesql.Connection
) -> None:
    cursor = connection.execute(sql.format(t=_T))
    assert [each[0] for each in cursor.description or ()] == names.split()
    assert cursor.fetchall() == rows


@pytest.mark.parametrize(("sql", "construct"), read_table(__file__, "no_pipes.tsv"))
def test_a_step_that_would_go_before_what_it_follows_is_refused(
    sql: str, construct: str, connection: icesql.Connection
) -> None:
    with pytest.raises(icesql.NotSupportedError, match=construct):
        connection.execute(sql.format(t=_T))
