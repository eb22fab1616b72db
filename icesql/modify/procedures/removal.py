"""The common part of procedures that remove files."""

from __future__ import annotations

from datetime import UTC, datetime

from icesql.commit.own_places import folders_of
from icesql.modify.procedures.call import Call


def folders_below(call: Call) -> tuple[str, ...]:
    """The folders beside a table's own that the statement, or else the session, names."""
    given: tuple[str, ...] | None = call["delete_below"]
    return tuple(folders_of(call.services.query.settings.delete_below)) if given is None else given


def at_once_of(call: Call) -> int | None:
    """How many files are deleted at once, 64 at most; None leaves it to the store."""
    count: int | None = call["max_concurrent_deletes"]
    if count is not None and count < 1:
        raise call.wrong("max_concurrent_deletes", "is less than 1")
    return None if count is None else min(count, 64)


def moment(milliseconds: int) -> str:
    """An instant in UTC."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds")
