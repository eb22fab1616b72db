"""Two more layouts of rows for people: one column a line (``\\x``), and a table in HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from icesql.repl.cells import Style, display_width, printable, shortened, text_of
from icesql.repl.terminal import Writer, styled

DIM, PLAIN = "\x1b[2m", "\x1b[0m"


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
