"""Big and deep SQL in the sizes that are too slow for the tests, with the CPU time of each query.

    python tests/campaigns/deep_sql.py

Ends with code 1 when a query fails or gives another answer than it should.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import icesql
from tests.writer.table import TableWriter

COLUMNS = 5_000
ROWS = 60
Case = tuple[str, str, Sequence[Any], tuple[Any, ...]]


def cases() -> Iterator[Case]:
    """What each query is, its SQL and parameters, and its first row."""
    numbers = range(0, 20_000, 2)
    names = [f"c{n}" for n in range(COLUMNS)]
    wide = tuple(range(1, COLUMNS + 1))
    count = "SELECT count(*) FROM narrow WHERE "
    yield "OR", count + " OR ".join(f"id = {n}" for n in numbers), (), (30,)
    yield "AND <>", count + " AND ".join(f"id <> {n}" for n in numbers), (), (30,)
    yield "AND >", count + " AND ".join(f"id > {-n}" for n in numbers), (), (59,)
    pairs = " OR ".join(f"(id = {n} OR text = '{n + 1}')" for n in numbers[:2_000])
    yield "OR of two columns", count + pairs, (), (60,)
    branches = " ".join(f"WHEN {n} THEN {n + 1}" for n in range(10_000))
    case = f"SELECT sum(CASE id {branches} END) FROM narrow"
    yield "CASE", case, (), (sum(range(ROWS + 1)),)
    listed = ", ".join(map(str, range(100_000)))
    yield "array", f"SELECT len([{listed}])", (), (100_000,)
    yield "IN", f"{count} id IN ({listed})", (), (ROWS,)
    yield "a parameter", "SELECT len(?)", [list(range(100_000))], (100_000,)
    joins = "".join(f" JOIN narrow t{n} ON t{n}.id = t.id" for n in range(99))
    yield "JOIN", f"SELECT count(*) FROM narrow t{joins}", (), (ROWS,)
    yield "every column", "SELECT * FROM wide", (), wide
    yield "every name", f"SELECT {', '.join(names)} FROM wide", (), wide
    where = " AND ".join(f"{name} > 0" for name in names)
    yield "a predicate on every column", f"SELECT * FROM wide WHERE {where}", (), wide


def fields(kinds: dict[str, str]) -> list[dict[str, Any]]:
    """Optional columns of a table."""
    return [
        {"id": at, "name": name, "required": False, "type": kind}
        for at, (name, kind) in enumerate(kinds.items(), start=1)
    ]


def main() -> int:
    """Ask every query; 1 when one gave a wrong answer."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, icesql.connect() as connection:
        narrow = TableWriter(Path(folder) / "narrow", fields({"id": "long", "text": "string"}))
        narrow.commit([narrow.data_file([{"id": n, "text": str(n)} for n in range(ROWS)])])
        wide = TableWriter(Path(folder) / "wide", fields({f"c{n}": "int" for n in range(COLUMNS)}))
        wide.commit([wide.data_file([{f"c{n}": n + 1 for n in range(COLUMNS)}])])
        connection.register_table("narrow", str(narrow.metadata_path))
        connection.register_table("wide", str(wide.metadata_path))
        for name, sql, parameters, expected in cases():
            before = time.process_time()
            try:
                found: Any = connection.execute(sql, parameters or None).fetchone()
            except icesql.Error as error:
                found = error
            right = found == expected
            wrong += not right
            print(
                f"{time.process_time() - before:6.2f} s  {name}",
                "" if right else f"WRONG {found!r:.200}",
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
