"""A small sqllogictest: what users see, as SQL files with their answers.

    # comment
    statement ok                     the statement runs
    statement count <rows>           it changes so many rows
    statement note <regex>           it runs, and one of its notes matches
    statement error <regex>          it fails and the message matches
    statement error <class>: <regex> with an error of this class
    query <types> [rowsort]          it gives the rows after ``----``, cells separated by tabs
    halt                             the rest of the file is not run
    require corpus                   the file needs $ICESQL_CORPUS, spelled ``${CORPUS}`` in SQL
    spark may refuse                 on Spark what follows may also be refused by name
    case <name>                      what follows, up to the next case, has an empty catalog of its own
    with <name>=<value> …            the case runs once for each such line, whose cells are separated
                                     by tabs where values have spaces; ``${name}`` is the value
    on <catalog> …                   the case runs in each of these kinds of catalogs

Records of cases alone, in which ``${folder}`` is the folder that holds the warehouse:

    let <name> …                     the cells of the answer are ``${name}`` from here on
    file <path>                      the text is a file below the folder
    link <path> <target>             a symbolic link below the folder
    age <days>                       all that is below the folder is so old
    remove <pattern>                 files below the folder are removed
    files <pattern>                  the paths of the files below the folder are the lines
    connect <name> [<word>=<value>]  what follows runs on this connection to the catalog, which is
                                     opened with these arguments; the first one is ``con``
    meanwhile                        another connection runs this, each line a statement, while the
                                     next record commits: once before it looks at the table and, in
                                     a second run, between that look and the swap

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
from icesql.repl.render import as_written, text_of

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
    kind: str  # its first word, or the second one after "statement"
    sql: str
    types: str = ""
    sort: bool = False
    expected: tuple[str, ...] = ()  # rows, a count, or the words behind the kind
    error: str = ""  # what matches the message or a note, and the class of the error
    error_class: str = ""


@dataclass
class Case:
    """Records that begin with an empty catalog, the values that they run with, and the catalogs."""

    name: str
    records: list[Record]
    values: list[dict[str, str]]
    catalogs: tuple[str, ...] = ("directory",)


@dataclass(frozen=True)
class Script:
    """A file: its records, whether it needs the corpus, and whether Spark may refuse some."""

    records: tuple[Record, ...]
    needs_corpus: bool
    spark_may_refuse: bool = False


_OF_CASES: Final = ("let", "file", "link", "age", "remove", "files", "connect", "meanwhile")


def read_cases(path: Path) -> list[Case]:
    """The cases of a file. Raises ValueError with the line for a record that is none."""
    found: list[Case] = []
    for line, (head, *body) in _blocks(path.read_text(encoding="utf-8")):
        match head.split():
            case ["case", *words]:
                found.append(Case(" ".join(words), [], []))
                for each in body:
                    word, *rest = each.split("\t" if "\t" in each else None)
                    if word == "with":
                        found[-1].values.append(dict(value.split("=", 1) for value in rest))
                    elif word == "on":
                        found[-1].catalogs = tuple(rest)
                    else:
                        raise ValueError(f"{path.name}:{line}: {each!r} is no part of a case")
            case [kind, *words] if kind in _OF_CASES and found:
                record = Record(line, kind, "\n".join(body), expected=tuple(words))
                found[-1].records.append(record)
            case _:
                record = _record(line, head, body)
                if record is None or not found:
                    raise ValueError(f"{path.name}:{line}: {head!r} is no record of a case")
                found[-1].records.append(record)
    return found


def read_script(path: Path) -> Script:
    """Raises ValueError with the line for a record that is none."""
    records = []
    needs_corpus = spark_may_refuse = False
    for line, block in _blocks(path.read_text(encoding="utf-8")):
        head, *body = block
        match head.split():
            case ["halt"]:
                break
            case ["require", "corpus"]:
                needs_corpus = True
            case ["spark", "may", "refuse"]:
                spark_may_refuse = True
            case _:
                record = _record(line, head, body)
                if record is None:
                    raise ValueError(f"{path.name}:{line}: {head!r} is no record")
                records.append(record)
    return Script(tuple(records), needs_corpus, spark_may_refuse)


_ERROR: Final = re.compile(r"(?:(\w+Error): )?(.*)")


def _record(line: int, head: str, body: list[str]) -> Record | None:
    sql = "\n".join(body)
    match head.split(maxsplit=2):
        case ["statement", "ok"]:
            return Record(line, "ok", sql)
        case ["statement", "count", number]:
            return Record(line, "count", sql, expected=(number,))
        case ["statement", "note", pattern]:
            return Record(line, "note", sql, error=pattern)
        case ["statement", "error", pattern]:
            found = _ERROR.fullmatch(pattern)
            assert found is not None
            return Record(line, "error", sql, error=found[2], error_class=found[1] or "")
        case ["query", types, *rest] if set(types) <= set(KINDS) and "----" in body:
            cut = body.index("----")
            return Record(
                line, "query", "\n".join(body[:cut]), types, rest == ["rowsort"],
                tuple(body[cut + 1 :]),
            )  # fmt: skip
    return None


def statements(folder: Path) -> Iterator[str]:
    """Every statement that must run, of every file of the folder."""
    for path in sorted(folder.glob("*.slt")):
        for record in read_script(path).records:
            if record.kind != "error":
                yield record.sql


# What a query that changes nothing begins with.
READS: Final = re.compile(
    r"\s*\(*\s*(SELECT|WITH|FROM|VALUES|TABLE|DESCRIBE|SHOW|SUMMARIZE|PIVOT|UNPIVOT|EXECUTE)\b",
    re.IGNORECASE,
)
_TIMES: Final = 5


def run_repeatedly(connection: Any, record: Record, corpus: Path | None) -> None:
    """As ``run_record``; a query five times, and once more with nothing kept of the others."""
    run_record(connection, record, corpus)
    if record.kind != "query" or not READS.match(record.sql):
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
        error = caught.value
        assert re.search(record.error, str(error)), str(error)
        assert record.error_class in ("", type(error).__name__), type(error)
        return
    cursor = connection.execute(sql)
    if record.kind == "count":
        assert str(cursor.rowcount) == record.expected[0], f"it changed {cursor.rowcount} rows"
    elif record.kind == "note":
        notes = [*cursor.notes, cursor.message or ""]
        assert any(re.search(record.error, each) for each in notes), notes
    if record.kind != "query":
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
