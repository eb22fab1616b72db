"""IN lists and ORs that are kept as one value reach Spark as the original literals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql

CONDITIONS = {
    "numbers": f"id IN ({', '.join(map(str, range(0, 20_000, 2)))})",
    "not": f"customer_id NOT IN ({', '.join(map(str, range(2, 300)))})",
    "null": f"id NOT IN ({', '.join(map(str, range(200)))}, NULL)",
    "decimals": f"amount IN ({', '.join(f'{n}.20' for n in range(200))})",
    "texts": "region IN (" + "".join(f"'\\{n}', " for n in range(200)) + "'eu')",
    "days": f"ordered_on IN ({', '.join(['DATE ' + repr('2026-01-02')] * 150)})",
    "or": " OR ".join(f"id = {-n}" for n in range(-200, 200, 3)),
    "and": " AND ".join(f"id <> {n}" for n in range(0, 400, 3)),
}


@pytest.mark.parametrize("kind", CONDITIONS)
def test_a_long_list_gives_the_rows_of_the_local_engine(
    connect: Any, connection: icesql.Connection, warehouse: Path, kind: str
) -> None:
    sql = f"SELECT id FROM shop.orders WHERE {CONDITIONS[kind]} ORDER BY id"
    with connect(warehouse=str(warehouse)) as spark:
        assert spark.execute(sql).fetchall() == connection.execute(sql).fetchall()
