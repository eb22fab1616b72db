"""Calls of functions: find the row of the table that fits, and cast the arguments to its types.

The clauses around a call are translated here, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.errors import nearest
from icesql.frozen import Frozen
from icesql.query.dialects import types as t
from icesql.query.dialects.functions import (
    Match,
    duckdb,
    functions,
    refused,
    resolve,
    takes_count,
)
from icesql.query.dialects.queries import Around
from icesql.query.dialects.spark.instants import first_instant
from icesql.query.dialects.types import SqlType
from icesql.sql.grammar import SPARK, columns
from icesql.sql.positions import unsupported
from icesql.sql.syntax_errors import NO_ROW, SIMILAR, meaning

if TYPE_CHECKING:
    from icesql.query.dialects.spark.expressions import Expressions


# ------------------------------------------------------------------ casts
# In ANSI mode fractions are truncated, never rounded; values out of range and invalid texts raise
# an error; ``TRY_CAST`` returns NULL for them. ``grammar/spark_casts.txt`` has the expressions.


# Characters that Spark trims at both ends of a text.
_BLANK: Final = r"[\x00-\x20\x7F]+"
_BLANKS: Final = "".join(map(chr, (*range(0x21), 0x7F)))
_TRIMMED: Final = f"regexp_replace($1, '^{_BLANK}|{_BLANK}$', '', 'g')"
# A T before a time of day is valid only at the very start.
_TRIMMED_TIMESTAMP: Final = rf"regexp_replace($1, '(?s)^{_BLANK}([^T]|$)|{_BLANK}$', '\1', 'g')"


_TABLE: Final = "spark_casts.txt"


def _rows(section: str, kind: str, wanted: str, word: str) -> list[list[str]]:
    """The columns behind the first of the rows for a kind of type, with their names replaced."""
    names = {**dict(columns(_TABLE, "names")), "TYPE": wanted, "CAST": word}

    def spelled(text: str) -> str:
        return re.sub(r"\$([A-Z]+)", lambda found: spelled(names[found[1]]), text)

    return [
        [spelled(each) for each in row]
        for kinds, *row in columns(_TABLE, section)
        if kind in kinds.split("|")
    ]


def cast(node: exp.Expr, given: SqlType, to: SqlType, *, safe: bool = False) -> exp.Expr | None:
    """``node`` cast as Spark casts it; None if Spark or this module does not support the cast.

    ``safe`` is TRY_CAST.
    """
    wanted = t.duckdb_name(to)
    if given == to:
        return node
    if wanted is None:
        return None
    if given.kind == "null":
        return _plain(node, wanted)
    word = "TRY_CAST" if safe else "CAST"
    kind = "long decimal" if given.kind == "decimal" and given.precision > 15 else given.kind
    for kinds, text in _rows("values", kind, wanted, word):
        if to.kind in kinds.split("|"):
            return duckdb(text, node)
    if given.kind == "string":
        return _of_text(node, to, wanted, safe)
    if given.kind == "array" and to.kind == "array":
        return _of_array(node, given, to, safe)
    if given.kind == to.kind and to.kind in ("struct", "map") and t.common(given, to) == to:
        return duckdb(f"{word}($1 AS {wanted})", node)
    return None


def _plain(node: exp.Expr, wanted: str) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType.build(wanted, dialect="duckdb"))


def _of_text(node: exp.Expr, to: SqlType, wanted: str, safe: bool) -> exp.Expr | None:
    bare = node.this if isinstance(node, exp.Paren) else node
    constants = dict(columns(_TABLE, "constants"))
    if isinstance(bare, exp.Literal) and not safe and to.kind in constants:
        if to.kind == "timestamp" and re.fullmatch(constants["timestamp_ntz"], bare.name):
            return first_instant(bare)
        if re.fullmatch(constants[to.kind], bare.name):
            return _plain(bare, wanted)
    read = forms(to, wanted, "TRY_CAST" if safe else "CAST")
    if not read:
        return None
    cases = " ".join(f"WHEN regexp_full_match($1, '{form}') THEN {value}" for form, value in read)
    failed = "NULL" if safe else f"error('the text ''' || $1 || ''' is no {to}')"
    made = f"CASE WHEN $1 IS NULL THEN NULL {cases} ELSE $failed END".replace("$failed", failed)
    if isinstance(bare, exp.Literal):
        text = bare.name.strip(_BLANKS)
        if to.kind == "timestamp" and text.startswith("T"):
            text = bare.name.rstrip(_BLANKS)
        return duckdb(made, text)
    made = made.replace("$1", "own_text")
    trimmed = _TRIMMED_TIMESTAMP if to.kind == "timestamp" else _TRIMMED
    return duckdb(f"list_transform([{trimmed}], lambda own_text: {made})[1]", node)


def forms(to: SqlType, wanted: str, word: str) -> list[list[str]]:
    """Regular expressions of the trimmed texts that Spark reads as ``to``, and the value of each.

    ``wanted`` is DuckDB's name of the type, ``word`` CAST or TRY_CAST. Forms that cannot be
    computed here have the value ``error(…)``, also with TRY_CAST.
    """
    return _rows("texts", to.kind, wanted, word)


def _of_array(node: exp.Expr, given: SqlType, to: SqlType, safe: bool) -> exp.Expr | None:
    element = exp.to_identifier("own_element")
    made = cast(element, given.element, to.element, safe=safe)
    if made is None:
        return None
    if made is element:
        return node
    return duckdb("list_transform($1, lambda own_element: $2)", node, made)


# ------------------------------------------------------------------ calls


DIALECT: Final = "Spark's dialect"
# Implicit numeric conversions go to the right in this row only.
_WIDENS: Final = (*t.INTEGRAL, "decimal", "float", "double")


class Typed(Frozen):
    """An expression translated to DuckDB, with its type in Spark."""

    node: exp.Expr
    type: SqlType


# Builds a call from its typed arguments and the call.
Built = Callable[[list[Typed], "exp.Expr"], Typed]


def by_duckdb(
    text: str, kind: SqlType, *values: Typed | exp.Expr | str, exact: bool = True
) -> Typed:
    """DuckDB's expression ``text`` of these values, which has the type ``kind`` in Spark."""
    nodes = (each.node if isinstance(each, Typed) else each for each in values)
    return Typed(duckdb(text, *nodes, exact=exact), kind)


def check_parts(
    node: exp.Expr, known: Collection[str], what: str, at: exp.Expr | None = None
) -> None:
    """Refuse a node with parts that are not known. Raises UnsupportedSqlError."""
    for part, value in node.args.items():
        if value and part not in known:
            name = part.strip("_").upper()
            raise unsupported(f"{what} {name} in {DIALECT}", node if at is None else at)


def constant(node: exp.Expr) -> str | None:
    """The text of a constant number, text or boolean; None for other expressions."""
    if isinstance(node, exp.Boolean):
        return str(node.this)
    return node.name if isinstance(node, exp.Literal) else None


def constant_text(value: Typed, at: exp.Expr, what: str) -> str:
    """The text of a constant argument. Raises UnsupportedSqlError for other arguments."""
    if not value.node.is_string:
        raise unsupported(f"{what} that is no constant text in {DIALECT}", at)
    return value.node.name


def find(name: str, given: Sequence[Typed], at: exp.Expr) -> Match:
    """The row that accepts these arguments. Raises UnsupportedSqlError at ``at``."""
    rows = functions(SPARK).get(name.lower())
    if rows is None:
        hint = meaning(name, SPARK) or nearest(name.lower(), functions(SPARK), NO_ROW, SIMILAR)
        raise unsupported(f"the function {name.lower()}() in {DIALECT}", at, hint)
    if not takes_count(rows, len(given)):
        counts = sorted({len(row.takes) - row.repeats for row in rows})
        takes = " or ".join(map(str, counts))
        raise unsupported(
            f"{name.lower()}() with {len(given)} arguments in {DIALECT}", at, f"it takes {takes}"
        )
    constants = [constant(each.node) for each in given]
    match = resolve(rows, [each.type for each in given], constants, implicit)
    if match is None:
        shown, hint = refused(rows, [str(each.type) for each in given], constants)
        hint = hint or "cast the arguments to types that it takes"
        raise unsupported(f"{name.lower()}({', '.join(shown)}) in {DIALECT}", at, hint)
    return match


def implicit(given: SqlType, wanted: SqlType) -> SqlType | None:
    """The type to which Spark converts an argument for ``wanted``; None if it does not."""
    if given.kind in (wanted.kind, "null"):
        return given if given.kind == wanted.kind else wanted
    if given.kind == "string":
        known = wanted.kind in t.SCALAR and (wanted.kind != "decimal" or wanted.precision)
        return wanted if known else None
    if wanted.kind == "string":
        return wanted if given.kind in t.SCALAR and given.kind != "binary" else None
    if given.kind in _WIDENS and wanted.kind in _WIDENS:
        if wanted.kind == "decimal":
            return t.as_decimal(given) if given.kind in t.INTEGRAL else None
        wider = _WIDENS.index(given.kind) < _WIDENS.index(wanted.kind)
        return wanted if wider else None
    if given.kind in t.MOMENTS and wanted.kind in t.MOMENTS:
        return wanted
    return None


def converted(value: Typed, to: SqlType, at: exp.Expr) -> exp.Expr:
    """``value`` cast to a parameter type. Raises UnsupportedSqlError at ``at``."""
    if to == value.type or to.kind == "any" or to.kind == "null":
        return value.node
    made = cast(value.node, value.type, to)
    if made is None:
        raise unsupported(f"a {value.type} as {to} in {DIALECT}", at)
    return made


def unified(values: Sequence[Typed], at: exp.Expr, what: str) -> tuple[list[exp.Expr], SqlType]:
    """Values converted to their common type. Raises UnsupportedSqlError at ``at``."""
    found = t.NULL
    for value in values:
        both = t.common(found, value.type)
        if both is None or (
            both.kind == "unknown" and any(v.type != values[0].type for v in values)
        ):
            raise unsupported(f"{what} of {found} and {value.type} in {DIALECT}", at, "cast them")
        found = both
    return [converted(value, found, at) for value in values], found


# ------------------------------------------------------------------ clauses around a call


_WINDOW_PARTS = frozenset({"this", "partition_by", "order", "spec", "alias", "over"})
_SPEC_PARTS = frozenset({"kind", "start", "start_side", "end", "end_side"})


def around_call(self: Expressions, node: exp.Expr) -> tuple[exp.Anonymous, Around]:
    """The innermost call and the clauses around it, translated to DuckDB."""
    around, whole = Around(), node
    while True:
        match node:
            case exp.Window():
                around.window = window(self, node)
            case exp.Filter():
                around.filter = self.truth(node.expression.this)
            case exp.IgnoreNulls():
                around.ignore_nulls = True
            case exp.RespectNulls():
                pass
            case exp.WithinGroup():
                order = node.expression
                if not isinstance(order, exp.Order) or len(order.expressions) != 1:
                    raise unsupported(f"WITHIN GROUP of several keys in {DIALECT}", whole)
                around.order = order
            case exp.Anonymous():
                return node, around
            case _:
                raise unsupported(f"OVER or FILTER after {node.key.upper()} in {DIALECT}", whole)
        node = node.this


def window(self: Expressions, node: exp.Window) -> exp.Window:
    """Translate the parts of a window in place, except its function; return the window."""
    check_parts(node, _WINDOW_PARTS, "a window with")
    order = node.args.get("order")
    keys = [each.node for each in self.many(node.args.get("partition_by") or ())]
    node.set("partition_by", keys)
    if order is not None:
        self.ordered(order.expressions)
    spec = node.args.get("spec")
    if spec is not None:
        check_parts(spec, _SPEC_PARTS, "a window frame with", node)
        for side in ("start", "end"):
            edge = spec.args.get(side)
            if edge is not None and not isinstance(edge, str):
                spec.set(side, self.of(edge).node)
    return node
