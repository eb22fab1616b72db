"""What ``\\snapshots`` draws: a table's snapshots and refs, asked of the connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from icesql.config import time_zone
from icesql.repl.history.graph import Commit, Ref, history_graph

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection


def history_lines(connection: Connection, table: str, width: int) -> Iterator[str]:
    """The graph of a table, in the session's time zone. Raises what its queries raise."""
    refs = [
        Ref(name, snapshot_id, kind.lower() == "tag")
        for name, kind, snapshot_id in connection.execute(f"SHOW REFS FROM {table}")
    ]
    commits = [
        Commit(snapshot_id, parent_id, committed_at, operation, json.loads(summary or "{}"))
        for committed_at, snapshot_id, parent_id, operation, summary in connection.execute(
            "SELECT committed_at, snapshot_id, parent_id, operation, summary "
            f"FROM (SHOW SNAPSHOTS FROM {table})"
        )
    ]
    zone = time_zone(connection.settings.timezone)
    if not commits:
        yield "no snapshots"
        return
    yield from history_graph(commits, refs, now=datetime.now(UTC).astimezone(zone), width=width)
