"""Values as text for people, and two layouts: one column a line (``\\x``), and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from icesql.engine.values import json_of as json_of
from icesql.engine.values import text_of as whole_text
from icesql.errors import display_width as display_width
from icesql.errors import printable as printable
from icesql.frozen import Frozen
from icesql.repl.terminal import Writer, styled

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
