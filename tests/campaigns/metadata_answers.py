"""Questions that metadata answers, asked of the tables of other writers with pruning on and off.

    python tests/campaigns/metadata_answers.py CORPUS [CORPUS …] [--most QUESTIONS]

Each CORPUS is a folder with ``tables.jsonl``. For each top-level column of each table that can be
read: counts, extremes, distinct values, groups with counts, and the same with filters on values of
the column. With ``SET prune = off`` every file is read, and the rows must be the same. Prints how
many questions read fewer files for it. Ends with code 1 where rows differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import icesql

_FORMS = (
    "SELECT {c}, count(*) FROM t GROUP BY {c}",
    "SELECT {c}, count(*), count({c}), min({c}) FROM t GROUP BY {c} HAVING count(*) > 1",
    "SELECT {c} IS NULL, count(*) FROM t GROUP BY ALL",
    "SELECT DISTINCT {c} FROM t",
    "SELECT count(DISTINCT {c}) FROM t",
    "SELECT min({c}), max({c}) FROM t",
    "SELECT count({c}), count(*), max({c}) FROM t WHERE {c} IS NOT NULL",
    "SELECT count(*) FROM t WHERE {c} IS NULL",
    "SELECT {c} FROM t ORDER BY {c} DESC NULLS LAST LIMIT 3",
    "SELECT count(*) FROM t WHERE {c} = (SELECT max({c}) FROM t)",
)
_WITH_VALUES = (
    "SELECT count(*), count({c}), min({c}) FROM t WHERE {c} >= $1",
    "SELECT {c}, count(*) FROM t WHERE {c} <> $1 GROUP BY {c}",
    "SELECT {c}, count(*) FROM t WHERE {c} = $1 OR {c} IS NULL GROUP BY 1",
    "SELECT max({c}) FROM t WHERE {c} < $1",
)


def tables(corpora: list[Path]) -> Iterator[Path]:
    """The metadata files, or folders, of the tables that can be read."""
    for corpus in corpora:
        for line in (corpus / "tables.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row.get("usability") == "full":
                yield corpus / row.get("metadata", row["table"])


def asked(connection: Any, sql: str, values: list[Any], *, prune: bool) -> tuple[Any, int]:
    """The rows, in an order of their own, or the error; and how many data files were read."""
    connection.execute(f"SET prune = {'on' if prune else 'off'}")
    try:
        cursor = connection.execute(sql, values or None)
        rows = sorted(repr(tuple(map(_alike, row))) for row in cursor.fetchall())
    except icesql.Error as error:
        return type(error).__name__, 0
    return rows, sum(each.result_data_files for each in cursor.scan_reports)


def _alike(value: Any) -> Any:
    """One zero for both: which of them stands for a group is open."""
    return 0.0 if isinstance(value, float) and value == 0 else value


def questions(connection: Any) -> Iterator[tuple[str, list[Any]]]:
    """The questions about each column of the table ``t``."""
    for name, *_ in connection.execute("DESCRIBE t").fetchall():
        column = '"' + str(name).replace('"', '""') + '"'
        for form in _FORMS:
            yield form.format(c=column), []
        try:
            sql = f"SELECT {column} FROM t WHERE {column} IS NOT NULL ORDER BY 1 LIMIT 50"
            found = connection.execute(sql).fetchall()
        except icesql.Error:
            continue
        for value in {repr(row[0]): row[0] for row in (*found[:1], *found[-1:])}.values():
            for form in _WITH_VALUES:
                yield form.format(c=column), [value]


def main(arguments: list[str] | None = None) -> int:
    """Ask, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", type=Path, nargs="+")
    parser.add_argument("--most", type=int, default=400, help="questions of one table")
    chosen = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    for place in tables(chosen.corpora):
        with icesql.connect(settings={"query_timeout": 60.0}) as connection:
            try:
                connection.register_table("t", str(place))
                listed = list(zip(range(chosen.most), questions(connection), strict=False))
            except icesql.Error:
                counts["tables that cannot be asked"] += 1
                continue
            counts["tables"] += 1
            for _, (sql, values) in listed:
                found, files = asked(connection, sql, values, prune=True)
                expected, all_files = asked(connection, sql, values, prune=False)
                counts["questions"] += 1
                counts["that read fewer files"] += files < all_files
                counts["that read none"] += files == 0 < all_files
                if isinstance(found, str):
                    counts["refused"] += 1
                if found != expected and not isinstance(expected, str):
                    counts["DIFFERENT"] += 1
                    print(f"{place}\n  {sql} {values}\n  {found!r:.300}\n  {expected!r:.300}")
    print("\n".join(f"{count:9,} {what}" for what, count in counts.items()))
    return int(counts["DIFFERENT"] > 0)


if __name__ == "__main__":
    sys.exit(main())
