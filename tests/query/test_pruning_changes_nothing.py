"""Random joins, subqueries and derived tables give the same rows with and without pruning."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import icesql

SEED = 20260101
QUERIES = 120


@pytest.fixture(scope="module")
def connection(tmp_path_factory) -> Iterator[icesql.Connection]:
    """Tables a, b, c of columns p (the partition) and k, some of them NULL, four commits each."""
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import LongType, NestedField

    folder: Path = tmp_path_factory.mktemp("tables")
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    chance = random.Random(SEED)
    schema = Schema(
        *(NestedField(i, n, LongType(), required=False) for i, n in ((1, "p"), (2, "k")))
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
    opened = icesql.connect()
    for name in "abc":
        table = catalog.create_table(f"n.{name}", schema, partition_spec=spec)
        for _ in range(4):
            columns = [
                pa.array(chance.choices([None, *range(1, most)], k=6), pa.int64())
                for most in (4, 6)
            ]
            table.append(pa.table(columns, names=["p", "k"]))
        opened.register_table(name, table.metadata_location)
    catalog.close()
    yield opened
    opened.close()


class _Queries:
    """Random statements over a, b and c; every alias has the columns p and k."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def condition(self, aliases: list[str], depth: int = 2) -> str:
        pick, number = self.chance, self.chance.randint(0, 4)
        alias, other = pick.choice(aliases), pick.choice(aliases)
        deeper = [
            lambda: (
                f"({self.condition(aliases, depth - 1)} AND {self.condition(aliases, depth - 1)})"
            ),
            lambda: (
                f"({self.condition(aliases, depth - 1)} OR {self.condition(aliases, depth - 1)})"
            ),
            lambda: f"NOT ({self.condition(aliases, depth - 1)})",
        ]
        if depth and pick.random() < 0.5:
            return pick.choice(deeper)()
        comparison = f"{alias}.{pick.choice('pk')} {pick.choice(('=', '<>', '<', '>='))} {number}"
        rare = (
            f"{alias}.p IS NULL",
            f"coalesce({alias}.p, 1) = {number}",
            f"{alias}.p = {other}.k",
            f"{alias}.k IN (SELECT z.p FROM {pick.choice('abc')} z WHERE z.k > {number})",
            f"EXISTS (SELECT 1 FROM {pick.choice('abc')} z WHERE z.p = {alias}.p AND z.k < {number})",
        )
        return comparison if pick.random() < 0.5 else pick.choice(rare)

    def source(self, alias: str) -> str:
        table, other = self.chance.choice("abc"), self.chance.choice("abc")
        derived = (
            f"(SELECT p, k + 1 AS k FROM {table} i WHERE {self.condition(['i'], 1)})",
            f"(SELECT k AS p, max(p) AS k FROM {table} GROUP BY k)",
            f"(SELECT p, k FROM {table} UNION ALL SELECT k, p FROM {other})",
            f"(SELECT * FROM {table} ORDER BY k, p LIMIT 7)",
            f"(SELECT p, count(*) AS k FROM {table} GROUP BY p HAVING p > 1)",
            f"(SELECT p + 0 AS p, max(k) AS k FROM {table} GROUP BY p + 0, k)",
            f"(SELECT p, sum(k) AS k FROM {table} GROUP BY ROLLUP (p))",
            f"(SELECT k AS p, min(p) AS k FROM {table} GROUP BY 1 HAVING k < 3 AND min(p) > 0)",
            f"(SELECT DISTINCT k, p FROM {table})",
            f"(SELECT DISTINCT ON (k) k, p FROM {table} ORDER BY k, p)",
            f"(SELECT p, row_number() OVER (PARTITION BY p ORDER BY k) AS k FROM {table})",
            f"(SELECT p, count(*) OVER (PARTITION BY k) AS k FROM {table})",
            f"(SELECT *, sum(k) OVER (PARTITION BY p) AS s FROM {table})",
            f"(SELECT p, count(*) OVER () AS k FROM {table})",
            f"(SELECT k + 1 AS q, p, k FROM {table} WHERE q > 2)",
            f"(SELECT p AS k, k AS p FROM {table} WHERE k < 3)",
            f"(SELECT count(*) AS k, p FROM {table} GROUP BY ALL)",
        )
        return f"{table if self.chance.random() < 0.6 else self.chance.choice(derived)} {alias}"

    def statement(self) -> str:
        pick, visible = self.chance, ["x"]
        text = self.source("x")
        for alias in ("y", "w")[: pick.randint(0, 2)]:
            join = pick.choice(("", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"))
            on = f"{visible[-1]}.k = {alias}.k AND {self.condition([*visible, alias], 1)}"
            text += f" {join} JOIN {self.source(alias)} ON {on}"
            if join not in ("SEMI", "ANTI"):
                visible.append(alias)
        columns = ", ".join(f"{each}.p AS {each}p, {each}.k AS {each}k" for each in visible)
        text = f"SELECT {columns} FROM {text} WHERE {self.condition(visible)}"
        if pick.random() < 0.3:
            twice = pick.choice(
                (
                    "",
                    " UNION ALL SELECT * FROM d WHERE xk < 3",
                    " UNION SELECT * FROM d WHERE xp = 2",
                )
            )
            text = f"WITH d AS ({text}) SELECT * FROM d WHERE d.xp = {pick.randint(1, 3)}{twice}"
        return text


def test_pruning_loses_and_invents_no_row(connection: icesql.Connection) -> None:
    queries, skipping = _Queries(SEED), 0
    for _ in range(QUERIES):
        sql = queries.statement()
        rows = {}
        for prune in ("on", "off"):
            connection.execute(f"SET prune = {prune}")
            cursor = connection.execute(sql)
            rows[prune] = sorted(cursor.fetchall(), key=repr)
            if prune == "on":
                skipping += any(
                    report.skipped_data_files or report.skipped_data_manifests
                    for report in cursor.scan_reports
                )
        assert rows["on"] == rows["off"], sql
    assert skipping > QUERIES / 3, "hardly a query pruned anything: the test shows nothing"
