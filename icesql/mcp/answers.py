"""What a tool answers: a text for the model to read, and the same as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from icesql.dbapi.cursor import Cursor
from icesql.dbapi.table_snapshot import TableSnapshot
from icesql.repl.cells import Style, json_of
from icesql.repl.render import write_rows

# A value that is longer is cut, in the text and in JSON: one cell must not fill a context.
LONGEST_VALUE: Final = 2_000
# Nor many rows of many cells: rows behind so many characters are left out.
MOST_TEXT: Final = 200_000


class Answer(Struct, frozen=True):
    """``text`` and ``data`` say the same; ``data`` holds JSON values alone."""

    text: str
    data: dict[str, Any]


class Rows(Struct, frozen=True):
    """The first rows of a result; ``more`` whether there are others."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    more: bool


def first_rows(cursor: Cursor, most: int) -> Rows:
    """At most ``most`` rows of a result."""
    description = cursor.description or []
    rows = cursor.fetchmany(most + 1)
    return Rows(
        tuple(column[0] for column in description),
        tuple(column[1] for column in description),
        rows[:most],
        len(rows) > most,
    )


def rows_answer(rows: Rows, snapshots: Mapping[str, Sequence[TableSnapshot]]) -> Answer:
    """Rows as a table and as JSON, with the snapshots that they were read from."""
    kept = _within(rows.rows)
    lines = [table_text(rows.columns, rows.rows[:kept])]
    if kept < len(rows.rows):
        lines.append(f"(the first {kept:,} rows, cut at {MOST_TEXT:,} characters; there are more: "
                     "ask for fewer columns)")  # fmt: skip
    elif rows.more:
        lines.append(f"(the first {kept:,} rows; there are more)")
    read = snapshots_json(snapshots)
    lines += _snapshot_lines(read)
    data = {
        "columns": [
            {"name": name, "type": type_}
            for name, type_ in zip(rows.columns, rows.types, strict=True)
        ],
        "rows": [[json.loads(_short(json_of(value))) for value in row] for row in rows.rows[:kept]],
        "more_rows": rows.more or kept < len(rows.rows),
        "snapshots": read,
    }
    return Answer("\n".join(lines), data)


def table_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows in columns of equal width, long values cut."""
    out = io.StringIO()
    write_rows(out, "table", columns, [[_cut(value) for value in row] for row in rows], Style())
    return out.getvalue().rstrip("\n")


def snapshots_json(
    snapshots: Mapping[str, Sequence[TableSnapshot]],
) -> list[dict[str, Any]]:
    """Which snapshots a statement read; ids as text, which no reader of JSON rounds."""
    return [
        {
            "table": table,
            "snapshot_id": None if read.id is None else str(read.id),
            "ref": read.ref,
            "committed_at": read.committed_at.isoformat() if read.committed_at else None,
        }
        for table, all_read in snapshots.items()
        for read in all_read
    ]


def _snapshot_lines(read: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"read {each['table']} at snapshot {each['snapshot_id']}"
        f" (repeat with VERSION AS OF {each['snapshot_id']})"
        for each in read
        if each["snapshot_id"] is not None
    ]


def _within(rows: Sequence[Sequence[Any]]) -> int:
    """How many rows there is room for, at least one."""
    room = MOST_TEXT
    for number, row in enumerate(rows):
        room -= sum(min(len(json_of(value)), LONGEST_VALUE) for value in row)
        if room < 0:
            return max(number, 1)
    return len(rows)


def _cut(value: Any) -> Any:
    if isinstance(value, list | tuple | dict):
        value = json_of(value)
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        return value[:LONGEST_VALUE] + "…"
    if isinstance(value, bytes) and len(value) > LONGEST_VALUE:
        return value[:LONGEST_VALUE]
    return value


def _short(text: str) -> str:
    """JSON of a value, or of a text with its beginning where that is long."""
    if len(text) <= LONGEST_VALUE * 6:
        return text
    return json.dumps(text[:LONGEST_VALUE] + "…")
