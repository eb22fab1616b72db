"""Findings of a campaign: files are judged in child processes; JSON lines let a run continue."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.campaigns.foreign.answers import ANSWERED, VERDICTS

OUT = Path(tempfile.gettempdir()) / "foreign.jsonl"
BAD = ("WRONG", "FOREIGN", "died")


class Finding(NamedTuple):
    """The verdict on the statement at ``place`` (file:line); ``setup`` recreates its tables."""

    place: str
    verdict: str
    sql: str = ""
    note: str = ""
    setup: str = ""

    def text(self) -> str:
        """A text for people, with everything that is necessary to reproduce the finding."""
        lines = [f"{self.verdict} {self.place}", *self.setup.splitlines(), self.sql, self.note]
        return "\n    ".join(line for line in lines if line)


Judge = Callable[[Path], Iterable[Finding]]


def drawn(files: Iterable[Path], limit: int, seed: int) -> list[Path]:
    """A random sample of ``limit`` files, or all if there is no limit."""
    found = sorted(files)
    return sorted(random.Random(seed).sample(found, limit)) if 0 < limit < len(found) else found


def judge_files(
    files: Sequence[Path], judge: Judge, kept: Path, *, workers: int = 2, seconds: float = 300.0
) -> None:
    """Judge each file in a child process; files that are in ``kept`` are not judged again.

    A child that dies or takes longer than ``seconds`` keeps its findings, and its end becomes a
    finding of its own ("died", "cut").
    """
    # Import lazily imported modules once for all children.
    for name in ("engine.duckdb.engine", "query.bind", "sql.parse", "scan.planner", "read.task"):
        importlib.import_module(f"icesql.{name}")
    for name in ("sqlglot.optimizer.scope", "pyarrow.parquet", "zoneinfo"):
        importlib.import_module(name)
    context, finished = multiprocessing.get_context("fork"), done(kept)
    waiting = [each for each in files if str(each) not in finished]
    running: list[tuple[Path, Any, Any, list[str], float]] = []
    while waiting or running:
        while waiting and len(running) < workers:
            ours, theirs = context.Pipe(duplex=False)
            child = context.Process(target=_in_child, args=(judge, waiting[0], theirs))
            child.start()
            theirs.close()
            running.append((waiting.pop(0), child, ours, [], time.monotonic() + seconds))
        for each in [*running]:
            file, child, pipe, lines, until = each
            end = "died" if child.exitcode is not None else "cut" * (time.monotonic() > until)
            if end == "cut":
                child.kill()
            with suppress(EOFError):
                while pipe.poll(0.01):
                    lines.append(pipe.recv())
            if end:
                child.join()
                running.remove(each)
                if child.exitcode:
                    lines.append(json.dumps(Finding(str(file), end, note=f"{child.exitcode}")))
                keep(kept, file, lines)


def _in_child(judge: Judge, file: Path, pipe: Any) -> None:
    for each in judge(file):
        pipe.send(json.dumps(each))


def keep(kept: Path, file: Path, lines: Iterable[str]) -> None:
    """Append the findings of a file, and mark the file as done."""
    with kept.open("a", encoding="utf-8") as out:
        out.write("".join(f"{each}\n" for each in (*lines, json.dumps({"file": str(file)}))))


def done(kept: Path) -> set[str]:
    """The files that were judged."""
    return {each["file"] for each in _lines(kept) if isinstance(each, dict)}


def read(kept: Path) -> list[Finding]:
    """Every finding of a run."""
    return [Finding(*each) for each in _lines(kept) if isinstance(each, list)]


def _lines(kept: Path) -> list[Any]:
    return [*map(json.loads, kept.read_text("utf-8").splitlines())] if kept.is_file() else []


def report(kept: Path) -> int:
    """Print counts by verdict, then bad findings grouped by note; return the number of bad ones."""
    findings = read(kept)
    counts = Counter(each.verdict for each in findings)
    for word in dict.fromkeys((*VERDICTS, *counts)):
        if counts[word]:
            print(f"{counts[word]:7,} {word}")
    answered = sum(counts[word] for word in ANSWERED)
    if answered:
        good = counts["same"] + counts["ties"] + counts["random"]
        print(f"{answered:7,} answered by the reference: {100 * good / answered:.2f} % the same, "
              f"{100 * (good + counts['names']) / answered:.2f} % with other column names")  # fmt: skip
    for word in (*BAD, "cut"):
        alike: dict[str, list[Finding]] = {}
        for each in findings:
            if each.verdict == word:
                # The note without parts that differ between statements.
                shape = re.sub(r"\"[^\"]*\"|'[^']*'|`[^`]*`|\d+", "_", each.note)[:120]
                alike.setdefault(each.place if word == "WRONG" else shape, []).append(each)
        print(f"\n== {word}: {counts[word]} of {len(alike)} kinds")
        for group in sorted(alike.values(), key=len, reverse=True):
            print(f"{len(group)} × {group[0].text()}")
    return sum(counts[word] for word in BAD)
