"""The command that maintains a lake, run to its end or killed, and a writer beside it."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.campaigns.lakes.lake import GeneratedTable, Lake

POLICY = """
actions = [{actions}]
retention = "5d"
min_snapshots = 1
"""
ACTIONS = ("convert", "compact", "deletes", "manifests", "statistics", "expire", "orphans")
# Each of them is forked from a process that has imported what it needs.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.campaigns.lakes.imported"])
_ROOT = str(Path(__file__).parents[3])

# Appends, updates and deletes table after table; a line for each statement that is committed.
_WRITER = """
import json, random, sys, time, icesql
given, names, seed, ledger = json.loads(sys.argv[1]), json.loads(sys.argv[2]), *sys.argv[3:]
chance = random.Random(int(seed))
con = icesql.connect(**given, read_only=False)
number, failed = 1_000_000, 0
with open(ledger, "w") as out:
    def say(*line):
        out.write(json.dumps(line) + "\\n")
        out.flush()
    while True:
        name = chance.choice([*names])
        deletes = names[name]
        own = [*range(1_000_000, number)]
        kind = chance.choice(["insert", "insert", "delete", "update"]) if deletes else "insert"
        some = chance.sample(own, min(5, len(own))) if own else []
        listed = ", ".join(map(str, some)) or "-1"
        say("try", name, kind, number, some)
        try:
            if kind == "insert":
                con.execute(
                    f"INSERT INTO {name} (id, p, x) SELECT range, 0, range "
                    f"FROM range({number}, {number + 20})"
                )
            elif kind == "delete":
                con.execute(f"DELETE FROM {name} WHERE id IN ({listed})")
            else:
                con.execute(f"UPDATE {name} SET x = x + 1 WHERE id IN ({listed})")
        except icesql.CommitConflictError as error:
            say("conflict", name, kind, number, some)
            failed += 1
            number += 20
            continue
        say("done", name, kind, number, some)
        number += 20
        time.sleep(0.05)
"""


class Maintenance:
    """Runs of ``icesql maintain --all`` that go on with one another by their history."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._policy = lake.folder / "policy.toml"
        actions = ", ".join(f'"{each}"' for each in ACTIONS)
        self._policy.write_text(POLICY.format(actions=actions))
        self._number = 0

    def _begin(self) -> Any:
        words = [
            "maintain", "--all", *self._lake.words, "--policy", str(self._policy),
            "--history", str(self._lake.folder / "history.jsonl"), "--format", "json",
        ]  # fmt: skip
        process = _PROCESSES.Process(target=run_command, args=(words, str(self._lake.folder)))
        process.start()
        return process

    def run(self) -> dict[str, Any]:
        """To its end; the report. Raises RuntimeError for a run that failed without one."""
        process = self._begin()
        process.join()
        text = (self._lake.folder / "report.json").read_text()
        try:
            return {**json.loads(text), "code": process.exitcode}
        except ValueError:
            tail = (self._lake.folder / "progress.txt").read_text()[-2000:]
            raise RuntimeError(f"maintenance ended with {process.exitcode}: {tail}") from None

    def run_and_kill(self, seconds: float) -> bool:
        """Kill it after so many seconds of its CPU; whether it was still at work."""
        process = self._begin()
        while process.is_alive() and _cpu_of(process.pid) < seconds:
            process.join(0.002)
        process.kill()
        process.join()
        return bool(process.exitcode == -signal.SIGKILL)


def run_command(words: list[str], folder: str) -> None:
    """Run ``icesql`` in this process, and end it with its code."""
    from icesql.cli import main

    for name, number, mode in (("report.json", 1, "w"), ("progress.txt", 2, "a")):
        with open(os.path.join(folder, name), mode) as file:
            os.dup2(file.fileno(), number)
    sys.exit(main(words))


def _cpu_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0  # it has ended
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Writer:
    """A process that writes some tables; ``stop`` says what their rows are to be."""

    def __init__(self, lake: Lake, tables: list[GeneratedTable], seed: int) -> None:
        self._tables = {each.name: each for each in tables}
        self._ledger = lake.folder / "ledger.jsonl"
        names = {each.name: each.stream.version > 1 for each in tables}
        words = [
            sys.executable, "-c", _WRITER, json.dumps(lake.connection), json.dumps(names),
            str(seed), str(self._ledger),
        ]  # fmt: skip
        self._errors = lake.folder / "writer.txt"
        with open(self._errors, "w") as errors:
            self._process = subprocess.Popen(words, stderr=errors, cwd=_ROOT)

    @property
    def has_failed(self) -> bool:
        """Whether it has ended by itself."""
        return self._process.poll() is not None

    def stop(self) -> tuple[dict[str, dict[int, float]], dict[str, int], set[str]]:
        """The ids and x of its rows in each table, its commits and conflicts, unsure tables.

        It is killed in the middle of a statement: that of its last line may be done or not.
        """
        if self.has_failed:
            raise RuntimeError(self._errors.read_text()[-2000:])
        self._process.kill()
        self._process.wait()
        rows: dict[str, dict[int, float]] = {name: {} for name in self._tables}
        counts = {"done": 0, "conflict": 0}
        unsure: set[str] = set()
        for line in self._ledger.read_text().splitlines():
            try:
                status, name, kind, number, some = json.loads(line)
            except ValueError:
                continue  # the kill has cut it
            if status == "try":
                unsure = {name}
                continue
            unsure = set()
            counts[status] += 1
            if status != "done":
                continue
            own = rows[name]
            if kind == "insert":
                own.update((each, float(each)) for each in range(number, number + 20))
            for each in some if kind != "insert" else ():
                if each in own and kind == "delete":
                    del own[each]
                elif each in own:
                    own[each] += 1
        return rows, counts, unsure


def killed(lake: Lake, maintenance: Maintenance, kills: int, seed: int, longest: float) -> int:
    """Kill runs at random moments; how many were at work then."""
    chance = random.Random(seed)
    hit = 0
    for _ in range(kills):
        hit += maintenance.run_and_kill(chance.uniform(0.3, longest))
    return hit
