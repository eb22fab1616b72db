"""Counts read only files with rows that a condition excludes or that are deleted."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import icesql
from tests.query.pushdown.test_prunable_forms import connection
from tests.tables import read_cases, read_lines
from tests.writer.fields import fields
from tests.writer.table import TableWriter

__all__ = ["connection"]

FIELDS = fields("id long, v string, f double")


def both(opened: icesql.Connection, sql: str) -> tuple[list[Any], int]:
    """The rows and the number of files read, after a check that pruning changes no row."""
    opened.execute("SET prune = off")
    expected = opened.execute(sql).fetchall()
    opened.execute("SET prune = on")
    assert opened.execute(sql).arrow().to_pylist() == [
        dict(zip([each[0] for each in opened.execute(sql).description], row, strict=True))
        for row in expected
    ], sql
    cursor = opened.execute(sql)
    rows = cursor.fetchall()
    assert rows == expected, sql
    return rows, sum(report.result_data_files for report in cursor.scan_reports)


@pytest.mark.parametrize(("sql", "most"), read_cases(__file__, "counts.tsv", 1))
def test_a_count_reads_the_files_at_the_edges(
    connection: icesql.Connection, sql: str, most: int
) -> None:
    _, files = both(connection, sql)
    assert files <= most, sql


@pytest.mark.parametrize("sql", read_lines(__file__, "more_than_counts.tsv"))
def test_what_is_more_than_a_count_reads_all(connection: icesql.Connection, sql: str) -> None:
    both(connection, sql)


def test_a_verified_count_reads_all(connection: icesql.Connection) -> None:
    sql = "SELECT count(*) FROM t WHERE id >= 25"
    connection.execute("SET verify = 'full'")
    cursor = connection.execute(sql)
    found = cursor.fetchall()
    assert sum(each.result_data_files for each in cursor.scan_reports) > 1
    connection.execute("SET verify = 'normal'")
    assert connection.execute(sql).fetchall() == found


def test_explain_says_what_was_counted(connection: icesql.Connection) -> None:
    def explained(sql: str) -> str:
        return "\n".join(row[0] for row in connection.execute(f"EXPLAIN {sql}"))

    text = explained("SELECT count(*) FROM t WHERE id >= 25")
    assert "counted from metadata\n" in text
    assert ".parquet from metadata: 20 rows\n" in text
    assert "0 kept, 0 skipped, 8 counted" in explained("SELECT count(*) FROM t")


def random_table(folder: Path, random: Random, version: int) -> TableWriter:
    """Some files with NULLs and NaN, some of them with deletes of every kind."""
    table = TableWriter(folder, FIELDS, version=version)
    files, start = [], 0
    for _ in range(random.randint(2, 6)):
        rows = [
            {
                "id": None if random.random() < 0.05 else start + number,
                "v": random.choice(["a", "b", None]),
                "f": random.choice([1.0, None, float("nan")]),
            }
            for number in range(random.randint(1, 12))
        ]
        start += 10
        files.append((table.data_file(rows), len(rows)))
        table.commit([files[-1][0]])
    for file, rows in random.sample(files, k=random.randint(0, len(files))):
        places = sorted(random.sample(range(rows), k=random.randint(1, rows)))
        if version == 3:
            table.commit(table.deletion_vectors([(file, places)]))
        else:
            table.commit([table.position_deletes([(file, place) for place in places])])
    if random.random() < 0.4:
        table.commit([table.equality_deletes([{"v": "a"}], [2])])
    return table


CONDITIONS = [
    "id >= {0}", "id > {0} AND id <= {1}", "id < {0} OR id IS NULL", "v IS NOT NULL", "NOT id < {0}",
    "id IN ({0}, {1})", "f > 0", "f IS NULL", "id IS NOT NULL AND v = 'a'", "TRUE",
]  # fmt: skip
OUTPUTS = ["count(*)", "count(id)", "count(v), count(*)", "count(f)", "max(id), count(v)"]


@pytest.mark.parametrize("seed", range(3))
def test_random_tables_count_as_they_read(tmp_path, seed: int) -> None:
    random = Random(seed)
    table = random_table(tmp_path, random, 2 + seed % 2)
    with icesql.connect() as opened:
        opened.register_table("t", table.metadata_path)
        counted = 0
        total = len(opened.execute("SELECT 1 FROM t.data_files").fetchall())
        for condition in CONDITIONS:
            for outputs in OUTPUTS:
                where = condition.format(random.randint(-2, 60), random.randint(0, 60))
                _, files = both(opened, f"SELECT {outputs} FROM t WHERE {where}")
                counted += files < total
        assert counted
        both(opened, "SELECT count(*) FROM t")
