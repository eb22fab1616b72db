"""Check the result size of calls that allocate it at once, before they run.

The engine's own memory limit does not count the bytes of texts and lists, and no interrupt happens
between two rows of one vector. So each function whose result size depends on an argument is hidden
by a macro of the same name, on the cursor of one query, unless the query's text shows that the
size is small:

    repeat(s, n)  →  list_transform([{'s': s, 'n': n}], lambda v: system.main.repeat(v.s,
                         CASE WHEN v.n * strlen(v.s) > … THEN error('…') ELSE v.n END))[1]

The list of one row computes each argument once, even if it is deeply nested or random.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from icesql.config import Settings
from icesql.engine.duckdb.sql.checked import Facts
from icesql.errors import ScanLimitError, UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.sql.acceptance import SCHEMAS
from icesql.sql.reading.engine_tree import Node

# ------------------------------------------------------------------ sizes of calls
# A call whose result size follows from its arguments, such as ``repeat('-', 20)``, needs no check
# at run time if the arguments are literals and the size is small.


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


# ------------------------------------------------------------------ guards


# Rows that the engine computes at once.
_VECTOR: Final = 2048
# A value of at most this many bytes is never refused: a vector of them takes 32 MiB.
_SMALL: Final = 16 << 10
_MARK: Final = re.compile(r"icesql:limit:(\w+):(\d+)")

# Sizes in macro bodies are in bytes, as DOUBLE because they may exceed 64 bits. Elements of lists
# take at most 8 bytes for each character of their text.
_TEXT: Final = "strlen(v.s::VARCHAR)::DOUBLE * CASE WHEN typeof(v.s) LIKE '%]' THEN 8 ELSE 1 END"
_WIDE: Final = "CASE WHEN strlen(v.p) > length(v.p) THEN 4 ELSE 1 END"
_FOUND: Final = "(strlen(v.s) - strlen(system.main.replace(v.s, v.p, ''))) / nullif(strlen(v.p), 0)"

# name → overloads of (parameters, size in bytes, the parameter that is checked); a parameter has
# a type where the engine needs it to choose an overload.
_SERIES: Final = (
    ("b BIGINT", "v.b::DOUBLE * 8", "b"),
    ("a BIGINT, b BIGINT", "(v.b::DOUBLE - v.a) * 8", "b"),
    ("a BIGINT, b BIGINT, s BIGINT", "(v.b::DOUBLE - v.a) / nullif(v.s, 0) * 8", "b"),
    *(
        (
            f"a {kind}, b {kind}, s INTERVAL",
            "(epoch(v.b) - epoch(v.a)) / nullif(epoch(v.s), 0) * 8",
            "b",
        )
        for kind in ("TIMESTAMP", "TIMESTAMPTZ")
    ),
)
_RESIZE: Final = (
    ("s, n", "v.n::DOUBLE * 16", "n"),
    ("s, n, p", "v.n::DOUBLE * greatest(16, strlen(v.p::VARCHAR))", "n"),
)
_PAD: Final = (("s, n INTEGER, p", f"v.n::DOUBLE * {_WIDE}", "n"),)
# Each piece takes 16 bytes, however short it is.
_SPLIT: Final = (("s, p", f"(coalesce({_FOUND}, strlen(v.s)) + 1) * 16.0", "s"),)
_SPLITS: Final = ("string_split", "str_split", "string_to_array", "split")
# Pattern and options must stay constants, so the number of matches is bounded, not counted.
_MATCHED: Final = tuple(
    (f"s, p{more}", "(strlen(v.s) + 1) * 16.0", "s") for more in ("", ", g", ", g, o")
)
_MATCHES: Final = (
    "regexp_extract_all", "string_split_regex", "str_split_regex", "regexp_split_to_array",
)  # fmt: skip
_OVERLOADS: Final[dict[str, tuple[tuple[str, str, str], ...]]] = {
    "repeat": (("s, n BIGINT", f"v.n * greatest({_TEXT}, 1)", "n"),),
    "lpad": _PAD,
    "rpad": _PAD,
    "range": _SERIES,
    "generate_series": _SERIES,
    "list_resize": _RESIZE,
    "array_resize": _RESIZE,
    "bitstring": (("s, n INTEGER", "v.n / 8", "n"),),
    "equi_width_bins": (("a, b, n BIGINT, s", "v.n * 16.0", "n"),),
    "replace": (("s, p, r", f"{_FOUND} * strlen(v.r)::DOUBLE", "r"),),
    **dict.fromkeys(_SPLITS, _SPLIT),
    **dict.fromkeys(_MATCHES, _MATCHED[:2]),
    "regexp_extract_all": _MATCHED,
    "regexp_replace": tuple(
        (f"s, p, r{more}", "(strlen(v.s) + 1.0) * strlen(v.r) * 2", "r") for more in ("", ", o")
    ),
}
_FORMATS: Final = {
    "printf": (r"%[-+ #0]*([0-9]{4,})", r"%[-+ #0]*\*"),
    "format": (r"\{[^{}]*:[^{}]*?([0-9]{4,})", r"\{[^{}]*\{"),
}
GUARDED: Final = frozenset({*_OVERLOADS, *_FORMATS})


def guard_calls(facts: Facts, cursor: Any, settings: Settings, scanned: int | None = None) -> None:
    """Make ``cursor`` refuse, while it runs a text, calls that produce too large a value.

    ``facts`` are those of the text, ``scanned`` is the maximum number of rows of its only table,
    None for several tables. Raises UnsupportedSqlError for a call that names the engine's own
    schema, ScanLimitError for a type that is too large. A call that is refused at run time raises
    an error of the engine, which ``size_error`` translates.
    """
    limit = settings.memory_limit
    array = largest_array(facts.arrays)
    if array is not None and 8 * array[1] * _VECTOR > limit and array[1] > _SMALL // 8:
        raise ScanLimitError(
            f"the type {array[0]} has {array[1]:,} elements in each value, more than memory_limit "
            "leaves for the values that are computed together; use a list (INTEGER[]) instead"
        )
    found = calls_of(facts, GUARDED)
    # Splitting is dangerous only if another call of the statement made the text long.
    if all(call.name in (*_SPLITS, *_MATCHES) for call in found):
        return
    rows = rows_at_once(facts, scanned, _VECTOR)
    threads = (settings.threads or os.cpu_count() or 1) if rows == _VECTOR else 1
    row_limit = max(limit // (2 * rows * threads), min(_SMALL, limit))
    small = small_calls(found, rows=rows, row_limit=row_limit, limit=limit // 4)
    arguments = max(len(call.arguments) for call in found)
    for name, count in Counter(call.name for call in found).items():
        if count > small.get(name, 0):
            cursor.execute(_macro(name, row_limit, limit // 8, arguments))


def size_error(text: str) -> ScanLimitError | None:
    """The error for a message of a rejected call; None for any other message of DuckDB."""
    found = _MARK.fullmatch(text)
    if found is None or found[1] not in GUARDED:
        return None
    return ScanLimitError(
        f"{found[1]}() would make a value of more than {int(found[2]):,} bytes, more than "
        "memory_limit leaves for one of the values that are computed together; "
        "make it smaller or raise memory_limit"
    )


def _macro(name: str, row_limit: int, text_limit: int, arguments: int) -> str:
    """The statement that hides a function behind a macro with a check."""
    by_pattern = name in _MATCHES or name == "regexp_replace"
    limit = text_limit if by_pattern or name in _SPLITS else row_limit
    if name in _FORMATS:
        overloads = tuple(_format(name, count) for count in range(1, max(arguments, 8) + 1))
    else:
        overloads = _OVERLOADS[name]
    bodies = []
    for parameters, size, checked in overloads:
        names = [each.split()[0] for each in parameters.split(", ")]
        held = [each for each in names if not by_pattern or f"v.{each}" in size]
        packed = ", ".join(f"'{each}': {each}" for each in held)
        values = {each: f"v.{each}" for each in held}
        values[checked] = (
            f"CASE WHEN {size} > {limit} THEN error('icesql:limit:{name}:{limit}') "
            f"ELSE v.{checked} END"
        )
        passed = ", ".join(values.get(each, each) for each in names)
        bodies.append(
            f"({parameters}) AS list_transform([{{{packed}}}], "
            f"lambda v: system.main.{name}({passed}))[1]"
        )
    return f"CREATE OR REPLACE TEMP MACRO {name}{', '.join(bodies)}"


def _format(name: str, count: int) -> tuple[str, str, str]:
    """For a format of ``count`` parameters: widths are in its text or in arguments."""
    width, dynamic = _FORMATS[name]
    names = [f"a{number}" for number in range(1, count)]
    numbers = ", ".join(f"TRY_CAST(v.{each}::VARCHAR AS DOUBLE)" for each in names)
    written = (
        f"list_sum(list_transform(regexp_extract_all(v.f, '{width}', 1), lambda w: w::DOUBLE))"
    )
    size = f"coalesce({written}, 0)"
    if numbers:
        size += (
            f" + CASE WHEN regexp_matches(v.f, '{dynamic}') "
            f"THEN coalesce(list_sum([{numbers}]), 0) ELSE 0 END"
        )
    return ", ".join(["f", *names]), size, "f"
