"""Run the board's queries on engines, write ``tests/board/results.json`` and the manual's page.

    python tests/campaigns board [--engines NAME …] [--environments FOLDER] [--seconds N] [--only TEXT]

Each engine gets a virtual environment of its own, which pip fills from PyPI at the first run. Spark
needs Java and the environment variable BOARD_ICEBERG_JARS: the paths of Iceberg's runtime for Spark
4.1 and of SQLite's JDBC driver, separated by a comma. ``--only`` selects tables whose name contains
it. Tables are placed where their metadata says, and removed at the end. Earlier results stay for
engines and queries that are not run this time.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
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

ENVIRONMENTS = Path(tempfile.gettempdir()) / "icesql-board"


def judged(
    engine: Engine,
    python: Path,
    questions: Sequence[Question],
    metadata: Mapping[str, Path],
    seconds: float,
) -> dict[str, Any]:
    """The engine's versions, and for each query its verdict with the reason."""
    # chDB reads only files below its working folder.
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


def main(
    *, engines: tuple[str, ...] = (), environments: Path = ENVIRONMENTS, seconds: float = 20.0,
    only: str = "",
) -> bool:  # fmt: skip
    """Run engines, by default all; return whether one could not be run."""
    named = {each.name.lower(): each for each in ENGINES}
    wanted = [named[each.lower()] for each in engines] or ENGINES
    tables, every = load()
    tables = {name: each for name, each in tables.items() if only in name}
    questions = [each for each in every if each.table in tables]
    outcome = results()
    outcome |= {"date": f"{datetime.now(UTC):%Y-%m-%d}", "seconds": seconds}
    outcome["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    # Remove the topmost folders that this run creates.
    places = (Path(each.location) for each in tables.values())
    new = {[each for each in (place, *place.parents) if not each.exists()][-1] for place in places}
    failed = False
    try:
        metadata = lay(tables.values())
        for engine in wanted:
            name = engine.name
            try:
                if engine.needs and engine.needs not in os.environ:
                    raise RuntimeError(f"{engine.needs} is not set")
                python = environment(environments / name.lower(), *engine.requirements)
                found = judged(engine, python, questions, metadata, seconds)
            except (subprocess.CalledProcessError, RuntimeError) as error:
                outcome["not_asked"][name] = str(error)
                print(f"{name}: {error}")
                failed = True
                continue
            verdicts = found["verdicts"]
            count = Counter(result for result, _ in verdicts.values())
            print(f"{name}: " + ", ".join(f"{count[each]} {each}" for each in VERDICTS))
            for asked, (result, reason) in verdicts.items() if only else ():
                print(f"  {asked}: {result} {reason}")
            known = outcome["engines"].get(name, {"verdicts": {}})["verdicts"] | verdicts
            outcome["engines"][name] = found | {"verdicts": known}
            outcome["not_asked"].pop(name, None)
            if {each.id for each in every} <= known.keys():
                _write(outcome)
    finally:
        for each in new:
            shutil.rmtree(each, ignore_errors=True)
    return failed


def _write(outcome: dict[str, Any]) -> None:
    """The results with the engines in the board's order, and the page."""
    order = [each.name for each in ENGINES if each.name in outcome["engines"]]
    outcome["engines"] = {name: outcome["engines"][name] for name in order}
    text = json.dumps(outcome, indent=1, ensure_ascii=False)
    text = re.sub(r'\[\n +(".*"),\n +(".*")\n +\]', r"[\1, \2]", text)  # a verdict a line
    RESULTS.write_text(text + "\n", encoding="utf-8")
    PAGE.write_text(board(), encoding="utf-8")
