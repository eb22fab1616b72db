"""Try a change of a table until it is applied, is known not to be, or nobody can know.

Source: Java ``SnapshotProducer.commit`` and ``BaseMetastoreTableOperations.checkCommitStatus``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, Protocol

from icesql.catalog.current_metadata import is_metadata_name
from icesql.catalog.table import Catalog, Table
from icesql.catalog.writes.change import Conflict, Done, Swap, TableChange, Unknown
from icesql.commit.retries import RetryPolicy
from icesql.context import Progress, QueryContext
from icesql.errors import CommitConflictError, CommitStateUnknownError, Error, StorageError
from icesql.iceberg.metadata.changes.requirements import requirements_for
from icesql.iceberg.metadata.changes.updates import Update
from icesql.storage.new_file import check_writable, remove_file

_DELETES_METADATA: Final = "write.metadata.delete-after-commit.enabled"
_STATUS_CHECKS: Final = 3
_STATUS_WAIT_SECONDS: Final = 1.0
_STEP_SECONDS: Final = 0.05


class Operation(Protocol):
    """A change that can be made from any base; its files survive the attempts."""

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that it makes, the same in every attempt; None if it makes none."""

    def updates(self, base: Table, attempt: int, now_ms: int) -> Sequence[Update]:
        """The updates that make the change of ``base``; none where there is nothing to do.

        Called for each attempt, from 1, with the table as it is then: never merely as the
        statement read it. Raises CommitConflictError where the change may not be made any more
        of what others did.
        """

    def succeeded(self, table: Table) -> None:
        """The change is applied; ``table`` is what there is after it."""

    def failed(self) -> None:
        """The change is certainly not applied and will not be tried again."""


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def commit(catalog: Catalog, table: Table, operation: Operation, query: QueryContext) -> Table:
    """Apply ``operation`` to a table, again from what others left if they were first.

    Gives the table after it. Raises CommitConflictError when it was not applied, its files being
    deleted; CommitStateUnknownError when nobody can know, none of them being.
    """
    check_writable(table.storage)
    defer = getattr(catalog, "defer", None)
    if defer is not None:  # a transaction is open
        deferred: Table = defer(table, operation, query)
        return deferred
    try:
        return _tried(catalog, table, operation, query)
    except CommitStateUnknownError:
        raise
    except BaseException:
        # A bug or Ctrl-C, too: whatever happens once a swap is sent is a CommitStateUnknownError.
        operation.failed()
        raise


def _tried(catalog: Catalog, table: Table, operation: Operation, query: QueryContext) -> Table:
    policy = RetryPolicy.of(table.metadata.properties)
    until = time.monotonic() + policy.total_ms / 1000
    # The table may be of long ago: what its statement read, and wrote files for, since then.
    base, attempt = refreshed(catalog, table), 0
    while True:
        attempt += 1
        query.check()
        try:
            change = _made(base, operation, attempt, query)
            outcome = None if change is None else _swapped(catalog, base, change)
        except StorageError as error:
            if is_same(refreshed(catalog, table), base):
                raise
            # Others committed, and removed what nobody needs any more, its metadata file first.
            outcome = Conflict(str(error))
        if outcome is None:
            if attempt > 1:
                operation.failed()  # what the attempts before wrote is of no use
            return base
        if isinstance(outcome, Unknown):
            outcome = _looked_up(catalog, base, operation, outcome)
        if isinstance(outcome, Done):
            return _finished(catalog, base, operation)
        is_last = attempt > policy.retries or time.monotonic() > until
        if not is_last:
            _wait(policy.wait_seconds(attempt), query)
        base = refreshed(catalog, table)
        if _has_snapshot(base, operation):
            return _finished(catalog, base, operation)  # an attempt that was thought lost
        if is_last:
            raise CommitConflictError(
                f"cannot commit to {table.name} after {attempt} attempt{'s' * (attempt > 1)}: "
                f"{outcome.reason}; run the statement again, or raise commit.retry.num-retries"
            )


def _made(
    base: Table, operation: Operation, attempt: int, query: QueryContext
) -> TableChange | None:
    """What to send for ``base``; None where there is nothing to do."""
    moment = max(now_ms(), base.metadata.last_updated_ms)
    updates = tuple(operation.updates(base, attempt, moment))
    if not updates:
        return None
    query.report(Progress("committing", attempt))
    needed = requirements_for(base.metadata, updates)
    return TableChange(updates, needed, base.storage, moment)


def _swapped(catalog: Catalog, base: Table, change: TableChange) -> Done | Conflict | Unknown:
    try:
        return catalog.swap(base.identifier, base.metadata_location, change)
    except CommitConflictError as error:
        return Conflict(str(error))
    except Error:
        raise
    except BaseException as error:
        # A bug, or Ctrl-C: it may have been sent.
        raise _unknown(base, f"it was interrupted ({type(error).__name__})") from error


def _looked_up(catalog: Catalog, base: Table, operation: Operation, outcome: Unknown) -> Swap:
    """Whether a commit of unknown outcome can be seen in the table."""
    try:
        for number in range(_STATUS_CHECKS):
            if number:
                time.sleep(_STATUS_WAIT_SECONDS)
            if (found := _seen(catalog, base, operation, outcome)) is not None:
                return found
    except BaseException as error:
        # A bug, or Ctrl-C: the outcome is no better known by it.
        raise _unknown(base, outcome.reason) from error
    # It may be under way still: that it is not seen says nothing.
    raise _unknown(base, outcome.reason)


def _seen(catalog: Catalog, base: Table, operation: Operation, outcome: Unknown) -> Done | None:
    try:
        found = catalog.load(base.identifier)
    except Error:
        return None
    metadata = found.metadata
    named = [found.metadata_location, *(each.metadata_file for each in metadata.metadata_log)]
    if outcome.location in named or _has_snapshot(found, operation):
        return Done(found.metadata_location)
    return None


def _unknown(base: Table, reason: str) -> CommitStateUnknownError:
    return CommitStateUnknownError(
        f"the commit to {base.name} was sent and its outcome is unknown: {reason}; none of its "
        f"files was deleted; look at the latest snapshots (SELECT * FROM {base.name}.snapshots) "
        "before running the statement again"
    )


def _finished(catalog: Catalog, base: Table, operation: Operation) -> Table:
    try:
        table = catalog.load(base.identifier)
        operation.succeeded(table)
        _delete_old_metadata(catalog, base, table)
    except BaseException as error:
        raise CommitStateUnknownError(
            f"the commit to {base.name} was applied, but the table could not be looked at after "
            f"it: {error}"
        ) from error
    return table


def _delete_old_metadata(catalog: Catalog, base: Table, table: Table) -> None:
    """Delete the metadata files that fell out of the log, where the table wants that."""
    wanted = table.metadata.properties.get(_DELETES_METADATA, "false").lower() == "true"
    if not wanted or catalog.kind == "rest":  # whose server writes, and deletes, such files
        return
    kept = {each.metadata_file for each in table.metadata.metadata_log}
    kept |= {base.metadata_location, table.metadata_location}
    for each in base.metadata.metadata_log:
        path = each.metadata_file
        # A log that names another file of the table, or of anybody, is no reason to delete it.
        if path not in kept and is_metadata_name(path.rpartition("/")[2]):
            remove_file(table.storage, path)


def is_same(one: Table, other: Table) -> bool:
    """Whether nobody committed between two looks at a table."""
    return (one.metadata_location, one.metadata.last_updated_ms) == (
        other.metadata_location,
        other.metadata.last_updated_ms,
    )


def refreshed(catalog: Catalog, table: Table) -> Table:
    """The table as it is now. Raises CommitConflictError where another one has its name."""
    found = catalog.load(table.identifier)
    if (found.metadata.table_uuid or "").lower() != (table.metadata.table_uuid or "").lower():
        raise CommitConflictError(
            f"the table {table.name} was replaced by another one of its name meanwhile"
        )
    return found


def _has_snapshot(table: Table, operation: Operation) -> bool:
    wanted = operation.snapshot_id
    return wanted is not None and table.metadata.snapshot(wanted) is not None


def _wait(seconds: float, query: QueryContext) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        query.check()
        time.sleep(min(left, _STEP_SECONDS))
