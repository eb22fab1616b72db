"""Sends a change that stays the same each time: of a new table, or of several tables at once.

A REST catalog applies changes of several tables atomically.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final

from icesql.catalog.rest.changes import swap_several
from icesql.catalog.table import Catalog, Table
from icesql.catalog.writes.change import Conflict, Done, Swap, TableChange, Unknown
from icesql.commit.attempts import Operation, looks, swapped, wait
from icesql.commit.outcomes.requests import OpenRequests, Sent
from icesql.commit.retries import RetryPolicy
from icesql.context import Progress, QueryContext
from icesql.errors import CommitConflictError, CommitStateUnknownError, Error
from icesql.frozen import Frozen
from icesql.iceberg.metadata.changes.snapshots import snapshot_ids

# The texts of a refused, an open and an unseen request: of a new table, and of several tables.
_CREATED: Final = (
    "cannot create {names}: {reason}",
    "the creation of {names} was sent and its outcome is unknown: {reason}; look whether the table "
    "is there before running the statement again",
    "{names} was created, but could not be looked at after it: {reason}",
)
_TOGETHER: Final = (
    "{names} were changed by another writer since the transaction read them ({reason}); nothing "
    "was applied, run the transaction again",
    "the transaction over {names} was sent and its outcome is unknown: {reason}; look at the "
    "latest snapshots of each table before running it again",
    "the transaction over {names} was applied, but the tables could not be looked at after it: "
    "{reason}",
)


class Part(Frozen):
    """The change of one table, and the operation that owns its files, if there are any.

    ``table`` is the base of the change, or with ``is_new`` the future state of a new table.
    """

    table: Table
    change: TableChange
    operation: Operation | None
    is_new: bool = False


def commit_fixed(catalog: Catalog, parts: Sequence[Part], query: QueryContext) -> Table:
    """Create one table, or change several tables, all or none; returns the last table after it.

    Raises CommitConflictError if they were not applied, after deleting their files, and
    CommitStateUnknownError if the outcome cannot be determined, which keeps their files.
    """
    request = _Fixed(catalog, parts)
    operations = [each.operation for each in parts if each.operation is not None]
    try:
        tables = request.until_known(query)
    except BaseException as error:
        if request.is_open:
            raise request.unknown(request.open_text, request.reason) from error
        for each in operations:
            each.failed()
        raise
    try:
        tables = tables or request.loaded()
        for each, table in zip(operations, tables, strict=False):
            each.succeeded(table)
    except BaseException as error:
        raise request.unknown(request.unseen_text, str(error)) from error
    return tables[-1]


class _Fixed:
    """One request, and the state of its outcome."""

    def __init__(self, catalog: Catalog, parts: Sequence[Part]) -> None:
        self._catalog, self._parts, self._is_new = catalog, parts, parts[0].is_new
        texts = _CREATED if self._is_new else _TOGETHER
        self._refused_text, self.open_text, self.unseen_text = texts
        # Each time that it was sent, by part. It may have been applied while it is open.
        self._sent = [OpenRequests() for _ in parts]
        self.is_open = False
        self._seen = ""

    def until_known(self, query: QueryContext) -> Sequence[Table] | None:
        """Send it until it is applied; the tables if they were loaded, else None.

        Raises CommitConflictError if it cannot be applied, or is still open.
        """
        policy = RetryPolicy.of(self._parts[0].table.metadata.properties)
        for attempt in count(1):
            query.report(Progress("committing", attempt))
            outcome = swapped(self._send, self.is_open, self._add)
            if isinstance(outcome, Done):
                return None
            refused = CommitConflictError(self._text(self._refused_text, outcome.reason))
            if isinstance(outcome, Unknown) or outcome.may_be_ours:
                self._add(outcome.reason, outcome)
            elif not self.is_open:  # else an earlier request may be the cause
                raise refused
            repeats = isinstance(outcome, Unknown) and outcome.is_busy and attempt <= policy.repeats
            for _ in looks(query):
                try:
                    tables = self.loaded()
                except Error:
                    tables = None
                if tables is not None and self._are_applied(tables):
                    return tables
                if not self.is_open:
                    raise refused
                if repeats:
                    break
            else:
                raise refused
            wait(policy.wait_seconds(attempt), query)
        raise AssertionError

    def _send(self) -> Swap:
        """Send it; it is the same each time, so that it is applied at most once."""
        pairs = [(each.table.identifier, each.change) for each in self._parts]
        if self._is_new:
            return self._catalog.swap(pairs[0][0], None, pairs[0][1])
        return swap_several(self._catalog, pairs)  # type: ignore[arg-type]

    def _add(self, reason: str, outcome: Unknown | Conflict | None = None) -> None:
        self.is_open = True
        for each, sent in zip(self._parts, self._sent, strict=True):
            base = None if self._is_new else each.table
            sent.add(Sent(base, each.change, outcome), reason)

    def _are_applied(self, tables: Sequence[Table]) -> bool:
        """True if all tables have their change.

        It is no longer open if a table shows that it was not and cannot be applied.
        """
        # Catalogs match names case-insensitively, so a found table may be another one.
        if [t.identifier for t in tables] != [each.table.identifier for each in self._parts]:
            return False
        # Another writer can make the same change of metadata, but not the same snapshot.
        found = [*zip(self._parts, self._sent, tables, strict=True)]
        telling = [each for each in found if snapshot_ids(each[0].change.updates)] or found
        applied = [part.table.name for part, sent, table in telling if sent.are_applied(table)]
        if len(applied) == len(telling):
            return True
        if applied:  # the server is not finished, or does not apply the request atomically
            self._seen = f"; {' and '.join(applied)} changed and the rest did not"
        elif not all(sent for _, sent, _ in telling):
            self.is_open = False
        return False

    def loaded(self) -> Sequence[Table]:
        """The present tables of these names. Raises as ``load``."""
        return [self._catalog.load(each.table.identifier) for each in self._parts]

    @property
    def reason(self) -> str:
        """Why the outcome is open."""
        return f"{self._sent[0].reason}{self._seen}"

    def _text(self, text: str, reason: str) -> str:
        names = " and ".join(each.table.name for each in self._parts)
        return text.format(names=names, reason=reason)

    def unknown(self, text: str, reason: str) -> CommitStateUnknownError:
        """The error for a request whose outcome is open, or whose tables cannot be loaded."""
        files = [
            path
            for each, sent in zip(self._parts, self._sent, strict=True)
            for path in sent.files(each.operation)
        ]
        return CommitStateUnknownError(
            self._text(text, reason),
            snapshot_ids=snapshot_ids(one for each in self._parts for one in each.change.updates),
            files=(*dict.fromkeys(files),),
        )
