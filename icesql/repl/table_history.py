"""The history of tables: drawn as a graph, and read in the past by the whole session (``\\at``)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from icesql.config import time_zone
from icesql.errors import Error, ProgrammingError, TableNotFoundError, UnsupportedSqlError, nearest
from icesql.frozen import Frozen
from icesql.iceberg.metadata.json_fields import whole_number
from icesql.quoting import literal
from icesql.repl.terminal import one_line

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection
    from icesql.repl.shell import Shell


# ------------------------------------------------------------------ the graph
# One column a branch, the newest snapshot on top; ids are never cut.


_CURRENT, _LIVE, _GONE = "●", "○", "✗"
_HERE = "*"  # where the mark of a snapshot comes
_ROWS: Final = (("added-records", "+"), ("deleted-records", "-"))
_AGES: Final = ((86400 * 365, "y"), (86400 * 30, "mo"), (86400, "d"), (3600, "h"), (60, "min"))


class Commit(Frozen):
    """A snapshot; ``committed_at`` has a zone, ``summary`` holds counts as texts."""

    snapshot_id: int
    parent_id: int | None
    committed_at: datetime
    operation: str | None
    summary: Mapping[str, str]


class Ref(Frozen):
    """A branch or tag."""

    name: str
    snapshot_id: int
    is_tag: bool


def history_graph(
    commits: Sequence[Commit],
    refs: Sequence[Ref],
    *,
    now: datetime,
    width: int = 110,
) -> Iterator[str]:
    """Lines of the graph, newest first.

    ``●`` is a head of a branch, ``○`` another snapshot that a branch or tag still reaches, ``✗``
    one that no ref reaches: it was rolled back, staged, or its branch dropped. Refs follow their
    snapshot, on a separate line if ``width`` cells are too few.
    """
    by_id = {each.snapshot_id: each for each in commits}
    reached = _reached(by_id, refs)
    heads = {each.snapshot_id for each in refs if not each.is_tag}
    # Clocks of writers differ: a child comes before its parent whatever their times.
    ordered = _children_first(by_id)
    texts = {each.snapshot_id: _words(each, now) for each in ordered}
    pad = [max((len(row[i]) for row in texts.values()), default=0) for i in range(5)]
    drawn = [
        (commit, *lanes)
        for commit, lanes in zip(ordered, _lanes(ordered, by_id, refs), strict=True)
    ]
    named: dict[int, list[str]] = {}
    for ref in refs:
        label = f"{'tag' if ref.is_tag else 'branch'} {ref.name}"
        named.setdefault(ref.snapshot_id, []).append(label)
    room = max((len(cells) for _, cells, _ in drawn), default=0)
    for commit, cells, rail in drawn:
        number = commit.snapshot_id
        mark = _CURRENT if number in heads else _LIVE if number in reached else _GONE
        words = "  ".join(
            text.rjust(size) if i in (0, 1, 4) else text.ljust(size)
            for i, (text, size) in enumerate(zip(texts[number], pad, strict=True))
        ).rstrip()
        notes = list(named.get(number, ()))
        if number not in reached:
            notes.append("rolled back or staged")
        line = f"{cells.replace(_HERE, mark).ljust(room)}  {words}"
        yield from _with_notes(line, rail.ljust(room), notes, width)


def _lanes(
    ordered: Sequence[Commit], by_id: Mapping[int, Commit], refs: Sequence[Ref]
) -> Iterator[tuple[str, str]]:
    """The columns beside each snapshot, and those between it and the next one.

    main is in the first one. A column holds the snapshot that its line leads to.
    """
    main = next((each.snapshot_id for each in refs if each.name == "main"), None)
    lanes: list[int | None] = [main if main in by_id else None]
    begun = False  # the line of main
    for commit in ordered:
        number = commit.snapshot_id
        column = lanes.index(number) if number in lanes else _free(lanes, 0 if begun else 1)
        begun = begun or column == 0
        joined = [i for i, each in enumerate(lanes) if each == number and i != column]
        last = max(joined, default=column)
        cells = ""
        for i, lane in enumerate(lanes):
            inside = column < i <= last
            if i == column:
                cell = _HERE
            elif i in joined:
                cell = "┘" if i == last else "┴"
            elif lane is not None and (i or begun):
                cell = "┼" if inside else "│"
            else:
                cell = "─" if inside else " "
            cells += cell + ("─" if column <= i < last else " ")
        lanes[column] = commit.parent_id if commit.parent_id in by_id else None
        for each in joined:
            lanes[each] = None
        while len(lanes) > 1 and lanes[-1] is None:
            lanes.pop()
        rail = " ".join(
            "│" if lane is not None and (i or begun) else " " for i, lane in enumerate(lanes)
        )
        yield cells.rstrip(), rail.rstrip()


def _with_notes(line: str, rail: str, notes: Sequence[str], width: int) -> Iterator[str]:
    if not notes:
        yield line
        return
    labels = ", ".join(notes)
    if len(line) + 4 + len(labels) <= width:
        yield f"{line}  ← {labels}"
        return
    yield line
    indent = len(rail) + 2
    lines: list[str] = []
    for note in notes:
        if lines and indent + 2 + len(lines[-1]) + 2 + len(note) <= width:
            lines[-1] += f", {note}"
        else:
            lines.append(note)
    for text in lines:
        yield f"{rail.ljust(indent)}↑ {text}"


def _words(commit: Commit, now: datetime) -> tuple[str, str, str, str, str]:
    """Id, age, time, operation and rows."""
    moment = commit.committed_at.astimezone(now.tzinfo or UTC)
    return (
        str(commit.snapshot_id),
        age(now - commit.committed_at),
        f"{moment:%Y-%m-%d %H:%M:%S}",
        commit.operation or "",
        rows_text(commit),
    )


def rows_text(commit: Commit) -> str:
    """The rows that a commit added and deleted, as far as its summary says."""
    return " ".join(
        f"{sign}{count:,}"
        for name, sign in _ROWS
        if (count := whole_number(commit.summary.get(name)))
    )


def age(since: timedelta) -> str:
    """An age in its largest unit: ``3 d``, ``5 min``; a time in the future has a minus."""
    seconds = int(since.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    for size, unit in _AGES:
        if seconds >= size:
            return f"{sign}{seconds // size} {unit}"
    return f"{sign}{seconds} s"


def _reached(by_id: Mapping[int, Commit], refs: Sequence[Ref]) -> frozenset[int]:
    found: set[int] = set()
    for ref in refs:
        _new_ancestors(ref.snapshot_id, by_id, found)
    return frozenset(found)


def _new_ancestors(number: int | None, by_id: Mapping[int, Commit], seen: set[int]) -> list[Commit]:
    """A snapshot and those before it, up to one that was seen; all are seen afterwards."""
    line = []
    while number is not None and number in by_id and number not in seen:
        seen.add(number)
        line.append(by_id[number])
        number = by_id[number].parent_id
    return line


def _children_first(by_id: Mapping[int, Commit]) -> list[Commit]:
    """Newest first, no snapshot before its child."""
    oldest_first: list[Commit] = []
    seen: set[int] = set()
    for each in sorted(by_id.values(), key=lambda each: (each.committed_at, -each.snapshot_id)):
        oldest_first += reversed(_new_ancestors(each.snapshot_id, by_id, seen))
    return oldest_first[::-1]


def _free(lanes: list[int | None], first: int) -> int:
    """The first column, from ``first`` on, that no line is in."""
    for index in range(first, len(lanes)):
        if lanes[index] is None:
            return index
    lanes.append(None)
    return len(lanes) - 1


# ------------------------------------------------------------------ reading the past


# The data of ``\snapshots``: a table's snapshots and refs, by queries on the connection.


def snapshots_of(connection: Connection, table: str) -> list[Commit]:
    """The snapshots of a table, oldest first. Raises what SHOW SNAPSHOTS raises.

    A query over them would start an engine, which costs far more than reading them all.
    """
    with connection.cursor() as cursor:
        rows = cursor.execute(f"SHOW SNAPSHOTS EXTENDED FROM {table}").fetchall()
    return [
        Commit(
            int(number),
            None if parent is None else int(parent),
            at,
            operation,
            json.loads(summary or "{}"),
        )
        for at, number, parent, operation, *_, summary in rows
    ]


def history_lines(connection: Connection, table: str, width: int) -> Iterator[str]:
    """The graph of a table, in the session's time zone. Raises what its statements raise."""
    refs = [
        Ref(name, int(snapshot_id), kind.lower() == "tag")
        for name, kind, snapshot_id in connection.execute(f"SHOW REFS FROM {table}")
    ]
    commits = snapshots_of(connection, table)
    zone = time_zone(connection.settings.timezone)
    if not commits:
        yield "no snapshots"
        return
    yield from history_graph(commits, refs, now=datetime.now(UTC).astimezone(zone), width=width)


_PATIENCE_SECONDS: Final = 2.0


def travel(shell: Shell, argument: str | None) -> None:
    r"""Run ``\at`` with a time, a number of commits, or a ref.

    A quoted text, one that begins with a digit and one that names a time is a time. ``-2`` is
    each table's second commit before its current one; any other text is a ref.

    Raises ProgrammingError for a ref that no table has, as far as a short search shows.
    """
    if argument is None:
        at = shell.travels_to() or "off: tables are read as they are"
        shell.say(f"at is {at}")
        return
    from icesql.sql.time_travel import is_back, is_time

    connection, text = shell.connection, argument.strip("'")
    says_time = argument.startswith("'") or text[:1].isdigit()
    says_time = (says_time or is_time(text)) and not is_back(text)
    unset = ["snapshot_time", "snapshot_ref"]
    if argument.lower() != "off":
        # A snapshot id is used like a ref.
        if says_time and not (text.isdecimal() and len(text) > 8):
            connection.execute(f"SET SNAPSHOT TIME = {literal(text)}")
            unset = ["snapshot_ref"]
        else:
            recent = [each.table_name for each in shell.reports]
            note = "" if is_back(text) else _checked(connection, text, recent)
            connection.execute(f"SET snapshot_ref = {literal(text)}")
            unset = ["snapshot_time"]
            if note:
                shell.say(f"note: {one_line(note)}")
    for name in unset:
        if getattr(connection.settings, name) is not None:
            connection.execute(f"RESET {name}")
    shell.names.forget()
    at = shell.travels_to()
    shell.say(f"tables are read at {at}, until \\at off" if at else "tables are read as they are")


def _checked(connection: Connection, wanted: str, recent: Sequence[str]) -> str:
    """The note on a ref or snapshot id; raises ProgrammingError if no table has it."""
    search = _Search(connection, wanted, recent)
    try:
        search.ended.wait(_PATIENCE_SECONDS)
    finally:
        search.stopped = True
    if search.found:
        text = f"{wanted} is {search.found}; tables without it cannot be read"
        return "" if search.count == 1 else text
    if not search.ended.is_set():
        if search.count is None:
            return f'the catalog has not answered whether a table has "{wanted}"'
        return f"{wanted} was not found in the {search.looked} of {search.count} tables looked at"
    if not search.looked or search.failed:
        return ""  # the next query will say it
    hint = nearest(wanted, search.refs, form='; did you mean "{}"?')
    tables = search.last if search.count == 1 else f"any of the {search.count} tables"
    what = "snapshot" if wanted.isdecimal() else "branch or tag"
    raise ProgrammingError(f'{what} "{wanted}" not found in {tables}{hint}')


class _Search:
    """Looks for a ref in tables, in a thread, the last read tables first, until one has it."""

    def __init__(self, connection: Connection, wanted: str, recent: Sequence[str]) -> None:
        self.found = self.last = ""
        self.looked = 0
        self.count: int | None = None
        self.failed = self.stopped = False
        self.refs: set[str] = set()
        self.ended = threading.Event()
        given = (connection, wanted, recent)
        threading.Thread(target=self._run, args=given, name="icesql-refs", daemon=True).start()

    def _run(self, connection: Connection, wanted: str, recent: Sequence[str]) -> None:
        try:
            tables = connection.tables()
            self.count = len(tables)
            first = [each for each in recent if each in tables]
            for table in dict.fromkeys((*first, *tables)):
                if self.stopped or self.found:
                    return
                self._look(connection, table, wanted)
        except Error:
            self.failed = True
        finally:
            self.ended.set()

    def _look(self, connection: Connection, table: str, wanted: str) -> None:
        from icesql.sql.table_name import name_parts, name_text

        try:
            name = name_text(name_parts(table))
            with connection.cursor() as cursor:
                refs = cursor.execute(f"SHOW REFS FROM {name}").fetchall()
            for ref, kind, *_ in refs:
                self.refs.add(ref)
                if ref == wanted:
                    self.found = f"a {str(kind).lower()} of {table}"
            if wanted.isdecimal() and not self.found:
                snapshots = snapshots_of(connection, name)
                if any(each.snapshot_id == int(wanted) for each in snapshots):
                    self.found = f"a snapshot of {table}"
        except (TableNotFoundError, UnsupportedSqlError):  # rows of the session have no history
            self.count = (self.count or 1) - 1
            return
        except Error:  # a table that cannot be read is no reason to refuse
            self.failed = True
        self.looked, self.last = self.looked + 1, table
