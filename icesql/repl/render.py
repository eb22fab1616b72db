"""Lay rows out for people, as a table or in markdown, written as the rows arrive.

In: column names and an iterable of DB-API rows. Out: text on a stream. Imports nothing slow,
because ``icesql -c`` uses it too.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, islice
from typing import Any, Final

from msgspec import Struct

from icesql.interval import Interval
from icesql.repl.terminal import Writer, styled

Row = Sequence[Any]

# Widths of a table come from this many rows; a longer result keeps them, so memory stays bounded.
ROWS_MEASURED: Final = 1000
_NARROWEST: Final = 6
_WIDEST_RULE: Final = 80
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


class Style(Struct, frozen=True):
    """How a table is laid out; ``width`` is the terminal's in cells, None = never cut."""

    width: int | None = None
    colour: bool = False


# ------------------------------------------------------------------ values


def text_of(value: Any) -> str:
    """One value as people read it; NULL is ``NULL``, nested values are JSON."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return repr(value)
        case Decimal():
            return format(value, "f")
        case bytes() | bytearray() | memoryview():
            return "0x" + bytes(value).hex()
        case datetime():
            return value.isoformat(" ")
        case timedelta():
            return str(Interval.of(value))
        case list() | tuple() | dict():
            return json_of(value)
        case _:
            return str(value)


def json_of(value: Any) -> str:
    """One value as JSON text: exact decimals as numbers, NaN and infinities as strings.

    Times are ISO 8601 strings, bytes lower-case hex, a struct is an object, a map a list of
    [key, value] pairs.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            if value != value:
                return '"NaN"'
            if value in (float("inf"), float("-inf")):
                return '"Infinity"' if value > 0 else '"-Infinity"'
            return repr(value)
        case Decimal():
            return format(value, "f") if value.is_finite() else f'"{value}"'
        case bytes() | bytearray() | memoryview():
            return f'"{bytes(value).hex()}"'
        case date() | time():
            return f'"{value.isoformat()}"'
        case timedelta():
            return json.dumps(str(Interval.of(value)))
        case dict():
            pairs = (
                f"{json.dumps(str(key), ensure_ascii=False)}: {json_of(item)}"
                for key, item in value.items()
            )
            return "{" + ", ".join(pairs) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(json_of, value)) + "]"
        case _:
            return json.dumps(str(value), ensure_ascii=False)


# ------------------------------------------------------------------ formats


def write_rows(
    out: Writer, output_format: str, columns: Sequence[str], rows: Iterable[Row], style: Style
) -> int:
    """Write every row in a layout and return how many there were.

    ``output_format`` is a key of ``LAYOUTS``. Rows are put out as they come.
    """
    counted = _Counted(rows)
    LAYOUTS[output_format](out, columns, counted, style)
    return counted.count


def write_result(
    out: Writer,
    output_format: str,
    description: Sequence[Sequence[Any]],
    rows: Iterable[Row],
    style: Style,
) -> int:
    """As ``write_rows``, of a DB-API ``description``; a document is written as it is.

    EXPLAIN (FORMAT json) and (FORMAT html) give one: a single column of type json or html.
    """
    if [column[1] for column in description] in (["json"], ["html"]):
        counted = _Counted(rows)
        for (document,) in counted:
            out.write(f"{document}\n")
        return counted.count
    return write_rows(out, output_format, [column[0] for column in description], rows, style)


class _Counted:
    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows, self.count = rows, 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.count += 1
            yield row


def _write_markdown(out: Writer, columns: Sequence[str], rows: Iterable[Row], style: Style) -> None:
    rows = iter(rows)
    measured = list(islice(rows, 1))
    right = _right_aligned(measured, len(columns))
    out.write("| " + " | ".join(map(_markdown_cell, columns)) + " |\n")
    out.write("|" + "|".join("---:" if is_right else "---" for is_right in right) + "|\n")
    for row in chain(measured, rows):
        out.write("| " + " | ".join(_markdown_cell(text_of(value)) for value in row) + " |\n")


def _markdown_cell(text: str) -> str:
    return _printable(text).replace("|", "\\|")


# ------------------------------------------------------------------ table


def _write_table(out: Writer, columns: Sequence[str], rows: Iterable[Row], style: Style) -> None:
    write = styled(out)
    rows = iter(rows)
    measured = list(islice(rows, ROWS_MEASURED))
    right = _right_aligned(measured, len(columns))
    headings = [_printable(column) for column in columns]
    cells = [[_printable(text_of(value)) for value in row] for row in measured]
    widths = [
        max(map(display_width, (heading, *(row[index] for row in cells))))
        for index, heading in enumerate(headings)
    ]
    cut = False
    # A single column (EXPLAIN has one) loses nothing by wrapping, and much by being cut.
    if style.width is not None and len(columns) > 1:
        widths, cut = _fitted(widths, style.width)
    shown = len(widths)
    more = " …" if shown < len(columns) else ""

    def line(texts: Sequence[str], values: Row | None) -> str:
        parts = []
        for index, width in enumerate(widths):
            text = _shortened(texts[index], width) if cut else texts[index]
            padding = " " * (width - display_width(text))
            if style.colour and values is not None and values[index] is None:
                text = f"{_DIM}{text}{_PLAIN}"
            parts.append(padding + text if right[index] else text + padding)
        return (" " + " | ".join(parts)).rstrip() + more + "\n"

    write(line(headings, None))
    rule = "-" + "-+-".join("-" * width for width in widths)
    write((rule if len(columns) > 1 else rule[:_WIDEST_RULE]) + "\n")
    for texts, row in zip(cells, measured, strict=True):
        write(line(texts, row))
    for row in rows:
        write(line([_printable(text_of(value)) for value in row], row))


def _fitted(widths: list[int], room: int) -> tuple[list[int], bool]:
    """Widths that fit into ``room`` cells, and whether anything is cut.

    The widest columns give way first; columns that do not fit at their narrowest fall off the end.
    """
    count = len(widths)
    while count > 1 and _line_width([min(width, _NARROWEST) for width in widths[:count]]) > room:
        count -= 1
        room -= 2 if count == len(widths) - 1 else 0  # the mark of what is left out
    fitted = widths[:count]
    while (over := _line_width(fitted) - room) > 0 and max(fitted) > _NARROWEST:
        widest = max(fitted)
        floor = max((width for width in fitted if width < widest), default=_NARROWEST)
        fitted[fitted.index(widest)] -= min(over, max(widest - max(floor, _NARROWEST), 1))
    return fitted, fitted != widths


def _line_width(widths: Sequence[int]) -> int:
    return sum(widths) + 3 * len(widths) - 1


def _right_aligned(rows: Sequence[Row], count: int) -> list[bool]:
    """Per column: whether its values are numbers (known from the rows seen first)."""
    right = []
    for index in range(count):
        values = [row[index] for row in rows if row[index] is not None]
        right.append(
            bool(values)
            and all(isinstance(value, int | float | Decimal) for value in values)
            and not any(isinstance(value, bool) for value in values)
        )
    return right


def display_width(text: str) -> int:
    """How many terminal cells the text takes; East Asian wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )


def _shortened(text: str, width: int) -> str:
    if display_width(text) <= width:
        return text
    kept, used = [], 1
    for character in text:
        used += display_width(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept) + "…"


def _printable(text: str) -> str:
    """The text on one line; control characters are spelled out, so data cannot drive a terminal."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character == "\u3000"
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


LAYOUTS: Final[Mapping[str, Callable[[Writer, Sequence[str], Iterable[Row], Style], None]]] = {
    "table": _write_table,
    "markdown": _write_markdown,
}


# ------------------------------------------------------------------ lines beside a result


def row_line(count: int, seconds: float | None) -> str:
    """How many rows there were and, if wanted, how long they took."""
    rows = "1 row" if count == 1 else f"{count:,} rows"
    return f"({rows})" if seconds is None else f"({rows}, {seconds_text(seconds)})"


def seconds_text(seconds: float) -> str:
    """A duration as people say it: ``12 ms``, ``1.25 s``."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
