"""Random MERGEs give the same rows as a model in plain Python."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.modify.merge.model import Refused, merged, random_case, random_rows, values

WAYS = [(1, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"), (3, "merge-on-read")]


def run(warehouse: Path, seed: int, count: int, version: int, mode: str) -> dict[str, int]:
    """Run ``count`` statements on one table; return counts of their outcomes."""
    chance = random.Random(seed)
    told = {"changed": 0, "nothing": 0, "refused": 0}
    with icesql.connect(warehouse=str(warehouse)) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(
            "CREATE TABLE s.t (k INT, a INT, w VARCHAR) PARTITIONED BY (truncate(1, w)) TBLPROPERTIES "
            f"('format-version' = '{version}', 'write.merge.mode' = '{mode}')"
        )
        con.execute("CREATE TABLE s.u (k INT, a INT, w VARCHAR)")
        table: list[Any] = []
        for number in range(count):
            if number % 5 == 0:
                table = random_rows(chance, 12)
                con.execute(f"INSERT OVERWRITE s.t VALUES {values(table)}")
            source = random_rows(chance, chance.randint(1, 8), distinct=chance.random() < 0.7)
            con.execute(f"INSERT OVERWRITE s.u VALUES {values(source)}")
            case = random_case(chance)
            sql = case.sql.format(t="s.t", s=chance.choice(["s.u", "(SELECT * FROM s.u)"]))
            files = {each for each in warehouse.rglob("*") if each.is_file()}
            where = f"seed {seed}, statement {number}: {sql}\n{table}\n{source}"
            try:
                expected, changed = merged(case, table, source)
            except Refused:
                expected, changed = [], -1
            if changed < 0:
                with pytest.raises(icesql.ProgrammingError, match="several rows of the source"):
                    raise AssertionError(f"{con.execute(sql).rowcount} rows: {where}")
                assert files == {each for each in warehouse.rglob("*") if each.is_file()}, where
                told["refused"] += 1
                continue
            cursor = con.execute(sql)
            assert cursor.rowcount == changed, where
            found = con.execute("SELECT k, a, w FROM s.t").fetchall()
            assert sorted(found, key=repr) == sorted(expected, key=repr), where
            told["changed" if changed else "nothing"] += 1
            table = expected
    return told


@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_random_merges(tmp_path, version: int, mode: str) -> None:
    told = run(tmp_path, 10 * version + len(mode), 14, version, mode)
    assert told["changed"] > 4
