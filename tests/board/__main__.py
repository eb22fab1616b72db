"""Ask engines the board's questions, write ``results.json`` and the page of the manual.

    python -m tests.board [--engines NAMES] [--environments FOLDER] [--seconds N] [--only TEXT]

Each engine gets a virtual environment of its own, which pip fills from PyPI at the first run. Spark
needs Java and the environment variable BOARD_ICEBERG_JARS: the paths of Iceberg's runtime for Spark 4.1
and of SQLite's JDBC driver, separated by a comma.
Tables are laid where their metadata says that they lie, and removed at the end. What an engine that
is not asked this time, or not that question, answered before stays.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.process import environment
from tests.board.engines import ENGINES, Engine, ask
from tests.board.judge import SLOW, VERDICTS, verdict
from tests.board.page import PAGE, RESULTS, board, results
from tests.board.questions import Question, lay, load


def judged(
    engine: Engine,
    python: Path,
    questions: Sequence[Question],
    metadata: Mapping[str, Path],
    seconds: float,
) -> dict[str, Any]:
    """The engine's versions, and by question its verdict with the reason."""
    # chDB reads below its working folder alone.
    below = Path(os.path.commonpath([each.parents[2] for each in metadata.values()]))
    asked = [each.asked(metadata[each.table]) for each in questions]
    versions, verdicts = {}, {}
    answers = ask(engine, python, asked, below, seconds)
    for question, (reported, answer) in zip(questions, answers, strict=True):
        versions = reported
        result, reason = SLOW, f"no answer within {seconds:g} seconds"
        if not isinstance(answer, TimeoutError):
            result, reason = verdict(question.expected, answer)
        reason = _without_local_paths(reason, metadata[question.table])
        verdicts[question.id] = result, reason
    return {"versions": versions, "verdicts": verdicts}


def _without_local_paths(reason: str, metadata: Path) -> str:
    """A reason, at most 300 characters long, without the folders of this machine or a stack."""
    reason = reason.partition(" Stack Trace:")[0]
    folders = {metadata.parents[1]: "TABLE", Path.cwd(): "…", Path.home(): "~"}
    for folder, short in folders.items():
        reason = reason.replace(str(folder), short)
    reason = re.sub(r"\b\d+\.\d+\.\d+\.\d+ executor", "executor", reason)
    return reason if len(reason) <= 300 else reason[:297] + "…"


def main() -> None:
    """Run the board."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.board",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--engines", default="", help="names, separated by commas; default: all")
    environments = Path(tempfile.gettempdir()) / "icesql-board"
    parser.add_argument("--environments", type=Path, default=environments)
    parser.add_argument("--seconds", type=float, default=20.0, help="for one question")
    parser.add_argument("--only", default="", help="tables whose name contains this")
    options = parser.parse_args()
    named = {each.name.lower(): each for each in ENGINES}
    wanted = [each for each in options.engines.lower().split(",") if each] or list(named)
    if unknown := sorted(set(wanted) - named.keys()):
        parser.error(f"no such engine: {', '.join(unknown)}")

    tables, questions = load()
    every = {each.id for each in questions}
    tables = {name: each for name, each in tables.items() if options.only in name}
    questions = [each for each in questions if each.table in tables]
    outcome = results()
    outcome |= {"date": f"{datetime.now(UTC):%Y-%m-%d}", "seconds": options.seconds}
    outcome["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    # The topmost folders that are not there yet are ours to remove.
    places = (Path(each.location) for each in tables.values())
    new = [[each for each in (place, *place.parents) if not each.exists()][-1] for place in places]
    try:
        metadata = lay(tables.values())
        for engine in (named[each] for each in wanted):
            try:
                if engine.needs and engine.needs not in os.environ:
                    raise RuntimeError(f"{engine.needs} is not set")
                place = options.environments / engine.name.lower()
                python = environment(place, *engine.requirements)
                found = judged(engine, python, questions, metadata, options.seconds)
            except (subprocess.CalledProcessError, RuntimeError) as error:
                outcome["not_asked"][engine.name] = str(error)
                print(f"{engine.name}: {error}", file=sys.stderr)
                continue
            verdicts = found["verdicts"]
            count = Counter(result for result, _ in verdicts.values())
            print(f"{engine.name}: " + ", ".join(f"{count[name]} {name}" for name in VERDICTS))
            for name, (result, reason) in verdicts.items() if options.only else ():
                print(f"  {name}: {result} {reason}")
            before = outcome["engines"].get(engine.name, {"verdicts": {}})["verdicts"]
            outcome["engines"][engine.name] = found | {"verdicts": before | verdicts}
            outcome["not_asked"].pop(engine.name, None)
            if every <= (before | verdicts).keys():
                _write(outcome)
    finally:
        for each in set(new):
            shutil.rmtree(each, ignore_errors=True)


def _write(outcome: dict[str, Any]) -> None:
    """The results with the engines in the board's order, and the page."""
    order = [each.name for each in ENGINES if each.name in outcome["engines"]]
    outcome["engines"] = {name: outcome["engines"][name] for name in order}
    text = json.dumps(outcome, indent=1, ensure_ascii=False)
    text = re.sub(r'\[\n +(".*"),\n +(".*")\n +\]', r"[\1, \2]", text)  # a verdict a line
    RESULTS.write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(board(), encoding="utf-8")


if __name__ == "__main__":
    main()
