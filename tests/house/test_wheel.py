"""What is installed holds all it needs."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest

from tests.processes import ran

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_wheel_ships_the_grammar(wheel_file: Path) -> None:
    with zipfile.ZipFile(wheel_file) as wheel:
        names = set(wheel.namelist())
    grammar = {f"icesql/_grammar/{path.name}" for path in (ROOT / "grammar").glob("*.lark")}
    assert grammar
    assert grammar <= names
    assert not any(name.startswith("tests/") for name in names)


def test_the_wheel_ships_the_manual(wheel_file: Path) -> None:
    with zipfile.ZipFile(wheel_file) as wheel:
        names = set(wheel.namelist())
    chapters = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "icesql/manual").rglob("*.md")
    }
    assert len(chapters) > 15
    assert chapters <= names


def test_the_wheel_holds_the_package_and_nothing_else(wheel_file: Path) -> None:
    with zipfile.ZipFile(wheel_file) as wheel:
        names = set(wheel.namelist())
        (place,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        about = message_from_bytes(wheel.read(place))
        mode = {each.filename: each.external_attr >> 16 for each in wheel.infolist()}
    described = place.partition("/")[0]
    assert {name.partition("/")[0] for name in names} == {"icesql", "dbt", described}
    tracked = _tracked_files()
    if tracked:
        expected = {name for name in tracked if name.startswith("icesql/")}
        expected |= {f"icesql/_{name}" for name in tracked if name.startswith("grammar/")}
        # These are moved to where dbt looks for them.
        expected -= PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"].keys()
        assert {name for name in names if name.startswith("icesql/")} == expected
    assert "icesql/py.typed" in names
    assert f"{described}/licenses/LICENSE" in names
    assert all(each & 0o444 == 0o444 for each in mode.values())
    version = Path(ROOT / PROJECT["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert f'__version__ = "{about["Version"]}"' in version
    assert about["Requires-Python"] == PROJECT["project"]["requires-python"]
    assert about["Description-Content-Type"] == "text/markdown"
    assert about["License-Expression"] == "Apache-2.0"
    assert len(about.get_all("Requires-Dist") or []) > len(PROJECT["project"]["dependencies"])


def test_the_source_distribution_builds_the_same_wheel(wheel_file: Path, tmp_path: Path) -> None:
    sdist = pytest.importorskip("hatchling.builders.sdist", reason="hatchling is not installed")
    from hatchling.builders.wheel import WheelBuilder

    built = sdist.SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(next(built)) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = (each for each in tmp_path.iterdir() if each.is_dir())
    tracked = _tracked_files()
    for each in ("pyproject.toml", "README.md", "LICENSE", "tests/house/test_wheel.py", *tracked):
        assert (unpacked / each).is_file() or each.startswith("."), each
    (again,) = WheelBuilder(str(unpacked)).build(
        directory=str(tmp_path / "wheel"), versions=["standard"]
    )
    assert Path(again).name == wheel_file.name
    assert _checksums(Path(again)) == _checksums(wheel_file)


def _checksums(wheel_file: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel_file) as wheel:
        return {each.filename: each.CRC for each in wheel.infolist()}


def _tracked_files() -> list[str]:
    """The files that Git has; none where this is no checkout."""
    done = ran(["git", "ls-files"], cwd=ROOT)
    return [] if done.returncode else done.stdout.splitlines()


def test_the_wheel_puts_the_adapter_where_dbt_looks_for_it(wheel_file: Path) -> None:
    with zipfile.ZipFile(wheel_file) as wheel:
        names = set(wheel.namelist())
    # A file of dbt or dbt.adapters themselves would stand in the way of dbt's own.
    assert {name for name in names if name.startswith("dbt/")} == {
        "dbt/adapters/icesql/__init__.py",
        "dbt/adapters/icesql/__version__.py",
    }
    macros = {path.relative_to(ROOT) for path in (ROOT / "icesql/dbt/include").rglob("*.*")}
    assert len(macros) > 5
    assert {str(path) for path in macros} <= names


def test_the_wheel_installs_and_runs_without_the_checkout(wheel_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("pip", reason="pip is not installed")
    installed = tmp_path / "installed"
    install = ["-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(installed)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    clean["PYTHONPATH"] = str(installed)
    run = partial(
        subprocess.run, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=100
    )
    done = run([sys.executable, *install, str(wheel_file)], check=False)
    assert done.returncode == 0, done.stderr
    # Its own grammar says what it expected.
    program = """
import icesql, pathlib
print(pathlib.Path(icesql.__file__).parents[1], icesql.__version__)
try:
    icesql.connect().execute("SELECT FROM WHERE")
except icesql.SqlSyntaxError as error:
    print("expected" in str(error))
"""
    done = run([sys.executable, "-c", program], check=False)
    version = PROJECT["tool"]["hatch"]["version"]["path"]
    assert f'"{done.stdout.split()[1]}"' in (ROOT / version).read_text(encoding="utf-8")
    assert done.stdout.split()[::2] == [str(installed), "True"], done.stdout + done.stderr
    command = installed / "bin" / "icesql"
    made = run([command, "demo"], check=False)
    assert made.returncode == 0, made.stderr
    count = "SELECT count(*) AS n FROM demo.trips VERSION AS OF 'two-weeks'"
    read = run([command, "--warehouse", "icesql-demo", "--format", "csv", "-c", count], check=False)
    assert read.stdout.split() == ["n", "2800"], read.stderr
    # What is found by name: SQLAlchemy's dialect, Spark's settings for logs, the types.
    points = metadata.distributions(path=[str(installed)])
    names = {point.name for each in points for point in each.entry_points}
    groups = PROJECT["project"]["entry-points"].values()
    assert names == {*PROJECT["project"]["scripts"], *(name for each in groups for name in each)}
    assert (installed / "icesql" / "py.typed").is_file()
    assert (installed / "icesql" / "engine" / "spark" / "log4j2.properties").is_file()


def test_the_command_runs_outside_the_checkout(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("icesql")
    if not command.exists():
        pytest.skip("icesql is not installed in this environment: pip install '.[test]'")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = ran([command, "-c", "SELECT 1 AS one"], cwd=tmp_path, env=clean)
    assert (done.returncode, done.stdout) == (0, " one\n----\n   1\n"), done.stderr


def test_extras_pass_through_to_those_of_pyiceberg() -> None:
    offered = set(metadata.metadata("pyiceberg").get_all("Provides-Extra") or ())
    for extra, requirements in PROJECT["project"]["optional-dependencies"].items():
        for requirement in requirements:
            if requirement.startswith("pyiceberg[") and extra != "test":
                assert requirement == f"pyiceberg[{extra}]>=0.12,<0.13"
                assert extra in offered


def test_the_top_level_holds_only_what_it_should() -> None:
    tracked = _tracked_files()
    if not tracked:
        pytest.skip("not a git checkout")
    top = {name.partition("/")[0] for name in tracked}
    visible = {name for name in top if not name.startswith(".")}
    assert visible <= {"pyproject.toml", "icesql", "tests", "grammar", "README.md", "LICENSE"}
