"""What stands for a module gives what the module gives, and does not load it before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Functions of another system that sqlglot writes for DuckDB by its templates.
GENERATED = """\
import sqlglot
for sql in (
    "SELECT ARRAY_EXCEPT(a, b), ARRAY_INTERSECTION(a, b), ARRAY_DISTINCT(a), ARRAYS_ZIP(a, b)",
    "SELECT ZIPF(1, 10, RANDOM()), NORMAL(0, 1, RANDOM(5)), RANDSTR(4, 7), SEQ4(), SEQ8(1)",
    "SELECT MINHASH(4, a), MINHASH_COMBINE(a), APPROXIMATE_SIMILARITY(a), BITMAP_CONSTRUCT_AGG(a)",
    "SELECT STRTOK('a b', ' ', 1), STRTOK_TO_ARRAY(a, ' '), UUID_STRING(a, b), MAP_CAT(a, b)",
):
    print(sqlglot.transpile(sql, read="snowflake", write="duckdb")[0])
"""

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
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_templates_that_are_parsed_later_write_the_same() -> None:
    later = run(POSTPONED + GENERATED)
    assert later == run(GENERATED)
    assert later.count("SELECT") >= 4


def test_a_module_comes_when_a_name_of_it_is_needed() -> None:
    before, after = run(POSTPONED + LAZY).splitlines()
    assert before == "_Postponed " * 5 + "False"
    assert after.split() == ["module"] * 5


def test_threads_that_need_a_module_at_once_get_one() -> None:
    assert run(POSTPONED + THREADS) == "8 1\n"
