"""What a process does that damages tables: it says what came of each damage.

A process of its own, so that a crash or a hang is a result and not the end of the tests.
"""

from __future__ import annotations

import os
import resource
import signal
import tempfile
import time
import traceback
from pathlib import Path

import icesql
from tests.damage.damages import copy_table, random_damage, says_something_else
from tests.damage.structured import structured_damage
from tests.writer.model import seen_rows

MEMORY = 8 << 30
# Of the processor: a busy machine is slow. What takes more ends the process.
SECONDS = 60
QUERIES = (
    ("auto", "SELECT * FROM t"),
    ("arrow", "SELECT * FROM t"),
    ("auto", "SELECT count(*) FROM t"),
)


class Worker:
    def __init__(self, folder):
        self.folder, self.tables, self.answers = folder, {}, {}
        self.healthy = None

    def table(self, metadata):
        if metadata not in self.tables:
            folder = Path(self.folder) / str(len(self.tables))
            table = self.tables[metadata] = copy_table(metadata, folder)
            with connect() as connection:
                self.answers[metadata] = [
                    ask(connection, table.metadata, *query) for query in QUERIES
                ]
        return self.tables[metadata], self.answers[metadata]

    def run(self, job):
        table, expected = self.table(job["metadata"])
        if self.healthy is None:
            with connect() as connection:
                answer = ask(connection, job["healthy"], "auto", "SELECT * FROM t")
            self.healthy = job["healthy"], answer
        make = structured_damage if job.get("structured") else random_damage
        damage = make(job["seed"], table)
        damage.apply()
        forget_peak()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        seconds = []
        try:
            with connect() as connection:
                results = []
                for query, want in zip(QUERIES, expected, strict=True):
                    started = time.process_time()
                    results.append(self.judge(connection, damage, table, want, *query))
                    seconds.append(time.process_time() - started)
                self.check_alive(connection, results[-1])
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            damage.undo()
        whole = any(each[0] == "wrong" for each in results) and says_something_else(damage)
        return {
            "damage": str(damage),
            "kind": damage.kind,
            "role": damage.role,
            "what": damage.detail,
            "seconds": max(seconds),
            "peak": peak_bytes(),
            "whole": whole,
            # A swap that neither lengths nor counts of rows can tell.
            "hidden": len(damage.before) == len(damage.after)
            or {damage.path, damage.other} <= table.odd,
            "results": results,
        }

    def judge(self, connection, damage, table, expected, reader, sql):
        try:
            rows = ask(connection, table.metadata, reader, sql)
        except icesql.Error as error:
            verdict = "named" if names_a_file(error, damage) else "unnamed"
            result = [verdict, f"{type(error).__name__}: {error}"]
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{os.path.basename(where.filename)}:{where.lineno}"
            result = ["foreign", f"{type(error).__name__}: {error} at {place}"]
        else:
            result = ["right", ""]
            if rows != expected:
                result = ["wrong", f"{len(expected)} rows expected, {len(rows)} read"]
        return [*result, reader, sql]

    def check_alive(self, connection, result):
        """The connection still answers about other tables."""
        metadata, expected = self.healthy
        try:
            rows = ask(connection, metadata, "auto", "SELECT * FROM t")
        except Exception as error:
            result[:2] = ["dead", f"after {result[1]}: {type(error).__name__}: {error}"]
        else:
            if rows != expected:
                result[:2] = ["dead", f"after {result[1]}: other rows of another table"]


def forget_peak():
    """Let ``peak_bytes`` begin anew; only Linux can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_bytes():
    """The most memory held since ``forget_peak``, 0 where that is not known."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    line = next(each for each in status.splitlines() if each.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def connect():
    return icesql.connect(settings={"memory_limit": "1GB", "threads": "2"})


def ask(connection, metadata, reader, sql):
    connection.register_table("t", metadata)
    connection.execute(f"SET local_reader = '{reader}'")
    return seen_rows(connection.execute(sql).fetchall())


def names_a_file(error, damage):
    text = str(error)
    if os.path.basename(damage.path) in text:
        return True
    if damage.other is not None and os.path.basename(damage.other) in text:
        return True
    # A damaged path leads to a file that is not there, or to one of another kind.
    path = getattr(error, "path", None)
    return bool(path) and path in text


def opened(folder):
    """What the process of a side runs: a damage for each job."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    return Worker(tempfile.mkdtemp(dir=folder)).run
