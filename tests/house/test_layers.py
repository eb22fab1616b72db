"""Imports go down the layers only, and few modules import each dependency."""

from __future__ import annotations

import ast
import logging
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "icesql").rglob("*.py"))


def test_import_contracts_hold(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

    monkeypatch.syspath_prepend(str(ROOT))
    # Its own configuration disables the loggers that are there; undone with the test.
    monkeypatch.setattr(logging.getLogger("icesql"), "disabled", False)
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_file_systems_of_pyarrow_are_opened_in_storage_only() -> None:
    assert {source.parent.name for source in _importers("pyarrow.fs")} <= {"storage"}


def test_spark_is_known_to_its_engine_and_its_data_source_only() -> None:
    named = {source.relative_to(ROOT / "icesql").as_posix() for source in _importers("pyspark")}
    assert {
        each for each in named if not each.startswith(("engine/spark/", "datasource/"))
    } == set()


def test_a_file_opens_with_a_sentence_that_says_what_it_is() -> None:
    trees = {source: ast.parse(source.read_text(encoding="utf-8")) for source in SOURCES}
    assert [str(source) for source, tree in trees.items() if not ast.get_docstring(tree)] == []


@pytest.mark.parametrize("room", ["catalog", "read"])
def test_no_circle_of_imports(room: str) -> None:
    """Imports inside functions and those for types count, too."""
    modules = {_module(source): source for source in (ROOT / "icesql" / room).rglob("*.py")}
    imports = {name: _imported(source) & set(modules) for name, source in modules.items()}
    left = dict(imports)
    while free := [name for name, others in left.items() if not others & set(left)]:
        for name in free:
            del left[name]
    assert left == {}, f"a circle, or modules above one: {', '.join(sorted(left))}"


def test_rooms_say_what_they_may_import_and_hold_no_code() -> None:
    for init in (ROOT / "icesql").glob("*/**/__init__.py"):
        body = ast.parse(init.read_text(encoding="utf-8")).body
        assert len(body) == 1, f"{init} holds code"


def _module(source: Path) -> str:
    name = ".".join(source.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def _importers(module: str) -> list[Path]:
    return [
        source
        for source in SOURCES
        if any(f"{name}.".startswith(f"{module}.") for name in _imported(source))
    ]


def _imported(source: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
            names.add(node.module)
    return names
