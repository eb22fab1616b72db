"""The wheel and the source distribution on each release of Python that pyproject.toml names.

    python tests/campaigns/python_releases.py [--smoke | --quick] [interpreter …]

Builds both from this checkout. For each interpreter, ``python3.11`` to ``python3.14`` by default, a
fresh environment: the wheel is installed from a package index with the extras of the tests, every
entry point is loaded, the demo is made and queried by the installed command, a user's program runs
and is checked by mypy and pyright, and all tests but those of Spark run (``--quick``: those that
read SQL and the house rules, ``--smoke``: none). The source distribution is installed by the first.

Interpreters are those of the PATH, of pyenv and of uv. What is not here is named and not tried, as
is pyright, which fetches its own program from npm's registry. Needs hatchling; ends with code 1 when
anything fails.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("tests/sql", "tests/query", "tests/dbapi", "tests/house")
PROGRAM = ROOT / "tests" / "house" / "typed" / "program.py"
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
COUNT = "SELECT count(*) FROM demo.trips VERSION AS OF 'two-weeks'"
# Superset is not installed: its entry point is one that leads to a module of the wheel.
ENTRY_POINTS = """\
from importlib import metadata, util
import sys
points = metadata.distribution("icesql").entry_points
for each in points:
    if each.group == "superset.db_engine_specs":
        assert util.find_spec(each.module), each
    else:
        assert each.load(), each
import icesql
assert util.find_spec("icesql").origin.startswith(sys.prefix), icesql
print(len(points), "entry points of icesql", icesql.__version__, "on Python", sys.version.split()[0])
"""
ON_SQLALCHEMY = """\
from sqlalchemy import create_engine, text
with create_engine("icesql:///icesql-demo").connect() as connection:
    print(connection.execute(text("SELECT count(*) FROM demo.trips")).scalar())
"""


def promised() -> list[str]:
    """The releases that the classifiers promise, as commands."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [each.rpartition(" :: ")[2] for each in project["classifiers"]]
    return [f"python{each}" for each in names if re.fullmatch(r"3\.\d+", each)]


def interpreter(name: str) -> str | None:
    """The path of an interpreter that starts, or None: of the PATH, of pyenv, of uv."""
    return next((each for each in candidates(name) if starts(each)), None)


def candidates(name: str) -> Iterator[str]:
    """Where an interpreter may be."""
    found = shutil.which(name)
    if found:
        yield found
    release = name.removeprefix("python")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob(f"versions/{release}.*/bin/python")))
    if shutil.which("uv"):
        command = ["uv", "python", "find", "--offline", release]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        yield from done.stdout.split("\n")[:1]


def starts(path: str) -> bool:
    """Shims of pyenv are there also for releases that none of its versions is chosen for."""
    try:
        return subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution of this checkout."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", folder]
    subprocess.run(command, cwd=ROOT, env=CLEAN, check=True, stdout=subprocess.DEVNULL)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    print(f"{wheel.name} {wheel.stat().st_size:,} bytes, {source.name} {source.stat().st_size:,}")
    return wheel, source


class Environment:
    """A fresh environment of one interpreter, and what failed in it."""

    def __init__(self, interpreter: str, folder: Path) -> None:
        subprocess.run([interpreter, "-m", "venv", folder / "venv"], check=True, env=CLEAN)
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"
        self.failed: list[str] = []

    def install(self, *wanted: str) -> bool:
        command = [self.python, "-m", "pip", "install", "-q", *wanted]
        return subprocess.run(command, env=CLEAN, cwd=self.folder, check=False).returncode == 0

    def step(self, name: str, command: list[object], expected: str = "") -> None:
        """Run a command; it fails by its code, or where a pattern is not found in its output."""
        done = subprocess.run(
            [str(each) for each in command], cwd=self.folder, env=CLEAN, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        right = done.returncode == 0 and re.search(expected, done.stdout) is not None
        told = (done.stdout.strip().splitlines() or [""])[-1] if right else done.stdout
        print(f"  {'right' if right else 'WRONG'}: {name}: {told}", flush=True)
        if not right:
            self.failed.append(name)


def run(interpreter: str, folder: Path, wheel: Path, tests: tuple[str, ...] | None) -> list[str]:
    """Try the wheel; what failed. ``tests`` are those to run: None for none, empty for all."""
    there = Environment(interpreter, folder)
    if not there.install(f"{wheel}[test,sqlalchemy]"):
        return ["the installation"]
    python, command = there.python, there.python.with_name("icesql")
    there.step("entry points", [python, "-c", ENTRY_POINTS])
    there.step("the demo", [command, "demo"])
    query = ["--warehouse", "icesql-demo", "--format", "csv"]
    there.step("a query", [command, *query, "-c", COUNT], r"count_star\(\)\s+2800")
    there.step("icesql help", [command, "help", "write"], "Write")
    there.step("SQLAlchemy", [python, "-c", ON_SQLALCHEMY], r"\b4000\b")
    # A copy: checkers look beside a program first.
    program = folder / "program.py"
    shutil.copy(PROGRAM, program)
    there.step("a program", [python, program, "icesql-demo"], r"\[\(1,\)\] qmark 1")
    options = ["--strict", "--config-file=", "--disable-error-code=import-untyped"]
    there.step("mypy", [python, "-m", "mypy", *options, program])
    # With the JavaScript engine as a package: without, it would fetch one from a place of its own.
    if there.install("pyright[nodejs]"):
        checker = [python, "-m", "pyright", "--pythonpath", python, program]
        there.step("pyright", checker, "0 errors")
    else:
        print("  pyright is not to be had here: not tried", flush=True)
    if tests is not None:
        pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not spark"]
        if subprocess.run([*pytest, *tests], cwd=ROOT, env=CLEAN, check=False).returncode:
            there.failed.append("tests")
    return there.failed


def from_source(folder: Path, source: Path) -> bool:
    """The source distribution installs beside the wheel of ``folder``, and its command runs."""
    python = folder / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "-q", "--no-deps", "--target", folder / "from-source"]
    installed = subprocess.run([*pip, source], env=CLEAN, cwd=folder, check=False).returncode == 0
    asked = subprocess.run(
        [python, "-m", "icesql", "-c", "SELECT 1 AS one"],
        env={**CLEAN, "PYTHONPATH": str(folder / "from-source")},
        cwd=folder, check=False, capture_output=True, text=True,
    )  # fmt: skip
    right = installed and asked.stdout.split() == ["one", "----", "1"]
    print(f"  {'right' if right else 'WRONG'}: the source distribution", flush=True)
    return right


def main() -> int:
    arguments = sys.argv[1:]
    tests = None if "--smoke" in arguments else QUICK if "--quick" in arguments else ()
    names = [each for each in arguments if not each.startswith("--")] or promised()
    failed: list[str] = []
    tried = 0
    with tempfile.TemporaryDirectory() as place:
        wheel, source = build(Path(place))
        for name in names:
            path = interpreter(name)
            if path is None:
                print(f"{name} is not here: not tried", flush=True)
                continue
            print(f"{name}: {path}", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                wrong = run(path, Path(folder), wheel, tests)
                if not tried and not from_source(Path(folder), source):
                    wrong.append("the source distribution")
            tried += 1
            failed += [f"{name} ({', '.join(wrong)})"] if wrong else []
    print("failed:", "; ".join(failed)) if failed else print(f"{tried} of {len(names)} pass")
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
