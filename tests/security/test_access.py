"""SQL cannot do what the owner of its connection forbids."""

from __future__ import annotations

import os
import shlex
import shutil
from ast import literal_eval
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.config import Settings
from icesql.errors import (
    AccessDeniedError,
    DatabaseError,
    Error,
    ProgrammingError,
    TableNotFoundError,
)
from tests import warm
from tests.rows import rows_of
from tests.scenes import Scene, scenes
from tests.security.conftest import one_column
from tests.security.owner import Owner
from tests.sessions import answer, fetched

NAMES = list(Settings.__struct_fields__)
VALUES = {"engine": "spark", "local_reader": "arrow", "timezone": "Asia/Tokyo", "prune": "off"}


def table(folder: Path, value: int) -> str:
    return one_column(folder, value).folder


@scenes(__file__, "owner.scenes")
def test_what_an_owner_forbids(scene: Scene, tmp_path: Path) -> None:
    with closing(Owner(tmp_path)) as owner:
        owner.play(scene)


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "sql",
    [
        "SET {} = '{}'",
        "SET {} TO {}",
        "set session {} = '{}'",
        "SET \"{}\" = '{}'",
        "RESET {} -- {}",
    ],
)
def test_a_locked_setting_is_not_changed_by_any_statement(name: str, sql: str) -> None:
    value = VALUES.get(name, "7")
    with icesql.connect(locked=[name]) as connection:
        before = connection.settings
        for spelling in (name, name.upper(), name.replace("_", "-")):
            with pytest.raises(DatabaseError):
                connection.execute(sql.format(spelling, value))
        assert connection.settings == before


def test_all_settings_may_be_locked_and_the_owners_stand() -> None:
    with icesql.connect(locked=True, settings={"memory_limit": "300MB"}) as connection:
        for name in NAMES:
            with pytest.raises(AccessDeniedError):
                connection.execute(f"SET {name} = '{VALUES.get(name, '7')}'")
        connection.execute("RESET ALL")
        assert connection.settings.memory_limit == 300 << 20
        with pytest.raises(ProgrammingError, match="unknown setting"):
            connection.execute("SET nonsense = 1")


# ---------------------------------------------------------------- tables by path


@rows_of(__file__, "scans_by_path.tsv", "sql")
@pytest.mark.parametrize("allowed", [False, "other"])
def test_a_refused_path_gives_one_text_whatever_is_there(
    sql: str, allowed: Any, tmp_path: Path
) -> None:
    there = table(tmp_path / "t", 1)
    (tmp_path / "empty").mkdir()
    roots = [tmp_path / "other"] if allowed == "other" else False
    paths = [
        there, f"{there}/metadata", f"{there}/metadata/v2.metadata.json", f"{tmp_path}/empty",
        f"{tmp_path}/none", "/etc/shadow", "/etc/passwd", "/proc/self/environ", "/dev/zero", "~root",
        "relative", "../../x", "file:///etc/passwd", "s3://bucket/t", "abfss://c@a.dfs.core/x",
        "http://localhost:1/x", "gs://b/x", "hdfs://h/x", "nonsense://x", f"{tmp_path}/other/../t",
        f"{tmp_path}/other2", f"file:{tmp_path}/other/%2e%2e/t",
    ]  # fmt: skip
    texts = set()
    with icesql.connect(tables_by_path=roots) as connection:
        for path in paths:
            with pytest.raises(AccessDeniedError) as caught:
                fetched(connection, sql.format(path))
            texts.add(str(caught.value))
    assert len(texts) == 1


def test_a_refused_path_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    with icesql.connect(tables_by_path=[tmp_path / "x"]) as connection:
        fetched(connection, "SELECT 1")
        for module, name in ((os, "stat"), (os, "lstat"), (os, "scandir"), (os.path, "isdir"),
                             (os.path, "isfile"), (os.path, "exists")):  # fmt: skip
            monkeypatch.setattr(module, name, lambda path, *_, **__: seen.append(path))
        with pytest.raises(AccessDeniedError):
            connection.execute("SELECT * FROM iceberg_scan('/etc/hosts')")
        monkeypatch.undo()
    assert [path for path in seen if "etc" in str(path)] == []


def test_paths_below_a_root_are_read_and_no_others(tmp_path: Path) -> None:
    inside, outside = table(tmp_path / "a/t", 1), table(tmp_path / "b/t", 2)
    os.symlink(outside, tmp_path / "a/link")
    shutil.copytree(inside, tmp_path / "a/half")
    shutil.rmtree(tmp_path / "a/half/metadata")
    os.symlink(f"{outside}/metadata", tmp_path / "a/half/metadata")
    with icesql.connect(tables_by_path=[tmp_path / "a"]) as connection:
        for path in (inside, f"file:{inside}", f"{inside}/metadata", f"{tmp_path}/b/../a/t"):
            rows = fetched(connection, "SELECT * FROM iceberg_scan(?)", [path])
            assert rows == [(1,)]
        for path in (outside, f"{tmp_path}/a/link", f"{tmp_path}/a/half", f"{tmp_path}/a/../b/t"):
            with pytest.raises(AccessDeniedError):
                fetched(connection, "SELECT * FROM iceberg_scan(?)", [path])


def test_a_registered_table_is_the_owners(tmp_path: Path) -> None:
    with icesql.connect(service=True) as connection:
        connection.register_table("t", table(tmp_path / "t", 5))
        assert fetched(connection, "SELECT * FROM t") == [(5,)]


# ---------------------------------------------------------------- catalogs


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two configured catalogs of one folder with a table, and a warehouse of another."""
    from pyiceberg.catalog.sql import SqlCatalog

    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        uri = f"sqlite:///{folder}/catalog.db"
        catalog = SqlCatalog(name, uri=uri, warehouse=f"file://{folder}")
        catalog.create_namespace("ns")
        catalog.register_table("ns.t", one_column(folder / "t", 1).metadata_path)
        catalog.close()
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__URI", uri)
    return tmp_path


def test_only_named_catalogs_are_opened(configured: Path) -> None:
    assert answer("SELECT * FROM two.ns.t", catalog="one") == [(1,)]
    assert answer("SELECT * FROM two.ns.t", catalog="one", catalogs=["two"]) == [(1,)]
    for access in ({"catalogs": []}, {"catalogs": ["three"]}, {"service": True}):
        with icesql.connect("one", **access) as connection:
            assert fetched(connection, "SELECT * FROM ns.t") == [(1,)]
            assert fetched(connection, "SELECT * FROM one.ns.t") == [(1,)]
            texts = set()
            for name in ("two", "absent"):
                with pytest.raises(TableNotFoundError) as caught:
                    connection.execute(f"SELECT * FROM {name}.ns.t")
                texts.add(str(caught.value).replace(name, "NAME"))
            assert len(texts) == 1


def test_without_a_catalog_none_is_opened_either(configured: Path) -> None:
    with pytest.raises(TableNotFoundError):
        answer("SELECT * FROM two.ns.t", service=True)


# ---------------------------------------------------------------- the arguments


@rows_of(__file__, "bad_access.tsv", "argument", "value")
def test_a_bad_value_is_told_with_its_argument(argument: str, value: str) -> None:
    given: dict[str, Any] = {argument: literal_eval(value)}
    with pytest.raises(ProgrammingError, match=argument):
        icesql.connect(**given)


def test_a_service_locks_every_setting_and_roots_hold_what_is_below(tmp_path: Path) -> None:
    with icesql.connect(service=True, tables_by_path=[tmp_path]) as connection:
        access = connection.access
    assert access.locked == frozenset(NAMES)
    assert access.tables_by_path.hold(f"{tmp_path}/t")  # type: ignore[union-attr]
    with pytest.raises(AttributeError):
        access.locked = frozenset()  # type: ignore[misc]


@rows_of(__file__, "access_options.tsv", "options", "sql", "code", "message")
def test_the_command_line_says_the_same(
    options: str, sql: str, code: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from icesql.cli import main

    assert main([*shlex.split(options), "-c", sql]) == int(code)
    assert message in capsys.readouterr().err


def test_no_statement_of_a_service_leaves_something_behind(tmp_path: Path) -> None:
    script = "\n".join(
        [
            "import icesql",
            "connection = icesql.connect(service=True)",
            "for sql in ('SELECT 1', \"SET temp_directory = 'left'\", \"SELECT getenv('HOME')\",",
            "            \"SELECT * FROM iceberg_scan('x')\", \"COPY t TO 'left'\"):",
            "    try:",
            "        print(connection.execute(sql).fetchall())",
            "    except icesql.Error as error:",
            "        print(type(error).__name__)",
        ]
    )
    done = warm.python(script, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "[(1,)]", "AccessDeniedError", "UnsupportedSqlError", "AccessDeniedError",
        "AccessDeniedError",
    ]  # fmt: skip
    assert not (tmp_path / "left").exists()
    assert issubclass(AccessDeniedError, Error)


# ---------------------------------------------------------------- one after another


@rows_of(__file__, "for_the_next.tsv", "statement")
@pytest.mark.parametrize("more", [{}, {"read_only": False}])
def test_a_service_leaves_nothing_for_the_next(
    tmp_path: Path, statement: str, more: dict[str, Any]
) -> None:
    (tmp_path / "ns").mkdir()
    table(tmp_path / "ns" / "t", 1)
    with icesql.connect(warehouse=tmp_path, service=True, **more) as connection:
        before = _remembered(connection)
        with pytest.raises(AccessDeniedError) as caught:
            connection.execute(statement)
        assert caught.value.argument in ("service", "locked")
        with pytest.raises(AccessDeniedError):
            list(connection.execute_script(f"{statement}; SELECT 1"))
        assert _remembered(connection) == before
        assert fetched(connection, "SELECT * FROM ns.t") == [(1,)]
        for other in ("SELECT * FROM v", "SELECT * FROM t", "EXECUTE p", "SELECT m(1)"):
            with pytest.raises(icesql.Error):
                fetched(connection, other)


def _remembered(connection: Any) -> list[Any]:
    """All that a session keeps for the statements after this one."""
    state = connection._session.state
    made = [dict(each) for each in (state.variables, state.macros, state.prepared)]
    return [dict(vars(state)), dict(vars(state.names)), state.temporary.all, *made]
