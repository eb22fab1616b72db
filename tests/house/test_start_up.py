"""A plain SELECT imports sqlglot and duckdb and nothing else that is slow; SHOW and DDL neither."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.processes import ran

SLOW = {
    "pyarrow", "numpy", "pandas", "pyiceberg", "fastavro", "prompt_toolkit", "pygments", "lark",
    "sqlalchemy", "polars", "pyspark", "asyncio", "requests", "fsspec",
}  # fmt: skip

# Modules that later releases of Python import by themselves.
NEWER = 4 if sys.version_info >= (3, 14) else 0

PROGRAM = """\
import os, sys
def end(code):
    # What only stands for a module is none.
    loaded = [n for n, m in sys.modules.items() if type(m).__name__ != "_Postponed"]
    print(",".join(sorted(loaded)), file=sys.stderr)
    sys.exit(code)
os._exit = end
from icesql.__main__ import run
run()
"""


def modules_after(*arguments: str) -> set[str]:
    """Modules in memory after `icesql <arguments>`."""
    done = ran([sys.executable, "-c", PROGRAM, *arguments], cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split(","))


def imported_by(*arguments: str) -> set[str]:
    """Top-level modules in memory after `icesql <arguments>`."""
    return {name.partition(".")[0] for name in modules_after(*arguments)}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT region, sum(amount) FROM shop.orders WHERE id > 3 GROUP BY region",
        "SELECT * FROM shop.orders VERSION AS OF 'opening' WHERE region = 'eu' LIMIT 3",
        "EXPLAIN SELECT id FROM shop.orders WHERE region = 'eu'",
    ],
)
def test_a_select_from_a_warehouse_imports_nothing_slow(warehouse: Path, sql: str) -> None:
    found = modules_after("--warehouse", str(warehouse), "-c", sql)
    modules = {name.partition(".")[0] for name in found}
    assert "sqlglot" in modules
    assert modules & (SLOW | {"email", "zipfile", "hashlib", "shutil"}) == set()
    # Rows need none of DuckDB's layers in Python.
    assert "duckdb" not in modules
    assert len(found) < 480
    assert len([name for name in found if name.startswith("icesql.")]) < 282


def test_a_select_from_a_sqlite_catalog_imports_nothing_slow(warehouse: Path) -> None:
    modules = imported_by(
        "--uri", f"sqlite:///{warehouse}/catalog.db", "-c", "SELECT name FROM shop.customers"
    )
    assert modules & SLOW == set()


def test_a_count_is_answered_without_an_engine(warehouse: Path) -> None:
    found = modules_after(
        "--warehouse", str(warehouse), "-c", "SELECT count(*) FROM shop.customers"
    )
    assert len(found) < 240 + NEWER
    modules = {name.partition(".")[0] for name in found}
    assert modules & (SLOW | {"duckdb", "_duckdb", "sqlglot"}) == set()


WITHOUT_SQLGLOT = """
CREATE SCHEMA a
CREATE TABLE a.t (id INT NOT NULL, b DECIMAL(10, 2)) PARTITIONED BY (bucket(4, id))
SHOW TABLES FROM a LIKE 't%'
DESCRIBE a.t
SHOW COLUMNS FROM t IN a
SHOW CREATE TABLE a.t
SHOW REFS FROM a.t
SHOW ALL
SET timezone = 'Europe/Berlin'
RESET timezone
SET VARIABLE day = DATE '2026-01-31'
USE a
ALTER TABLE t ADD COLUMN c TEXT
ALTER TABLE t SET TBLPROPERTIES ('k' = 'v')
ALTER TABLE a.t CREATE BRANCH b
CALL system.expire_snapshots('a.t', retain_last => 1)
OPTIMIZE t
COMMENT ON TABLE t IS 'x'
DROP TABLE a.t PURGE
DROP SCHEMA a
"""
BLOCKED = """\
import sys
sys.modules["sqlglot"] = None
import icesql
with icesql.connect(warehouse=sys.argv[1]) as connection:
    for sql in sys.argv[2].strip().splitlines():
        connection.execute(sql)
"""


def test_show_tables_loads_nothing_that_reads_a_table(warehouse: Path) -> None:
    found = modules_after("--warehouse", str(warehouse), "-c", "SHOW TABLES")
    assert len(found) < 240 + NEWER
    assert {each for each in found if each.startswith(("icesql.scan", "icesql.read"))} == set()


def test_show_set_call_and_ddl_need_no_sqlglot(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BLOCKED, str(tmp_path), WITHOUT_SQLGLOT]
    done = ran(command)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("travel", ["TIMESTAMP AS OF TIMESTAMP '2100-01-31'", "VERSION AS OF -1"])
def test_plain_values_of_time_travel_load_no_parser(warehouse: Path, travel: str) -> None:
    sql = f"SELECT * FROM shop.orders {travel} LIMIT 1"
    found = modules_after("--warehouse", str(warehouse), "-c", sql)
    assert "icesql.sql.parser.dialect" not in found


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_imports_nothing_but_the_command_line(argument: str) -> None:
    modules = modules_after(argument)
    own = {name for name in modules if name.startswith("icesql.")}
    assert own == {
        "icesql.__main__", "icesql.arguments", "icesql.cli", "icesql.errors", "icesql.postponed",
        "icesql.repl", "icesql.repl.terminal", "icesql.sql", "icesql.storage",
        "icesql.storage.credentials",
    }  # fmt: skip
    assert (
        modules & (SLOW | {"sqlglot", "duckdb", "_duckdb", "msgspec", "email", "logging"}) == set()
    )
    assert len(modules) < 100 + NEWER


def test_formats_of_the_command_line_are_those_that_are_written() -> None:
    from icesql import arguments
    from icesql.file_format import named_format
    from icesql.repl import results
    from icesql.repl.render import LAYOUTS

    assert results.FORMATS == arguments.FORMATS
    for name in arguments.FORMATS:
        assert name in LAYOUTS or named_format(name)


@pytest.mark.parametrize("module", ["icesql", "icesql.repl.shell"])
def test_importing_icesql_imports_no_engine(module: str) -> None:
    """Neither does the shell before its prompt is there."""
    done = ran(
        [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"],
        cwd=Path(__file__).parents[2],
        check=True,
    )
    own = {"prompt_toolkit", "pygments", "asyncio"} if "repl" in module else set()
    assert ({"duckdb", "sqlglot", *SLOW} - own) & set(done.stdout.split()) == set()
