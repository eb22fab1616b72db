"""Small breaks of the code, and the tests that catch them: what a smaller suite has to catch, too.

    python tests/campaigns breaks draw > tests/campaigns/breaks.tsv
    python tests/campaigns breaks enter HITS
    python tests/campaigns breaks run HITS [--processes 2] [--only N …] > F.tsv

``breaks.tsv`` is drawn once: a line is a number, a file, a function, what is done, the code that it
is done to, which of the equal places in that function, and the test that caught it when the list
was made. ``enter`` runs the suite over a copy of the checkout that notes which test evaluates which
of these places; tests that start processes count, too. ``run`` breaks a copy of the checkout at one
place after the other and runs the tests that reach it, for at most ``SECONDS`` each. It prints the
line of the break with the first test that fails, or ``none``, ``not entered``, ``gone`` (the code
is not there any more) or ``late``, and ends with 1 if more than ``LOST`` breaks that were caught
once are not caught now.
"""

from __future__ import annotations

import ast
import csv
import os
import random
import re
import shutil
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
PYTEST: Final = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
SEED: Final = 20261129
COUNT: Final = 120
SECONDS: Final = 120
# Whoever knows what a line is for sees more than this many tests that enter it.
MOST_TESTS: Final = 2_000
# Breaks that were caught once and may go unnoticed, each of them named where they are accepted.
LOST: Final = 4

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
    def key(self) -> Key:
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
            (start, first, _), (second, end, _) = of(one), of(two)
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
    out.writerow(("number", "file", "function", "operator", "code", "occurrence", "caught"))
    for number, place in enumerate(chosen, 1):
        out.writerow((number, *place.key))


def _is_test(caught: str) -> bool:
    return "::" in caught or caught.endswith(".py")


Key = tuple[str, str, str, str, int]


def listed() -> dict[int, tuple[Key, str]]:
    """The keys of the list by their numbers, and the test that caught each when it was made."""
    with LIST.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))[1:]
    return {int(n): ((*key[:4], int(key[4])), "".join(key[5:])) for n, *key in rows}  # type: ignore[misc]


PROBE = '''"""Notes which test evaluates which place."""
import os

FOLDER = {folder!r}
seen = set()


def hit(number):
    """Note the test that runs, in this process or in the one that started it."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    if test and (number, test) not in seen:
        seen.add((number, test))
        try:
            with open(f"{{FOLDER}}/{{os.getpid()}}", "a", encoding="utf-8") as file:
                file.write(f"{{number}}\\t{{test}}\\n")
        except OSError:
            pass
'''


def enter(out: Path) -> int:
    """Run the suite once; note in files below ``out`` which tests evaluate which places."""
    out.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        tree = _copy(Path(folder))
        (tree / "icesql" / "_probe.py").write_text(PROBE.format(folder=str(out)), encoding="utf-8")
        by_file: dict[str, list[tuple[int, Place]]] = {}
        for number, place in found_places(tree).items():
            by_file.setdefault(place.file, []).append((number, place))
        for file, inside in by_file.items():
            path = tree / file
            data = path.read_bytes()
            for number, place in sorted(inside, key=lambda each: -each[1].start):
                code = data[place.start : place.end].decode()
                probe = f"__import__('icesql._probe')._probe.hit({number})"
                noted = f"({probe}, ({code}))[1]".encode()
                data = data[: place.start] + noted + data[place.end :]
            compile(data, file, "exec")
            path.write_bytes(data)
        command = [*PYTEST, "-n", "2", "--timeout=900"]
        return subprocess.call(command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)})


def entering(out: Path) -> dict[int, list[str]]:
    """The tests that evaluate each place."""
    found: dict[int, set[str]] = {}
    for file in out.iterdir():
        for line in file.read_text(encoding="utf-8").splitlines():
            number, _, test = line.partition("\t")
            if test.startswith("tests/"):  # not those of a suite that a test runs
                found.setdefault(int(number), set()).add(test)
    return {number: sorted(tests) for number, tests in found.items()}


def found_places(tree: Path) -> dict[int, Place]:
    """The places of the list that are in a checkout, by their numbers."""
    found = {
        place.key: place
        for file in {key[0] for key, _ in listed().values()}
        if (tree / file).is_file()
        for place in places(tree / file, tree)
    }
    return {number: found[key] for number, (key, _) in listed().items() if key in found}


def _copy(folder: Path) -> Path:
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache")
    return Path(shutil.copytree(ROOT, folder / ROOT.name, ignore=ignored))


def caught(tree: Path, place: Place | None, tests: Sequence[str]) -> str:
    """Break ``tree`` at one place, run the tests that reach it, mend it."""
    if place is None:
        return "gone"
    if not tests:
        return "not entered"
    path = tree / place.file
    own = f"tests/{place.file.removeprefix('icesql/').rpartition('/')[0]}"
    tests = sorted(tests, key=lambda each: (not each.startswith(own), each))
    whole = path.read_bytes()
    try:
        path.write_bytes(whole[: place.start] + place.broken.encode() + whole[place.end :])
        return _failing(tree, tests[:MOST_TESTS])
    finally:
        path.write_bytes(whole)


def _failing(tree: Path, tests: Sequence[str]) -> str:
    names = tree / "tests.txt"
    names.write_text("\n".join(tests), encoding="utf-8")
    command = [*PYTEST, "-x", "-p", "no:randomly", f"@{names}"]
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


def run(out: Path, processes: int, only: Sequence[int]) -> int:
    """Print what catches each break; the status says whether too many are lost."""
    wanted = {number: each for number, each in listed().items() if not only or number in only}
    tests, present = entering(out), found_places(ROOT)
    trees: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(processes):
            trees.put(_copy(Path(folder) / str(number)))

        def one(number: int) -> str:
            tree = trees.get()
            try:
                return caught(tree, present.get(number), tests.get(number, ()))
            finally:
                trees.put(tree)

        counted: Counter[str] = Counter()
        lost = []
        with ThreadPoolExecutor(processes) as pool:
            for number, test in zip(wanted, pool.map(one, wanted), strict=True):
                key, once = wanted[number]
                print(number, *key, test, sep="\t", flush=True)
                counted["caught" if _is_test(test) else test] += 1
                if _is_test(once) and not _is_test(test):
                    lost.append(number)
    print(dict(counted), "lost:", lost, file=sys.stderr)
    return int(len(lost) > LOST)


def main(
    do: Literal["draw", "enter", "run"], hits: Path = Path("breaks.hits"), *,
    processes: int = 2, only: tuple[int, ...] = (),
) -> int:  # fmt: skip
    """Do one of the three."""
    hits = hits.absolute()
    if do == "enter":
        return enter(hits)
    if do == "run":
        return run(hits, processes, only)
    draw()
    return 0
