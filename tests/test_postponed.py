"""What stands for a module gives what the module gives, and does not load it before."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import ran

ROOT = Path(__file__).parents[1]
# What DuckDB's package does in Python, its core without it cannot.
OF_PYTHON = ("register", "sql", "query", "from_arrow", "table", "view", "values", "read_parquet")
POSTPONED = """\
import sys
from icesql.postponed import postpone_imports
postpone_imports()
"""

LAZY = """\
import sqlglot, msgspec
from typing import Annotated, NotRequired, TypedDict
names = ("asyncio", "importlib.metadata", "sqlglot.diff", "difflib", "typing_extensions")
print(*(type(sys.modules[name]).__name__ for name in names), "email" in sys.modules)
from importlib.metadata import PackageNotFoundError, version
assert version("msgspec") == msgspec.__version__
import importlib.metadata
try:
    importlib.metadata.version("no such package")
except PackageNotFoundError:
    pass
import importlib.metadata._meta
import asyncio.events
assert asyncio.TimeoutError is TimeoutError
async def answer():
    await asyncio.sleep(0)
    return 7
assert asyncio.run(answer()) == 7
import difflib
assert difflib.get_close_matches("tabel", ["table"]) == ["table"]
assert difflib.SequenceMatcher(None, "a", "a").ratio() == 1
class T(TypedDict):
    a: Annotated[int, msgspec.Meta(ge=3)]
    b: NotRequired[str]
assert msgspec.json.decode(b'{"a": 3}', type=T) == {"a": 3}
try:
    msgspec.json.decode(b'{"a": 2}', type=T)
except msgspec.ValidationError:
    pass
else:
    raise AssertionError
import typing_extensions
assert typing_extensions.get_type_hints(T)["a"] is int
assert typing_extensions.Literal
assert len(sqlglot.diff(sqlglot.parse_one("a"), sqlglot.parse_one("a"))) == 1
print(*(type(sys.modules[name]).__name__ for name in names))
"""

THREADS = """\
import difflib, threading
together, found = threading.Barrier(8), []
def need():
    together.wait()
    found.append(difflib.SequenceMatcher)
threads = [threading.Thread(target=need) for _ in range(8)]
[each.start() for each in threads]
[each.join() for each in threads]
print(len(found), len(set(found)))
"""


def run(program: str) -> str:
    done = ran([sys.executable, "-c", program], cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_module_comes_when_a_name_of_it_is_needed() -> None:
    before, after = run(POSTPONED + LAZY).splitlines()
    assert before == "_Postponed " * 5 + "False"
    assert after.split() == ["module"] * 5


def calls_on_cursors() -> Iterator[tuple[str, str, bool]]:
    """Each use of Arrow or of relations by a cursor, where it is, and whether they are there."""
    for source in (ROOT / "icesql").rglob("*.py"):
        for function in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            called = {
                each.func.id
                for each in ast.walk(function)
                if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
            }
            for each in ast.walk(function):
                if not (isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)):
                    continue
                if ast.unparse(each.func.value).endswith("cursor") and each.func.attr in OF_PYTHON:
                    place = f"{source.relative_to(ROOT)}: {function.name}"
                    yield place, each.func.attr, bool(called & {"with_relations", "register"})


def test_what_the_command_starts_without_is_there_where_it_is_used() -> None:
    found = list(calls_on_cursors())
    assert {place for place, _, there in found if not there} == set()
    registering = {place for place, name, _ in found if name == "register"}
    assert registering == {"icesql/engine/duckdb/described.py: register"}
    assert len(found) == 5


MADE = """\
CREATE SCHEMA m;
CREATE TABLE m.t (a BIGINT, b VARCHAR) PARTITIONED BY (b)
    TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'format-version' = '{version}');
INSERT INTO m.t VALUES (1, 'x'), (2, 'y'), (3, 'x');
INSERT INTO m.t VALUES (4, 'x'), (5, 'y'), (6, 'x');
DELETE FROM m.t WHERE a IN (1, 5);
"""


@pytest.mark.parametrize(
    ("version", "order"), [(2, ""), (3, ", strategy => 'sort', sort_order => 'a DESC'")]
)
def test_the_command_compacts_files_with_deletes(tmp_path: Path, version: int, order: str) -> None:
    rewrite = f"CALL system.rewrite_data_files('m.t'{order}, options => map('rewrite-all', 'true'))"
    told = [
        ran(
            [
                sys.executable,
                "-m",
                "icesql",
                "--warehouse",
                str(tmp_path),
                "--format",
                "csv",
                "-c",
                sql,
            ],
            check=True,
        ).stdout
        for sql in (MADE.format(version=version), rewrite, "SELECT a FROM m.t ORDER BY a")
    ]
    assert told[1].splitlines()[1].startswith("3,2,")
    assert told[2].split() == ["a", "2", "3", "4", "6"]


def test_threads_that_need_a_module_at_once_get_one() -> None:
    assert run(POSTPONED + THREADS) == "8 1\n"
