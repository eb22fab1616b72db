"""The Spark session that queries run in, found or started, with all pinned that SQL means."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

from icesql.engine.spark.errors import spark_exceptions
from icesql.engine.spark.releases import context_module
from icesql.engine.spark.session.clients import beside, connect, is_connect, leave
from icesql.engine.spark.session.required import (
    BROADCAST_LIMIT,
    BROADCAST_LIMIT_OF_RUN,
    PINNED,
    PINNED_FOR_TEXT,
    TIME_ZONE,
    one_at_a_time,
    require,
    require_pyspark,
)
from icesql.engine.spark.session.started import follow, has_ended, has_session, start
from icesql.errors import OperationalError, ProgrammingError

if TYPE_CHECKING:
    from collections.abc import Mapping

# How long closing waits for a thread that opens a session.
_BUSY_SECONDS: Final = 2.0
_ENDED: Final = "the Spark session of this connection has ended; connect with another"


class SparkSessions:
    """Where Spark comes from: the user's session, a Connect server, or a master started here."""

    def __init__(self, chosen: Mapping[str, Any]) -> None:
        self._chosen = chosen
        self._root: Any = None
        self._started = False
        self._by_zone: dict[tuple[str, bool], Any] = {}
        # Sessions of a Connect server that are not the user's.
        self._opened: list[Any] = []
        self._lock = threading.Lock()
        self._noted: set[str] = set()
        self._stale: deque[tuple[Any, tuple[str, ...]]] = deque()

    def drop_later(self, frame: Any, views: tuple[Any, tuple[str, ...]]) -> None:
        """Views of a DataFrame of Spark Connect are dropped once nothing is made of it any more."""
        finalize(frame._plan, self._stale.append, views).atexit = False

    def drop_stale(self) -> None:
        """Drop the views that no DataFrame reads: a finalizer may not speak to a server."""
        while self._stale:
            session, names = self._stale.popleft()
            try:
                for name in names:
                    session.catalog.dropTempView(name)
            except spark_exceptions():
                # The session has ended, and its views with it.
                continue

    def first_note(self, note: str | None) -> tuple[str, ...]:
        """Returns the note once per session."""
        with self._lock:
            if note is None or note in self._noted:
                return ()
            self._noted.add(note)
            return (note,)

    def session(self, timezone: str, *, for_text: bool = False) -> Any:
        """A session whose settings are those of icesql, in ``timezone``.

        ``for_text``: one in which Spark's own text means what it means in Spark.
        On a master it is one of its own beside the user's, so theirs keeps its settings. Raises
        MissingExtraError, ProgrammingError, OperationalError. A Spark that was started here and
        has ended is started again.
        """
        with self._lock:
            if self._root is not None and _is_over(self._root):
                if self._chosen.get("session") is not None:
                    raise OperationalError(_ENDED)
                self._root = None
                self._by_zone.clear()
            if self._root is None:
                self._root = self._open()
            key = timezone, for_text
            if key not in self._by_zone:
                pinned = PINNED_FOR_TEXT if for_text else PINNED
                self._by_zone[key] = self._pinned({**pinned, TIME_ZONE: timezone})
            return self._by_zone[key]

    def _pinned(self, settings: Mapping[str, str]) -> Any:
        root = self._root
        # As the user has it: also where the server gives icesql no session of its own.
        known = (root.conf.get(name, None) for name in (BROADCAST_LIMIT_OF_RUN, BROADCAST_LIMIT))
        limit = next(filter(None, known), "10m")
        session = beside(root, self._opened) if is_connect(root) else root.newSession()
        for name, value in {**settings, BROADCAST_LIMIT_OF_RUN: limit}.items():
            session.conf.set(name, value)
        return session

    def _open(self) -> Any:
        require_pyspark()
        given = [name for name in ("session", "master", "remote") if self._chosen.get(name)]
        if len(given) > 1:
            raise ProgrammingError(f"pass only one of {' and '.join(given)}")
        if self._chosen.get("session") is not None:
            return self._chosen["session"]
        if self._chosen.get("remote"):
            self._started = True
            return connect(str(self._chosen["remote"]), self._opened)
        master = self._chosen.get("master")
        hint = "the PySpark that is installed only speaks Spark Connect: remote=…"
        require("a Spark to start", context_module(), hint=hint)
        # PySpark's context belongs to the process: two connections must not start or reset it.
        with one_at_a_time:
            self._started = not has_session()
            return start(str(master) if master else None)

    def check(self) -> None:
        """Raises OperationalError when the session was stopped: PySpark then fails anyhow."""
        root = self._root
        if root is not None and _is_over(root):
            raise OperationalError(_ENDED)

    def forget(self) -> None:
        """Drop cached sessions that the server has ended without PySpark noticing."""
        with self._lock:
            root, opened = self._root, self._opened
            if root is None:
                return
            if not is_connect(root):
                if self._started and not has_ended(root):
                    follow(root.sparkContext)
                return
            self._opened = []
            self._by_zone.clear()
            if self._started:
                self._root = None
        leave(opened, gone=True)

    def close(self) -> None:
        """End the Connect sessions that were made here; a session of the user stays.

        A JVM is kept: starting one costs seconds, and the next connection wants it again. A server
        that does not answer holds nobody up for more than seconds.
        """
        if not self._lock.acquire(timeout=_BUSY_SECONDS):
            # A thread waits for the server with the lock in its hand; without a channel it ends.
            leave(tuple(self._opened), gone=True)
            if not self._lock.acquire(timeout=_BUSY_SECONDS):
                return
        try:
            self._root, opened = None, self._opened
            self._opened = []
            self._by_zone.clear()
        finally:
            self._lock.release()
        leave(opened)


def _is_over(session: Any) -> bool:
    """Whether a session on a master has ended; of one on a server nobody knows until it is used."""
    return not is_connect(session) and has_ended(session)
