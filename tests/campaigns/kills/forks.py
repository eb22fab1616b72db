"""A process that has everything imported forks those that run a statement, and kills them."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from msgspec import Struct

from tests.campaigns.kills.slow import Marks, Steps, install

_STEP_SECONDS = 0.004
_PATIENCE_SECONDS = 120


class Moment(Struct, frozen=True):
    """``seconds`` after step ``step`` of ``phase``; without a phase, after the beginning."""

    seconds: float
    phase: str = ""
    step: int = 0


class Job(Struct, frozen=True):
    """What a process connects to, runs, and when it is killed, if ever."""

    connect: dict[str, Any]
    sql: tuple[str, ...]
    delays: dict[str, float]
    kill: Moment | None
    errors: str


class Ended(Struct, frozen=True):
    """How it ended: killed, or with an exit status; seconds since it began with the first SQL."""

    killed: bool
    status: int
    seconds: float
    phase: str
    counts: dict[str, int]


def serve(pipe: Connection, memory: Any) -> None:
    """Answer jobs until there are no more. Has no threads: it forks."""
    marks = Marks(memory)
    while True:
        job = pipe.recv()
        if job is None:
            return
        if isinstance(job, list):
            for name in job:
                with suppress(Exception):
                    importlib.import_module(name)
            pipe.send(None)
            continue
        marks.clear()
        child = os.fork()
        if child == 0:
            _run(job, marks)
        pipe.send(_watched(child, job, marks))


def _run(job: Job, marks: Marks) -> None:
    status = 1
    try:
        os.setpgid(0, 0)
        import icesql

        install(Steps(marks, job.delays))
        marks.enter("reading")
        marks.start()
        with icesql.connect(**job.connect) as con:
            for each in job.sql:
                con.execute(each)
        marks.enter("done")
        if job.errors.endswith("modules"):
            with open(job.errors, "w", encoding="utf-8") as file:
                file.write("\n".join(sys.modules))
        status = 0
    except BaseException:
        with open(job.errors, "w", encoding="utf-8") as file:
            file.write(traceback.format_exc())
    finally:
        os._exit(status)


def _watched(child: int, job: Job, marks: Marks) -> Ended:
    patience = time.monotonic() + _PATIENCE_SECONDS
    ended = 0
    while not marks.started and not ended and time.monotonic() < patience:
        time.sleep(0.001)
        ended, status = os.waitpid(child, os.WNOHANG)
    start = time.monotonic()
    moment = job.kill
    while not ended and moment is not None and marks.counts.get(moment.phase, 0) < moment.step:
        time.sleep(_STEP_SECONDS)
        ended, status = os.waitpid(child, os.WNOHANG)
    until = patience if moment is None else time.monotonic() + moment.seconds
    while not ended and time.monotonic() < until:
        time.sleep(max(0.0, min(_STEP_SECONDS, until - time.monotonic())))
        ended, status = os.waitpid(child, os.WNOHANG)
    seconds = time.monotonic() - start
    if not ended:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return Ended(code == -signal.SIGKILL, code, seconds, marks.phase, marks.counts)
