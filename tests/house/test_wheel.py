"""What is installed holds all it needs."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_wheel_ships_the_grammar(tmp_path: Path) -> None:
    builder = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed")
    (built,) = builder.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as wheel:
        names = set(wheel.namelist())
    grammar = {f"icesql/_grammar/{path.name}" for path in (ROOT / "grammar").glob("*.lark")}
    assert grammar
    assert grammar <= names
    assert not any(name.startswith("tests/") for name in names)


def test_the_command_runs_outside_the_checkout(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("icesql")
    if not command.exists():
        pytest.skip("icesql is not installed in this environment: pip install '.[test]'")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [command, "-c", "SELECT 1 AS one"],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, " one\n----\n   1\n"), done.stderr


def test_extras_pass_through_to_those_of_pyiceberg() -> None:
    offered = set(metadata.metadata("pyiceberg").get_all("Provides-Extra") or ())
    for extra, requirements in PROJECT["project"]["optional-dependencies"].items():
        for requirement in requirements:
            if requirement.startswith("pyiceberg["):
                assert requirement == f"pyiceberg[{extra}]"
                assert extra in offered


def test_the_top_level_holds_only_what_it_should() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    if tracked.returncode:
        pytest.skip("not a git checkout")
    top = {name.partition("/")[0] for name in tracked.stdout.splitlines()}
    visible = {name for name in top if not name.startswith(".")}
    assert visible <= {"pyproject.toml", "icesql", "tests", "grammar", "README.md", "LICENSE"}
