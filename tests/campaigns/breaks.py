"""Small breaks of the code, and the tests that catch them: what a smaller suite has to catch, too.

    python tests/campaigns breaks draw > tests/campaigns/breaks.tsv
    python tests/campaigns breaks cover F.coverage
    python tests/campaigns breaks run F.coverage [--processes 2] [--only N …] > F.tsv

``breaks.tsv`` is drawn once: a line is a number, a file, a function, what is done, the code that it
is done to, and which of the equal places in that function. ``cover`` runs the suite and notes which
tests enter which lines (needs coverage and pytest-cov). ``run`` breaks a copy of the checkout at one
place after the other and runs the tests that enter the line, for at most ``SECONDS`` each. It prints
the line of the break and the first test that fails, or ``none``, ``not entered``, ``gone`` (the
code is not there any more) or ``late``.
"""

from __future__ import annotations

import ast
import csv
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Literal, NamedTuple

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_suffix(".tsv")
SEED: Final = 20261129
COUNT: Final = 120
SECONDS: Final = 120
# Whoever knows what a line is for sees more than this many tests that enter it.
MOST_TESTS: Final = 2_000

COMPARED: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
OPERATORS: Final = (
    "bound", "equality", "and-or", "condition", "number", "sum", "result", "call", "extreme",
)  # fmt: skip


class Place(NamedTuple):
    """One thing that can be broken: where it is in the text, and what comes there instead."""

    file: str
    function: str
    operator: str
    code: str
    occurrence: int
    line: int
    start: int
    end: int
    broken: str

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What a line of the list says."""
        return self.file, self.function, self.operator, self.code, self.occurrence


def places(path: Path, root: Path = ROOT) -> Iterator[Place]:
    """All places of one file, in the order of its text."""
    text = path.read_text(encoding="utf-8")
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    data = text.encode()

    def span(node: ast.AST) -> tuple[int, int]:
        first, last = starts[node.lineno - 1], starts[node.end_lineno - 1]  # type: ignore[attr-defined]
        return first + node.col_offset, last + node.end_col_offset  # type: ignore[attr-defined]

    seen: Counter[tuple[str, str, str]] = Counter()

    def visit(node: ast.AST, names: tuple[str, ...], inside: bool) -> Iterator[Place]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names, inside = (*names, node.name), inside or not isinstance(node, ast.ClassDef)
            for each in node.body:  # neither decorators, defaults nor annotations
                yield from visit(each, names, inside)
            return
        if inside:
            for operator, start, end, broken in _breaks(node, data, span):
                code = " ".join(data[start:end].decode().split())
                function = ".".join(names)
                number = seen[function, operator, code]
                seen[function, operator, code] += 1
                file = path.relative_to(root).as_posix()
                line = data.count(b"\n", 0, start) + 1
                yield Place(file, function, operator, code, number, line, start, end, broken)
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from visit(node.value, names, inside)
            return
        for child in ast.iter_child_nodes(node):
            yield from visit(child, names, inside)

    yield from visit(ast.parse(text), (), False)


def _breaks(node: ast.AST, data: bytes, span: object) -> Iterator[tuple[str, int, int, str]]:
    def of(each: ast.AST) -> tuple[int, int, str]:
        start, end = span(each)  # type: ignore[operator]
        return start, end, data[start:end].decode()

    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            start, end, code = of(node)
            old, new = COMPARED[type(operator)]
            first, second = of(left)[1], of(right)[0]
            between = data[first:second].decode()
            pattern = re.compile(r"\s+".join(map(re.escape, old.split())))
            broken = code[: first - start] + pattern.sub(new, between, 1) + code[second - start :]
            kind = "bound" if isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE) else None
            yield kind or "equality", start, end, broken
        case ast.BoolOp(op=operator, values=[one, two, *_]):
            start, end, _code = of(one)[0], of(two)[1], ""
            first, second = of(one)[1], of(two)[0]
            between = data[first:second].decode()
            old, new = ("and", "or") if isinstance(operator, ast.And) else ("or", "and")
            swapped = re.sub(rf"\b{old}\b", new, between, count=1)
            yield "and-or", start, end, f"{of(one)[2]}{swapped}{of(two)[2]}"
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            start, end, code = of(test)
            if code != "TYPE_CHECKING":
                yield "condition", start, end, f"(not ({code}))"
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            start, end, _ = of(node)
            yield "number", start, end, str(value + 1)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operator, right=right):
            start, end, code = of(node)
            if not any(isinstance(each, ast.Constant | ast.JoinedStr | ast.List | ast.Tuple)
                       and not isinstance(getattr(each, "value", None), int)
                       for each in (left, right)):  # fmt: skip
                first, second = of(left)[1], of(right)[0]
                old, new = ("+", "-") if isinstance(operator, ast.Add) else ("-", "+")
                between = data[first:second].decode().replace(old, new, 1)
                broken = code[: first - start] + between + code[second - start :]
                yield "sum", start, end, broken
        case ast.Return(value=value) if value is not None and not _is_none(value):
            start, end, _ = of(value)
            yield "result", start, end, "None"
        case ast.Expr(value=ast.Call()):
            start, end, _ = of(node)
            yield "call", start, end, "None"
        case ast.Name(id="min" | "max" | "any" | "all" as name):
            start, end, _ = of(node)
            other = {"min": "max", "max": "min", "any": "all", "all": "any"}[name]
            yield "extreme", start, end, other


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def all_places(root: Path = ROOT) -> list[Place]:
    """Those of the package, by file and text."""
    files = sorted((root / "icesql").rglob("*.py"))
    return [place for file in files for place in places(file, root)]


def draw() -> None:
    """Print the list: as many of each operator, no two in one function."""
    chance = random.Random(SEED)
    found = all_places()
    chance.shuffle(found)
    chosen: list[Place] = []
    functions: set[tuple[str, str]] = set()
    for number in range(COUNT):
        wanted = OPERATORS[number % len(OPERATORS)]
        place = next(
            each for each in found
            if each.operator == wanted and (each.file, each.function) not in functions
            and "\t" not in each.code and len(each.code) <= 200
        )  # fmt: skip
        functions.add((place.file, place.function))
        chosen.append(place)
    out = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    out.writerow(("number", "file", "function", "operator", "code", "occurrence"))
    for number, place in enumerate(chosen, 1):
        out.writerow((number, *place.key))


def listed() -> dict[int, tuple[str, str, str, str, int]]:
    """The keys of the list by their numbers."""
    with LIST.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))[1:]
    return {int(row[0]): (row[1], row[2], row[3], row[4], int(row[5])) for row in rows}


def cover(out: Path) -> int:
    """Run the suite once with the lines that each test enters."""
    environment = {**os.environ, "COVERAGE_FILE": str(out)}
    command = [
        sys.executable, "-m", "pytest", "-q", "-n", "2", "--cov=icesql", "--cov-context=test",
        "--cov-report=", "-p", "no:cacheprovider", "--timeout=900",
    ]  # fmt: skip
    return subprocess.call(command, cwd=ROOT, env=environment)


def entering(covered: Path, place: Place) -> list[str]:
    """The tests that enter the line of a place, those of its own folder first."""
    with sqlite3.connect(f"file:{covered}?mode=ro", uri=True) as database:
        found = database.execute("SELECT id, path FROM file").fetchall()
        files = [key for key, path in found if path.endswith("/" + place.file)]
        rows = [
            row
            for key in files
            for row in database.execute(
                "SELECT c.context, b.numbits FROM line_bits b JOIN context c "
                "ON c.id = b.context_id WHERE b.file_id = ?",
                (key,),
            )
        ]
        # With branches coverage keeps arcs, not lines.
        arcs = [
            row
            for key in files
            for row in database.execute(
                "SELECT DISTINCT c.context FROM arc a JOIN context c ON c.id = a.context_id "
                "WHERE a.file_id = ? AND (a.fromno = ? OR a.tono = ?)",
                (key, place.line, place.line),
            )
        ]
    byte, bit = divmod(place.line, 8)
    names = {context for context, bits in rows if byte < len(bits) and bits[byte] >> bit & 1}
    names |= {context for (context,) in arcs}
    tests = {name.partition("|")[0] for name in names if name}
    own = place.file.removeprefix("icesql/").rpartition("/")[0]
    return sorted(tests, key=lambda each: (not each.startswith(f"tests/{own}"), each))


def caught(tree: Path, covered: Path, key: tuple[str, str, str, str, int]) -> str:
    """Break ``tree`` at one place, run the tests that enter it, mend it."""
    path = tree / key[0]
    if not path.is_file():
        return "gone"
    place = next((each for each in places(path, tree) if each.key == key), None)
    if place is None:
        return "gone"
    tests = entering(covered, place)
    if not tests:
        return "not entered"
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[: place.start] + place.broken.encode() + whole[place.end :])
        return _failing(tree, tests[:MOST_TESTS])
    finally:
        path.write_bytes(whole)


def _failing(tree: Path, tests: Sequence[str]) -> str:
    names = tree / "tests.txt"
    names.write_text("\n".join(tests), encoding="utf-8")
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly",
        f"@{names}",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)}
    with tempfile.TemporaryDirectory() as scratch:
        environment["TMPDIR"] = scratch
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
    if process.returncode == 0:
        return "none"
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return found[1] if found else f"exit {process.returncode}"


def run(covered: Path, processes: int, only: Sequence[int]) -> None:
    """Print what catches each break."""
    wanted = {number: key for number, key in listed().items() if not only or number in only}
    trees: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(processes):
            tree = Path(folder) / str(number) / ROOT.name
            ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache")
            shutil.copytree(ROOT, tree, ignore=ignored)
            trees.put(tree)

        def one(item: tuple[int, tuple[str, str, str, str, int]]) -> tuple[int, str]:
            tree = trees.get()
            try:
                return item[0], caught(tree, covered, item[1])
            finally:
                trees.put(tree)

        counted: Counter[str] = Counter()
        with ThreadPoolExecutor(processes) as pool:
            for number, test in pool.map(one, wanted.items()):
                print(number, *wanted[number], test, sep="\t", flush=True)
                is_test = "::" in test or test.endswith(".py")
                counted["caught" if is_test else test] += 1
    print(dict(counted), file=sys.stderr)


def main(
    do: Literal["draw", "cover", "run"], covered: Path = Path("breaks.coverage"), *,
    processes: int = 2, only: tuple[int, ...] = (),
) -> int:  # fmt: skip
    """Do one of the three."""
    covered = covered.absolute()
    if do == "cover":
        return cover(covered)
    draw() if do == "draw" else run(covered, processes, only)
    return 0
