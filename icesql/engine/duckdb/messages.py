"""Shorten DuckDB's errors about a query to what its user needs: what, where, what to do.

This removes lists of candidates, settings of DuckDB that icesql does not have, and names that the
user did not write. Types get their usual names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from icesql.errors import (
    AmbiguousColumnError,
    ColumnNotFoundError,
    DataError,
    Error,
    ProgrammingError,
    UnsupportedSqlError,
)

_TYPES: Final = {
    "INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INTEGER", "INT64": "BIGINT",
    "INT128": "HUGEINT", "UINT8": "UTINYINT", "UINT16": "USMALLINT", "UINT32": "UINTEGER",
    "UINT64": "UBIGINT", "UINT128": "UHUGEINT", "INTEGER_LITERAL": "INTEGER",
    "STRING_LITERAL": "VARCHAR",
}  # fmt: skip
_TYPE: Final = rf"\b(?:{'|'.join(_TYPES)})\b"
# Names in the engine's text that replace the user's own.
_HIDDEN: Final = (
    r"__(?:(?:scan|file|col)_|row\b)|icesql: no value|icesql_\w+_[0-9a-f]{32}|\bq\.c\d+\b|#\d+"
)
_CANDIDATES: Final = r"(?s)(?<!\s)(?=[^\S\n]*+\n)\s++(?:Candidate|Did you mean)\b.*"
_SETTING: Final = r"""(?s)[,;]? ?(?:or )?(?:Use |use )?"?SET [a-z_]+ ?=.*"""
_NAME: Final = r'"([^"]+)"'

_NO_FUNCTION: Final = (
    r"(?s)(?:No function matches the given name and argument types '|Could not choose a best "
    r"candidate function for the function call \")(.*?)['\"]\. (?:You might need|In order to)"
)
_NO_COLUMN: Final = (
    r'Referenced column "(.*)" (?:not found in FROM clause!|was not found because the FROM clause)'
)
_AMBIGUOUS: Final = r'Ambiguous reference to column name "(.*?)" \(use: (.*)\)'
_MISSING: Final = r"\w+ Function with name \"?(.*?)\"? does not exist!"
_DIVISION: Final = r"Division by zero(?: in expression (.*?))?\. Use TRY"
_CAST_FROM: Final = r" when casting from source column \S+$"
_OPERATORS: Final = r"[^\w\s]+"
# A message, what is wrong, the hint, and the text between the candidates that follow the hint. The
# gap takes the name in the message.
_MISTAKES: Final = (
    (
        r'Referenced table "(.*)" not found!',
        'table "{}" is not in FROM',
        "FROM has ",
        " and ",
    ),
    # Macros of the same name hide some functions; see ``sql.size_guards``.
    (
        r'Macro "?(\w+)"?\(\) does not support the supplied arguments',
        "{}() does not take these arguments",
        "CAST them, or give other ones",
        "",
    ),
    (r'Could not find key "(.*)" in struct', 'the struct has no field "{}"', "it has ", ", "),
    (
        r'column "(.*)" must appear in the GROUP BY clause',
        'column "{}" must appear in GROUP BY or in an aggregate',
        "add it to GROUP BY, or use any_value({})",
        "",
    ),
    (
        "(Window) functions are not supported here",
        "a window function needs OVER",
        "write OVER (…) behind it, in SELECT, QUALIFY or ORDER BY",
        "",
    ),
    (
        "(WHERE) clause cannot contain aggregates",
        "WHERE cannot contain aggregates",
        "use HAVING",
        "",
    ),
)


def read_message(text: str) -> tuple[str, Mapping[str, Any]]:
    """A message of DuckDB without its error class, and its JSON document, empty if none."""
    text = re.split(r"\n\n(?:LINE |Stack Trace)", text, maxsplit=1)[0].strip()
    text = re.sub(r"^[A-Z][A-Za-z ]* Error: ", "", text)
    if text.startswith("{"):
        try:
            document = json.loads(text)
        except ValueError:
            return text, {}
        if isinstance(document, dict) and "exception_message" in document:
            return str(document["exception_message"]).strip(), document
    return text, {}


def programming_error(text: str, at: int | None) -> Error:
    """The error at the offset ``at`` of the user's SQL for a message of DuckDB's binder."""
    if found := re.match(_AMBIGUOUS, text):
        candidates = [each for each in re.findall(r"'([^']*)'", found[2]) if _shown(each)]
        return AmbiguousColumnError(found[1], candidates=candidates, offset=at)
    if (found := re.match(_NO_COLUMN, text)) and _shown(found[1]):
        return ColumnNotFoundError(found[1], similar=_candidates(text), offset=at)
    if found := re.match(_MISSING, text):
        near = _candidates(text)
        hint = f"did you mean {near[0]}()?" if near else ""
        return UnsupportedSqlError(f"the function {found[1]}()", hint=hint, offset=at)
    if found := re.match(_NO_FUNCTION, text):
        return placed(ProgrammingError, *_no_function(found[1], text), at)
    if text.startswith("Star expression") and not _shown(text):
        what = "PIVOT finds no value, and no other column is left"
        return placed(ProgrammingError, what, "list its values with IN (…)", at)
    for message, what, hint, between in _MISTAKES:
        if (found := re.match(message, text)) and _shown(found[1]):
            near = [f'"{each}"' for each in _candidates(text)]
            if between:
                hint = hint + between.join(near) if near else ""
            what, hint = (each.replace("{}", found[1]) for each in (what, hint))
            return placed(ProgrammingError, what, hint, at)
    return placed(ProgrammingError, *_shortened(text), at)


def data_error(text: str, at: int | None) -> Error:
    """The DataError at the offset ``at`` of the user's SQL for a value that DuckDB failed on."""
    if found := re.match(_DIVISION, text):
        expression = f" in {found[1]}" if found[1] and _shown(found[1]) else ""
        hint = "divide by nullif(…, 0), or write TRY(…), to get NULL"
        return placed(DataError, f"Division by zero{expression}", hint, at)
    if text.startswith("More than one row returned by a subquery"):
        what = "a subquery used as one value returned more than one row"
        return placed(DataError, what, "add LIMIT 1 or an aggregate", at)
    return placed(DataError, *_shortened(text), at)


def placed(kind: Callable[[str], Error], what: str, hint: str, at: int | None) -> Error:
    """An error of ``kind``; its position will be inserted before its hint."""
    error = kind(f"{what}; {hint}" if hint else what)
    error.sql_offset, error.hint_length = at, len(hint) + 2 if hint else 0
    return error


def _no_function(call: str, text: str) -> tuple[str, str]:
    name, _, rest = call.partition("(")
    arguments = _typed(rest.removesuffix(")"))
    name = name.strip('"')
    if re.fullmatch(_OPERATORS, name):
        listed = " and ".join(arguments.split(", ")) if arguments.count(", ") == 1 else arguments
        # + also adds dates and intervals.
        is_text = (
            name == "+"
            and "VARCHAR" in arguments
            and not re.search("INTERVAL|DATE|TIME", arguments)
        )
        hint = "CAST one side to another type"
        if is_text:
            hint = "|| joins texts; CAST one side to another type"
        return f"the operator {name} does not take {listed}", hint
    if not arguments:
        return f"{name}() needs arguments", ""
    given = arguments.count(", ") + 1
    forms = re.findall(rf"(?m)^\s*{re.escape(name)}\((.*?)(?:, /)?\) -> ", text)
    counts = sorted({each.count(",") + bool(each) for each in forms})
    if forms and given not in counts and not re.search(r"\.\.\.|[([]", "".join(forms) + rest[:-1]):
        takes = " or ".join(map(str, counts)) if counts != [0] else "none"
        plural = "s" * (given != 1)
        return f"{name}() does not take {given} argument{plural}", f"it takes {takes}"
    return f"{name}() does not take ({arguments})", "CAST an argument, or give other ones"


def _shortened(text: str) -> tuple[str, str]:
    text = re.sub(_SETTING, "", re.sub(_CANDIDATES, "", text)).strip()
    text = text.removesuffix("You might need to add explicit type casts.").strip()
    text = re.sub(_CAST_FROM, "", text) if re.search(_HIDDEN, text) else text
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not re.search(_HIDDEN, line)] or ["the engine refuses this"]
    first, *others = [_typed(line) for line in lines]
    return first.rstrip("!."), "; ".join(others)


def _typed(text: str) -> str:
    return re.sub(_TYPE, lambda found: _TYPES[found[0]], text)


def _candidates(text: str) -> list[str]:
    """The names that DuckDB suggests, without the engine's own."""
    listed = text.partition("\n")[2]
    return [each for each in re.findall(_NAME, listed) if _shown(each)][:3]


def _shown(name: str) -> bool:
    return re.search(_HIDDEN, name) is None
