"""Local files are read only where the owner of the connection allows it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import icesql
from icesql.errors import (
    AccessDeniedError,
    DatabaseError,
    StorageError,
    UnsupportedSqlError,
)
from tests.rows import rows_of
from tests.security.conftest import one_column
from tests.sessions import answer, fetched


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Files that may be read, beside a folder of files that may not."""
    for name, value in (("root", 1), ("rootless", 99), ("secret", 99)):
        folder = tmp_path / name
        (folder / "sub").mkdir(parents=True)
        for place in (folder, folder / "sub"):
            duckdb.sql(f"COPY (SELECT {value} AS a) TO '{place}/x.parquet'")
            duckdb.sql(f"COPY (SELECT {value} AS a) TO '{place}/x.csv'")
            duckdb.sql(f"COPY (SELECT {value} AS a) TO '{place}/x.json'")
    return tmp_path / "root"


@rows_of(__file__, "allowed_files.tsv", "sql")
def test_an_allowed_file_is_read(sql: str, root: Path) -> None:
    for allowed in ([root], str(root), [root.parent], True):
        assert answer(sql.format(root), files=allowed) in ([(1,)], [(True,)])


def test_a_file_is_read_beside_a_table_with_parameters(root: Path, tmp_path: Path) -> None:
    one_column(tmp_path / "wh/t", 1, 2)
    with icesql.connect(warehouse=tmp_path / "wh", files=[root]) as connection:
        sql = "SELECT t.a FROM t JOIN read_csv(?) AS f ON f.a = t.a WHERE t.a < ?"
        assert fetched(connection, sql, [f"{root}/x.csv", 5]) == [(1,)]
        sql = "SELECT count(*) FROM t, read_csv(:path)"
        assert fetched(connection, sql, {"path": f"{root}/x.csv"}) == [(2,)]
        plan = fetched(connection, f"EXPLAIN SELECT * FROM t, '{root}/x.csv' AS f")
        assert plan
        assert fetched(connection, "SELECT count(*) FROM t") == [(2,)]


@rows_of(__file__, "refused_paths.tsv", "path")
def test_another_path_gives_one_text_whatever_is_there(path: str, root: Path) -> None:
    secret = root.parent / "secret"
    os.symlink(secret / "x.csv", root / "link.csv")
    os.symlink(secret, root / "folder")
    text = path.format(root=root, secret=secret, none=root.parent / "none")
    told = set()
    with icesql.connect(files=[root]) as connection:
        for sql in ("SELECT * FROM '{}'", "SELECT * FROM read_csv(['{}'])"):
            with pytest.raises(AccessDeniedError) as caught:
                print(fetched(connection, sql.format(text)))
            told.add(str(caught.value))
    assert told == {"access denied: no file may be read by this path (files of this connection)"}


@pytest.mark.parametrize("allowed", ["none", "root", "service"])
@rows_of(__file__, "other_ways_to_files.tsv", "sql")
def test_other_ways_to_files_stay_shut(sql: str, allowed: str, root: Path) -> None:
    access: dict[str, Any] = {"none": {}, "root": {"files": [root]}, "service": {"service": True}}
    with pytest.raises(DatabaseError):
        print(answer(sql.format(root), **access[allowed]))


def test_a_name_with_wildcards_is_found_as_it_is_written(root: Path) -> None:
    os.rename(root / "x.csv", root / "[x]*.csv")
    assert answer(f"SELECT * FROM '{root}/[x]*.csv'", files=[root]) == [(1,)]


def test_what_is_no_regular_file_is_not_opened(root: Path) -> None:
    os.mkfifo(root / "pipe.csv")
    os.symlink("/dev/zero", root.parent / "zero.csv")
    with icesql.connect(files=True, settings={"query_timeout": 20}) as connection:
        for path in (root / "pipe.csv", root.parent / "zero.csv", root / "none.csv", root):
            with pytest.raises(StorageError, match="no such file"):
                fetched(connection, "SELECT * FROM read_csv(?)", [str(path)])


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command: the code of its exit, and what it writes."""
    from icesql.cli import main

    def run_here(*arguments: str) -> tuple[int, str, str]:
        return main(["--format", "csv", *arguments]), *capsys.readouterr()

    return run_here


def test_the_command_reads_files_too(root: Path, run: Run) -> None:
    sql = f"SELECT * FROM '{root}/x.csv'"
    assert run("--files", str(root), "-c", sql)[:2] == (0, "a\n1\n")
    assert run("--files", f"{root}x", "-c", sql)[0] == 1


# ------------------------------------------------------------------ the command


@pytest.fixture
def here(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``root`` as the folder in which the command starts."""
    monkeypatch.chdir(root)
    os.symlink(root.parent / "secret/x.csv", root / "link.csv")
    os.symlink(root / "x.csv", root / "same.csv")
    os.symlink(root.parent / "secret", root / "folder")
    (root / "dir.csv").mkdir()
    (root / "empty.csv").touch()
    (root / "none.csv").write_text("a\n")
    (root / "sub/[a]*?.csv").write_text("a\n1\n")
    return root


@rows_of(__file__, "files_of_the_command.tsv", "source")
def test_the_command_reads_files_below_its_folder(source: str, here: Path, run: Run) -> None:
    sql = f"SELECT DISTINCT a FROM {source.format(here)}"
    assert run("-c", sql) == (0, "a\n1\n", "")
    view = f"CREATE TEMP VIEW v AS {sql}; CREATE MACRO m() AS TABLE {sql}; FROM v; FROM m()"
    assert run("-c", view)[1].endswith("a\n1\na\n1\n")


@rows_of(__file__, "files_elsewhere.tsv", "path", "folder")
def test_elsewhere_the_error_gives_the_option(path: str, folder: str, here: Path, run: Run) -> None:
    secret = here.parent / "secret"
    path, option = path.format(secret=secret), f"--files {folder.format(secret=secret)}"
    code, out, said = run("-c", f"SELECT a FROM '{path}'")
    assert (code, out) == (1, "")
    assert f"{option} allows it" in said
    if "none" not in path:
        assert run(*option.split(), "-c", f"SELECT DISTINCT a FROM '{path}'")[1] == "a\n99\n"
        # What the option adds does not take the folder away in which the command starts.
        assert run(*option.split(), "-c", "SELECT a FROM 'x.csv'")[1] == "a\n1\n"


@rows_of(__file__, "limits_of_the_command.tsv", "limit")
def test_a_limit_ends_what_the_command_reads(limit: str, here: Path, run: Run) -> None:
    for sql in ("SELECT a FROM 'x.csv'", "SELECT a FROM read_csv('x.csv')"):
        code, out, said = run(*limit.split(), "-c", sql)
        assert (code, out) == (1, "")
        assert "file" in said
        assert "iceberg_scan" not in said
    code, out, said = run(*limit.split(), "-c", f"COPY (SELECT 1) TO '{here}/out.csv'")
    assert code == 1
    assert not (here / "out.csv").exists()
    if limit != "--no-files":
        assert run(*limit.split(), "--files", ".", "-c", "FROM 'x.csv'")[1] == "a\n1\n"


def test_what_is_no_file_of_this_machine_is_said_so(here: Path, run: Run) -> None:
    for path, problem in {
        "https://x.test/x.csv": "no file of this machine",
        "dir.csv": "a folder, a pipe or a device is there",
        "nope.csv": "no such file",
    }.items():
        code, _, said = run("-c", f"SELECT * FROM '{path}'")
        assert code == 1
        assert problem in said
    for source in ("'/etc/passwd'", "read_text('x.csv')", "read_blob('x.csv')"):
        code, _, said = run("-c", f"SELECT * FROM {source}")
        assert code == 1
        assert "read_csv(" in said
        assert "iceberg_scan" not in said
    assert run("-c", "SELECT count(*) AS n FROM 'empty.csv'")[1] == "n\n0\n"
    assert run("-c", "SELECT a FROM 'none.csv'")[1] == "a\n"


def test_the_folder_of_the_command_may_have_any_name(
    here: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = here / "a[1]*{b}'c"
    folder.mkdir()
    (folder / "y[2].csv").write_text("a\n1\n")
    monkeypatch.chdir(folder)
    for path in ("y[2].csv", "y*.csv", f"{folder}/y[2].csv".replace("'", "''")):
        assert run("-c", f"FROM '{path}'") == (0, "a\n1\n", "")
    assert run("-c", "FROM '../x.csv'")[0] == 1
    link = here / "link"
    link.symlink_to(folder)
    monkeypatch.setenv("PWD", str(link))
    assert run("-c", f"FROM '{link}/y[2].csv'") == (0, "a\n1\n", "")
    monkeypatch.setenv("PWD", str(here))  # the folder that the command was in before
    assert run("-c", f"FROM '{here}/x.csv'")[0] == 1
    folder.joinpath("y[2].csv").unlink()
    folder.rmdir()
    assert run("-c", f"FROM '{here}/x.csv'")[0] == 1
    assert run("-c", "SELECT 1 AS a") == (0, "a\n1\n", "")


def test_nobody_but_the_command_reads_files_by_default(here: Path, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedSqlError, match="files="):
        answer("SELECT * FROM 'x.csv'", warehouse=tmp_path)


@pytest.mark.parametrize("what", ["link", "pipe", "nothing", "other columns"])
@pytest.mark.parametrize("sql", ["SELECT * FROM '{}'", "INSERT INTO s.t SELECT * FROM '{}'"])
def test_a_file_that_is_replaced_after_it_was_found(
    what: str, sql: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.query.bind import bind_files

    def replaced(*arguments: Any) -> Any:
        found = bind_files(*arguments)
        if found:
            (here / "x.csv").unlink()
            match what:
                case "link":
                    (here / "x.csv").symlink_to(here.parent / "secret/x.csv")
                case "pipe":
                    os.mkfifo(here / "x.csv")
                case "other columns":
                    (here / "x.csv").write_text("b,c\n2,3\n")
        return found

    (here.parent / "wh").mkdir()
    with icesql.connect(warehouse=here.parent / "wh", files=[here]) as connection:
        connection.execute("CREATE SCHEMA s")
        connection.execute("CREATE TABLE s.t (a BIGINT)")
        monkeypatch.setattr("icesql.query.bind.bind_files", replaced)
        try:
            rows = fetched(connection, sql.format("x.csv"))
        except DatabaseError:
            rows = []
        assert rows == ([(2, 3)] if sql.startswith("SELECT") and what == "other columns" else [])
        monkeypatch.undo()
        assert fetched(connection, "SELECT * FROM s.t") == []
