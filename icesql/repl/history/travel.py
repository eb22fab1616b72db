r"""``\at``: the whole session reads tables as they were, or at a branch or tag of theirs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from icesql.config import time_zone
from icesql.errors import Error, ProgrammingError, TableNotFoundError, UnsupportedSqlError, nearest
from icesql.quoting import literal
from icesql.repl.history.graph import Commit, Ref, history_graph
from icesql.repl.terminal import one_line

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection
    from icesql.repl.shell import Shell

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
