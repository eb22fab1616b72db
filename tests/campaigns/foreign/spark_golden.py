"""Spark's golden files: each statement with its schema and rows as Spark prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from tests.campaigns.foreign.answers import Answer
from tests.campaigns.foreign.verdicts import Failure

_ZONE = ZoneInfo("America/Los_Angeles")
_EPOCH = datetime(1970, 1, 1)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:E-?\d+)?(?![\w.])")


@dataclass(frozen=True)
class Golden:
    """A statement at a line of its file, the types of its columns, and what Spark printed."""

    line: int
    sql: str
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    output: str

    def answer(self) -> Answer | Failure:
        """The rows as texts, numbers of DOUBLE and FLOAT as numbers; a Failure for an error."""
        if not self.names:
            return Failure(RuntimeError(self.output.partition("\n")[0]))
        if any("interval" in kind for kind in self.kinds):
            return Failure(RuntimeError("intervals are printed by their units"))
        lines = self.output.split("\n") if self.output else []
        rows = [line.split("\t") for line in lines]
        if any(len(row) != len(self.kinds) for row in rows):
            # A value with a tab or a new line in it.
            return Failure(RuntimeError("the golden rows cannot be told apart"))
        return Answer(self.names, tuple(tuple(map(_read, self.kinds, row)) for row in rows))


def read_golden(path: Path) -> Iterator[Golden]:
    """The statements of one ``.sql.out`` file, in order."""
    text = path.read_text(encoding="utf-8", errors="replace")
    line = 1
    for block in text.split("-- !query\n"):
        sql, mark, rest = block.partition("\n-- !query schema\n")
        if mark:
            schema, _, output = rest.partition("\n-- !query output\n")
            names, kinds = _columns(schema.strip())
            yield Golden(line, sql, names, kinds, output.rstrip("\n"))
        line += block.count("\n") + 1


def as_spark_prints(answer: Answer, kinds: Sequence[str]) -> Answer:
    """The answer with its values as in a golden answer of these types."""
    rows = tuple(
        tuple(_read(kind, text_of(value)) for kind, value in zip(kinds, row, strict=False))
        + row[len(kinds) :]
        for row in answer.rows
    )
    return Answer(answer.names, rows)


def text_of(value: Any, nested: bool = False) -> str:
    """A value of an Answer as Spark's ``spark-sql`` prints it."""
    match value:
        case None:
            return "null" if nested else "NULL"
        case ("boolean", known):
            return "true" if known else "false"
        case ("float", known):
            special = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
            return special.get(str(known), repr(known))
        case ("date", int(days)):
            with_days = date(1970, 1, 1).toordinal() + days
            return str(date.fromordinal(with_days)) if with_days > 0 else f"date {days}"
        case ("timestamp" | "timestamptz" as kind, int(nanos)):
            return _moment(kind, nanos)
        case ("list", items):
            return "[" + ",".join(text_of(item, True) for item in items) + "]"
        case ("map", pairs):
            return "{" + ",".join(f"{text_of(k, True)}:{text_of(v, True)}" for k, v in pairs) + "}"
        case ("struct", parts):
            return "{" + ",".join(f'"{k}":{text_of(v, True)}' for k, v in parts) + "}"
        case Decimal():
            return f"{value:f}"
        case bytes():
            return value.decode("utf-8", "replace")
        case str():
            return f'"{value}"' if nested else value
    return str(value)


def _moment(kind: str, nanos: int) -> str:
    try:
        moment = _EPOCH + timedelta(microseconds=nanos // 1000)
        if kind == "timestamptz":
            moment = moment.replace(tzinfo=UTC).astimezone(_ZONE).replace(tzinfo=None)
    except OverflowError:
        return f"{kind} {nanos}"
    return str(moment).rstrip("0").rstrip(".") if moment.microsecond else str(moment)


def _read(kind: str, text: str) -> Any:
    if text == "NULL":
        return None
    if kind in ("double", "float") and text != "NaN":
        try:
            return float(text.replace("Infinity", "inf"))
        except ValueError:
            return text
    if "double" in kind or "float" in kind:
        return _NUMBER.sub(lambda found: f"{float(found[0]):.9g}", text)
    return text


def _columns(schema: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and types of ``struct<name:type,…>``; nothing of ``struct<>``."""
    inner = schema.removeprefix("struct<").removesuffix(">")
    parts, depth, start = [], 0, 0
    for at, sign in enumerate(inner):
        depth += sign in "<("
        depth -= sign in ">)" and (sign == ")" or inner[at - 1 : at] not in ("-", "="))
        if sign == "," and depth <= 0:
            parts.append(inner[start:at])
            start = at + 1
    if inner:
        parts.append(inner[start:])
    split = [part.rpartition(":") if "<" not in part else _split(part) for part in parts]
    return tuple(name for name, _, _ in split), tuple(kind for _, _, kind in split)


def _split(part: str) -> tuple[str, str, str]:
    """A column whose type has parts: its name ends where a nested type begins."""
    found = re.search(r":(?=(array|map|struct)<.*>$)", part)
    if found is None:
        return part.rpartition(":")
    return part[: found.start()], ":", part[found.end() :]
