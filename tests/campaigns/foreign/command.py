"""What every campaign over a foreign suite does with its files."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.campaigns.foreign.findings import Keep, judge_files, read, report

OUT = Path(tempfile.gettempdir()) / "foreign.jsonl"
SHOWN = ("WRONG", "FOREIGN", "died", "cut")


def drawn(files: Sequence[Path], limit: int, seed: int) -> list[Path]:
    """So many of the files, all where there is no limit."""
    if not 0 < limit < len(files):
        return sorted(files)
    return sorted(random.Random(seed).sample(sorted(files), limit))


def run(files: list[Path], judge_one: Callable[[Path, Keep], None], out: Path, workers: int) -> int:
    """Judge the files and finish."""
    judge_files(files, judge_one, out, workers=workers)
    return finish(out)


def finish(out: Path) -> int:
    """Print the report; how many rows are wrong or exceptions foreign."""
    findings = read(out)
    print(report(findings, SHOWN, 400))
    return sum(each.verdict in SHOWN[:3] for each in findings)
