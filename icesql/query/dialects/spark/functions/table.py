"""The function table of Spark's dialect, read from ``grammar/spark_functions.txt``.

A row is ``name(types) -> type = expression``: what Spark calls it, what it takes and gives, and the
same in DuckDB's spelling. The head of the file has the words.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from sqlglot import exp

from icesql.query.dialects.spark import types as t
from icesql.query.dialects.spark.types import SparkType
from icesql.query.dialects.templates import template
from icesql.sql.grammar import folder

_ROW: Final = re.compile(r"(\w+)\((.*?)\) -> (\S.*?) (:?=|@) (.*)")
_WORDS: Final = re.compile(r"[\w.]+|[<>,()]")
# Fewer conversions are better: each step of this row is a wider type.
_WIDENS: Final = (*t.INTEGRAL, "decimal", "float", "double")
_SHORT: Final = {"months": t.MONTHS.kind, "span": t.TIME_SPAN.kind, "ntz": t.NTZ.kind}


class Row(Struct, frozen=True):
    """One signature of a function.

    ``takes`` are patterns of types, the last of which repeats if ``repeats``. ``text`` is DuckDB's
    expression with ``$1`` for the first argument, or with ``built`` the name of what builds it.
    ``pruned``: the expression is read as a user's would be, so that conditions on it prune.
    ``kind`` is scalar, aggregate or window.
    """

    name: str
    takes: tuple[SparkType, ...]
    repeats: bool
    gives: SparkType
    text: str
    built: bool = False
    pruned: bool = False
    kind: str = "scalar"

    def tree(self, count: int) -> exp.Expr:
        """DuckDB's expression for ``count`` arguments, a fresh copy."""
        text = self.text
        if self.repeats:
            rest = ", ".join(f"${at}" for at in range(len(self.takes), count + 1))
            text = text.replace("$*", rest)
        return template(text, exact=not self.pruned)


class Match(Struct, frozen=True):
    """A row that takes the arguments: what each must become, and the type of the result."""

    row: Row
    takes: tuple[SparkType, ...]
    gives: SparkType


@functools.cache
def functions() -> dict[str, tuple[Row, ...]]:
    """Every row by its name in lower case, in the order of the file."""
    found: dict[str, list[Row]] = {}
    kind = "scalar"
    for line in (folder() / "spark_functions.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            kind = line.strip("[]")
        elif line and kind != "code" and not line.startswith("#"):
            for row in _rows(line, kind):
                found.setdefault(row.name, []).append(row)
    return {name: tuple(rows) for name, rows in found.items()}


def _rows(line: str, kind: str) -> list[Row]:
    parsed = _ROW.fullmatch(line)
    if parsed is None:
        raise ValueError(f"not a row of the function table: {line}")
    name, takes, gives, sign, text = parsed.groups()
    repeats = takes.endswith("...")
    patterns = _patterns(takes.removesuffix("..."))
    row = Row(name, patterns, repeats, _pattern(gives), text, sign == "@", sign == ":=", kind)
    return [row]


def _patterns(text: str) -> tuple[SparkType, ...]:
    words, found = _WORDS.findall(text), []
    while words:
        found.append(_read(words))
        if words and words[0] == ",":
            del words[0]
    return tuple(found)


def _pattern(text: str) -> SparkType:
    return _read(_WORDS.findall(text))


def _read(words: list[str]) -> SparkType:
    word = words.pop(0)
    kind = _SHORT.get(word, word)
    if not words or words[0] not in "<(":
        return SparkType(kind)
    closing = {"<": ">", "(": ")"}[words.pop(0)]
    if closing == ")":
        precision, _, scale, _ = words[:4]
        del words[:4]
        return SparkType(kind, int(precision), int(scale))
    names, parts = [], []
    while words[0] != closing:
        if kind == "struct":
            names.append(words.pop(0))
        parts.append(_read(words))
        if words[0] == ",":
            del words[0]
    del words[0]
    return SparkType(kind, parts=tuple(parts), names=tuple(names))


def resolve(rows: Sequence[Row], given: Sequence[SparkType]) -> Match | None:
    """The first row that takes these types as they are, else the first that can convert them."""
    for exact in (True, False):
        for row in rows:
            if (match := _match(row, given, exact)) is not None:
                return match
    return None


def takes_count(rows: Sequence[Row], count: int) -> bool:
    """Whether a function may have so many arguments."""
    return any(
        count == len(row.takes) or (row.repeats and count >= len(row.takes) - 1) for row in rows
    )


def _match(row: Row, given: Sequence[SparkType], exact: bool) -> Match | None:
    if not takes_count((row,), len(given)):
        return None
    takes = row.takes[: len(given)]
    takes += row.takes[-1:] * (len(given) - len(takes))
    bound: dict[str, SparkType] = {}
    if not all(_bind(p, each, bound, exact) for p, each in zip(takes, given, strict=True)):
        return None
    wanted = tuple(
        each if p.kind == "any" else _filled(p, bound, each)
        for p, each in zip(takes, given, strict=True)
    )
    return Match(row, wanted, _filled(row.gives, bound, None))


def _bind(pattern: SparkType, given: SparkType, bound: dict[str, SparkType], exact: bool) -> bool:
    """Whether a type fits a pattern; what its variables stand for is noted in ``bound``."""
    if pattern.kind == "any":
        return True
    if given.kind == "unknown":
        return False
    if pattern.kind.isupper():
        return _bind_variable(pattern.kind, given, bound, exact)
    if pattern.parts:
        if given.kind == "null":
            return not exact
        if given.kind != pattern.kind or len(given.parts) != len(pattern.parts):
            return False
        pairs = zip(pattern.parts, given.parts, strict=True)
        return all(_bind(inner, each, bound, exact) for inner, each in pairs)
    if given.kind == pattern.kind:
        return True
    return not exact and implicit(given, pattern) is not None


def _bind_variable(name: str, given: SparkType, bound: dict[str, SparkType], exact: bool) -> bool:
    if name == "N":
        given = t.DOUBLE if given.kind in ("string", "null") and not exact else given
        if given.kind not in t.NUMERIC:
            return False
    if name == "I":
        given = t.INT if given.kind == "null" and not exact else given
        if given.kind not in t.INTEGRAL:
            return False
    known = bound.get(name)
    found = given if known is None else t.common(known, given)
    if found is None or (exact and known is not None and known != given):
        return False
    bound[name] = found
    return True


def _filled(pattern: SparkType, bound: dict[str, SparkType], given: SparkType | None) -> SparkType:
    """A pattern with the types of its variables; ``decimal`` keeps the digits of ``given``."""
    if pattern.kind.isupper():
        return bound.get(pattern.kind, t.NULL)
    if pattern.parts:
        parts = tuple(_filled(each, bound, None) for each in pattern.parts)
        return SparkType(pattern.kind, parts=parts, names=pattern.names)
    if pattern.kind == "decimal" and not pattern.precision and given is not None:
        return implicit(given, pattern) or pattern
    return pattern


def implicit(given: SparkType, wanted: SparkType) -> SparkType | None:
    """What Spark converts an argument to where a function takes ``wanted``; None if it does not."""
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
