"""Changes several tables by one request, which a REST catalog applies atomically."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from msgspec import Struct

from icesql.catalog.rest.changes import swap_several
from icesql.catalog.table import Catalog, Table
from icesql.catalog.writes.change import Conflict, Done, Swap, TableChange, Unknown
from icesql.commit.attempts import Operation, looks, wait
from icesql.commit.outcomes.requests import Sent, files_of
from icesql.commit.retries import RetryPolicy
from icesql.context import Progress, QueryContext
from icesql.errors import CommitConflictError, CommitStateUnknownError, Error
from icesql.iceberg.metadata.changes.snapshots import snapshot_ids


class Part(Struct, frozen=True):
    """The change of one table from ``base``, and the operation that owns its files."""

    base: Table
    change: TableChange
    operation: Operation


def commit_together(catalog: Catalog, parts: Sequence[Part], query: QueryContext) -> Table:
    """Apply all parts or none; returns the last table after it.

    Raises CommitConflictError if they were not applied, after deleting their files, and
    CommitStateUnknownError if the outcome cannot be determined, which keeps their files.
    """
    together = _Together(parts)
    try:
        tables = _until_known(catalog, together, query)
    except BaseException as error:
        if together.is_open:
            raise together.unknown() from error
        for each in parts:
            each.operation.failed()
        raise
    try:
        if tables is None:
            tables = [catalog.load(each.base.identifier) for each in parts]
        for each, table in zip(parts, tables, strict=True):
            each.operation.succeeded(table)
    except BaseException as error:
        raise CommitStateUnknownError(
            f"the transaction over {together.names} was applied, but the tables could not be "
            f"looked at after it: {error}",
            snapshot_ids=together.snapshot_ids,
            files=together.files,
        ) from error
    return tables[-1]


class _Together:
    """One request to change several tables, and the state of its outcome."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.names = " and ".join(each.base.name for each in parts)
        self.snapshot_ids = snapshot_ids(one for each in parts for one in each.change.updates)
        # Why its outcome is open, for each time that it was sent.
        self._reasons: list[str] = []
        self._seen = ""
        self._is_refused = True

    @property
    def is_open(self) -> bool:
        """True if it may have been applied, or may still be."""
        return bool(self._reasons)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the operations wrote for it."""
        found = (path for each in self.parts for path in files_of(each.operation))
        return (*dict.fromkeys(found),)

    def send(self, catalog: Catalog) -> Swap:
        """Send it again; it is the same each time, so that it is applied at most once."""
        pairs = [(each.base.identifier, each.change) for each in self.parts]
        try:
            outcome = swap_several(catalog, pairs)  # type: ignore[arg-type]
        except Error as error:
            if not self.is_open:
                raise
            outcome = Unknown(str(error))  # an earlier request may be the cause
        except BaseException as error:
            self._reasons.append(f"it was interrupted ({type(error).__name__})")
            raise
        if isinstance(outcome, Unknown) or (isinstance(outcome, Conflict) and outcome.may_be_ours):
            self._is_refused &= isinstance(outcome, Conflict)
            self._reasons.append(outcome.reason)
        return outcome

    def look(self, catalog: Catalog) -> Sequence[Table] | None:
        """Load the tables; return them if all have their change, else None. Raises as ``load``.

        The request is no longer open if a table shows that it was not and cannot be applied.
        """
        tables = [catalog.load(each.base.identifier) for each in self.parts]
        sent = [Sent(each.base, each.change) for each in self.parts]
        # Another writer can make the same change of metadata, but not the same snapshot.
        telling = [n for n, each in enumerate(sent) if each.snapshot_ids] or [*range(len(sent))]
        applied = [n for n in telling if sent[n].is_applied(tables[n])]
        if applied == telling:
            return tables
        if applied:  # the server is not finished, or does not apply the request atomically
            have = " and ".join(self.parts[n].base.name for n in applied)
            self._seen = f"; {have} changed and the rest did not"
        elif self._is_refused or any(sent[n].is_over(tables[n]) for n in telling):
            self._reasons.clear()
        return None

    def unknown(self) -> CommitStateUnknownError:
        """The error for a request whose outcome is open."""
        return CommitStateUnknownError(
            f"the transaction over {self.names} was sent and its outcome is unknown: "
            f"{self._reasons[-1]}{self._seen}; look at the latest snapshots of each table before "
            "running it again",
            snapshot_ids=self.snapshot_ids,
            files=self.files,
        )


def _until_known(
    catalog: Catalog, together: _Together, query: QueryContext
) -> Sequence[Table] | None:
    """Send a request until it is applied; return the tables if they were loaded, else None.

    Raises CommitConflictError if it cannot be applied, or if ``together`` is still open.
    """
    policy = RetryPolicy.of(together.parts[0].base.metadata.properties)
    for attempt in count(1):
        query.report(Progress("committing", attempt))
        outcome = together.send(catalog)
        if isinstance(outcome, Done):
            return None
        refused = CommitConflictError(
            f"{together.names} were changed by another writer since the transaction read them "
            f"({outcome.reason}); nothing was applied, run the transaction again"
        )
        if not together.is_open:
            raise refused
        repeats = isinstance(outcome, Unknown) and outcome.is_busy and attempt <= policy.repeats
        for _ in looks(query):
            try:
                tables = together.look(catalog)
            except Error:
                continue
            if tables is not None:
                return tables
            if not together.is_open:
                raise refused
            if repeats:
                break
        else:
            raise refused
        wait(policy.wait_seconds(attempt), query)
    raise AssertionError
