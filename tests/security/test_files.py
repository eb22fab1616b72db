"""Files of this machine are read where the owner of the connection allows it, and nowhere else."""

from __future__ import annotations

import os
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
from tests.writer.table import TableWriter

FIELDS = [{"id": 1, "name": "a", "required": False, "type": "long"}]


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


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_parquet('{}/x.parquet')",
        "SELECT * FROM PARQUET_SCAN('{}/x.parquet')",
        "SELECT * FROM read_csv('{}/x.csv')",
        "SELECT * FROM read_csv_auto('{}/x.csv', header = true, delim = ',')",
        "SELECT * FROM read_csv('{}/x.csv', columns = {{'a': 'BIGINT'}}, header := true)",
        "SELECT * FROM read_json('{}/x.json')",
        "SELECT * FROM read_json_auto('{}/x.json', format => 'auto')",
        "SELECT json ->> 'a' = '1' FROM read_json_objects('{}/x.json')",
        "SELECT * FROM '{}/x.parquet'",
        "SELECT * FROM '{}/x.csv'",
        "SELECT * FROM '{}/x.json' AS j",
        "SELECT x.a FROM '{}/x.parquet'",
        "SELECT read_csv.a FROM read_csv('{}/x.csv')",
        "SELECT max(a) FROM '{}/*.parquet'",
        "SELECT max(a) FROM read_parquet('{}/**/*.parquet') HAVING count(*) = 2",
        "SELECT max(a) FROM read_parquet(['{0}/x.parquet', '{0}/sub/x.parquet']) HAVING count(*) = 2",
        "SELECT count(*) FROM '{}/x.csv'",
        "WITH f AS (FROM '{}/x.csv') SELECT a FROM f",
        "SELECT f.a FROM '{0}/x.csv' AS f JOIN '{0}/x.parquet' AS g USING (a)",
        "SELECT (SELECT max(a) FROM '{}/x.csv')",
        "FROM read_csv('file:{}/x.csv')",
    ],
)
def test_an_allowed_file_is_read(sql: str, root: Path) -> None:
    for allowed in ([root], str(root), [root.parent], True):
        with icesql.connect(files=allowed) as connection:
            assert connection.execute(sql.format(root)).fetchall() in ([(1,)], [(True,)])


def test_a_file_is_read_beside_a_table_with_parameters(root: Path, tmp_path: Path) -> None:
    writer = TableWriter(str(tmp_path / "wh/t"), fields=FIELDS)
    writer.commit([writer.data_file([{"a": 1}, {"a": 2}])])
    with icesql.connect(warehouse=str(tmp_path / "wh"), files=[root]) as connection:
        sql = "SELECT t.a FROM t JOIN read_csv(?) AS f ON f.a = t.a WHERE t.a < ?"
        assert connection.execute(sql, [f"{root}/x.csv", 5]).fetchall() == [(1,)]
        sql = "SELECT count(*) FROM t, read_csv(:path)"
        assert connection.execute(sql, {"path": f"{root}/x.csv"}).fetchall() == [(2,)]
        plan = connection.execute(f"EXPLAIN SELECT * FROM t, '{root}/x.csv' AS f").fetchall()
        assert plan
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(2,)]


PATHS = [
    "{secret}/x.csv", "{root}less/x.csv", "{root}/../secret/x.csv", "{root}/sub/../../secret/x.csv",
    "file:{secret}/x.csv", "file:{root}/%2e%2e/secret/x.csv", "file:{root}/..%2fsecret/x.csv",
    "{root}/link.csv", "{root}/folder/x.csv", "{root}/l*.csv", "{root}/f*/x.csv", "{root}/**/../../secret/x.csv",
    "{secret}/*.csv", "{root}*/x.csv", "{root}/../*/x.csv", "/etc/pass*.csv", "~/x.csv", "../secret/x.csv",
    "x.csv", "http://127.0.0.1:1/x.csv", "https://x.test/x.csv", "s3://bucket/x.csv", "hf://x/y.csv",
    "//127.0.0.1/x.csv", "gcs://b/x.csv", "/dev/stdin.csv", "/proc/self/environ.csv", "{none}/x.csv",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_another_path_gives_one_text_whatever_is_there(path: str, root: Path) -> None:
    secret = root.parent / "secret"
    os.symlink(secret / "x.csv", root / "link.csv")
    os.symlink(secret, root / "folder")
    text = path.format(root=root, secret=secret, none=root.parent / "none")
    told = set()
    with icesql.connect(files=[root]) as connection:
        for sql in ("SELECT * FROM '{}'", "SELECT * FROM read_csv(['{}'])"):
            with pytest.raises(AccessDeniedError) as caught:
                print(connection.execute(sql.format(text)).fetchall())
            told.add(str(caught.value))
    assert told == {"access denied: no file may be read by this path (files of this connection)"}


@pytest.mark.parametrize("allowed", ["none", "root", "service"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{}/x.csv')",
        "SELECT * FROM read_blob('{}/x.csv')",
        "SELECT * FROM glob('{}/*')",
        "SELECT * FROM sniff_csv('{}/x.csv')",
        "SELECT * FROM parquet_metadata('{}/x.parquet')",
        "SELECT * FROM parquet_schema('{}/x.parquet')",
        "SELECT * FROM '{}/x.db'",
        "SELECT * FROM '{}/x'",
        "SELECT read_csv('{}/x.csv')",
        "SELECT * FROM query('FROM read_csv(''{}/x.csv'')')",
        "SELECT * FROM read_csv('{}/x.csv', store_rejects = true)",
        "SELECT * FROM read_csv('{}/x.csv', nonsense = true)",
        "SELECT * FROM read_csv('{}/x.csv', header = (SELECT true))",
        "SELECT * FROM read_csv('{}/x.csv', delim = current_setting('x'))",
        "SELECT * FROM read_parquet('{}/x.parquet', encryption_config = {{}})",
        "SELECT * FROM t, LATERAL read_csv('{}/x.csv')",
        'SELECT * FROM "{}/x.csv"',
        'SELECT * FROM "__file_0"',
        "WITH __file_0 AS (SELECT 1) SELECT * FROM __file_0",
    ],
)
def test_other_ways_to_files_stay_shut(sql: str, allowed: str, root: Path) -> None:
    access: dict[str, Any] = {"none": {}, "root": {"files": [root]}, "service": {"service": True}}
    with icesql.connect(**access[allowed]) as connection, pytest.raises(DatabaseError):
        print(connection.execute(sql.format(root)).fetchall())


def test_without_the_argument_no_file_is_read(root: Path) -> None:
    for access in ({}, {"files": []}, {"files": False}, {"service": True}):
        with icesql.connect(**access) as connection:
            for sql in (
                "FROM read_csv('{}/x.csv')",
                "FROM '{}/x.csv'",
                "FROM parquet_scan('{}/x')",
            ):
                refused = icesql.AccessDeniedError if "service" in access else UnsupportedSqlError
                with pytest.raises(refused):
                    connection.execute(sql.format(root))


def test_a_name_with_wildcards_is_found_as_it_is_written(root: Path) -> None:
    os.rename(root / "x.csv", root / "[x]*.csv")
    with icesql.connect(files=[root]) as connection:
        assert connection.execute(f"SELECT * FROM '{root}/[x]*.csv'").fetchall() == [(1,)]


def test_what_is_no_regular_file_is_not_opened(root: Path) -> None:
    os.mkfifo(root / "pipe.csv")
    os.symlink("/dev/zero", root.parent / "zero.csv")
    with icesql.connect(files=True, settings={"query_timeout": 20}) as connection:
        for path in (root / "pipe.csv", root.parent / "zero.csv", root / "none.csv", root):
            with pytest.raises(StorageError, match="no such file"):
                connection.execute("SELECT * FROM read_csv(?)", [str(path)]).fetchall()


def test_files_are_of_the_local_engine(root: Path) -> None:
    with icesql.connect(files=[root], engine="spark") as connection:
        with pytest.raises(UnsupportedSqlError, match="local") as caught:
            connection.execute(f"SELECT *\nFROM '{root}/x.csv'")
        assert caught.value.line == 2


def test_the_command_reads_files_too(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from icesql.cli import main

    sql = f"SELECT * FROM '{root}/x.csv'"
    assert main(["--files", str(root), "--format", "csv", "-c", sql]) == 0
    assert capsys.readouterr().out == "a\n1\n"
    assert main(["--files", f"{root}x", "-c", sql]) == 1


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


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    from icesql.cli import main

    code = main(["--format", "csv", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.parametrize(
    "source",
    [
        "'x.csv'", "'./sub/../x.csv'", "'{}/x.csv'", "'same.csv'", "'x.json'", "'x.parquet'", "'sub/*.csv'",
        "read_csv('x.csv')", "read_csv_auto('x.csv')", "read_json('x.json')", "read_json_auto('x.json')",
        "read_ndjson('x.json')", "read_parquet('sub/*.parquet')", "read_csv(['x.csv', 'x.csv'])",
        "'sub/[a]*?.csv'", "(SELECT a FROM 'x.csv' UNION SELECT a FROM 'x.json')",
    ],
)  # fmt: skip
def test_the_command_reads_files_below_its_folder(
    source: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = f"SELECT DISTINCT a FROM {source.format(here)}"
    assert _run(capsys, "-c", sql) == (0, "a\n1\n", "")
    view = f"CREATE TEMP VIEW v AS {sql}; CREATE MACRO m() AS TABLE {sql}; FROM v; FROM m()"
    assert _run(capsys, "-c", view)[1].endswith("a\n1\na\n1\n")


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("{secret}/x.csv", "{secret}"), ("../secret/x.csv", "{secret}"), ("link.csv", "{secret}"),
        ("folder/x.csv", "{secret}"), ("../secret/*.csv", "{secret}"), ("../secret/*/*.csv", "{secret}"),
        ("l*.csv", "{secret}"), ("{secret}/none/x.csv", "{secret}/none"), ("file:{secret}/x.csv", "{secret}"),
    ],
)  # fmt: skip
def test_elsewhere_the_error_gives_the_option(
    path: str, folder: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = here.parent / "secret"
    path, option = path.format(secret=secret), f"--files {folder.format(secret=secret)}"
    code, out, said = _run(capsys, "-c", f"SELECT a FROM '{path}'")
    assert (code, out) == (1, "")
    assert f"{option} allows it" in said
    if "none" not in path:
        assert (
            _run(capsys, *option.split(), "-c", f"SELECT DISTINCT a FROM '{path}'")[1] == "a\n99\n"
        )
        # What the option adds does not take the folder away in which the command starts.
        assert _run(capsys, *option.split(), "-c", "SELECT a FROM 'x.csv'")[1] == "a\n1\n"


@pytest.mark.parametrize(
    "limit",
    [
        "--no-files", "--read-only", "--locked", "--locked=threads", "--confine", "--confine=.", "--catalogs=a",
        "--catalogs=", "--tables-by-path=.", "--no-tables-by-path", "--service", "--service --read-only",
    ],
)  # fmt: skip
def test_a_limit_ends_what_the_command_reads(
    limit: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for sql in ("SELECT a FROM 'x.csv'", "SELECT a FROM read_csv('x.csv')"):
        code, out, said = _run(capsys, *limit.split(), "-c", sql)
        assert (code, out) == (1, "")
        assert "file" in said
        assert "iceberg_scan" not in said
    code, out, said = _run(capsys, *limit.split(), "-c", f"COPY (SELECT 1) TO '{here}/out.csv'")
    assert code == 1
    assert not (here / "out.csv").exists()
    if limit != "--no-files":
        assert _run(capsys, *limit.split(), "--files", ".", "-c", "FROM 'x.csv'")[1] == "a\n1\n"


def test_what_is_no_file_of_this_machine_is_said_so(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, problem in {
        "https://x.test/x.csv": "no file of this machine",
        "dir.csv": "a folder, a pipe or a device is there",
        "nope.csv": "no such file",
    }.items():
        code, _, said = _run(capsys, "-c", f"SELECT * FROM '{path}'")
        assert code == 1
        assert problem in said
    for source in ("'/etc/passwd'", "read_text('x.csv')", "read_blob('x.csv')"):
        code, _, said = _run(capsys, "-c", f"SELECT * FROM {source}")
        assert code == 1
        assert "read_csv(" in said
        assert "iceberg_scan" not in said
    assert _run(capsys, "-c", "SELECT count(*) AS n FROM 'empty.csv'")[1] == "n\n0\n"
    assert _run(capsys, "-c", "SELECT a FROM 'none.csv'")[1] == "a\n"


def test_the_folder_of_the_command_may_have_any_name(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = here / "a[1]*{b}'c"
    folder.mkdir()
    (folder / "y[2].csv").write_text("a\n1\n")
    monkeypatch.chdir(folder)
    for path in ("y[2].csv", "y*.csv", f"{folder}/y[2].csv".replace("'", "''")):
        assert _run(capsys, "-c", f"FROM '{path}'") == (0, "a\n1\n", "")
    assert _run(capsys, "-c", "FROM '../x.csv'")[0] == 1
    link = here / "link"
    link.symlink_to(folder)
    monkeypatch.setenv("PWD", str(link))
    assert _run(capsys, "-c", f"FROM '{link}/y[2].csv'") == (0, "a\n1\n", "")
    monkeypatch.setenv("PWD", str(here))  # the folder that the command was in before
    assert _run(capsys, "-c", f"FROM '{here}/x.csv'")[0] == 1
    folder.joinpath("y[2].csv").unlink()
    folder.rmdir()
    assert _run(capsys, "-c", f"FROM '{here}/x.csv'")[0] == 1
    assert _run(capsys, "-c", "SELECT 1 AS a") == (0, "a\n1\n", "")


def test_nobody_but_the_command_reads_files_by_default(here: Path, tmp_path: Path) -> None:
    with (
        icesql.connect(warehouse=str(tmp_path)) as connection,
        pytest.raises(UnsupportedSqlError, match="files="),
    ):
        connection.execute("SELECT * FROM 'x.csv'")


@pytest.mark.parametrize("what", ["link", "pipe", "nothing", "other columns"])
@pytest.mark.parametrize("sql", ["SELECT * FROM '{}'", "INSERT INTO s.t SELECT * FROM '{}'"])
def test_a_file_that_is_replaced_after_it_was_found(
    what: str, sql: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.query import files

    def replaced(*arguments: Any) -> Any:
        found = bound(*arguments)
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
    bound = files.bind_files
    with icesql.connect(warehouse=str(here.parent / "wh"), files=[here]) as connection:
        connection.execute("CREATE SCHEMA s")
        connection.execute("CREATE TABLE s.t (a BIGINT)")
        monkeypatch.setattr(files, "bind_files", replaced)
        try:
            rows = connection.execute(sql.format("x.csv")).fetchall()
        except DatabaseError:
            rows = []
        assert rows == ([(2, 3)] if sql.startswith("SELECT") and what == "other columns" else [])
        monkeypatch.undo()
        assert connection.execute("SELECT * FROM s.t").fetchall() == []
