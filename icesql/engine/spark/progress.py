"""The Spark jobs of one query: told apart, counted and cancelled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from icesql.context import Progress, QueryContext
from icesql.engine.spark.session import is_connect

_STEP_SECONDS: Final = 0.1


class SparkJobs:
    """Jobs that run inside ``tagged()`` carry one tag; ``cancel`` ends them from any thread."""

    def __init__(self, session: Any, tag: str, query: QueryContext) -> None:
        self._session, self.tag, self._query = session, tag, query

    @contextmanager
    def tagged(self) -> Iterator[None]:
        """Jobs started by this thread belong to the query."""
        if is_connect(self._session):
            self._session.addTag(self.tag)
            try:
                yield
            finally:
                self._session.removeTag(self.tag)
            return
        context = self._session.sparkContext
        # The thread is the query's own, so its group needs no restoring.
        context.setJobGroup(self.tag, "icesql", interruptOnCancel=True)
        yield

    def cancel(self) -> None:
        """Stop the jobs of this query; harmless when none runs."""
        from icesql.engine.spark.errors import spark_exceptions

        try:
            if is_connect(self._session):
                self._session.interruptTag(self.tag)
            elif self._session.sparkContext._jsc is not None:
                self._session.sparkContext.cancelJobGroup(self.tag)
        except spark_exceptions():
            # Spark is gone already: nothing is left to stop.
            return

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Report progress while the jobs run, if somebody wants to know."""
        if self._query.progress is None:
            yield
            return
        if is_connect(self._session):
            self._session.registerProgressHandler(self._on_progress)
            try:
                yield
            finally:
                self._session.removeProgressHandler(self._on_progress)
            return
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(done,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()

    def _on_progress(self, stages: Any, inflight_tasks: int, operation_id: str, done: bool) -> None:
        stages = list(stages or ())
        self._query.report(
            Progress(
                "spark",
                sum(stage.num_completed_tasks for stage in stages),
                sum(stage.num_tasks for stage in stages),
                sum(stage.num_bytes_read for stage in stages),
            )
        )

    def _watch(self, done: threading.Event) -> None:
        tracker = self._session.sparkContext.statusTracker()
        last = (-1, -1)
        while True:
            ended = done.wait(_STEP_SECONDS)
            counts = self._counts(tracker)
            if counts != last and counts[1]:
                last = counts
                self._query.report(Progress("spark", *counts))
            if ended:
                return

    def _counts(self, tracker: Any) -> tuple[int, int]:
        from icesql.engine.spark.errors import spark_exceptions

        finished = total = 0
        try:
            for job in tracker.getJobIdsForGroup(self.tag):
                info = tracker.getJobInfo(job)
                for stage in info.stageIds if info is not None else ():
                    details = tracker.getStageInfo(stage)
                    if details is not None:
                        finished += details.numCompletedTasks
                        total += details.numTasks
        except spark_exceptions():
            return finished, total
        return finished, total
