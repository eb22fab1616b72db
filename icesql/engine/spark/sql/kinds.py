"""Kinds of expressions for the Spark dialect, and SQL text with gaps for expressions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlglot import exp

from icesql.errors import UnsupportedSqlError
from icesql.sql.grammar import columns

T = exp.DataType.Type
Rewrite = Callable[[Any], "exp.Expr"]
Rewrites = dict["type[exp.Expr]", Rewrite]

_KINDS: Final[dict[Any, str]] = {
    T[name]: kind
    for kind, *names in map(
        str.split,
        """
        integer TINYINT SMALLINT MEDIUMINT INT BIGINT INT128 INT256 BIT
        integer UTINYINT USMALLINT UINT UBIGINT UINT128
        decimal DECIMAL
        float FLOAT
        double DOUBLE
        text VARCHAR TEXT CHAR NVARCHAR NCHAR NAME
        date DATE
        time TIME
        timestamp TIMESTAMP DATETIME TIMESTAMPNTZ TIMESTAMP_S TIMESTAMP_MS
        timestamptz TIMESTAMPTZ TIMESTAMPLTZ
        timestamp_ns TIMESTAMP_NS
        uuid UUID
        blob BINARY VARBINARY BLOB
        boolean BOOLEAN
        interval INTERVAL
        list ARRAY LIST
        struct STRUCT
        map MAP
        null NULL
        """.strip().splitlines(),
    )
    for name in names
}

NUMBERS: Final = frozenset({"integer", "decimal", "float", "double"})


# icesql's own nodes in a tree are sqlglot's bare Expression, which no parser makes: the classes of
# a compiled sqlglot cannot have subclasses. Its arguments distinguish two forms:
#   ``parts``      SQL text of Spark, with expressions between its pieces. If the text means the
#                  same in DuckDB, ``engine_type`` is the type that its result must have there.
#   ``construct``  Ends the query when a row computes it, with an error after ``mark``.
Added: Final = exp.Expression


def is_refusal(node: exp.Expr) -> bool:
    """True if ``refuse_rows`` made the node."""
    return type(node) is Added and "construct" in node.args


def kind_of_type(node: exp.DataType | None) -> str:
    """The kind of a sqlglot type, or "unknown"."""
    if node is None or not isinstance(node, exp.DataType):
        return "unknown"
    if node.this == T.USERDEFINED and str(node.args.get("kind")).upper() == "TIMESTAMPTZ_NS":
        return "timestamptz_ns"
    return _KINDS.get(node.this, "unknown")


def kind(node: exp.Expr | None) -> str:
    """The kind of an annotated expression."""
    if node is None:
        return "unknown"
    match node:
        case exp.Paren() | exp.Alias() | exp.Neg():
            return kind(node.this)
        case exp.Interval():
            return "interval"
        case exp.Subquery() if len(node.selects) == 1:
            return kind(node.selects[0])
        case exp.Literal() if (
            not node.is_string and "." in node.name and "e" not in node.name.lower()
        ):
            # sqlglot's type for 0.05 is double; in both engines it is a decimal.
            return "decimal"
        case exp.Add() | exp.Sub() | exp.Mul():
            left, right = kind(node.this), kind(node.expression)
            if {left, right} <= {"integer", "decimal"}:
                return "decimal" if "decimal" in (left, right) else "integer"
            return kind_of_type(node.type)
        case exp.Sum() | exp.Min() | exp.Max() | exp.Abs() if kind(node.this) == "decimal":
            return "decimal"
        case _:
            return kind_of_type(node.type)


def spelled(template: str, *args: exp.Expr, like: exp.Expr | str | None = None) -> exp.Expression:
    """``template`` with ``{0}``, ``{1}`` … replaced by copies of expressions, in parentheses if
    needed.

    The result has the type of ``like`` (an expression or a type name), so that the types of
    outer expressions stay known.
    """
    # Texts and the numbers of gaps alternate.
    pieces = enumerate(re.split(r"\{(\d+)\}", template))
    parts = [_atom(args[int(each)]) if at % 2 else each for at, each in pieces if each]
    made = Added(parts=parts)
    if isinstance(like, str):
        made.type = exp.DataType.build(like, dialect="duckdb")
    elif like is not None and like.type is not None:
        made.type = like.type
    return made


string = exp.Literal.string


def identifier(name: str) -> exp.Identifier:
    """A name in quotes."""
    return exp.to_identifier(name, quoted=True)


def quoted_column(name: str, table: str | None = None) -> exp.Column:
    """A column by its quoted name."""
    return exp.column(name, table=table, quoted=True)


def named(node: exp.Expr, name: str) -> exp.Expr:
    """An expression under a quoted name."""
    return exp.alias_(node, name, quoted=True)


def _atom(node: exp.Expr) -> exp.Expr:
    """A copy in parentheses if an operator beside it could regroup it, as in ``a - b``."""
    made = node.copy()
    loose = isinstance(node, exp.Binary | exp.Unary | exp.Between | exp.In)
    if not loose or isinstance(node, exp.Paren | exp.Dot):
        return made
    whole = exp.Paren(this=made)
    whole.type = node.type
    return whole


def literal_text(node: exp.Expr | None) -> str | None:
    """The text of a string literal, None for anything else."""
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def literal_integer(node: exp.Expr | None) -> int | None:
    """The value of an integer literal, also a negative one; None for anything else."""
    if isinstance(node, exp.Paren):
        return literal_integer(node.this)
    if isinstance(node, exp.Neg):
        inner = literal_integer(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
        return int(node.this)
    return None


def refuse(construct: str, hint: str = "run it with engine = 'local'") -> UnsupportedSqlError:
    """The error for a construct without an equivalent on Spark."""
    return UnsupportedSqlError(f"{construct} on Spark", hint=hint)


def refuse_rows(construct: str) -> exp.Expression:
    """An expression that ends a query with ``refuse(construct)`` when a row computes it."""
    return Added(construct=construct)


# Functions and casts whose spelling the kinds of their operands decide: ``grammar/on_spark.txt``.


@functools.cache
def rows(section: str) -> dict[str, list[list[str]]]:
    """The columns of each row of a section behind its names, by name."""
    found: dict[str, list[list[str]]] = {}
    for names, *row in columns("on_spark.txt", section):
        for name in names.split("|"):
            found.setdefault(name, []).append(row)
    return found


def row_of(name: str, kinds: Sequence[str]) -> tuple[str, str] | None:
    """The text and the type of the first row for operands of these kinds; None without a row.

    Raises UnsupportedSqlError if the row refuses them.
    """
    for wanted, text, *last in rows("functions").get(name, ()):
        known = wanted.split(",")
        pairs = zip(known, kinds, strict=False)
        if len(known) > len(kinds) or not all(
            each == "*" or found in each.split("|") for each, found in pairs
        ):
            continue
        if not text.startswith("!"):
            return text, "".join(last)
        for place, found in enumerate(kinds, 1):
            text = text.replace(f"${place}", found)
        raise refuse(text[1:], *last)
    return None
