"""Plain DuckDB as the reference: its answer to a statement, as values that can be compared."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from tests.campaigns.foreign.answers import Answer, answer_of
from tests.campaigns.foreign.verdicts import Failure

# icesql declares these to be text; Arrow's form of them is DuckDB's own affair.
_AS_TEXT = frozenset(
    ("bit", "time with time zone", "variant", "bignum", "uhugeint", "type",
     "lambda", "aggregate_state")
)  # fmt: skip


def plain_duckdb() -> Any:
    """A DuckDB in memory with small limits, in UTC, that fetches no extension."""
    opened = duckdb.connect(
        config={"threads": 2, "memory_limit": "2GB", "autoinstall_known_extensions": False}
    )
    opened.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    return opened


def arrow_table(cursor: Any) -> pa.Table:
    """The rows of an executed statement; that they are copied once more does not matter here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Arrow output on a DB-API result")
        return cursor.to_arrow_table()


@contextmanager
def time_limit(database: Any, seconds: float) -> Iterator[None]:
    """Interrupts what ``database`` does after ``seconds``: its InterruptException comes out."""
    timer = threading.Timer(seconds, database.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def ask(database: Any, sql: str, seconds: float) -> Answer | Failure:
    """The answer of plain DuckDB to one SELECT, or why there is none."""
    try:
        with time_limit(database, seconds):
            cursor = database.execute(sql)
            described = cursor.description
            if any(_comparable(column[1]) for column in described):
                names = [f"c{number}" for number in range(len(described))]
                casts = [
                    f"CAST({name} AS {kind})" if (kind := _comparable(column[1])) else name
                    for name, column in zip(names, described, strict=True)
                ]
                cursor = database.execute(
                    f"SELECT {', '.join(casts)} FROM ({sql.strip().rstrip(';')}\n) "
                    f"AS q({', '.join(names)})"
                )
            table = arrow_table(cursor)
            for at, column in enumerate(described):
                if str(column[1]).lower() == "uhugeint":
                    digits = [v and Decimal(v) for v in table.column(at).to_pylist()]
                    table = table.set_column(at, column[0], pa.array(digits, pa.decimal256(39, 0)))
            answer = answer_of(table)
    except duckdb.InterruptException as error:
        return Failure(error, slow=True)
    except Exception as error:
        return Failure(error, slow=isinstance(error, duckdb.OutOfMemoryException))
    return Answer(tuple(column[0] for column in described), answer.rows)


def _comparable(kind: Any) -> str | None:
    """The type to cast to so that a value can be compared, None where it already can."""
    name = str(kind.id).lower()
    if name in _AS_TEXT:
        return "JSON" if name == "variant" else "VARCHAR"
    match name:
        case "list" | "array":
            inner = _comparable(kind.children[0][1])
            return inner and f"{inner}[]"
        case "struct" | "tuple":
            inner = [(part, child, _comparable(child)) for part, child in kind.children]
            if not any(changed for _, _, changed in inner):
                return None
            types = [str(changed or child) for _, child, changed in inner]
            if str(kind).startswith("TUPLE"):
                return f"TUPLE({', '.join(types)})"
            names = ['"' + part.replace('"', '""') + '"' for part, _, _ in inner]
            return f"STRUCT({', '.join(map(' '.join, zip(names, types, strict=True)))})"
        case "map":
            (_, key), (_, value) = kind.children
            changed = _comparable(key), _comparable(value)
            return f"MAP({changed[0] or key}, {changed[1] or value})" if any(changed) else None
    return None
