"""Functions of text in Spark's spelling: letters map to letters, positions are the dialect's."""

from __future__ import annotations

import functools
import re
from typing import Final

from sqlglot import exp

from icesql.engine.spark.sql import regexps
from icesql.engine.spark.sql.kinds import (
    Rewrites,
    kind,
    kind_of_type,
    literal_integer,
    literal_text,
    refuse,
    refuse_rows,
    spelled,
    string,
)

# Code points that form one character together with the one before or after them.
_COMBINING: Final = (
    r"[\p{M}\r\x{200D}\x{0E33}\x{0EB3}\x{1100}-\x{11FF}\x{1F1E6}-\x{1F1FF}\x{1F3FB}-\x{1F3FF}]"
)


def _upper(node: exp.Upper) -> exp.Expr:
    """Letter by letter: Java makes SS of ß. Placeholders protect such letters from Java."""
    letters, aside, results = _many_lettered()
    return spelled(
        "TRANSLATE(UPPER(TRANSLATE({0}, {1}, {2})), {2}, {3})",
        node.this,
        string(letters),
        string(aside),
        string(results),
        like=node,
    )


@functools.cache
def _many_lettered() -> tuple[str, str, str]:
    """Letters with several capitals, private-use placeholders, and their single capitals."""
    letters = [chr(code) for code in range(0x80, 0x10000) if len(chr(code).upper()) > 1]
    results = [title if len(title := each.title()) == 1 else each for each in letters]
    results[letters.index("ß")] = "ẞ"
    aside = map(chr, range(0x10F000, 0x10F000 + len(letters)))
    return "".join(letters), "".join(aside), "".join(results)


def _substring(node: exp.Substring) -> exp.Expr:
    start, length = node.args.get("start"), node.args.get("length")
    if start is None:
        return node
    if length is None:
        # Far below zero Spark's arithmetic overflows.
        low = (
            start
            if literal_integer(start) is not None
            else spelled("GREATEST({0}, -1000000000 + 0 * {0})", start)
        )
        return spelled("SUBSTRING({0}, CAST({1} AS INT))", node.this, low, like=node)
    # Position 0 is before the text, and counts as one character of the length.
    forward = "SUBSTRING({0}, {1}, IF({1} = 0, {2} - 1, {2}))"
    literal = literal_integer(length)
    if literal is not None and literal >= 0:
        return spelled(forward, node.this, start, length, like=node)
    # A negative length selects the characters before the position.
    first = "IF({1} < 0, LENGTH({0}) + {1} + 1, {1})"
    begin = f"GREATEST({first} + {{2}}, 1)"
    return spelled(
        f"(CASE WHEN {{2}} >= 0 THEN {forward} WHEN {{2}} IS NULL OR {{1}} IS NULL THEN NULL"
        f" ELSE SUBSTRING({{0}}, CAST({begin} AS INT),"
        f" CAST(GREATEST({first} - {begin}, 0) AS INT)) END)",
        node.this,
        start,
        length,
        like=node,
    )


def _reverse(node: exp.Reverse) -> exp.Expr:
    """Refuse combined characters: only the local engine keeps several code points together."""
    if kind(node.this) != "text":
        raise refuse("reverse() of a value that is not text")
    return spelled(
        "IF({0} RLIKE {1}, {2}, REVERSE({0}))",
        node.this,
        string(_COMBINING),
        refuse_rows("reverse() of combined characters"),
        like=node,
    )


def _split_part(node: exp.SplitPart) -> exp.Expr:
    text, separator, part = node.this, node.args["delimiter"], node.args["part_index"]
    if not literal_text(separator):
        raise refuse("split_part() with an empty or computed separator")
    return spelled(
        "IF({2} = 0, IF({0} IS NULL, NULL, ''),"
        " SPLIT_PART({0}, {1}, CAST(IF({2} = 0, 1, {2}) AS INT)))",
        text,
        separator,
        part,
        like=node,
    )


def _split(node: exp.Split) -> exp.Expr:
    separator = literal_text(node.expression)
    if not separator:
        raise refuse("string_split() with an empty or computed separator")
    quoted = string("\\Q" + separator.replace("\\E", "\\E\\\\E\\Q") + "\\E")
    return spelled("SPLIT({0}, {1})", node.this, quoted, like=node)


# ------------------------------------------------------------------ casts of text

# Numbers that only one of DuckDB and Spark can read.
_OTHER_NUMBER: Final = r"(?i)\d_\d|^\s*[+-]?0[xb]|[0-9.][df]\s*$"
# Times that both read the same way; they differ in other texts of digits, and in these words.
_DAY: Final = r"^\s*\d{4}-\d{1,2}-\d{1,2}"
_CLOCK: Final = r"([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"
_ZONE: Final = r"\s*(Z|UTC|[+-]\d{2}:\d{2})?"
# For text with an offset, DuckDB gives a naive time in UTC, Spark the local time: same at offset 0.
_NO_OFFSET: Final = r"\s*(Z|UTC|[+-]00:00)?"
_OTHER_TIME: Final = (
    r"(?i)^\s*([+-]?\d{4,}|\d+[-/ ]\d|[+-]?(epoch|infinity|today|now|yesterday|tomorrow))"
)
_TIME_TYPES: Final = {
    "date": ("DATE", f"{_DAY}{_CLOCK}{_NO_OFFSET})?\\s*$"),
    "timestamp": ("TIMESTAMP_NTZ", f"{_DAY}{_CLOCK}{_NO_OFFSET})?\\s*$"),
    "timestamptz": ("TIMESTAMP_LTZ", f"{_DAY}{_CLOCK}{_ZONE})?\\s*$"),
}


def number_of_text(node: exp.Cast, word: str, type_name: str) -> exp.Expr:
    """CAST of text to a number; of an integer, 2.5 and 1e3 are accepted, too, and rounded."""
    text = "{0}"
    if kind_of_type(node.to) == "integer":
        text = f"ROUND({word}({{0}} AS DECIMAL(38,10)))"
    return spelled(
        f"IF({{0}} RLIKE {{1}}, {{2}}, {word}({text} AS {type_name}))",
        node.this,
        string(_OTHER_NUMBER),
        refuse_rows(f"a CAST of such text to {node.to.sql(dialect='duckdb')}"),
        like=node,
    )


def time_of_text(inner: exp.Expr, node: exp.Cast, word: str, target: str) -> exp.Expr:
    """CAST of text to a date or timestamp; literals that the engines read differently raise."""
    type_name, pattern = _TIME_TYPES[target]
    text = literal_text(inner)
    if text is not None:
        # Spark requires the minutes of an offset.
        offset = re.search(r"[+-]\d\d$", text)
        time = text[: offset.start()].rstrip() if offset else ""
        if re.search(r"\d:\d\d", time[len(time.rstrip("0123456789:.")) :]):
            text += ":00"
        if not re.search(pattern, text) and re.search(_OTHER_TIME, text):
            raise refuse(f"'{text}' as a {target}")
        return spelled(f"{word}({{0}} AS {type_name})", string(text), like=node)
    return spelled(
        f"(CASE WHEN {{0}} RLIKE {{1}} OR NOT {{0}} RLIKE {{2}} THEN {word}({{0}} AS {type_name})"
        f" WHEN {{0}} IS NOT NULL THEN {{3}} END)",
        inner,
        string(pattern),
        string(_OTHER_TIME),
        refuse_rows(f"a CAST of such text to a {target}"),
        like=node,
    )


TEXT_REWRITES: Final[Rewrites] = {
    exp.Upper: _upper,
    exp.Substring: _substring,
    exp.Reverse: _reverse,
    exp.SplitPart: _split_part,
    exp.Split: _split,
    exp.RegexpReplace: regexps.replaced,
    exp.RegexpExtract: regexps.extracted,
    exp.RegexpLike: regexps.matched,
    exp.RegexpFullMatch: regexps.fully_matched,
}
