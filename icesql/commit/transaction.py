"""Combines changes of one table, or of several if the catalog supports that, into one commit.

Each statement changes the table in memory, on top of the statements before it; its files are
written at once. COMMIT applies all updates in one swap. If another writer was first, plain appends
and changes of metadata are made again from the new state. Any other change depends on rows that may
have changed, and the transaction fails as a whole. It fails, too, if it wrote files with columns,
partition fields or sort orders that it added and another writer also added some: ids would clash.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from icesql.catalog.rest.changes import has_transactions, swap_several
from icesql.catalog.table import Catalog, Table
from icesql.catalog.writes.change import Conflict, Done, Swap, TableChange, Unknown
from icesql.commit.attempts import (
    Operation,
    RetryPolicy,
    commit,
    is_same,
    looks,
    now_ms,
    refreshed,
    swapped,
    wait,
)
from icesql.commit.file_changes import applied, as_it_is
from icesql.commit.requests import OpenRequests, Sent, files_of
from icesql.context import Progress, QueryContext
from icesql.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    Error,
    NotSupportedError,
    StorageError,
)
from icesql.frozen import Frozen
from icesql.iceberg.metadata.changes.snapshots import snapshot_ids
from icesql.iceberg.metadata.changes.updates import Update, requirements_for

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Table
    from icesql.context import QueryContext
    from icesql.iceberg.metadata.table_metadata import TableMetadata


# ------------------------------------------------------------------ changes that stay the same
# They make a new table, or change several tables at once, which a REST catalog applies atomically.


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


# ------------------------------------------------------------------ transaction


# Changes of garbage-collected transactions, with the id of the process that made them.
_COLLECTED: Final[deque[tuple[int, list[_HeldTable]]]] = deque()


def roll_back_collected() -> None:
    """Delete the files of transactions that were garbage-collected without having been ended.

    A finalizer can run while a lock is held that deleting files needs, so the files are deleted
    when the next transaction begins, and at exit.
    """
    while _COLLECTED:
        process, held = _COLLECTED.popleft()
        if process == os.getpid():  # a forked process has copies of its parent's transactions
            for each in held:
                each.failed()


class Transaction:
    """An open transaction; threads of one connection share it.

    ``is_failed`` is set by callers that abort a transaction after a failed statement: only ROLLBACK
    is possible then.
    """

    def __init__(self) -> None:
        roll_back_collected()
        self.is_failed = False
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._seen: dict[int, CatalogInTransaction] = {}
        self._held: list[_HeldTable] = []

    def __del__(self) -> None:
        if self._held:
            _COLLECTED.append((self._process, self._held))

    @property
    def has_changes(self) -> bool:
        """True if a commit would apply any change."""
        return any(each.operations for each in self._held)

    def catalog(self, catalog: Catalog) -> Catalog:
        """The catalog as this transaction sees it: its table with the changes so far."""
        seen = self._seen.setdefault(id(catalog), CatalogInTransaction(catalog, self))
        return cast("Catalog", seen)

    def table_of(self, catalog: Catalog, identifier: Sequence[str]) -> Table | None:
        """The table with the changes so far; None for one that was not changed."""
        held = self._find(catalog, identifier)
        return None if held is None else held.working

    def _find(self, catalog: Catalog, identifier: Sequence[str]) -> _HeldTable | None:
        wanted = tuple(identifier)
        for each in self._held:
            if each.catalog is catalog and tuple(each.base.identifier) == wanted:
                return each
        return None

    def check(self, catalog: Catalog, identifier: Sequence[str]) -> None:
        """Raise NotSupportedError for a second table if no catalog can change both in one step."""
        if not self._held or self._find(catalog, identifier) is not None:
            return
        is_one = all(each.catalog is catalog for each in self._held)
        if is_one and catalog.kind == "rest" and has_transactions(catalog):  # type: ignore[arg-type]
            return
        raise NotSupportedError(
            f"a transaction over several tables ({self._held[0].base.name} and "
            f"{'.'.join(identifier)}): only a REST catalog that offers transactions applies "
            "changes of several in one step; COMMIT first"
        )

    def check_target(self, seen: Catalog, identifier: Sequence[str]) -> None:
        """As ``check``, for a catalog that ``catalog`` returned."""
        assert isinstance(seen, CatalogInTransaction)
        self.check(seen.inner, identifier)

    def take(
        self, catalog: Catalog, table: Table, operation: Operation, query: QueryContext
    ) -> Table:
        """Apply a change in memory and return the table; a failed one changes nothing."""
        with self._lock:
            try:
                self.check(catalog, table.identifier)
                known = self._find(catalog, table.identifier)
                held = known or _HeldTable(catalog, as_it_is(catalog, table))
            except BaseException:
                operation.failed()
                raise
            made = held.take(operation, query)
            if known is None:
                self._held.append(held)
            return made

    def commit(self, query: QueryContext) -> Table | None:
        """Apply all changes in one step; None if there were none.

        Raises CommitConflictError if they were not applied, after deleting their files, and
        CommitStateUnknownError if the outcome cannot be determined, which keeps their files.
        """
        with self._lock:
            held, self._held = [each for each in self._held if each.operations], []
        if not held:
            return None
        if len(held) > 1:
            moment = max(now_ms(), *(each.working.metadata.last_updated_ms for each in held))
            parts = [_part(each, moment) for each in held]
            return commit_fixed(held[0].catalog, parts, query)
        return commit(held[0].catalog, held[0].base, held[0], query)

    def rollback(self) -> None:
        """Discard the changes and delete their files."""
        with self._lock:
            held, self._held = self._held, []
        for each in held:
            each.failed()


def _part(held: _HeldTable, moment: int) -> Part:
    updates = tuple(held.made)
    needed = requirements_for(held.base.metadata, updates)
    change = TableChange(updates, needed, held.base.storage, moment)
    return Part(held.base, change, held)


class _HeldTable:
    """A table in a transaction: its original state, and its state after the changes so far.

    All changes together are an ``Operation`` of ``commit.attempts``.
    """

    def __init__(self, catalog: Catalog, table: Table) -> None:
        self.catalog, self.base, self.working = catalog, table, table
        self.operations: list[Operation] = []
        self.made: list[Update] = []

    def take(self, operation: Operation, query: QueryContext) -> Table:
        try:
            query.check()
            moment = max(now_ms(), self.working.metadata.last_updated_ms)
            updates = tuple(operation.updates(self.working, 1, moment))
            if not updates:
                operation.failed()
                return self.working
            working = applied(self.working, updates, moment)
        except StorageError as error:
            operation.failed()
            if is_same(refreshed(self.catalog, self.base), self.base):
                raise
            # Other writers committed, and deleted files that are no longer needed.
            raise self.conflict() from error
        except BaseException:
            operation.failed()
            raise
        self.operations.append(operation)
        self.made += updates
        self.working = working
        return working

    def conflict(self) -> CommitConflictError:
        """The error for a table that another writer changed."""
        return CommitConflictError(
            f"{self.base.name} was changed by another writer since the transaction read it; "
            "nothing was applied, run the transaction again"
        )

    def reapplies_to(self, metadata: TableMetadata) -> bool:
        """True if the changes can be made again from other writers' metadata.

        Files refer to columns, partition specs and sort orders by ids that earlier changes of this
        transaction assigned; another writer may have assigned the same ids by now.
        """
        if not all(getattr(each, "reapplies", False) for each in self.operations):
            return False
        if all(each.snapshot_id is None for each in self.operations):
            return True
        before = _given_ids(self.base.metadata)
        return before in (_given_ids(self.working.metadata), _given_ids(metadata))

    @property
    def snapshot_id(self) -> int | None:
        """The id of the last snapshot that the changes add."""
        ids = [each.snapshot_id for each in self.operations]
        return next((each for each in reversed(ids) if each is not None), None)

    def updates(self, base: Table, attempt: int, now_ms: int) -> Sequence[Update]:
        """As ``Operation.updates``."""
        if is_same(base, self.base):
            return self.made
        if not self.reapplies_to(base.metadata):
            raise self.conflict()
        found: list[Update] = []
        for each in self.operations:
            # Attempt 1 was made when the statement ran, and its manifest list has that number.
            made = tuple(each.updates(base, attempt + 1, now_ms))
            found += made
            base = applied(base, made, now_ms) if made else base
        return found

    def succeeded(self, table: Table) -> None:
        """As ``Operation.succeeded``."""
        for each in self.operations:
            each.succeeded(table)

    @property
    def files(self) -> tuple[str, ...]:
        """As ``Operation.files``."""
        return tuple(path for each in self.operations for path in files_of(each))

    def failed(self) -> None:
        """As ``Operation.failed``."""
        for each in reversed(self.operations):
            each.failed()


def _given_ids(metadata: TableMetadata) -> tuple[object, ...]:
    """The assigned ids of columns, partition fields, specs and sort orders."""
    return (
        metadata.last_column_id,
        metadata.last_partition_id,
        frozenset(metadata.specs),
        frozenset(metadata.sort_orders),
    )


class CatalogInTransaction:
    """A catalog that shows a transaction's tables with their changes."""

    def __init__(self, inner: Catalog, transaction: Transaction) -> None:
        self.inner, self._transaction = inner, transaction

    def defer(self, table: Table, operation: Operation, query: QueryContext) -> Table:
        """Add a change to the transaction instead of committing it; see ``commit.attempts``."""
        return self._transaction.take(self.inner, table, operation, query)

    def __getattr__(self, name: str) -> Any:
        return partial(_refuse, _REFUSED[name]) if name in _REFUSED else getattr(self.inner, name)

    def load(self, identifier: Sequence[str]) -> Table:
        """The table, with the changes so far if the transaction has changed it."""
        return self._transaction.table_of(self.inner, identifier) or self.inner.load(identifier)

    def load_without_waiting(self, identifier: Sequence[str]) -> Table | None:
        """None: the catalog could only return the table without the transaction's changes."""
        return None

    def close(self) -> None:
        """Does nothing: the connection closes the catalog."""


# The methods of a catalog that an open transaction does not allow.
_REFUSED: Final = {
    "swap": "a new table",
    "place_new": "a new table",
    "drop": "DROP TABLE",
    "rename": "RENAME",
    "create_namespace": "CREATE SCHEMA",
    "drop_namespace": "DROP SCHEMA",
}


def _refuse(what: str, *_: object, **__: object) -> NoReturn:
    raise NotSupportedError(f"{what} in a transaction; COMMIT first")
