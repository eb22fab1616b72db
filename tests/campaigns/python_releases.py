"""icesql on each release of Python that pyproject.toml names.

    python tests/campaigns/python_releases.py [--quick] [interpreter …]

For each interpreter, ``python3.11`` to ``python3.14`` of the PATH by default: a fresh environment, a
wheel of this checkout installed in it from a package index with the extras of the tests, the demo
made and read by the installed command, and all tests but those of Spark (``--quick``: those that
read SQL and the house rules). Interpreters that are not there are named. Ends with code 1 when
anything fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("tests/sql", "tests/query", "tests/dbapi", "tests/house")
COUNT = "SELECT count(*) FROM demo.trips VERSION AS OF 'two-weeks'"


def named() -> list[str]:
    """The releases that the classifiers promise, as commands."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [each.rpartition(" :: ")[2] for each in project["classifiers"]]
    return [f"python{each}" for each in names if each.startswith("3.")]


def run(interpreter: str, folder: Path, tests: tuple[str, ...]) -> bool:
    python = folder / "venv" / "bin" / "python"
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([interpreter, "-m", "venv", folder / "venv"], check=True, env=clean)
    install = [python, "-m", "pip", "install", "-q", f"{ROOT}[test,sqlalchemy]"]
    subprocess.run(install, check=True, env=clean, cwd=folder)
    subprocess.run([python, "--version"], check=True, env=clean)
    command = python.with_name("icesql")
    made = subprocess.run([command, "demo"], check=False, env=clean, cwd=folder)
    read = subprocess.run(
        [command, "--warehouse", "icesql-demo", "--format", "csv", "-c", COUNT],
        check=False, env=clean, cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    shown = made.returncode == 0 and read.stdout.split() == ["count_star()", "2800"]
    print("the demo", "is read" if shown else f"fails: {read.stdout}{read.stderr}", flush=True)
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not spark", *tests]
    return subprocess.run(pytest, cwd=ROOT, env=clean, check=False).returncode == 0 and shown


def main() -> int:
    arguments = sys.argv[1:]
    tests = QUICK if "--quick" in arguments else ()
    failed = []
    for interpreter in [each for each in arguments if each != "--quick"] or named():
        if shutil.which(interpreter) is None:
            print(f"{interpreter} is not here: not tried", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            if not run(interpreter, Path(folder), tests):
                failed.append(interpreter)
    print("failed with", ", ".join(failed)) if failed else print("all that are here pass")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
