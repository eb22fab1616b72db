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
from typing import Any, Final

from icesql.config import Settings
from icesql.engine.duckdb.sql.call_sizes import (
    calls_of,
    largest_array,
    rows_at_once,
    small_calls,
)
from icesql.engine.duckdb.sql.checked import Facts
from icesql.errors import ScanLimitError

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
