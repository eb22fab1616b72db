"""Estimate from the query text how large the results of its calls are: enough to skip most guards.

A call whose result has a size that its arguments give, such as ``repeat('-', 20)``, needs no check
at run time when the arguments are literals and the size is small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from sqlglot import exp

# Growth of text by all the calls of a query together that is not worth a check.
_MOST_GROWTH: Final = 1024
_ROW_MAKERS: Final = (
    exp.Join, exp.Lateral, exp.Unnest, exp.Explode, exp.Values, exp.Lambda, exp.SetOperation,
)  # fmt: skip
# Computed once where they are constant, but copied into each row of a result.
_TEXTS: Final = frozenset({"repeat", "lpad", "rpad", "format", "printf"})
_NUMBER: Final = r"\d+"
_PRINTF_WIDTH: Final = r"%[-+ #0]*(\d+)"
_FORMAT_WIDTH: Final = r"\{[^{}]*:[^{}]*?(\d+)"
_DYNAMIC: Final = {"printf": r"%[-+ #0]*\*", "format": r"\{[^{}]*\{"}


class Call(Struct, frozen=True):
    """A call by the name that the engine sees; a method's object is its first argument."""

    name: str
    arguments: tuple[exp.Expr | None, ...]
    in_lambda: bool = False
    makes_rows: bool = False


def calls_in(tree: exp.Expr, names: frozenset[str]) -> Iterator[Call]:
    """The calls of functions ``names``, except those in FROM, which return rows."""
    for node in tree.walk():
        found = _named(node)
        if found is not None and found[0] in names:
            in_lambda = node.find_ancestor(exp.Lambda) is not None
            yield Call(*found, in_lambda, makes_rows=isinstance(node.parent, exp.Table))


def _named(node: exp.Expr) -> tuple[str, tuple[exp.Expr | None, ...]] | None:
    match node:
        case exp.Repeat():
            return "repeat", (node.this, node.args.get("times"))
        case exp.Space():
            return "repeat", (exp.Literal.string(" "), node.this)
        case exp.Pad():
            name = "lpad" if node.args.get("is_left") else "rpad"
            return name, (node.this, node.expression, node.args.get("fill_pattern"))
        case exp.GenerateSeries():
            name = "range" if node.args.get("is_end_exclusive") else "generate_series"
            limits = [node.args.get(part) for part in ("start", "end", "step")]
            return name, tuple(each for each in limits if each is not None)
        case exp.Replace():
            return "replace", (node.this, node.expression, node.args.get("replacement"))
        case exp.RegexpReplace():
            rest = node.args.get("replacement"), node.args.get("modifiers")
            return "regexp_replace", (node.this, node.expression, *rest)
        case exp.Format():
            return "format", (node.this, *node.expressions)
        case exp.Anonymous():
            above = node.parent
            method = isinstance(above, exp.Dot) and above.expression is node
            first = (above.this,) if method and above is not None else ()
            return node.name.lower(), (*first, *node.expressions)
        case _:
            return None


def small_calls(calls: list[Call], *, rows: int, row_limit: int, limit: int) -> dict[str, int]:
    """How many calls of each function need no check.

    ``row_limit`` is the most bytes of a value that each of many rows may have, ``limit`` of one
    that is the same in all rows, which the engine computes once.
    """
    small: dict[str, int] = {}
    growth = 1
    growing: list[str] = []
    for call in calls:
        size = 0 if call.makes_rows else _size(call)
        if size is not None:
            once = _is_constant(call) and (rows == 1 or call.name not in _TEXTS)
            if size <= (max(limit, row_limit) if once else row_limit):
                small[call.name] = small.get(call.name, 0) + 1
            continue
        factor = _growth(call)
        if factor is not None:
            growth *= factor
            growing.append(call.name)
    if growth <= _MOST_GROWTH:
        for name in growing:
            small[name] = small.get(name, 0) + 1
    return small


def _is_constant(call: Call) -> bool:
    return not call.in_lambda and all(
        each is None or (each.find(exp.Column, exp.Query) is None) for each in call.arguments
    )


def _size(call: Call) -> int | None:
    """Bytes of the result, if the arguments determine it; else None."""
    arguments = call.arguments
    match call.name, arguments:
        case "repeat", (text, count):
            size, times = _bytes(text), _integer(count)
            return None if size is None or times is None else size * max(times, 0)
        case (("lpad" | "rpad"), (_, count, *_)):
            length = _integer(count)
            return None if length is None else 4 * max(length, 0)
        case (("range" | "generate_series"), _):
            return _series(arguments)
        case (("list_resize" | "array_resize"), (_, count, *value)):
            length, size = _integer(count), _bytes(value[0]) if value else 16
            return None if length is None or size is None else max(length, 0) * max(size, 16)
        case "bitstring", (_, count):
            length = _integer(count)
            return None if length is None else max(length, 0) // 8
        case "equi_width_bins", (_, _, count, *_):
            length = _integer(count)
            return None if length is None else 16 * max(length, 0)
        case (("format" | "printf"), (exp.Literal(is_string=True) as text, *_)):
            if re.search(_DYNAMIC[call.name], text.name):
                return None
            pattern = _PRINTF_WIDTH if call.name == "printf" else _FORMAT_WIDTH
            return sum(int(width[:30]) for width in re.findall(pattern, text.name))
        case _:
            return None


def _series(arguments: tuple[exp.Expr | None, ...]) -> int | None:
    numbers = [_integer(each) for each in arguments]
    if not numbers or any(number is None for number in numbers):
        return None
    known = [number for number in numbers if number is not None]
    start, end = (0, known[0]) if len(known) == 1 else known[:2]
    step = known[2] if len(known) > 2 else 1
    return 8 * max((end - start) // step + 1, 0) if step else 0


def _growth(call: Call) -> int | None:
    """The largest ratio of result length to text length; None if unknown."""
    match call.name, call.arguments:
        case "repeat", (_, count):
            times = _integer(count)
            return None if times is None else max(times, 1)
        case "replace", (_, exp.Literal() as old, exp.Literal() as new):
            return max(1, -(-_length(new) // max(_length(old), 1)))
        case "regexp_replace", (_, _, exp.Literal() as new, *options):
            references = new.name.count("\\")
            everywhere = any(option is not None for option in options)
            return max(1, (_length(new) if everywhere else 1) + references)
        case _:
            return None


def _integer(node: exp.Expr | None) -> int | None:
    if isinstance(node, exp.Neg):
        inner = _integer(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and re.fullmatch(_NUMBER, node.name) and len(node.name) < 30:
        return int(node.name)
    return None


def _bytes(node: exp.Expr | None) -> int | None:
    match node:
        case exp.Literal():
            return max(_length(node), 1)
        case exp.Null() | exp.Boolean():
            return 16
        case _:
            return None


def _length(node: exp.Expr) -> int:
    return len(node.name.encode("utf-8", "surrogatepass"))


def rows_at_once(tree: exp.Expr, scanned: int | None, vector: int) -> int:
    """How many rows the engine computes together at most; ``scanned`` rows come from one table."""
    if tree.find(*_ROW_MAKERS) is not None:
        return vector
    tables = len(list(tree.find_all(exp.Table)))
    if not tables:
        return 1
    return vector if tables > 1 or scanned is None else max(min(scanned, vector), 1)


def largest_array(tree: exp.Expr) -> tuple[str, int] | None:
    """The array type of fixed length with the most elements, and how many; None without any."""
    found: tuple[str, int] | None = None
    for node in tree.find_all(exp.DataType):
        elements = 1
        inner: exp.Expr | None = node
        while isinstance(inner, exp.DataType) and inner.this is exp.DataType.Type.ARRAY:
            for value in inner.args.get("values") or ():
                elements *= _integer(value) or 1
            inner = inner.expressions[0] if inner.expressions else None
        if elements > (found[1] if found is not None else 1):
            found = node.sql(dialect="duckdb"), elements
    return found
