"""The context of one statement: settings, cancellation, deadline, clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Generic, TypeVar, cast

from msgspec import Struct, field

from icesql.config import Settings
from icesql.errors import OperationalError, QueryCancelledError, ScanLimitError
from icesql.frozen import Frozen

T = TypeVar("T")

_STEP_SECONDS: Final = 0.02
# The most abandoned calls of the process; more mean that something hangs.
_MOST_ABANDONED: Final = 256
_abandoned: Final[set[BackgroundCall[Any]]] = set()
_lock: Final = threading.Lock()
_running: Final = threading.local()
# Bytes of a parse tree per word of its text: numbers, names and signs (measured).
_WORD_BYTES: Final = 2_000
_LONG_TEXT: Final = 20_000
_reads: ContextVar[QueryContext | None] = ContextVar("icesql_reads", default=None)


class BackgroundCall(Generic[T]):
    """A call in its own thread, for blocking calls that cannot be cancelled: stores, catalogs.

    The waiting thread may abandon it: then its result is dropped, and closed if it can be. The
    thread is a daemon, so it keeps no process alive. Raises OperationalError when too many are
    abandoned.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        if len(_abandoned) >= _MOST_ABANDONED:
            raise OperationalError(
                f"{len(_abandoned)} abandoned requests still wait for a store or a catalog "
                "that does not answer; try again when it does"
            )
        self._function: Callable[[], T] | None = function
        self._value: T | None = None
        self._error: BaseException | None = None
        self._done = threading.Event()
        self._is_abandoned = False
        self._at_end: Callable[[], object] | None = None
        try:
            threading.Thread(target=self._run, name="icesql-background-call", daemon=True).start()
        except RuntimeError as error:
            raise OperationalError(f"cannot start a thread for a request: {error}") from error

    def _run(self) -> None:
        assert self._function is not None
        _running.call = self
        try:
            self._value = self._function()
        except BaseException as error:
            self._error = error
        self._function = None
        with _lock:
            self._done.set()
            was_abandoned = self in _abandoned
            _abandoned.discard(self)
        if was_abandoned:
            self._drop()

    def result(self, query: QueryContext) -> T:
        """The result of the call or its exception; abandon the call if ``query`` ends first."""
        try:
            while not self._done.wait(_STEP_SECONDS):
                query.check()
        except BaseException:
            query.cancel.set()
            self.abandon()
            raise
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    def abandon(self) -> None:
        """Stop waiting for it."""
        with _lock:
            self._is_abandoned = True
            if not self._done.is_set():
                _abandoned.add(self)
                end, self._at_end = self._at_end, None
            else:
                end = self._drop
        if end is not None:
            end()

    def _drop(self) -> None:
        close = getattr(self._value, "close", None)
        self._value = self._error = None
        if close is not None:
            with suppress(Exception):
                close()


def end_with_call(end: Callable[[], object] | None) -> None:
    """Call ``end`` when the call that this thread runs is abandoned, at once if it already is."""
    call = getattr(_running, "call", None)
    if call is None:
        return
    with _lock:
        call._at_end = end
        is_abandoned = call._is_abandoned
    if is_abandoned and end is not None:
        end()


class Variables(dict[str, Any]):
    """Parameters of a whole session: a statement may use none of them."""


# Stages of a commit: an attempt begins; it is certain that none so far was applied.
COMMITTING: Final = "committing"
NOT_COMMITTED: Final = "not committed"


class Progress(Frozen):
    """How far a stage is; ``total`` is None and ``bytes_total`` 0 while unknown.

    ``detail`` is further information, in words.
    """

    stage: str
    done: int
    total: int | None = None
    bytes_done: int = 0
    bytes_total: int = 0
    detail: str = ""


def reading_query() -> QueryContext | None:
    """The statement whose text this thread parses, or None."""
    return _reads.get()


def check_reading(words: int = 0) -> None:
    """Check the deadline of the statement whose text is parsed; the text has ``words`` words.

    Raises QueryCancelledError, and ScanLimitError where the tree of the text would not fit.
    """
    query = _reads.get()
    if query is None:
        return
    query.check()
    if words * _WORD_BYTES > query.settings.memory_limit:
        raise ScanLimitError(
            f"reading a statement of {words:,} words takes about {words * _WORD_BYTES >> 20:,} MB, "
            "more than memory_limit; put rows into a file or a parameter, or raise memory_limit"
        )


def seconds_to_read(length: int) -> float | None:
    """The seconds left to parse a text of ``length`` characters.

    None without a limit, and for a short text, whose time does not matter.
    """
    query = _reads.get()
    if query is None or query.deadline is None or length < _LONG_TEXT:
        return None
    return max(query.deadline - time.monotonic(), 0.0)


def read_in_time(function: Callable[[], T], length: int) -> T:
    """Run ``function``, a reader of a text of ``length`` characters, within the statement's time.

    Foreign tokenizers and parsers check no deadline: a long text is parsed in another thread, which
    ends at its next ``check_reading`` once it is abandoned. Raises what ``function`` raises, and
    QueryCancelledError.
    """
    query = _reads.get()
    if query is None or seconds_to_read(length) is None:
        return function()
    return query.wait_for(partial(copy_context().run, function))


class QueryContext(Struct):
    """Made by ``session`` for one statement and handed down; nothing about a query is global.

    ``meanwhile`` is called once, while the next call is waited for, to prepare something that is
    needed later. Its errors are dropped; the later use raises them again.

    ``now`` is the instant of ``now()`` and of relative times for the whole statement.
    ``deadline`` is on the ``time.monotonic`` clock, None without a limit.
    """

    settings: Settings = field(default_factory=Settings)
    cancel: threading.Event = field(default_factory=threading.Event)
    deadline: float | None = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    progress: Callable[[Progress], None] | None = None
    # In-memory tables that only this statement can use, by their names in lower case.
    tables: Mapping[str, Any] = field(default_factory=dict)
    meanwhile: Callable[[], object] | None = None
    # Tables that are already open, if the queries of one statement must see the same versions.
    opened: dict[Any, Any] | None = None
    # The bound parts of this statement whose result differs each time, such as ``random()``; None
    # if they are not collected.
    once: set[str] | None = None
    # How long commits are tried, in seconds, unless table properties set it; None is the time of
    # maintenance.
    commit_seconds: float | None = 60.0
    # The rows of SQL without tables on the session's engine; see ``LocalEngine.evaluate``.
    evaluate: Callable[[str, Sequence[Any], QueryContext], list[tuple[Any, ...]] | None] | None = (
        None
    )
    # The tree of a SELECT as JSON by the session's engine; see ``EngineTree``.
    serialize: Callable[[str], str] | None = None
    # Additional entries of the summaries of the snapshots that it makes.
    summary: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def begin(
        cls,
        settings: Settings,
        cancel: threading.Event | None = None,
        progress: Callable[[Progress], None] | None = None,
        tables: Mapping[str, Any] | None = None,
        since: float | None = None,
    ) -> QueryContext:
        """The context of a statement that starts now, or started at ``since`` (monotonic clock).

        Its deadline follows ``query_timeout``.
        """
        limit = settings.query_timeout
        begun = time.monotonic() if since is None else since
        deadline = None if limit is None else begun + limit
        return cls(
            settings, cancel or threading.Event(), deadline, progress=progress, tables=tables or {}
        )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block in which texts are read for this statement; see ``check_reading``."""
        token = _reads.set(self)
        try:
            yield
        finally:
            _reads.reset(token)

    def check(self) -> None:
        """Raises QueryCancelledError once the query was cancelled or its time is over."""
        if self.cancel.is_set():
            raise QueryCancelledError("the query was cancelled")
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise QueryCancelledError(
                "the query exceeded its time limit "
                f"(query_timeout = {self.settings.query_timeout} s)"
            )

    def wait_for(self, function: Callable[[], T]) -> T:
        """``function()``, abandoned when this query is cancelled or its time is over.

        For calls that may block. Raises what ``function`` raises, and what ``check`` does.
        """
        self.check()
        call = BackgroundCall(function)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            try:
                with suppress(Exception):
                    meanwhile()
            except BaseException:
                call.abandon()
                raise
        return call.result(self)

    def report(self, progress: Progress) -> None:
        """Pass progress to the callback, if there is one."""
        if self.progress is not None:
            self.progress(progress)
