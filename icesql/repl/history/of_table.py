"""The data of ``\\snapshots``: a table's snapshots and refs, by queries on the connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from icesql.config import time_zone
from icesql.repl.history.graph import Commit, Ref, history_graph

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection


def snapshots_of(connection: Connection, table: str) -> list[Commit]:
    """The snapshots of a table, oldest first. Raises what SHOW SNAPSHOTS raises.

    A query over them would start an engine, which costs far more than to read them all.
    """
    with connection.cursor() as cursor:
        rows = cursor.execute(f"SHOW SNAPSHOTS EXTENDED FROM {table}").fetchall()
        names = [column[0] for column in cursor.description or ()]
    found = []
    for row in rows:
        each = dict(zip(names, row, strict=True))
        found.append(
            Commit(
                int(each["snapshot_id"]),
                None if each["parent_id"] is None else int(each["parent_id"]),
                each["committed_at"],
                each["operation"],
                json.loads(each["summary"] or "{}"),
            )
        )
    return found


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
