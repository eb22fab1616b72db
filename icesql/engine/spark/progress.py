"""Identify, count and cancel the Spark jobs of one query."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from msgspec.structs import replace

from icesql.context import Progress, QueryContext
from icesql.engine.spark.errors import spark_exceptions
from icesql.engine.spark.releases import cancel_jobs
from icesql.engine.spark.sessions import is_connect
from icesql.frozen import Frozen

_STEP_SECONDS: Final = 0.1
# How long to wait for the last counts: Spark's own bookkeeping is late.
_SETTLE_SECONDS: Final = 0.5
# Cancelling is repeated, since jobs that are just starting may miss the first request.
_CANCEL_PAUSES: Final = (0.0, 0.1, 0.2, 0.4, 0.8)


def _gone() -> tuple[type[BaseException], ...]:
    # A closed gRPC channel raises ValueError.
    return (*spark_exceptions(), ValueError)


class Stage(Frozen):
    """Spark's counts of a stage."""

    tasks: int
    done: int
    bytes_read: int = 0
    shuffled: bool = False


class SparkJobs:
    """The jobs of threads that called ``join`` share a tag; ``cancel`` ends them from any thread.

    ``waiting`` is the number of known further tasks.
    """

    def __init__(self, session: Any, query: QueryContext) -> None:
        self._session, self._query = session, query
        self.tag = f"icesql-{secrets.token_hex(8)}"
        self.waiting = 0
        # Tasks of icesql's own reading, and the bytes that they read: Spark does not count those.
        self.own_tasks = self.own_bytes = 0
        self._lock = threading.Lock()
        self._canceller: threading.Thread | None = None
        self._ended = threading.Event()
        # While rows are read, jobs may start; those of a shuffle even in a cancelled group.
        self._reading = False

    def join(self) -> None:
        """Assign the jobs that this thread starts from now on to the query."""
        if is_connect(self._session):
            self._session.addTag(self.tag)
        else:
            # The thread belongs to the query, so its job group need not be restored.
            self._session.sparkContext.setJobGroup(self.tag, "icesql", interruptOnCancel=True)

    # ------------------------------------------------------------------ cancel

    def cancel(self) -> None:
        """Stop the jobs of this query soon; returns at once, whatever Spark is doing."""
        with self._lock:
            if self._canceller is not None and self._canceller.is_alive():
                return
            self._canceller = threading.Thread(
                target=self._cancel, name="icesql-cancel", daemon=True
            )
            self._canceller.start()

    def _cancel(self) -> None:
        for pause in itertools.chain(_CANCEL_PAUSES, itertools.repeat(_CANCEL_PAUSES[-1])):
            if pause == _CANCEL_PAUSES[-1] and not self._reading:
                return
            time.sleep(pause)
            try:
                self._tell()
            except _gone():
                # Spark has ended: there is nothing to stop.
                return
            finally:
                self._ended.set()

    def _tell(self) -> None:
        if is_connect(self._session):
            self._session.interruptTag(self.tag)
            return
        java = self._session.sparkContext._jsc
        if java is not None:
            # Only this query has the tag: later jobs with it are not wanted either.
            cancel_jobs(java, self.tag)

    def wait(self, seconds: float) -> None:
        """After ``cancel``, wait at most ``seconds`` until Spark has received it."""
        if self._canceller is not None:
            self._ended.wait(seconds)

    def have_retried(self) -> bool:
        """True if Spark ran a stage of these jobs again: its tasks count attempts from 0 again.

        False on Connect, where this is unknown.
        """
        if is_connect(self._session):
            return False
        tracker = self._session.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(each) for each in tracker.getJobIdsForGroup(self.tag)]
        stages = {stage for job in jobs if job is not None for stage in job.stageIds}
        attempts = [info for each in stages if (info := tracker.getStageInfo(each)) is not None]
        return any(info.currentAttemptId > 0 for info in attempts)

    # ------------------------------------------------------------------ progress

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Report progress while the jobs run, if the query has a progress callback."""
        self._reading = True
        try:
            with self._reported():
                yield
        finally:
            self._reading = False

    @contextmanager
    def _reported(self) -> Iterator[None]:
        if self._query.progress is None:
            yield
            return
        if is_connect(self._session):
            # PySpark 3.5 reports no progress.
            heard = hasattr(self._session, "registerProgressHandler")
            with self._handling() if heard else nullcontext():
                yield
            return
        done, whole = threading.Event(), [False]
        watcher = threading.Thread(
            target=self._watch, args=(done, whole), name="icesql-progress", daemon=True
        )
        watcher.start()
        try:
            yield
            whole[0] = True
        finally:
            done.set()
            watcher.join()

    @contextmanager
    def _handling(self) -> Iterator[None]:
        thread = threading.get_ident()
        last: list[Stage] = []

        def handle(stages: Any, inflight_tasks: int, operation_id: str, done: bool) -> None:
            # A session calls its handlers for all queries, each in the thread that reads it.
            if threading.get_ident() == thread:
                found = [
                    Stage(each.num_tasks, each.num_completed_tasks, each.num_bytes_read)
                    for each in sorted(stages or (), key=lambda each: each.stage_id)
                ]
                if found and found != last:
                    last[:] = found
                    self._query.report(self.progress(found))

        self._session.registerProgressHandler(handle)
        try:
            yield
            # The server reports every few seconds, and not at the end.
            ended = [replace(each, done=each.tasks) for each in last]
            if ended != last:
                self._query.report(self.progress(ended))
        finally:
            self._session.removeProgressHandler(handle)

    def progress(self, stages: Iterable[Stage], waiting: int = 0) -> Progress:
        """Progress in tasks and bytes; ``stages`` are in the order of their ids."""
        done = total = size = own = 0
        for stage in stages:
            done, total = done + stage.done, total + stage.tasks
            size += stage.bytes_read
            if not stage.bytes_read and not stage.shuffled:
                own += stage.done
        if self.own_tasks:
            # Reading comes first: tasks for which Spark counts no bytes were icesql's.
            size += self.own_bytes * min(own, self.own_tasks) // self.own_tasks
        return Progress("spark", done, total + waiting, size)

    def _watch(self, done: threading.Event, whole: list[bool]) -> None:
        counter = _StageCounter(self._session.sparkContext, self.tag)
        last: Progress | None = None
        end: float | None = None
        while True:
            ended = done.wait(_STEP_SECONDS if end is None else 0.01)
            try:
                progress = self.progress(counter.stages(), self.waiting)
            except spark_exceptions():
                return
            if last is not None and progress.total is not None and last.total is not None:
                progress = Progress(
                    "spark",
                    max(progress.done, last.done),
                    max(progress.total, last.total),
                    max(progress.bytes_done, last.bytes_done),
                )
            if progress != last and progress.total:
                self._query.report(progress)
            last = progress
            if ended:
                end = end or time.monotonic() + _SETTLE_SECONDS
                settled = progress.total and progress.done == progress.total
                if settled or not whole[0]:
                    return
                if time.monotonic() > end:
                    # All rows have arrived; a busy status store counts the last tasks later.
                    if progress.total:
                        self._query.report(replace(progress, done=progress.total))
                    return


class _StageCounter:
    """The stages of a job group, from Spark's status store."""

    def __init__(self, context: Any, group: str) -> None:
        self._tracker = context.statusTracker()
        self._store = context._jsc.sc().statusStore()
        self._group = group
        self._finished: dict[int, dict[int, Stage]] = {}

    def stages(self) -> list[Stage]:
        """All stages that ran, run or will run, without those that an earlier job has computed."""
        found: dict[int, Stage] = {}
        for job in sorted(self._tracker.getJobIdsForGroup(self._group)):
            found |= self._finished.get(job) or self._of_job(job)
        return [found[stage] for stage in sorted(found)]

    def _of_job(self, job: int) -> dict[int, Stage]:
        info = self._tracker.getJobInfo(job)
        if info is None:
            return {}
        read: list[tuple[int, str, Stage]] = []
        for stage in sorted(info.stageIds):
            data = self._store.lastStageAttempt(stage)
            counts = Stage(
                data.numTasks(),
                data.numCompletedIndices(),
                data.inputBytes(),
                data.shuffleReadBytes() > 0,
            )
            read.append((stage, str(data.status()), counts))
        # When the last stage has begun, pending stages will not run.
        begun = bool(read) and read[-1][1] not in ("PENDING", "SKIPPED")
        skipped = ("PENDING", "SKIPPED") if begun else ("SKIPPED",)
        found = {stage: counts for stage, status, counts in read if status not in skipped}
        if info.status != "RUNNING" and all(s.done >= s.tasks for s in found.values()):
            self._finished[job] = found
        return found
