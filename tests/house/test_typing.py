"""A program of a user is checked against the installed wheel: ``py.typed`` and what it promises."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from icesql import demo
from tests.processes import ran

PROGRAM = Path(__file__).parent / "typed" / "program.py"


def test_mypy_knows_the_types_of_the_public_names(plain: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    options = ["--strict", "--config-file=", "--disable-error-code=import-untyped"]
    # The checker's own copy: mypy looks beside what it checks before it looks where it is installed.
    program = tmp_path / "program.py"
    program.write_bytes(PROGRAM.read_bytes())
    done = ran(
        [sys.executable, "-m", "mypy", *options, "--python-executable", str(plain), str(program)],
        cwd=tmp_path,
        timeout=100,
    )
    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout + done.stderr


def test_the_program_runs(plain: Path, tmp_path: Path) -> None:
    demo.build(tmp_path / "warehouse")
    done = ran([str(plain), str(PROGRAM), "warehouse"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("[('Athens', 539), ")
    assert lines[1:] == [
        "2400",
        "4000",
        "(-1, ['id', 'fare'], 1)",
        "nothing follows WHERE in line 1",
        "fare",
        "TableNotFoundError",
        "[(1,)] qmark 1",
    ]
