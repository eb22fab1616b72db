"""Lay out rows and values for people: a table, markdown, one column a line (``\\x``), HTML.

In: column names and an iterable of DB-API rows. Out: text on a stream, written as the rows arrive.
Imports nothing slow, because ``icesql -c`` uses it too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.values import json_of as json_of
from icesql.engine.values import text_of as whole_text
from icesql.errors import display_width as display_width
from icesql.errors import printable as printable
from icesql.frozen import Frozen
from icesql.iceberg.bounds import shortest_single
from icesql.repl.terminal import Writer, styled

if TYPE_CHECKING:
    from icesql.engine.result_schema import ResultType


# ------------------------------------------------------------------ one column a line, and HTML


DIM, PLAIN = "\x1b[2m", "\x1b[0m"


class Style(Frozen):
    """The layout of rows; ``width`` is the terminal's in cells, None = never cut."""

    width: int | None = None
    colour: bool = False


def text_of(value: Any) -> str:
    """One value as text for people; a time without digits and minutes that are zero."""
    if type(value) is not datetime:
        return whole_text(value)
    exact = "auto" if value.microsecond % 1000 or not value.microsecond else "milliseconds"
    text = value.isoformat(" ", exact)
    return text.removesuffix(":00") if value.tzinfo is not None else text


def shortened(text: str, width: int) -> str:
    """The text in at most ``width`` cells, with … at its end where it is cut."""
    if display_width(text) <= width:
        return text
    kept, used = [], 1
    for character in text:
        used += display_width(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept) + "…"


def write_expanded(
    out: Writer, columns: Sequence[str], rows: Iterable[Sequence[Any]], style: Style
) -> None:
    """Each row as a block of ``column | value`` lines; lines are cut only at the screen's width."""
    write = styled(out)
    names = [printable(column) for column in columns]
    size = max(map(display_width, names), default=0)
    if style.width is not None and size > style.width // 2:
        size = style.width // 2
        names = [shortened(name, size) for name in names]
    count = 0
    for count, row in enumerate(rows, 1):
        rule = f"-[ row {count:,} ]"
        write(rule + "-" * max(size + 3 - len(rule), 3) + "\n")
        for name, value in zip(names, row, strict=True):
            text = printable(text_of(value))
            if style.colour and value is None:
                text = f"{DIM}{text}{PLAIN}"
            write(f"{name}{' ' * (size - display_width(name))} | {text}\n")
    if not count:
        write("(no rows)\n")


def write_html(
    out: Writer, columns: Sequence[str], rows: Iterable[Sequence[Any]], style: Style
) -> None:
    """One ``<table>``; NULL is an empty cell of class ``null``, numbers have class ``number``."""
    out.write("<table>\n<thead><tr>")
    out.write("".join(f"<th>{_escaped(column)}</th>" for column in columns))
    out.write("</tr></thead>\n<tbody>\n")
    for row in rows:
        out.write("<tr>" + "".join(map(_html_cell, row)) + "</tr>\n")
    out.write("</tbody>\n</table>\n")


def _html_cell(value: Any) -> str:
    if value is None:
        return '<td class="null"></td>'
    text = _escaped(text_of(value))
    if isinstance(value, bool) or not hasattr(value, "__neg__") or hasattr(value, "days"):
        return f"<td>{text}</td>"
    return f'<td class="number">{text}</td>'


def _escaped(text: str) -> str:
    import html  # it holds a large table, and few results are pages

    return html.escape(printable(text))


# ------------------------------------------------------------------ names of columns


# Names of columns above narrow values: on up to three lines, broken where a word ends.

_MOST_LINES: Final = 3
# A word and the signs behind it: rewritten_ data_ files_ count.
_PIECE: Final = re.compile(r"[^\s_.(-]*[\s_.(-]*")


def heading_lines(headings: Sequence[str], widths: Sequence[int]) -> Iterator[list[str]]:
    """The lines of the headings above columns so wide.

    A heading of fewer lines than others is aligned to the bottom. One that does not fit is whole on
    its last line, for the caller to cut.
    """
    folded = [_folded(heading, width) for heading, width in zip(headings, widths, strict=True)]
    count = max(map(len, folded), default=1)
    for number in range(count):
        yield [lines[number - count] if number >= count - len(lines) else "" for lines in folded]


def least_heading_width(heading: str) -> int:
    """The narrowest column that can show the whole heading."""
    pieces = list(map(display_width, _pieces(heading)))
    for width in range(max(pieces, default=1), sum(pieces)):
        if len(_lines(heading, width)) <= _MOST_LINES:
            return width
    return display_width(heading)


def _folded(heading: str, width: int) -> list[str]:
    if display_width(heading) <= width:
        return [heading]
    lines = _lines(heading, width)
    fits = len(lines) <= _MOST_LINES and all(display_width(line) <= width for line in lines)
    return lines if fits else [heading]


def _lines(heading: str, width: int) -> list[str]:
    lines = [""]
    for piece in _pieces(heading):
        if lines[-1] and display_width(lines[-1] + piece.rstrip()) > width:
            lines.append(piece)
        else:
            lines[-1] += piece
    return [line.rstrip() for line in lines]


def _pieces(heading: str) -> list[str]:
    return [piece for piece in _PIECE.findall(heading) if piece] or [heading]


Row = Sequence[Any]

# Widths of a table come from this many rows; a longer result keeps them, so memory stays bounded.
ROWS_MEASURED: Final = 1000
_NARROWEST: Final = 6
_READABLE: Final = 20  # cells of a long text while others need room
_SHORT: Final = 12  # the same, where headings would be cut
_WIDEST_RULE: Final = 80
# The layout of results that are documents, which no one can choose.
DOCUMENT: Final = "document"


# ------------------------------------------------------------------ formats


def write_rows(
    out: Writer, output_format: str, columns: Sequence[str], rows: Iterable[Row], style: Style
) -> int:
    """Write every row in a layout and return how many there were.

    ``output_format`` is a key of ``LAYOUTS``. Rows are put out as they come.
    """
    counted = Counted(rows)
    LAYOUTS[output_format](out, columns, counted, style)
    return counted.count


def is_document(description: Sequence[Sequence[Any]] | None) -> bool:
    """Whether a result is one document, as EXPLAIN (FORMAT json) and (FORMAT html) give it.

    It has a single column of type json or html, and is written as it is.
    """
    return [column[1] for column in description or ()] in (["json"], ["html"])


class Counted:
    """Counts the rows that pass through it."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows, self.count = rows, 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.count += 1
            yield row


def _write_document(out: Writer, columns: Sequence[str], rows: Iterable[Row], style: Style) -> None:
    for (document,) in rows:
        out.write(f"{document}\n")


def _write_markdown(out: Writer, columns: Sequence[str], rows: Iterable[Row], style: Style) -> None:
    rows = iter(rows)
    measured = list(islice(rows, 1))
    right = _right_aligned(measured, len(columns))
    out.write("| " + " | ".join(map(_markdown_cell, columns)) + " |\n")
    out.write("|" + "|".join("---:" if is_right else "---" for is_right in right) + "|\n")
    for row in chain(measured, rows):
        out.write("| " + " | ".join(_markdown_cell(text_of(value)) for value in row) + " |\n")


def _markdown_cell(text: str) -> str:
    # Data must be read as text: it must begin no cell, and no tag of HTML.
    return printable(text).replace("|", "\\|").replace("<", "\\<")


# ------------------------------------------------------------------ table


def _write_table(out: Writer, columns: Sequence[str], rows: Iterable[Row], style: Style) -> None:
    write = styled(out)
    rows = iter(rows)
    measured = list(islice(rows, ROWS_MEASURED))
    right = _right_aligned(measured, len(columns))
    headings, cells, widths = _texts(columns, measured)
    cut = False
    # A single column, as of EXPLAIN, is wrapped by the terminal rather than cut.
    if style.width is not None and len(columns) > 1:
        fitted = _fitted(widths, _least_widths(headings, cells, measured), style.width)
        widths, cut = fitted, fitted != widths
    shown = len(widths)
    more = " …" if shown < len(columns) else ""

    def line(texts: Sequence[str], values: Row | None) -> str:
        parts = []
        for index, width in enumerate(widths):
            text = shortened(texts[index], width) if cut else texts[index]
            padding = " " * (width - display_width(text))
            if style.colour and values is not None and values[index] is None:
                text = f"{DIM}{text}{PLAIN}"
            parts.append(padding + text if right[index] else text + padding)
        return (" " + " | ".join(parts)).rstrip() + more + "\n"

    heads: Iterable[Sequence[str]] = [headings]
    if cut:
        heads = heading_lines(headings[:shown], widths)
    for head in heads:
        write(line(head, None))
    rule = "-" + "-+-".join("-" * width for width in widths)
    write((rule if len(columns) > 1 else rule[:_WIDEST_RULE]) + "\n")
    for texts, row in zip(cells, measured, strict=True):
        write(line(texts, row))
    for row in rows:
        write(line([printable(text_of(value)) for value in row], row))


def _texts(
    columns: Sequence[str], rows: Sequence[Row]
) -> tuple[list[str], list[list[str]], list[int]]:
    """The headings and cells as texts, and the widths of the columns."""
    headings = [printable(column) for column in columns]
    cells = [[printable(text_of(value)) for value in row] for row in rows]
    widths = [
        max(map(display_width, (heading, *(row[index] for row in cells))))
        for index, heading in enumerate(headings)
    ]
    return headings, cells, widths


def table_room(columns: Sequence[str], rows: Sequence[Row], width: int) -> bool:
    """Whether a table of these rows fits without leaving out columns at the end."""
    headings, cells, widths = _texts(columns, rows)
    least = _least_widths(headings, cells, rows)
    return len(_fitted(widths, least, width)) == len(columns)


def _fitted(widths: list[int], stages: Sequence[Sequence[int]], room: int) -> list[int]:
    """Widths that fit into ``room`` cells; columns without room at the end are left out.

    ``stages`` are lists of least widths: a later one is used only if the earlier ones leave no room
    for all columns.
    """
    for count in range(len(widths), 0, -1):
        left = room - (2 if count < len(widths) else 0)  # the mark of what is left out
        fitted = widths[:count]
        for least in stages:
            fitted = _lowered(fitted, least, left)
            if _line_width(fitted) <= left:
                return fitted
    return [max(room - 2, 1)]


def _lowered(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Shrink the widest columns first, none below its minimum."""
    lowered = list(widths)
    while (over := _line_width(lowered) - room) > 0:
        givers = [i for i, width in enumerate(lowered) if width > least[i]]
        if not givers:
            break
        widest = max(givers, key=lambda i: (lowered[i], i))
        others = [lowered[i] for i in givers if i != widest]
        floor = max(least[widest], max(others, default=0) - 1)
        lowered[widest] -= max(1, min(over, lowered[widest] - floor))
    return lowered


def _least_widths(
    headings: Sequence[str], cells: Sequence[Sequence[str]], rows: Sequence[Row]
) -> list[list[int]]:
    """The least widths of the columns, as the ``stages`` of ``_fitted``.

    Long texts shrink first, then headings above narrow values go on several lines and are cut,
    then every text shrinks, the first column last. Numbers and times stay whole: half of an id
    would be another id.
    """

    columns = []
    for index, heading in enumerate(headings):
        size = max((display_width(row[index]) for row in cells), default=0)
        natural = max(size, display_width(heading))
        long = any(isinstance(row[index], str | bytes | list | dict | tuple) for row in rows)
        narrow, least = min(natural, _NARROWEST), min(size, _READABLE) if long else size
        whole = min(natural, _READABLE) if long else natural
        head = least_heading_width(heading)
        folded = max(least, head)
        short = max(min(least, _SHORT) if long else least, head)
        values = whole if long else max(size, narrow)
        texts = narrow if long and index else values
        names = narrow if long else values
        columns.append((whole, folded, short, values, texts, names))
    return list(map(list, zip(*columns, strict=True)))


def _line_width(widths: Sequence[int]) -> int:
    return sum(widths) + 3 * len(widths) - 1


def _right_aligned(rows: Sequence[Row], count: int) -> list[bool]:
    """Per column: whether its values are numbers (known from the rows seen first)."""
    right = []
    for index in range(count):
        values = [row[index] for row in rows if row[index] is not None]
        right.append(bool(values) and all(map(_is_number, values)))
    return right


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


LAYOUTS: Final[Mapping[str, Callable[[Writer, Sequence[str], Iterable[Row], Style], None]]] = {
    "table": _write_table,
    "markdown": _write_markdown,
    "expanded": write_expanded,
    "html": write_html,
    DOCUMENT: _write_document,
}


# ------------------------------------------------------------------ lines beside a result


def row_line(count: int, seconds: float | None) -> str:
    """The number of rows and, if wanted, their time."""
    rows = "1 row" if count == 1 else f"{count:,} rows"
    return f"({rows})" if seconds is None else f"({rows}, {seconds_text(seconds)})"


def seconds_text(seconds: float) -> str:
    """A duration in a readable unit: ``12 ms``, ``1.25 s``."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


# ------------------------------------------------------------------ FLOAT values
# A row has Python's floats, which are doubles. Each value of a FLOAT column becomes the double
# whose shortest text is the shortest text of the float: 0.1, not 0.10000000149011612.


def as_written(
    rows: Iterable[Sequence[Any]], types: Sequence[ResultType]
) -> Iterable[Sequence[Any]]:
    """``rows`` of columns of these types, FLOAT values inside of others included."""
    change = [(at, each) for at, each in enumerate(types) if _has_float(each)]
    return _changed(rows, change) if change else rows


def _changed(
    rows: Iterable[Sequence[Any]], change: Sequence[tuple[int, ResultType]]
) -> Iterable[Sequence[Any]]:
    for row in rows:
        cells = list(row)
        for at, declared in change:
            cells[at] = _written(cells[at], declared)
        yield cells


def _has_float(declared: ResultType) -> bool:
    return declared.kind == "float" or any(_has_float(child) for _, child in declared.children)


def _written(value: Any, declared: ResultType) -> Any:
    if value is None:
        return None
    if declared.kind == "float":
        return shortest_single(value)
    inner = [child for _, child in declared.children]
    match declared.kind:
        case "list":
            return [_written(each, inner[0]) for each in value]
        case "map":
            return [tuple(map(_written, pair, inner)) for pair in value]
        case "tuple":
            return tuple(map(_written, value, inner))
        case "struct":
            return dict(zip(value, map(_written, value.values(), inner), strict=True))
        case "union" if isinstance(value, float):
            # The member of the union that a value came from is no longer known.
            if _has_float(declared) and not any(
                child.kind == "double" or child.is_nested for child in inner
            ):
                return shortest_single(value)
    return value
