"""Queries in steps, as Spark has them: each step takes the rows of the step before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql

_T = "(VALUES (1, 10), (2, 20), (1, 30)) t(x, y)"


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[icesql.Connection]:
    folder: Path = tmp_path_factory.mktemp("empty")
    with icesql.connect(warehouse=str(folder), dialect="spark") as opened:
        yield opened


@pytest.mark.parametrize(
    ("sql", "names", "rows"),
    [
        ("SELECT x FROM {t} |> EXTEND x + 1 AS z |> ORDER BY x", "x z", [(1, 2), (1, 2), (2, 3)]),
        ("SELECT x + 1 AS x FROM {t} |> WHERE x > 2", "x", [(3,)]),
        ("SELECT y FROM {t} |> SELECT * |> ORDER BY y", "y", [(10,), (20,), (30,)]),
        ("SELECT y FROM {t} |> ORDER BY y DESC |> LIMIT 1", "y", [(30,)]),
        ("SELECT DISTINCT x FROM {t} |> EXTEND 1 AS k |> ORDER BY x", "x k", [(1, 1), (2, 1)]),
        ("SELECT y FROM {t} ORDER BY y LIMIT 1 |> WHERE y > 10", "y", []),
        ("WITH c AS (SELECT 1 AS q) SELECT q FROM c |> EXTEND 2 AS k", "q k", [(1, 2)]),
        ("SELECT * FROM (SELECT y FROM {t} |> ORDER BY y |> LIMIT 1)", "y", [(10,)]),
        ("FROM {t} |> WHERE x = 1 |> SELECT y |> ORDER BY y |> LIMIT 1", "y", [(10,)]),
        ("(FROM {t} |> ORDER BY y |> LIMIT 2) |> WHERE x = 1", "x y", [(1, 10)]),
        ("FROM {t} |> WHERE x = 2 |> JOIN (SELECT 2 AS x) USING (x) |> SELECT y", "y", [(20,)]),
        ("FROM {t} |> WHERE x = 2 |> UNION ALL (SELECT 3, 4) |> WHERE x = 3", "x y", [(3, 4)]),
        ("SELECT 3 AS x |> AGGREGATE GROUP BY x, 1 + x |> SELECT x", "x", [(3,)]),
        ("SELECT 3 AS x, 4 AS y |> AGGREGATE GROUP BY x, y", "x y", [(3, 4)]),
    ],
)
def test_a_step_takes_the_rows_of_the_step_before(
    sql: str, names: str, rows: list[Any], connection: icesql.Connection
) -> None:
    cursor = connection.execute(sql.format(t=_T))
    assert [each[0] for each in cursor.description or ()] == names.split()
    assert cursor.fetchall() == rows


@pytest.mark.parametrize(
    ("sql", "construct"),
    [
        ("FROM {t} |> LIMIT 1 |> WHERE x > 1", "the step WHERE after LIMIT"),
        ("FROM {t} |> ORDER BY y DESC |> LIMIT 2 |> ORDER BY y", "the step ORDER BY after LIMIT"),
        ("FROM {t} |> ORDER BY y LIMIT 2 |> SELECT max(y)", "the step SELECT after LIMIT"),
        ("FROM {t} |> OFFSET 1 |> EXTEND 1 AS k", "the step EXTEND after LIMIT"),
        ("SELECT 1 AS x UNION SELECT 2 |> WHERE x = 1", "a step after this"),
        ("FROM {t} |> UNION ALL SELECT 2, 3", "UNION in steps with this"),
        ("FROM {t} |> AGGREGATE GROUP BY 1 AS k, x", "AGGREGATE by the number of a column"),
        ("FROM {t} |> AGGREGATE GROUP BY x, 1", "AGGREGATE by the number of a column"),
        (
            "FROM {t} |> WHERE x = 1 |> RIGHT JOIN (SELECT 2 AS x) USING (x)",
            "the step RIGHT JOIN after WHERE",
        ),
    ],
)
def test_a_step_that_would_go_before_what_it_follows_is_refused(
    sql: str, construct: str, connection: icesql.Connection
) -> None:
    with pytest.raises(icesql.NotSupportedError, match=construct):
        connection.execute(sql.format(t=_T))
