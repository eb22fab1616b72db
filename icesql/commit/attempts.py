"""Tries a change of a table until it is applied, certainly not applied, or of unknown outcome.

Source: Java ``SnapshotProducer.commit``, ``TableProperties`` and ``Tasks.exponentialBackoff``.
"""

from __future__ import annotations

import hashlib
import os
import random
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from icesql.catalog.current_metadata import forget_metadata, is_metadata_name
from icesql.catalog.table import Catalog, Table
from icesql.catalog.targets import load_to_change
from icesql.catalog.writes.change import Conflict, Done, Swap, TableChange, Unknown
from icesql.commit.requests import OpenRequests, Sent, files_of, is_same_table
from icesql.context import COMMITTING, NOT_COMMITTED, Progress, QueryContext
from icesql.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    Error,
    QueryCancelledError,
    StorageError,
)
from icesql.frozen import Frozen
from icesql.iceberg.evolution.rules import check_partition_names, shared_names
from icesql.iceberg.metadata.changes.updates import (
    AddPartitionSpec,
    AddSchema,
    Update,
    requirements_for,
)
from icesql.iceberg.metadata.json_fields import number_property, whole_number
from icesql.storage.file_lock import lock
from icesql.storage.new_files import check_writable, remove_file
from icesql.storage.roots import Roots

# ------------------------------------------------------------------ turns of one machine's writers
# Turns are only for fairness: commits are correct without them, because the catalog's swap
# decides. With turns, a fast writer does not overtake a slow one again and again. A turn is a
# kernel lock on one of a fixed number of files in a folder of the user, so it ends with its
# process, and no lock file is placed near a table. If such files are not possible, writers do not
# wait.


# Kinds of catalogs whose writers are mostly on this machine.
_LOCAL: Final = ("directory", "sqlite")
# The longest wait for a turn, and the time between two checks of the lock.
_MOST_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.005
# The number of lock files for all tables; tables that share one sometimes wait for each other.
_FILES: Final = 1024
# Pairs of thread and file: a thread does not wait for its own lock.
_held: Final[set[tuple[int, int]]] = set()


class Turn:
    """The turn of one commit at its table; the end of the ``with`` block leaves it."""

    def __init__(self, catalog: Catalog, table: Table, query: QueryContext) -> None:
        self._query, self._number, self._file = query, -1, -1
        if catalog.kind in _LOCAL:
            key = table.metadata.table_uuid or table.metadata.location
            digest = hashlib.sha256(key.lower().encode("utf-8", "surrogateescape")).digest()
            self._number = int.from_bytes(digest[:8]) % _FILES

        self._holder = threading.get_ident(), self._number

    def __enter__(self) -> Turn:
        return self

    def __exit__(self, *error: object) -> None:
        self.leave()

    def take(self) -> None:
        """Wait, for a limited time, until other writers have left. Raises as ``query.check``."""
        if self._number < 0 or self._holder in _held or (file := _opened(self._number)) is None:
            return
        self._file = file
        _held.add(self._holder)
        until = time.monotonic() + _MOST_SECONDS
        while not _is_locked(file) and time.monotonic() < until:
            self._query.check()
            time.sleep(_LOOK_SECONDS)

    def leave(self) -> None:
        """Release the lock."""
        file, self._file = self._file, -1
        if file < 0:
            return
        import fcntl

        _held.discard(self._holder)
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # a forked process also has the file open
        os.close(file)


def _is_locked(file: int) -> bool:
    """True if this writer has the lock, or the file system does not support locks."""
    try:
        return lock(file, wait=False)
    except OSError:
        return True


def _opened(number: int) -> int | None:
    """One of the lock files, open; None if no file private to the user is possible."""
    import tempfile

    try:
        import fcntl  # noqa: F401 (which Windows lacks)

        user = os.getuid()
        folder = os.path.join(tempfile.gettempdir(), f"icesql-turns-{user}")
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        # Files are opened relative to the checked folder, so that a link cannot replace it.
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(place)
            if found.st_uid != user or stat.S_IMODE(found.st_mode) & 0o077:
                return None
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            return os.open(str(number), flags, 0o600, dir_fd=place)
        finally:
            os.close(place)
    except (OSError, ImportError, AttributeError, NotImplementedError):
        return None


# ------------------------------------------------------------------ number and time of attempts


RETRIES: Final = "commit.retry.num-retries"
MIN_WAIT: Final = "commit.retry.min-wait-ms"
MAX_WAIT: Final = "commit.retry.max-wait-ms"
TOTAL: Final = "commit.retry.total-timeout-ms"
_DEFAULTS: Final = {RETRIES: 4, MIN_WAIT: 100, MAX_WAIT: 60_000, TOTAL: 1_800_000}
# The longest wait if only the time is limited: longer waits would leave few attempts.
_LONGEST_MS: Final = 1_000


class RetryPolicy(Frozen):
    """The number of attempts after the first one, and the waits before them in milliseconds.

    ``retries`` limits attempts after conflicts, ``repeats`` those after a busy server's response.
    ``until`` is the latest start of an attempt, in ``time.monotonic``.
    """

    retries: int
    repeats: int
    min_wait_ms: int
    max_wait_ms: int
    until: float

    @classmethod
    def of(cls, properties: Mapping[str, str], seconds: float | None = None) -> RetryPolicy:
        """The policy of a commit that starts now.

        ``seconds`` limits the attempts if the properties set neither their number nor their time;
        None means the default time. An invalid property, which another writer must have set, counts
        as not set: the statement that corrects it has to be committed, too.
        """
        retries, least, longest, total = (whole_number(properties.get(each)) for each in _DEFAULTS)
        repeats = _DEFAULTS[RETRIES] if retries is None else retries
        if retries is None and total is None and seconds is not None:
            limit = seconds
        else:
            limit = (_DEFAULTS[TOTAL] if total is None else total) / 1000
        if longest is None:
            longest = _DEFAULTS[MAX_WAIT] if retries is not None else _LONGEST_MS
        return cls(
            sys.maxsize if retries is None else retries,
            repeats,
            _DEFAULTS[MIN_WAIT] if least is None else least,
            longest,
            time.monotonic() + limit,
        )

    @property
    def limit(self) -> str:
        """The property to raise for more attempts."""
        return TOTAL if self.retries == sys.maxsize else RETRIES

    def is_last(self, attempt: int) -> bool:
        """True if no attempt follows the one of this number, from 1."""
        return attempt > self.retries or time.monotonic() > self.until

    def wait_seconds(self, attempt: int) -> float:
        """The wait after attempt number ``attempt``, from 1, in seconds; it doubles each time.

        Random between half and all of it, so that two writers do not collide again.
        """
        longest: int = min(self.min_wait_ms << min(attempt - 1, 40), self.max_wait_ms)
        return longest * random.uniform(0.5, 1.0) / 1000


def check_retries(properties: Mapping[str, str]) -> None:
    """Raise ProgrammingError for a property that is not a whole number of at least 0."""
    for name, default in _DEFAULTS.items():
        number_property(properties, name, default)


# ------------------------------------------------------------------ attempts


_DELETES_METADATA: Final = "write.metadata.delete-after-commit.enabled"
_STATUS_CHECKS: Final = 3
_STATUS_WAIT_SECONDS: Final = 1.0
_STEP_SECONDS: Final = 0.05
# After this time the progress text shows which writer a commit waits for.
_PATIENCE_SECONDS: Final = 3.0


class Operation(Protocol):
    """A change that can be made from any base; its files are reused by later attempts."""

    @property
    def snapshot_id(self) -> int | None:
        """The id of the snapshot that it adds, the same in every attempt; None if it adds none."""

    @property
    def files(self) -> Sequence[str]:
        """The paths of files written for it, which are kept while its outcome is unknown."""

    def updates(self, base: Table, attempt: int, now_ms: int) -> Sequence[Update]:
        """The updates that apply the change to ``base``; none if there is nothing to do.

        Called for each attempt, numbered from 1, with the table's state at that time, which may
        differ from the state that the statement read. Raises CommitConflictError if commits of
        other writers no longer allow the change.
        """

    def succeeded(self, table: Table) -> None:
        """The change was applied; ``table`` is the table after it."""

    def failed(self) -> None:
        """The change was certainly not applied and will not be retried."""


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def commit(catalog: Catalog, table: Table, operation: Operation, query: QueryContext) -> Table:
    """Apply ``operation`` to a table, again on the new state if another writer was first.

    Returns the table after it. Raises CommitConflictError if it was not applied, after deleting its
    files; CommitStateUnknownError if the outcome cannot be determined, which keeps its files.
    """
    check_writable(table.storage)
    defer = getattr(catalog, "defer", None)
    if defer is not None:  # a transaction is open
        deferred: Table = defer(table, operation, query)
        return deferred
    sent = OpenRequests()
    try:
        with Turn(catalog, table, query) as turn:
            return _until_known(catalog, table, operation, query, sent, turn)
    except CommitStateUnknownError:
        raise
    except BaseException as error:  # also for a bug or Ctrl-C
        if sent:
            # An open request may have been applied, or may be applied later.
            raise _unknown(table, operation, sent) from error
        if isinstance(error, CommitConflictError) and sent.was_unknown:
            error._rows_changed = False  # the statement must not be evaluated again
        operation.failed()
        query.report(Progress(NOT_COMMITTED, 0))
        if isinstance(error, QueryCancelledError):
            raise QueryCancelledError(f"{error}; nothing was committed") from error
        raise


def _until_known(
    catalog: Catalog,
    table: Table,
    operation: Operation,
    query: QueryContext,
    sent: OpenRequests,
    turn: Turn,
) -> Table:
    policy = RetryPolicy.of(table.metadata.properties, query.commit_seconds)
    others = _Others(table)
    busy = 0
    turn.take()
    # ``table`` may be old: its statement read it, and has written files since.
    base, attempt = _same_table(table, load_to_change(catalog, table.identifier)), 0
    while True:
        attempt += 1
        query.check()
        change = None
        try:
            change = _made(base, operation, attempt, query)
            outcome = None
            if change is not None:
                send = partial(catalog.swap, base.identifier, base.metadata_location, change)
                outcome = swapped(send, bool(sent), partial(sent.add, Sent(base, change)))
        except StorageError as error:
            if is_same(refreshed(catalog, table), base):
                raise
            # Other writers committed, and deleted files that are no longer needed, such as the
            # base's metadata file.
            outcome = Conflict(str(error))
        if outcome is None:
            if sent and operation.snapshot_id is not None:
                raise _unknown(table, operation, sent)
            if attempt > 1:
                operation.failed()  # the files of earlier attempts are not needed
            return base
        turn.leave()
        if isinstance(outcome, Done):
            return _finished(catalog, base, operation)
        is_last = policy.is_last(attempt)
        if isinstance(outcome, Unknown) or outcome.may_be_ours:
            assert change is not None
            sent.add(Sent(base, change, outcome), outcome.reason)
            is_busy = isinstance(outcome, Unknown) and outcome.is_busy
            busy += is_busy
            repeats = is_busy and not is_last and busy <= policy.repeats
            found = _looked_up(catalog, base, sent, query, repeats=repeats)
            if found is None:
                raise _unknown(table, operation, sent)
            if found:
                return _finished(catalog, base, operation)
        if not is_last:
            if not sent:
                query.report(Progress(NOT_COMMITTED, attempt, detail=others.waited_for))
            wait(policy.wait_seconds(attempt), query)
        turn.take()
        base = others.seen(refreshed(catalog, table))
        if sent.are_applied(base) or operation.snapshot_id in base.metadata.snapshots:
            return _finished(catalog, base, operation)  # an attempt that seemed to have failed
        if is_last:
            raise CommitConflictError(
                f"cannot commit to {table.name} after {attempt} attempt{'s' * (attempt > 1)}: "
                f"{outcome.reason}; run the statement again, or raise {policy.limit}"
            )


class _Others:
    """Records commits of other writers while a commit is retried, for the progress text."""

    def __init__(self, table: Table) -> None:
        self._start, self._base, self._last = time.monotonic(), table, ""

    def seen(self, table: Table) -> Table:
        """Record the latest commit of another writer; return the table."""
        known = self._base.metadata.snapshots
        new = [each for key, each in table.metadata.snapshots.items() if key not in known]
        if new:
            last = max(new, key=lambda each: (each.sequence_number, each.timestamp_ms))
            who = last.summary.get("engine-name") or last.summary.get("app-id") or "another writer"
            self._last = f"{last.operation or 'a commit'} of {who}, snapshot {last.snapshot_id}"
        elif not is_same(table, self._base):
            self._last = "a change of its metadata"
        self._base = table
        return table

    @property
    def waited_for(self) -> str:
        """The progress text; "" at first, and if no other writer has committed."""
        seconds = time.monotonic() - self._start
        if seconds < _PATIENCE_SECONDS or not self._last:
            return ""
        return f"{seconds:.0f} s behind {self._last} · Ctrl-C stops it"


def _made(
    base: Table, operation: Operation, attempt: int, query: QueryContext
) -> TableChange | None:
    """The change to send, made from ``base``; None if there is nothing to do."""
    moment = max(now_ms(), base.metadata.last_updated_ms)
    updates = tuple(operation.updates(base, attempt, moment))
    if not updates:
        return None
    schemas = [each.schema for each in updates if isinstance(each, AddSchema)]
    specs = [each.spec for each in updates if isinstance(each, AddPartitionSpec)]
    if schemas or specs:
        # Checked here, since a server that writes the metadata may accept names that Java cannot
        # load.
        old, before = base.metadata.schemas.values(), base.metadata.specs.values()
        known = shared_names(old, before)
        check_partition_names((*old, *schemas), (*before, *specs), known)
    query.report(Progress(COMMITTING, attempt))
    needed = requirements_for(base.metadata, updates)
    return TableChange(updates, needed, base.storage, moment)


def swapped(send: Callable[[], Swap], is_open: bool, interrupted: Callable[[str], None]) -> Swap:
    """Send one request; ``interrupted`` is called with the reason if it may have been sent.

    Raises errors that refuse the change finally, unless an earlier request may be their cause, of
    which the outcome ``is_open``.
    """
    try:
        return send()
    except CommitConflictError as error:
        return Conflict(str(error))
    except Error as error:
        if not is_open:
            raise
        return Unknown(str(error))
    except BaseException as error:
        # A bug, or Ctrl-C: the request may have been sent.
        interrupted(f"it was interrupted ({type(error).__name__})")
        raise


def looks(query: QueryContext) -> Iterator[int]:
    """Numbers of the checks for the outcome of a commit, with a wait between them."""
    for number in range(_STATUS_CHECKS):
        if number:
            wait(_STATUS_WAIT_SECONDS, query)
        yield number


def _looked_up(
    catalog: Catalog, base: Table, sent: OpenRequests, query: QueryContext, *, repeats: bool
) -> bool | None:
    """True if the table has the change, False if it certainly has not; None if that stays open.

    With ``repeats``, False is also returned for a table without the change: it will be sent again.
    """
    for _ in looks(query):
        try:
            found = catalog.load(base.identifier)
        except Error:
            continue
        if sent.are_applied(found):
            return True
        if repeats or not sent:
            return False
    return None


def _unknown(base: Table, operation: Operation, sent: OpenRequests) -> CommitStateUnknownError:
    where = f"SELECT * FROM {base.name}.snapshots"
    return CommitStateUnknownError(
        f"the commit to {base.name} was sent and its outcome is unknown: {sent.reason}; look "
        f"whether it was applied ({where}) before running the statement again",
        snapshot_ids=sent.snapshot_ids,
        files=sent.files(operation),
    )


def _finished(catalog: Catalog, base: Table, operation: Operation) -> Table:
    try:
        table = load_to_change(catalog, base.identifier)
        operation.succeeded(table)
        if table.metadata_location != base.metadata_location:
            forget_metadata(base.metadata_location, table.storage)
        _delete_old_metadata(catalog, base, table)
    except BaseException as error:
        made = operation.snapshot_id
        raise CommitStateUnknownError(
            f"the commit to {base.name} was applied, but the table could not be looked at after "
            f"it: {error}",
            snapshot_ids=() if made is None else (made,),
            files=files_of(operation),
        ) from error
    return table


def _delete_old_metadata(catalog: Catalog, base: Table, table: Table) -> None:
    """Delete metadata files that dropped out of the metadata log, if a table property says so."""
    wanted = table.metadata.properties.get(_DELETES_METADATA, "false").lower() == "true"
    if not wanted or catalog.kind == "rest":  # a REST server writes and deletes these files
        return
    kept = {each.metadata_file for each in table.metadata.metadata_log}
    kept |= {base.metadata_location, table.metadata_location}
    # Only in the folder of the current metadata file: the log is not trusted, it could name any
    # other file.
    own = Roots.of([table.metadata_location.rpartition("/")[0]])
    for each in base.metadata.metadata_log:
        path = each.metadata_file
        name = path.rpartition("/")[2]
        if path not in kept and is_metadata_name(name) and own.hold_for_removal(path):
            remove_file(table.storage, path)


def is_same(one: Table, other: Table) -> bool:
    """True if there was no commit between two loads of a table."""
    return (one.metadata_location, one.metadata.last_updated_ms) == (
        other.metadata_location,
        other.metadata.last_updated_ms,
    )


def refreshed(catalog: Catalog, table: Table) -> Table:
    """Load the table's current state. Raises CommitConflictError if another table has its name."""
    return _same_table(table, catalog.load(table.identifier))


def _same_table(table: Table, found: Table) -> Table:
    if not is_same_table(table, found):
        raise CommitConflictError(
            f"the table {table.name} was replaced by another one of its name meanwhile"
        )
    return found


def wait(seconds: float, query: QueryContext) -> None:
    """Sleep, unless the statement is cancelled. Raises as ``query.check``."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        query.check()
        time.sleep(min(left, _STEP_SECONDS))
