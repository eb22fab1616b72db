"""Findings of a campaign: files judged in children, kept as JSON lines, so a run can go on."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.campaigns.foreign.verdicts import ANSWERED, VERDICTS


@dataclass(frozen=True)
class Finding:
    """The verdict on the statement at ``place`` (file:line); ``setup`` makes its tables again."""

    place: str
    verdict: str
    sql: str = ""
    note: str = ""
    setup: str = ""

    def text(self) -> str:
        """What a person reads of it, with all that is needed to see it again."""
        lines = [
            f"{self.verdict} {self.place}",
            *self.setup.splitlines(),
            self.sql,
            f"-- {self.note}",
        ]
        return "\n    ".join(line for line in lines if line)


Keep = Callable[[Finding], None]


def judge_files(
    files: Sequence[Path],
    judge: Callable[[Path, Keep], None],
    kept: Path,
    *,
    workers: int = 2,
    seconds: float = 300.0,
) -> None:
    """Judge each file in a child of its own; what is in ``kept`` already is not judged again.

    A child that dies or takes longer than ``seconds`` keeps what it found, and its end is a
    finding of its own ("died", "cut").
    """
    finished = done(kept)
    waiting = [each for each in files if str(each) not in finished]
    context = multiprocessing.get_context("fork")
    _load_icesql()
    running: list[tuple[Any, Path, float, Path]] = []
    number = 0
    while waiting or running:
        while waiting and len(running) < workers:
            file, number = waiting.pop(0), number + 1
            part = kept.with_name(f"{kept.name}.part{number}")
            part.write_text("")
            child = context.Process(target=_in_child, args=(judge, file, part))
            child.start()
            running.append((child, file, time.monotonic() + seconds, part))
        time.sleep(0.01)
        for each in list(running):
            child, file, deadline, part = each
            cut = child.is_alive() and time.monotonic() > deadline
            if child.is_alive() and not cut:
                continue
            if cut:
                child.kill()
            child.join()
            running.remove(each)
            with kept.open("a") as out:
                out.write(part.read_text())
                if cut or child.exitcode:
                    end = Finding(str(file), "cut" if cut else "died", note=f"{child.exitcode}")
                    out.write(json.dumps(asdict(end)) + "\n")
                out.write(json.dumps({"file": str(file)}) + "\n")
            part.unlink()


def _load_icesql() -> None:
    """Import what a query imports when it needs it, once for all children."""
    for name in ("engine.duckdb.engine", "query.bind", "sql.parse", "scan.planner", "read.task"):
        importlib.import_module(f"icesql.{name}")
    for name in ("sqlglot.optimizer.scope", "pyarrow.parquet", "zoneinfo"):
        importlib.import_module(name)


def done(kept: Path) -> set[str]:
    """The files that were judged."""
    return {json.loads(line)["file"] for line in _lines(kept) if line.startswith('{"file"')}


@contextmanager
def keep_in(kept: Path, file: Path) -> Iterator[Keep]:
    """A block that judges ``file`` in this process; an exception there is the finding "died"."""
    found: list[Finding] = []
    try:
        yield found.append
    except Exception as error:
        found.append(Finding(str(file), "died", note=f"{type(error).__name__}: {error}"[:300]))
    with kept.open("a") as out:
        for finding in found:
            out.write(json.dumps(asdict(finding)) + "\n")
        out.write(json.dumps({"file": str(file)}) + "\n")


def _in_child(judge: Callable[[Path, Keep], None], file: Path, part: Path) -> None:
    with part.open("a", buffering=1) as out:
        judge(file, lambda finding: print(json.dumps(asdict(finding)), file=out))


def read(kept: Path) -> list[Finding]:
    """Every finding of a run."""
    return [Finding(**json.loads(line)) for line in _lines(kept) if not line.startswith('{"file"')]


def _lines(kept: Path) -> list[str]:
    return kept.read_text().splitlines() if kept.is_file() else []


def report(findings: Iterable[Finding], show: Sequence[str], most: int) -> str:
    """Counts by verdict, then the findings of the verdicts in ``show``, likes of one note together."""
    findings = list(findings)
    counts = Counter(each.verdict for each in findings)
    answered = sum(counts[word] for word in ANSWERED)
    lines = [f"{counts[word]:7,} {word}" for word in VERDICTS if counts[word]]
    lines += [f"{counts[word]:7,} {word}" for word in counts if word not in VERDICTS]
    good = counts["same"] + counts["ties"] + counts["random"]
    if answered:
        lines.append(
            f"{answered:7,} answered by the reference: {100 * good / answered:.2f} % the same, "
            f"{100 * (good + counts['names']) / answered:.2f} % with other column names"
        )
    for word in show:
        alike: dict[str, list[Finding]] = {}
        for each in findings:
            if each.verdict == word:
                key = each.place if word == "WRONG" else _shape(each.note)
                alike.setdefault(key, []).append(each)
        lines.append(f"\n== {word}: {counts[word]} of {len(alike)} kinds")
        for group in sorted(alike.values(), key=len, reverse=True)[:most]:
            lines.append(f"{len(group)} × {group[0].text()}")
    return "\n".join(lines)


def _shape(note: str) -> str:
    """The note without what differs from statement to statement."""
    return re.sub(r"\"[^\"]*\"|'[^']*'|`[^`]*`|\d+", "_", note)[:120]
