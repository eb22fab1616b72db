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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from tests.board.engines import ENGINES, Engine, ask, environment
from tests.board.judge import SLOW, VERDICTS, verdict
from tests.board.page import PAGE, RESULTS, board, results
from tests.board.questions import Question, lay, load
from tests.board.writes import WRITES


def run(
    engine: Engine,
    python: Path,
    questions: list[Question],
    metadata: dict[str, Path],
    seconds: float,
) -> dict[str, Any]:
    """The engine's versions, and by question its verdict with the reason."""
    asked = [
        {
            "metadata": str(metadata[each.table]),
            "columns": each.columns,
            "where": each.where,
            "snapshot_id": each.snapshot_id,
        }
        for each in questions
    ]
    # chDB reads below its working folder alone.
    below = Path(os.path.commonpath([each.parents[2] for each in metadata.values()]))
    versions: dict[str, str] = {}
    verdicts = {}
    answers = ask(engine, python, asked, below, seconds)
    for question, (reported, answer) in zip(questions, answers, strict=True):
        versions = reported
        if isinstance(answer, TimeoutError):
            judged = SLOW, f"no answer within {seconds:g} seconds"
        else:
            judged = verdict(question.expected, answer)
        verdicts[question.id] = judged[0], _without_local_paths(judged[1], metadata[question.table])
    return {"versions": versions, "verdicts": verdicts}


def run_writes(engine: Engine, python: Path, reader: Path, seconds: float) -> dict[str, Any]:
    """By write its verdict with the reason: what icesql, run by `reader`, reads of the table."""
    with tempfile.TemporaryDirectory() as root:
        tasks = []
        for number, each in enumerate(WRITES):
            folder = Path(root) / str(number)
            folder.mkdir()
            tasks.append({"folder": str(folder), **msgspec.to_builtins(each)})
        verdicts = {}
        for each, task, (_, answer) in zip(
            WRITES, tasks, ask(engine, python, tasks, Path(root), seconds), strict=True
        ):
            if isinstance(answer, dict) and "rows" in answer:
                written = {"columns": "*", "where": None, "snapshot_id": None}
                written["metadata"] = answer["rows"][0][0]
                ((_, answer),) = ask(ENGINES[0], reader, [written], Path(root), seconds)
            if isinstance(answer, TimeoutError):
                judged = SLOW, f"no answer within {seconds:g} seconds"
            else:
                judged = verdict([list(row) for row in each.expected], answer)
            verdicts[each.name] = (
                judged[0],
                _without_local_paths(judged[1], Path(task["folder"]) / "t/t"),
            )
    return verdicts


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
    parser.add_argument(
        "--environments", type=Path, default=Path(tempfile.gettempdir()) / "icesql-board"
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="for one question")
    parser.add_argument("--only", default="", help="tables whose name contains this")
    options = parser.parse_args()
    wanted = {each.lower() for each in options.engines.split(",") if each}
    unknown = wanted - {each.name.lower() for each in ENGINES}
    if unknown:
        parser.error(f"no such engine: {', '.join(sorted(unknown))}")

    tables, questions = load()
    every = {each.id for each in questions}
    tables = {name: each for name, each in tables.items() if options.only in name}
    questions = [each for each in questions if each.table in tables]
    outcome = results() if RESULTS.exists() else {"engines": {}, "not_asked": {}}
    outcome |= {"date": f"{datetime.now(UTC):%Y-%m-%d}", "seconds": options.seconds}
    outcome["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    new = [
        each for each in map(_first_missing, (Path(t.location) for t in tables.values())) if each
    ]
    try:
        metadata = lay(tables.values())
        for engine in ENGINES:
            if wanted and engine.name.lower() not in wanted:
                continue
            if engine.needs and engine.needs not in os.environ:
                outcome["not_asked"].setdefault(engine.name, f"{engine.needs} is not set")
                continue
            try:
                python = environment(engine, options.environments)
                asked = run(engine, python, questions, metadata, options.seconds)
                reader = environment(ENGINES[0], options.environments)
                asked["written"] = run_writes(engine, python, reader, options.seconds)
            except (subprocess.CalledProcessError, RuntimeError) as error:
                outcome["not_asked"][engine.name] = str(error)
                print(f"{engine.name}: {error}", file=sys.stderr)
                continue
            before = outcome["engines"].get(engine.name, {"verdicts": {}})["verdicts"]
            outcome["engines"][engine.name] = asked | {"verdicts": before | asked["verdicts"]}
            outcome["not_asked"].pop(engine.name, None)
            count = Counter(each for each, _ in asked["verdicts"].values())
            print(
                f"{engine.name}: " + ", ".join(f"{count[each]} {each}" for each in VERDICTS),
                flush=True,
            )
            count = Counter(each for each, _ in asked["written"].values())
            print(
                f"  writes: {', '.join(f'{count[each]} {each}' for each in VERDICTS)}", flush=True
            )
            if every <= outcome["engines"][engine.name]["verdicts"].keys():
                _write(outcome)
            if options.only:
                for name, (each, reason) in (asked["verdicts"] | asked["written"]).items():
                    print(f"  {name}: {each} {reason}")
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


def _first_missing(place: Path) -> Path | None:
    """The topmost folder of a path that isn't there yet, which is ours to remove."""
    missing = [each for each in (place, *place.parents) if not each.exists()]
    return missing[-1] if missing else None


if __name__ == "__main__":
    main()
