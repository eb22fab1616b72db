"""The answers of two systems as DuckDB writes them, compared to give a verdict.

same      the same columns, names, values, and order
ties      the same rows in another order, which ORDER BY left open
random    the reference itself answers differently the second time
open      the reference answers differently over the same rows in another order
names     the same rows under other column names
WRONG     other rows, without an error
refused   icesql names what it does not do
error     another error of icesql
FOREIGN   an exception that is not one of icesql's
slow      icesql's time limit ended it
both      neither answers
laxer     only icesql answers
elsewhere it queries something that each system words differently
unjudged  the reference took too long
uncopied  a table of the statement could not be copied
"""

from __future__ import annotations

import itertools
import re
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

import icesql

VERDICTS = tuple(re.findall(r"^(\w+) +\S", str(__doc__), re.MULTILINE)[1:])
ANSWERED = VERDICTS[: VERDICTS.index("both")]
# Types that differ between systems while the values do not.
_ALIKE = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"ENUM\(.*?\)|\b(UUID|JSON|BIT|VARIANT|BIGNUM|TYPE|TIME WITH TIME ZONE)\b", "VARCHAR"),
        (r"\bU?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)\b|DECIMAL\(\d+, ?\d+\)", "NUMBER"),
        (r"\b(FLOAT|DOUBLE)\b", "DOUBLE"), (r"TIMESTAMP_\w+", "TIMESTAMP"), (r"\[\d+\]", "[]"),
    )
)  # fmt: skip
_DOUBLE = re.compile(r"(?<![\w.])-?\d+(\.\d*)?(e[-+]?\d+)?(?![\w.])")
_ZEROS = re.compile(r"(?<=\d)\.0*(?!\d)|(?<=\.)(\d*?[1-9])0+(?!\d)")


class Answer(NamedTuple):
    """Column names and rows; a value is its type and its text, NULL is None."""

    names: tuple[str, ...]
    rows: tuple[Any, ...]


class Failure(NamedTuple):
    """The reason why there is no answer: an error, or a time limit of the reference."""

    error: BaseException
    slow: bool = False


class Verdict(NamedTuple):
    """A word of the list above, and a note."""

    word: str
    note: str = ""


Ask = Callable[[], Answer | Failure]


def plain_duckdb() -> Any:
    """A DuckDB in memory with small limits, in UTC, that fetches no extension."""
    opened = duckdb.connect(
        config={"threads": 2, "memory_limit": "2GB", "autoinstall_known_extensions": False}
    )
    opened.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    return opened


def arrow_table(cursor: Any) -> pa.Table:
    """The rows of an executed statement; an extra copy does not matter here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Arrow output on a DB-API result")
        return cursor.to_arrow_table()


@contextmanager
def time_limit(database: Any, seconds: float) -> Iterator[None]:
    """Interrupt ``database`` after ``seconds``, which raises its InterruptException."""
    timer = threading.Timer(seconds, database.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def ask(database: Any, sql: str, seconds: float) -> Answer | Failure:
    """The answer of plain DuckDB to one query, or the reason why there is none."""
    try:
        with time_limit(database, seconds):
            cursor = database.execute(sql)
            if any("TUPLE" in str(each[1]) for each in cursor.description):
                return answer_of(database, arrow_table(cursor))  # where these are structs
            return _answer(database, sql, cursor.description)
    except Exception as error:
        slow = isinstance(error, duckdb.InterruptException | duckdb.OutOfMemoryException)
        return Failure(error, slow)


def ask_icesql(database: Any, connection: Any, sql: str) -> Answer | Failure:
    """The answer of icesql, its values written by ``database``."""
    try:
        cursor = connection.execute(sql)
        return Answer((), ()) if cursor.description is None else answer_of(database, cursor.arrow())
    except Exception as error:
        return Failure(error)


def answer_of(database: Any, table: pa.Table) -> Answer:
    """The answer in an Arrow table."""
    if not table.num_columns:
        return Answer((), ((),) * table.num_rows)
    for at, field in enumerate(table.schema):
        if pa.types.is_decimal256(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(pa.string()))
    database.register("found", table)
    try:
        described = database.execute("FROM found LIMIT 0").description
        names = [
            (name, *each[1:]) for name, each in zip(table.column_names, described, strict=True)
        ]
        return _answer(database, "FROM found", names)
    finally:
        database.unregister("found")


def _answer(database: Any, sql: str, described: Any) -> Answer:
    kinds = [str(each[1]) for each in described]
    names = [f"c{at}" for at in range(len(kinds))]
    cells = [
        f"CAST({f'CAST({name} AS JSON)' if kind == 'VARIANT' else name} AS VARCHAR)"
        for name, kind in zip(names, kinds, strict=True)
    ]
    rows = database.execute(
        f"SELECT {', '.join(cells)} FROM ({sql.strip().rstrip(';')}\n) AS q({', '.join(names)})"
    ).fetchall()
    for pattern, name in _ALIKE:
        kinds = [pattern.sub(name, each) for each in kinds]
    return Answer(
        tuple(each[0] for each in described),
        tuple(tuple(map(_value, kinds, row)) for row in rows),
    )


def _value(kind: str, text: str | None) -> Any:
    """A value to compare: doubles to nine digits, as sums depend on the order of their terms."""
    if text is None:
        return None
    if "DOUBLE" in kind:
        return kind, _DOUBLE.sub(lambda found: _rounded(float(found[0])), text)
    return kind, _ZEROS.sub(lambda found: found[1] or "", text) if "NUMBER" in kind else text


def _rounded(value: float) -> str:
    return "0" if abs(value) < 1e-12 else f"{value:.9g}"


def differ(expected: Answer, found: Answer) -> str | None:
    """None if both are the same; else "order", "names", "columns" or "rows"."""
    if len(expected.names) != len(found.names):
        return "columns"
    if expected.rows != found.rows:
        return "order" if Counter(expected.rows) == Counter(found.rows) else "rows"
    return None if expected.names == found.names else "names"


def first_difference(expected: Answer, found: Answer, most: int = 3) -> str:
    """The first names and rows that only one side has."""
    names = [
        each for each in itertools.zip_longest(expected.names, found.names) if len({*each}) > 1
    ]
    said = f"names {names[:most]!r:.300} " if names else ""
    left, right = Counter(expected.rows), Counter(found.rows)
    missing, surplus = ([*each.elements()][:most] for each in (left - right, right - left))
    if not missing and not surplus:
        return said
    count = f"of {len(expected.rows)} and {len(found.rows)} rows"
    return f"{said}expected {missing!r:.400} found {surplus!r:.400} {count}"


def judge(reference: Ask, asked: Ask, reordered: Sequence[Ask] = ()) -> Verdict:
    """The verdict on one statement; each call of a function runs the statement once.

    ``reference`` may be called again; ``reordered`` run it over rows in other orders.
    """
    expected, found = reference(), asked()
    if isinstance(found, Failure) and not isinstance(found.error, icesql.Error):
        return Verdict("FOREIGN", said(found.error))
    if isinstance(expected, Failure):
        if expected.slow:
            return Verdict("unjudged")
        if isinstance(found, Failure):
            return Verdict("both", f"{said(expected.error)} / {said(found.error)}")
        return Verdict("laxer", said(expected.error))
    if isinstance(found, Failure):
        refused = isinstance(found.error, icesql.NotSupportedError)
        slow = isinstance(found.error, icesql.errors.QueryCancelledError)
        return Verdict("slow" if slow else "refused" if refused else "error", said(found.error))
    kind = differ(expected, found)
    if kind is None:
        return Verdict("same")
    if kind == "names":
        return Verdict("names", first_difference(expected, found))
    if _is_other(expected, reference()):
        return Verdict("random")
    if kind == "order":
        return Verdict("ties")
    if any(_is_other(expected, each()) for each in reordered):
        return Verdict("open", first_difference(expected, found))
    return Verdict("WRONG", f"{kind}: {first_difference(expected, found)}")


def _is_other(expected: Answer, again: Answer | Failure) -> bool:
    return isinstance(again, Failure) or differ(expected, again) not in (None, "order")


def said(error: Any) -> str:
    """The class and the first line of an error."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]:.300}"
