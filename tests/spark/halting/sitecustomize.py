"""Lets a test stop one Spark task in its middle: on the PYTHONPATH of Spark's workers.

Python imports this automatically. In ``$ICESQL_HALTS`` the first task that finds the file ``armed``
removes it, returns its first batch, writes its identity to ``halted`` and waits to be killed. Each
task writes its actions as lines of ``log``.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import sys
import time
from pathlib import Path

WATCHED = "icesql.engine.spark.worker"


class _Finder:
    """Wraps ``unpack`` of the watched module, by which each task gets its job."""

    def find_spec(self, name, path=None, target=None):
        if name != WATCHED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None:
            execute = spec.loader.exec_module

            def wrapped(module):
                execute(module)
                module.unpack = _halting(module.unpack)

            spec.loader.exec_module = wrapped
        return spec


def _halting(unpack):
    folder = Path(os.environ["ICESQL_HALTS"])

    def halting(data):
        from pyspark import TaskContext

        found, context = unpack(data), TaskContext.get()
        if context is None:
            # Planning for Spark also unpacks values, which are no jobs.
            return found
        if isinstance(found, tuple):
            # Tasks of queries have a prefix that marks their errors.
            mark, job = found
            if isinstance(job, tuple):
                # A numbered job of a compaction, which returns no batches.
                return found
            # A job with rows writes what a watched task of the same stage reads.
            return mark, lambda *rows: job(*rows) if rows else _watched(job, folder, context)
        return lambda: _watched(found, folder, context)

    return halting


def _watched(job, folder, context):
    who = {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "stage": context.stageId(),
        "partition": context.partitionId(),
        "attempt": context.attemptNumber(),
    }

    def tell(what):
        with open(folder / "log", "a", encoding="utf-8") as log:
            log.write(json.dumps({**who, "what": what}) + "\n")

    tell("begin")
    for batch in job():
        yield batch
        tell(f"gave {batch.num_rows}")
        if _take(folder):
            _halt(folder, who)
    tell("end")


def _take(folder):
    try:
        os.rename(folder / "armed", folder / f"taken-{os.getpid()}")
    except FileNotFoundError:
        return False
    return True


def _halt(folder, who):
    (folder / "halted.new").write_text(json.dumps(who), encoding="utf-8")
    os.rename(folder / "halted.new", folder / "halted")
    end = time.monotonic() + 100
    while time.monotonic() < end:
        time.sleep(0.05)
    raise TimeoutError("nobody ended the halted task")


if "ICESQL_HALTS" in os.environ:
    sys.meta_path.insert(0, _Finder())
