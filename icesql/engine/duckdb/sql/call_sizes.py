"""Estimate the result sizes of calls from the query text, so that most calls need no guard.

A call whose result size follows from its arguments, such as ``repeat('-', 20)``, needs no check at
run time if the arguments are literals and the size is small.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from icesql.engine.duckdb.sql.checked import Facts
from icesql.errors import UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.sql.engine_functions import SCHEMAS
from icesql.sql.reading.engine_tree import Node

# Total growth of text by all calls of a query below which no guard is needed.
_MOST_GROWTH: Final = 1024
# DuckDB computes these once if they are constant, but copies the result into each row.
_TEXTS: Final = frozenset({"repeat", "lpad", "rpad", "format", "printf"})
# The place of the argument that is the length of a result, and the bits for one of it.
_BITS: Final = {"lpad": (1, 32), "rpad": (1, 32), "bitstring": (1, 1), "equi_width_bins": (2, 128)}
_NUMBER: Final = r"-?\d{1,29}"
_PRINTF_WIDTH: Final = r"%[-+ #0]*(\d+)"
_FORMAT_WIDTH: Final = r"\{[^{}]*:[^{}]*?(\d+)"
_DYNAMIC: Final = {"printf": r"%[-+ #0]*\*", "format": r"\{[^{}]*\{"}


class Call(Frozen):
    """A call with its arguments from DuckDB's tree; a method call's object is the first one."""

    name: str
    arguments: tuple[Node, ...]
    in_lambda: bool = False


def calls_of(facts: Facts, names: frozenset[str]) -> list[Call]:
    """The calls of functions ``names``, except those in FROM.

    Raises UnsupportedSqlError for a call that names the engine's own schema: no macro hides it.
    """
    found = []
    for node in facts.calls:
        name = str(node["function_name"]).lower()
        if name not in names:
            continue
        path = [str(each).lower() for each in node["qualified_name"]["path"]]
        if len(path) > 1 and path[0] == "system":
            raise UnsupportedSqlError("a function by its schema", hint=f"write {name}(…)")
        arguments = [each["expression"] for each in node["arguments"]]
        if len(path) > 1 and path[0] not in SCHEMAS:
            arguments.insert(0, {"class": "COLUMN_REF"})  # city.repeat(2)
        found.append(Call(name, tuple(arguments), facts.has_lambda))
    return found


def small_calls(calls: list[Call], *, rows: int, row_limit: int, limit: int) -> dict[str, int]:
    """How many calls of each function need no check.

    ``row_limit`` is the maximum size in bytes of a value that differs from row to row, ``limit``
    of a value that is the same in all rows, which the engine computes once.
    """
    small: dict[str, int] = {}
    growth = 1
    growing: list[str] = []
    for call in calls:
        size = _size(call)
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
        each["class"] == "CONSTANT" or _integer(each) is not None for each in call.arguments
    )


def _size(call: Call) -> int | None:
    """Bytes of the result, if the arguments determine it; else None."""
    arguments = call.arguments
    match call.name, arguments:
        case "repeat", (text, count):
            size, times = _bytes(text), _integer(count)
            return None if size is None or times is None else size * max(times, 0)
        case (("range" | "generate_series"), _):
            return _series(arguments)
        case (("list_resize" | "array_resize"), (_, count, *value)):
            length, size = _integer(count), _bytes(value[0]) if value else 16
            return None if length is None or size is None else max(length, 0) * max(size, 16)
        case name, _ if name in _BITS and len(arguments) > _BITS[name][0]:
            place, bits = _BITS[name]
            length = _integer(arguments[place])
            return None if length is None else max(length, 0) * bits // 8
        case (("format" | "printf"), (first, *_)):
            written = _literal(first, "STRING")
            if written is None or re.search(_DYNAMIC[call.name], written):
                return None
            pattern = _PRINTF_WIDTH if call.name == "printf" else _FORMAT_WIDTH
            return sum(int(width[:30]) for width in re.findall(pattern, written))
        case _:
            return None


def _series(arguments: tuple[Node, ...]) -> int | None:
    known = [number for each in arguments if (number := _integer(each)) is not None]
    if not known or len(known) < len(arguments):
        return None
    start, end = (0, known[0]) if len(known) == 1 else known[:2]
    step = known[2] if len(known) > 2 else 1
    return 8 * max((end - start) // step + 1, 0) if step else 0


def _growth(call: Call) -> int | None:
    """The largest ratio of result length to text length; None if unknown."""
    match call.name, call.arguments:
        case "repeat", (_, count):
            times = _integer(count)
            return None if times is None else max(times, 1)
        case "replace", (_, first, second):
            old, new = _literal(first), _literal(second)
            return None if old is None or new is None else max(1, -(-_length(new) // _length(old)))
        case "regexp_replace", (_, _, second, *options):
            new = _literal(second)
            if new is None:
                return None
            return max(1, (_length(new) if options else 1) + new.count("\\"))
        case _:
            return None


def _literal(node: Node, *kinds: str) -> str | None:
    """The text of a literal of one of ``kinds``; by default of a string or a number."""
    literal = node.get("literal") or {}
    is_one = literal.get("kind") in (kinds or ("STRING", "INTEGER", "NUMERIC"))
    return str(literal.get("text", "")) if is_one else None


def _integer(node: Node) -> int | None:
    if node["class"] == "FUNCTION" and node["function_name"] == "-":
        arguments = node["arguments"]
        inner = _integer(arguments[0]["expression"]) if len(arguments) == 1 else None
        return None if inner is None else -inner
    text = _literal(node)
    return None if text is None or re.fullmatch(_NUMBER, text) is None else int(text)


def _bytes(node: Node) -> int | None:
    text = _literal(node)
    if text is not None:
        return _length(text)
    return 16 if _literal(node, "NULL_LITERAL", "BOOLEAN") is not None else None


def _length(text: str) -> int:
    return max(len(text.encode("utf-8", "surrogatepass")), 1)


def rows_at_once(facts: Facts, scanned: int | None, vector: int) -> int:
    """How many rows at most the engine computes together; ``scanned`` is the size of one table."""
    if facts.makes_rows:
        return vector
    if not facts.tables:
        return 1
    return vector if facts.tables > 1 or scanned is None else max(min(scanned, vector), 1)


def largest_array(arrays: Sequence[Node]) -> tuple[str, int] | None:
    """The fixed-length array type with the most elements, and their number; None without any."""
    found: tuple[str, int] | None = None
    for node in arrays:
        elements, sizes = 1, ""
        inner: Any = node
        while inner["type_name"].lower() == "array" and len(inner["children"]) == 2:
            size = inner["children"][1].get("literal", {}).get("text") or "1"
            elements *= int(size) if size.isdigit() else 1
            sizes = f"[{size}]{sizes}"
            inner = inner["children"][0]
            if "type_name" not in inner:
                break
        if elements > (found[1] if found is not None else 1):
            found = f"{inner.get('type_name', '')}{sizes}", elements
    return found
