"""``icesql undo TABLE`` and ``\\undo TABLE``: show the last commit's changes, and undo it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from icesql.errors import ProgrammingError

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection
    from icesql.session.outcome import Outcome


def undo(
    connection: Connection,
    table: str,
    say: Callable[[str], object],
    *,
    branch: str | None = None,
    head: int | None = None,
    agreed: bool = False,
) -> bool:
    """Set a branch, main without one, to the parent of its head; False if the user declines.

    ``say`` is called with each line about the changes that are undone. ``head`` is the snapshot to
    undo, None for any. With ``agreed`` no confirmation is needed. Raises CommitConflictError if the
    branch is at another snapshot than ``head``, or than the one that was shown; ProgrammingError if
    there is no terminal for the confirmation, and what CALL raises.
    """
    from msgspec.structs import replace

    from icesql.context import QueryContext
    from icesql.sql.writes.procedures.call import CallProcedure

    ref = (branch or "").replace('"', '""')
    name = f'{table}."branch_{ref}"' if branch not in (None, "main") else table
    session = connection._session

    def run(call: CallProcedure) -> Outcome:
        return session.execute(call, QueryContext.begin(connection.settings))

    with session.without_secrets():
        (call,) = session.parse("CALL system.rollback_to_snapshot(?, -1)", [name])
        assert isinstance(call, CallProcedure)
        look = run(replace(call, explain=True, head=head))
        assert look.result is not None
        found = next(int(row[2]) for row in look.result.fetch(None) if row[1] == "snapshot")
        for note in look.notes:
            for line in note.split("; "):
                say(line)
        if not agreed and not _agrees(found):
            say("nothing was changed")
            return False
        run(replace(call, head=found))
    say(f"done: {table} is as it was before snapshot {found}")
    return True


def _agrees(head: int) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise ProgrammingError(
            "nothing was changed: there is no terminal to ask on; --yes takes it back, with "
            f"--snapshot {head} only while that is the last commit"
        )
    try:
        return input("take it back? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
