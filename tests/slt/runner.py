"""A small sqllogictest: what users see, as SQL files with their answers.

    # comment
    statement ok                     the statement runs
    statement error <regex>          it fails and the message matches
    query <types> [rowsort]          it gives the rows after ``----``, cells separated by tabs
    halt                             the rest of the file is not run
    require corpus                   the file needs $ICESQL_CORPUS, spelled ``${CORPUS}`` in SQL
    spark may refuse                 on Spark what follows may also be refused by name

Types: one letter a column: T text, I integer, R float or decimal, B boolean, D date or time, P
interval, X bytes, N nested. A record ends at an empty line. NULL is ``NULL``, an empty text ``(empty)``; everything
else is spelled as the shell spells it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from icesql.dbapi.cursor import result_types
from icesql.errors import Error
from icesql.interval import Interval
from icesql.repl.cells import text_of
from icesql.repl.single_floats import as_written

KINDS: dict[str, tuple[type, ...]] = {
    "T": (str,),
    "I": (int,),
    "R": (float, Decimal),
    "B": (bool,),
    "D": (date, time),
    "N": (list, dict, tuple),
    "P": (timedelta, Interval),
    "X": (bytes,),
}


@dataclass(frozen=True)
class Record:
    """One record of a file; ``line`` counts from 1."""

    line: int
    kind: str  # "ok", "error" or "query"
    sql: str
    types: str = ""
    sort: bool = False
    expected: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Script:
    """A file: its records, whether it needs the corpus, and whether Spark may refuse some."""

    records: tuple[Record, ...]
    needs_corpus: bool
    spark_may_refuse: bool = False


def read_script(path: Path) -> Script:
    """Raises ValueError with the line for a record that is none."""
    records = []
    needs_corpus = spark_may_refuse = False
    for line, block in _blocks(path.read_text(encoding="utf-8")):
        head, *body = block
        words = head.split(maxsplit=2)
        match words:
            case ["halt"]:
                break
            case ["require", "corpus"]:
                needs_corpus = True
            case ["spark", "may", "refuse"]:
                spark_may_refuse = True
            case ["statement", "ok"]:
                records.append(Record(line, "ok", "\n".join(body)))
            case ["statement", "error", pattern]:
                records.append(Record(line, "error", "\n".join(body), error=pattern))
            case ["query", types, *rest] if set(types) <= set(KINDS) and "----" in body:
                cut = body.index("----")
                records.append(
                    Record(
                        line,
                        "query",
                        "\n".join(body[:cut]),
                        types=types,
                        sort=rest == ["rowsort"],
                        expected=tuple(body[cut + 1 :]),
                    )
                )
            case _:
                raise ValueError(f"{path.name}:{line}: {head!r} is no record")
    return Script(tuple(records), needs_corpus, spark_may_refuse)


def statements(folder: Path) -> Iterator[str]:
    """Every statement that must run, of every file of the folder."""
    for path in sorted(folder.glob("*.slt")):
        for record in read_script(path).records:
            if record.kind != "error":
                yield record.sql


# What a query that changes nothing begins with.
_READS: Final = re.compile(
    r"\s*\(*\s*(SELECT|WITH|FROM|VALUES|TABLE|DESCRIBE|SHOW|SUMMARIZE|PIVOT|UNPIVOT|EXECUTE)\b",
    re.IGNORECASE,
)
_TIMES: Final = 5


def run_repeatedly(connection: Any, record: Record, corpus: Path | None) -> None:
    """As ``run_record``; a query five times, and once more with nothing kept of the others."""
    run_record(connection, record, corpus)
    if record.kind != "query" or not _READS.match(record.sql):
        return
    for _ in range(_TIMES - 1):
        run_record(connection, record, corpus)
    connection.execute("SET caches = off")
    try:
        run_record(connection, record, corpus)
    finally:
        connection.execute("SET caches = on")


def run_record(connection: Any, record: Record, corpus: Path | None) -> None:
    """Raises AssertionError with the difference where the answer is another."""
    sql = record.sql.replace("${CORPUS}", str(corpus))
    if record.kind == "error":
        with pytest.raises(Error) as caught:
            connection.execute(sql).fetchall()
        assert re.search(record.error, str(caught.value)), str(caught.value)
        return
    cursor = connection.execute(sql)
    if record.kind == "ok":
        return
    types = result_types(cursor)
    rows = list(as_written(cursor.fetchall(), types))
    for row in rows:
        _check_types(row, record.types)
    found = ["\t".join(_cell(value) for value in row) for row in rows]
    expected = list(record.expected)
    if record.sort:
        found, expected = sorted(found), sorted(expected)
    assert found == expected, f"expected {expected}\nfound    {found}"


def _check_types(row: Sequence[Any], types: str) -> None:
    assert len(row) == len(types), f"{len(row)} columns, not {len(types)}"
    for value, letter in zip(row, types, strict=True):
        if value is not None:
            assert isinstance(value, KINDS[letter]), f"{value!r} is not of type {letter}"
            assert letter == "B" or not isinstance(value, bool)


def _cell(value: Any) -> str:
    return "(empty)" if value == "" else text_of(value)


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines between empty ones, with the number of their first; comments left out."""
    block: list[str] = []
    first = 0
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.startswith("#"):
            continue
        if line.strip():
            first = first if block else number
            block.append(line.rstrip("\n"))
        elif block:
            yield first, block
            block = []
