"""A result as HTML for notebooks: its first rows, the types, and the scans.

All text from tables and queries, including column names, is escaped.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

from icesql.engine.values import text_of

MOST_ROWS: Final = 20
_MOST_COLUMNS: Final = 40
_LONGEST: Final = 300
_NUMBERS: Final = frozenset(
    {"tinyint", "smallint", "integer", "bigint", "ubigint", "hugeint", "float", "double", "decimal"}
)


def page(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Any]] | None,
    lines: Sequence[str],
) -> str:
    """The HTML; ``columns`` are names and types, ``rows`` is None if they were fetched already.

    At most ``MOST_ROWS`` rows are shown. ``lines`` are shown below the table.
    """
    shown = columns[:_MOST_COLUMNS]
    aligned = [" style='text-align:right'" if _is_number(kind) else "" for _, kind in shown]
    heads = "".join(
        f"<th{side}>{said(name)}<br><small style='font-weight:normal'>{said(kind)}</small></th>"
        for (name, kind), side in zip(shown, aligned, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{side}>{_cell(value)}</td>" for value, side in zip(row, aligned, strict=False)
        )
        + "</tr>"
        for row in (rows or ())[:MOST_ROWS]
    )
    if rows is None:
        facts = ["its rows were fetched already"]
    elif len(rows) > MOST_ROWS:
        facts = [f"the first {MOST_ROWS} rows; there are more"]
    else:
        facts = ["1 row" if len(rows) == 1 else f"{len(rows)} rows"]
    if len(columns) > len(shown):
        facts.append(f"{len(columns) - len(shown)} more columns")
    notes = "".join(f"<br>{said(line)}" for line in lines)
    return (
        f"<div class='icesql'><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        f"<small>{' · '.join(facts)}{notes}</small></div>"
    )


def _cell(value: Any) -> str:
    if value is None:
        return "<em style='opacity:.5'>NULL</em>"
    if isinstance(value, bytes | bytearray) and len(value) > _LONGEST:
        value = value[:_LONGEST]  # its text is twice as long, and truncated below
    return said(text_of(value))


def said(text: str) -> str:
    """A text truncated and escaped for HTML; invisible characters become ``\\u`` escapes."""
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return html.escape("".join(map(_visible, cut)))


def _visible(sign: str) -> str:
    """Escape characters that are invisible or change the direction of text."""
    if sign in "\n\t" or unicodedata.category(sign) not in ("Cc", "Cf", "Cs"):
        return sign
    return f"\\u{ord(sign):04x}"


def _is_number(kind: str) -> bool:
    return kind.partition("(")[0] in _NUMBERS
