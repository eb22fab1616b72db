"""The house stands as DESIGN draws it: imports go down, each dependency has one door."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "icesql").rglob("*.py"))


def test_import_contracts_hold(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

    monkeypatch.syspath_prepend(str(ROOT))
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_file_systems_of_pyarrow_are_opened_in_storage_only() -> None:
    assert {source.parent.name for source in _importers("pyarrow.fs")} <= {"storage"}


def test_spark_is_known_to_its_engine_and_its_data_source_only() -> None:
    named = {source.relative_to(ROOT / "icesql").as_posix() for source in _importers("pyspark")}
    assert {
        each for each in named if not each.startswith(("engine/spark/", "datasource/"))
    } == set()


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_holds_one_idea(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    assert ast.get_docstring(ast.parse(text)), "a module opens with one sentence"


def test_rooms_say_what_they_may_import_and_hold_no_code() -> None:
    for init in (ROOT / "icesql").glob("*/**/__init__.py"):
        body = ast.parse(init.read_text(encoding="utf-8")).body
        assert len(body) == 1, f"{init} holds code"


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
