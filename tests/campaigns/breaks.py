"""Small breaks of the code, and the tests that catch them: a smaller suite must catch them, too.

    python tests/campaigns breaks [NUMBER …]

A line of ``breaks.tsv`` is a number, a file, a function, code in it, which of the equal places in
that function, what comes there instead, and the tests that fail then; ``none`` where no test that
enters the place fails, ``gone`` where the code went. The 120 places were drawn in November 2026
from all comparisons, conditions, numbers, sums, results and calls of the package. A copy of the
checkout is broken at one place after the other, and its tests run for at most ``SECONDS`` each.
Prints each outcome, and ends with 1 if more than ``LOST`` breaks that have tests are not caught.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.tables import read_table

ROOT = Path(__file__).parents[2]
SECONDS: Final = 120
# The number of breaks that may go unnoticed; each has to be named where it is accepted.
LOST: Final = 4
KINDS: Final = (ast.FunctionDef, ast.ClassDef)


def broken(text: str, function: str, code: str, which: int, instead: str) -> str | None:
    """The text of a file with one place of a function broken; None if the place does not exist."""
    node: ast.AST = ast.parse(text)
    for name in function.split("."):
        inside = (each for each in ast.walk(node) if isinstance(each, KINDS) and each.name == name)
        if (found := next(inside, None)) is None:
            return None
        node = found
    lines = text.splitlines(keepends=True)
    ends = node.lineno - 1, node.end_lineno  # type: ignore[attr-defined]
    before, inner = "".join(lines[: ends[0]]), "".join(lines[slice(*ends)])
    pattern = r"\s+".join(map(re.escape, code.split(" ")))
    bounded = rf"(?<![\w.]){pattern}" if re.match(r"\w", code) else pattern
    places = [*re.finditer(bounded + r"(?![\w.])" * (code[-1:].isalnum()), inner)]
    if which >= len(places):
        return None
    start, end = places[which].span()
    return before + inner[:start] + instead + inner[end:] + "".join(lines[ends[1] :])


def outcome(tree: Path, tests: list[str]) -> str:
    """The test that fails in a copy of the checkout, ``late``, or ``not caught``."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)}
    process = subprocess.Popen(
        command, cwd=tree, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return "late"
    found = re.search(r"^(?:FAILED|ERROR) (tests\S+)", output, re.MULTILINE)
    named = found and process.returncode in (1, 2)
    return found[1] if named else "not caught" if process.returncode == 0 else output[-300:]


def main(numbers: tuple[int, ...] = ()) -> bool:
    """Break all places of the list, or those numbered; return whether too many are not caught."""
    lost = list[str]()
    with tempfile.TemporaryDirectory() as folder:
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache")
        tree = Path(shutil.copytree(ROOT, Path(folder) / ROOT.name, ignore=ignored))
        for number, file, function, code, which, instead, tests in read_table(
            __file__, "breaks.tsv"
        ):
            if (numbers and int(number) not in numbers) or tests in ("none", "gone"):
                continue
            path = tree / file
            whole = path.read_text(encoding="utf-8")
            text = broken(whole, function, code, int(which), instead)
            found = "no such place"
            if text is not None:
                path.write_text(text, encoding="utf-8")
                found = outcome(tree, shlex.split(tests))
                path.write_text(whole, encoding="utf-8")
            print(number, file, function, found, sep="\t", flush=True)
            lost += [number] * ("::" not in found)
    print(f"not caught: {', '.join(lost) or 'none'}")
    return len(lost) > LOST
