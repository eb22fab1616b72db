"""Changes of several tables, by one request that a REST catalog applies as a whole."""

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
    """The change of one table from ``base``, and the owner of the files that it needs."""

    base: Table
    change: TableChange
    operation: Operation


def commit_together(catalog: Catalog, parts: Sequence[Part], query: QueryContext) -> Table:
    """Apply all parts or none; gives the last table after it.

    Raises CommitConflictError when they were not applied, their files being deleted, and
    CommitStateUnknownError when nobody can know, none of them being.
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
    """One request about several tables, and what is known of it."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.names = " and ".join(each.base.name for each in parts)
        self.snapshot_ids = snapshot_ids(one for each in parts for one in each.change.updates)
        # Why it is not known how it ended, of every time that it was sent.
        self._reasons: list[str] = []
        self._seen = ""
        self._is_refused = True

    @property
    def is_open(self) -> bool:
        """Whether it may be applied, or be so later."""
        return bool(self._reasons)

    @property
    def files(self) -> tuple[str, ...]:
        """The files of it that the tables need."""
        found = (path for each in self.parts for path in files_of(each.operation))
        return (*dict.fromkeys(found),)

    def send(self, catalog: Catalog) -> Swap:
        """Send it once more; the same each time, so that it is applied once at most."""
        pairs = [(each.base.identifier, each.change) for each in self.parts]
        try:
            outcome = swap_several(catalog, pairs)  # type: ignore[arg-type]
        except Error as error:
            if not self.is_open:
                raise
            outcome = Unknown(str(error))  # an earlier request may be why
        except BaseException as error:
            self._reasons.append(f"it was interrupted ({type(error).__name__})")
            raise
        if isinstance(outcome, Unknown) or (isinstance(outcome, Conflict) and outcome.may_be_ours):
            self._is_refused &= isinstance(outcome, Conflict)
            self._reasons.append(outcome.reason)
        return outcome

    def look(self, catalog: Catalog) -> Sequence[Table] | None:
        """The tables if all have their change; None else. Raises what looking at them does.

        It is not open any more where one shows that the request was not applied, and cannot be.
        """
        tables = [catalog.load(each.base.identifier) for each in self.parts]
        sent = [Sent(each.base, each.change) for each in self.parts]
        # A change of metadata may be another writer's, too; a snapshot is ours alone.
        telling = [n for n, each in enumerate(sent) if each.snapshot_ids] or [*range(len(sent))]
        applied = [n for n in telling if sent[n].is_applied(tables[n])]
        if applied == telling:
            return tables
        if applied:  # by a server that is not done, or does not keep its word
            have = " and ".join(self.parts[n].base.name for n in applied)
            self._seen = f"; {have} changed and the rest did not"
        elif self._is_refused or any(sent[n].is_over(tables[n]) for n in telling):
            self._reasons.clear()
        return None

    def unknown(self) -> CommitStateUnknownError:
        """The error to raise while it is open."""
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
    """Send a request until it is applied; the tables where they were looked at.

    Raises CommitConflictError where that cannot be, or where ``together`` is open still.
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
