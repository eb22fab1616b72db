"""The command line that every campaign over a foreign suite has."""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.campaigns.foreign.findings import Keep, judge_files, read, report


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that every campaign over a foreign suite has."""
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, help="draw so many files")
    parser.add_argument("--workers", type=int, choices=(1, 2), default=2)
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "foreign.jsonl")
    parser.add_argument("--report", action="store_true", help="print what --out holds")
    parser.add_argument("--show", default="WRONG,FOREIGN,died,cut", help="verdicts to list")
    parser.add_argument("--most", type=int, default=400, help="kinds to list of each verdict")


def run(
    chosen: argparse.Namespace, files: list[Path], judge_one: Callable[[Path, Keep], None]
) -> int:
    """Judge the drawn files and finish."""
    if chosen.limit is not None:
        files = sorted(random.Random(chosen.seed).sample(files, min(chosen.limit, len(files))))
    if not chosen.report:
        judge_files(files, judge_one, chosen.out, workers=chosen.workers)
    return finish(chosen)


def finish(chosen: argparse.Namespace) -> int:
    """Print the report of ``--out``; 1 when a row is wrong or an exception foreign."""
    findings = read(chosen.out)
    print(report(findings, [word for word in chosen.show.split(",") if word], chosen.most))
    return int(any(each.verdict in ("WRONG", "FOREIGN", "died") for each in findings))
