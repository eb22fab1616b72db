"""The command line as its users meet it: exit codes, streams, formats, signals."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from ast import literal_eval
from pathlib import Path

import pexpect
import pytest

from icesql.arguments import COMMANDS
from tests.processes import ran
from tests.tables import read_table
from tests.warm import icesql

ROOT = Path(__file__).parents[1]


def started(*words: str | Path, stdout: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """The command in a process that a signal may end."""
    return subprocess.Popen(
        [sys.executable, "-m", "icesql", *words],
        cwd=ROOT, stdout=stdout, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_rows_go_to_stdout_and_nothing_else_does(warehouse: Path) -> None:
    done = icesql(
        "--warehouse", warehouse, "-v", "-c", "SELECT name FROM shop.customers WHERE id = 1"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == " name\n------\n Grace\n"
    assert "1 row" in done.stderr


@pytest.mark.parametrize(
    ("words", "stdin", "code", "output", "said"), read_table(__file__, "commands.tsv")
)
def test_a_command_ends_with_a_code_and_says_why(
    words: str, stdin: str, code: str, output: str, said: str
) -> None:
    done = icesql(*shlex.split(words), stdin=literal_eval(stdin))
    assert (done.returncode, done.stdout) == (int(code), literal_eval(output)), done.stderr
    assert said in done.stderr
    assert ("Traceback" in done.stderr) == ("--debug" in words)
    assert done.stderr.startswith("error: ") == (code == "1" and "--debug" not in words)


def test_a_command_stands_before_or_behind_the_options(warehouse: Path) -> None:
    place = ("--warehouse", warehouse)
    reports = [
        icesql("doctor", "shop.orders", *place, "--format", "json"),
        icesql("doctor", *place, "shop.orders", "--format", "json"),
        icesql(*place, "--format=json", "doctor", "shop.orders"),
    ]
    assert [each.returncode for each in reports] == [0, 0, 0]
    assert len({each.stdout for each in reports}) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_of_its_own(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = within(capsys, command, "--help")
    assert shown.returncode == 0
    assert shown.stdout.startswith(f"usage: icesql {command}")
    assert COMMANDS[command].summary[1:15] in " ".join(shown.stdout.split())
    assert ("--fail-on" in shown.stdout) == (command == "doctor")
    assert ("--warehouse" in shown.stdout) == (
        command
        in ("query", "shell", "doctor", "copy", "restore", "undo", "maintain", "config", "mcp")
    )


def test_a_file_holds_statements_too(tmp_path: Path) -> None:
    script = tmp_path / "report.sql"
    script.write_text("-- a report\nSELECT 1 AS a;\n\nSELECT 2 AS b;\n", encoding="utf-8")
    by_file = icesql("-f", script, "--format", "csv")
    assert by_file.stdout == "a\n1\nb\n2\n", by_file.stderr


def test_formats_hold_the_same_values(warehouse: Path) -> None:
    sql = "SELECT * FROM shop.types ORDER BY small NULLS LAST"
    results = {
        name: icesql("--warehouse", warehouse, "--format", name, "-c", sql)
        for name in ("csv", "json", "jsonl", "markdown", "table")
    }
    for done in results.values():
        assert done.returncode == 0, done.stderr
    values, nulls = json.loads(results["json"].stdout)
    assert set(nulls.values()) == {None}
    assert values == {
        "flag": True,
        "small": -7,
        "big": 2**40,
        "single": 1.5,
        "double": "Infinity",
        "price": 12.30,
        "day": "2026-01-31",
        "clock": "12:30:00.000005",
        "moment": "2026-01-31 12:30:00",
        "instant": "2026-01-31 12:30:00+00",
        "text": "naïve, \"quoted\"\nand 'cut'",
        "key": "00000000-0000-0000-0000-000000000005",
        "code": "616263",
        "blob": "00ff",
        "tags": ["a", None],
        "place": {"lat": 47.5, "name": "Basel"},
        "counts": {"x": 1, "y": None},
    }
    assert list(map(json.loads, results["jsonl"].stdout.splitlines())) == [values, nulls]
    first, second = csv.DictReader(io.StringIO(results["csv"].stdout))
    assert set(second.values()) == {""}
    assert first["price"] == "12.30"
    assert first["text"] == values["text"]
    assert first["blob"] == "\\x00\\xFF"
    assert first["counts"] == "{x=1, y=NULL}"
    assert len(results["markdown"].stdout.splitlines()) == 4
    assert results["table"].stdout.count("NULL") == len(values)


@pytest.mark.parametrize("form", ["table", "csv", "json", "jsonl", "markdown"])
def test_explain_in_json_is_printed_as_it_is_in_every_format(form: str) -> None:
    done = icesql("--format", form, "-c", "EXPLAIN (FORMAT json) SELECT 1 AS a")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["scans"] == []
    assert done.stdout.startswith('{\n  "scans"')


def test_a_closed_pipe_is_no_traceback() -> None:
    reader, writer = os.pipe()
    running = started(
        "--format", "csv", "-c", "SELECT * FROM range(3000000) AS r(n)", stdout=writer
    )
    os.close(writer)
    with os.fdopen(reader) as lines:
        assert lines.readline() == "n\n"
    _, errors = running.communicate(timeout=600)
    assert (running.returncode, errors) == (0, "")


# An hour of work for DuckDB.
ENDLESS = "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range * b.range % 7 = 3"


def test_ctrl_c_stops_a_query() -> None:
    running = started("-c", ENDLESS)
    time.sleep(1.5)
    assert running.poll() is None, running.communicate()
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=600)
    assert running.returncode == 130
    assert "Traceback" not in errors


def test_notes_about_the_result_go_to_stderr(warehouse: Path) -> None:
    sql = "SELECT count(*) AS n FROM shop.orders TIMESTAMP AS OF TIMESTAMP '2999-01-01 00:00:00'"
    done = icesql("--warehouse", warehouse, "--format", "csv", "-c", sql)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("n\n")
    assert done.stderr.startswith("note: ")


def test_version_and_help_say_so() -> None:
    assert "time travel" in icesql("--help").stdout
    version = icesql("--version")
    assert (version.returncode, version.stdout.split()[0].rstrip(",")) == (0, "icesql")


def test_help_is_markdown_in_a_pipe_and_laid_out_on_a_terminal(tmp_path: Path) -> None:
    done = icesql("help", "several", "writers")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("## Several writers\n")
    child = pexpect.spawn(
        sys.executable,
        ["-m", "icesql", "help", "write"],
        cwd=str(ROOT),
        env={**os.environ, "TERM": "xterm", "PAGER": "head -n 2"},
        encoding="utf-8",
        timeout=600,
    )
    screen = child.read()
    assert re.sub(r"\x1b\[\d*m", "", screen).split() == ["Write", "====="]


def test_an_error_names_a_chapter_on_a_terminal_only() -> None:
    words = ["--uri", "sqlite:////nowhere/catalog.db", "-c", "SHOW TABLES"]
    assert "more about it" not in icesql(*words).stderr
    command = [sys.executable, ["-m", "icesql", *words]]
    assert "icesql help catalogs" in pexpect.spawn(*command, cwd=str(ROOT), encoding="utf-8").read()


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line.replace("icesql", f"{sys.executable} -m icesql")],
        cwd=ROOT,
        capture_output=True,
        timeout=600,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )


def test_what_the_encoding_lacks_is_spelled_out_or_refused() -> None:
    latin = {"PYTHONIOENCODING": "latin-1"}
    done = shell("icesql -c \"SELECT 'é日' AS x\"", **latin)
    assert (done.returncode, done.stdout.splitlines()[2].strip()) == (0, b"\xe9\\u65e5")
    done = shell("icesql --format json -c \"SELECT 'é日🦆' AS x\"", **latin)
    assert json.loads(done.stdout.decode("latin-1")) == [{"x": "é日🦆"}]
    done = shell("icesql --format csv -c \"SELECT 'é日' AS x\"", **latin)
    assert done.returncode == 1
    assert b"in latin-1, the encoding of standard output; set PYTHONIOENCODING" in done.stderr
    assert b"bug" not in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "icesql --format csv -c 'SELECT * FROM range(30000)' > /dev/full",
        "icesql -c 'SELECT 1' > /dev/full",
        "icesql --version > /dev/full",
        "icesql --help > /dev/full",
        "icesql -c 'SELECT 1' >&-",
    ],
)
def test_a_result_that_cannot_be_written_is_an_error_of_ours(line: str) -> None:
    done = shell(line)
    if "help" in line and not done.stderr:
        return  # argparse itself gives up silently in newer versions of Python
    reason = b"standard output is closed" if "&-" in line else b"No space left on device"
    assert done.returncode == 1
    assert done.stderr == b"error: cannot write the result: " + reason + b"\n"


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
def test_messages_that_cannot_be_written_change_nothing(where: str) -> None:
    done = shell(f"icesql --format csv -v -c 'SELECT 1 AS a; SELECT b' {where}")
    assert (done.returncode, done.stdout) == (1, b"a\n1\n")


def test_a_closed_standard_input_is_a_wrong_command_line() -> None:
    done = shell("icesql <&-")
    assert (done.returncode, done.stderr) == (
        2, b"icesql: cannot read -: standard input is closed\n"
    )  # fmt: skip


def test_text_is_read_as_utf8_in_any_locale() -> None:
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = shell("icesql --format json -c \"SELECT 'é日' AS x\"", **plain)
    assert json.loads(done.stdout) == [{"x": "é日"}], done.stderr
    done = shell("echo \"SELECT 'é日' AS x\" | icesql --format json", **plain)
    assert json.loads(done.stdout) == [{"x": "é日"}], done.stderr
    done = shell("icesql --warehouse /no/dé -c 'SHOW TABLES'", **plain)
    assert (done.returncode, b"set PYTHONUTF8=1" in done.stderr) == (1, True), done.stderr
    done = shell("icesql -c $'SELECT \\xff AS x'", **plain)
    assert (done.returncode, b"not UTF-8" in done.stderr) == (2, True), done.stderr


def test_an_error_in_a_file_says_where(tmp_path: Path) -> None:
    script = tmp_path / "report.sql"
    script.write_text("SELECT 1 AS a;\n\nSELECT 2 AS a;\n-- last\nSELECT * FROM nowhere;\n")
    done = icesql("-f", script, "--format", "csv")
    assert (done.returncode, done.stdout) == (1, "a\n1\na\n2\n")
    assert done.stderr.startswith(f"error: {script}:5, statement 3 of 3: ")
    script.write_text("SELECT 1 AS a;\nSELECT FROM WHERE;\n")
    assert icesql("-f", script).stderr.startswith(
        f"error: {script}:2, statement 2 of 2: syntax error at line 2"
    )
    script.write_text("SELECT CAST('x' AS INT);\nSELECT 1;")
    assert icesql("-f", script).stderr.startswith(f"error: {script}:1, statement 1 of 2: ")


def test_an_unknown_variable_of_the_environment_is_told_once() -> None:
    done = shell("icesql -c 'SELECT 1'", ICESQL_MEMORY_LIMT="1GB", ICESQL_PORT="tcp://10.0.0.1:80",
                 ICESQL_CORPUS="/x", ICESQL_THREADS="", ICESQL_SERVICE_HOST="10.0.0.1",
                 PYTHONWARNINGS="error")  # fmt: skip
    assert done.returncode == 0
    assert done.stderr.decode() == (
        "warning: the environment variable ICESQL_MEMORY_LIMT is not an icesql setting; "
        "did you mean ICESQL_MEMORY_LIMIT?\n"
    )


def test_nothing_is_printed_at_exit_where_warnings_are_errors(warehouse: Path) -> None:
    for sql in ("SELECT * FROM shop.orders", "SELECT count(*) FROM shop.orders", "SELECT nope"):
        done = ran([sys.executable, "-X", "dev", "-W", "error", "-m", "icesql", "--warehouse",
             str(warehouse), "--format", "csv", "-c", sql], cwd=ROOT)  # fmt: skip
        lines = [line for line in done.stderr.splitlines() if not line.startswith("error: ")]
        assert lines == [], done.stderr


def test_sigterm_ends_a_query_silently() -> None:
    running = started("-c", ENDLESS)
    time.sleep(1)
    running.terminate()
    output, errors = running.communicate(timeout=600)
    assert (running.returncode, output, errors) == (-signal.SIGTERM, "", "")


# ---------------------------------------------------------------------------- --output


def within(
    capsys: pytest.CaptureFixture[str], *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    """The command in this process, where a start costs nothing."""
    from icesql.cli import main

    code = main(list(map(str, arguments)))
    written = capsys.readouterr()
    return subprocess.CompletedProcess([], code, written.out, written.err)


def test_a_result_goes_to_a_file_in_the_format_of_its_ending(
    warehouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sql = "SELECT name FROM shop.customers WHERE id = 1"
    endings = {
        "csv": "name\nGrace\n",
        "tsv": "name\nGrace\n",
        "json": '[\n{"name":"Grace"}\n]\n',
        "jsonl": '{"name":"Grace"}\n',
        "md": "| name |\n|---|\n| Grace |\n",
        "txt": " name\n------\n Grace\n",
    }
    for ending, text in endings.items():
        done = within(
            capsys, "--warehouse", warehouse, "-v", "-o", tmp_path / f"x.{ending}", "-c", sql
        )
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert "1 row" in done.stderr
        assert (tmp_path / f"x.{ending}").read_text() == text
    for name in ("parquet", "arrow"):
        done = within(
            capsys,
            "--warehouse",
            warehouse,
            "--output",
            tmp_path / "x",
            "--overwrite",
            "--format",
            name,
            "-c",
            sql,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        if name == "parquet":
            found = pq.read_table(tmp_path / "x")
        else:
            with pa.ipc.open_file(tmp_path / "x") as read:
                found = read.read_all()
        assert found.to_pylist() == [{"name": "Grace"}]
    done = within(capsys, "-o", "-", "--format", "jsonl", "-c", "SELECT 1 AS a; SELECT 2 AS b")
    assert done.stdout == '{"a":1}\n{"b":2}\n'


@pytest.mark.parametrize(("words", "code", "said"), read_table(__file__, "outputs.tsv"))
def test_an_output_that_fails_leaves_what_was_there(
    words: str,
    code: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "old.csv").write_text("old")
    (tmp_path / "bad.sql").write_text("SELECT 1;\nSELECT nope FROM nowhere")
    (tmp_path / "in").mkdir()
    before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    done = within(capsys, *shlex.split(words))
    assert done.returncode == int(code)
    assert said in done.stderr
    assert "this is a bug" not in done.stderr
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "old.csv").read_text() == "old"


def test_whoever_types_the_command_may_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = within(capsys, "-c", f"COPY (SELECT 1 AS a) TO '{tmp_path}/x.csv' (HEADER false)")
    assert (done.returncode, done.stdout, done.stderr) == (0, " Count\n------\n     1\n", "")
    assert (tmp_path / "x.csv").read_text() == "1\n"


def test_ctrl_c_leaves_no_file_that_is_half_written(tmp_path: Path) -> None:
    running = started("-o", tmp_path / "x.csv", "-c", "SELECT * FROM range(3000000000) AS r(n)")
    until = time.monotonic() + 600
    while time.monotonic() < until and not any(f.stat().st_size for f in tmp_path.iterdir()):
        time.sleep(0.05)
    assert [each.name.startswith(".x.csv.") for each in tmp_path.iterdir()] == [True]
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=600)
    assert (running.returncode, errors) == (130, "interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_errors_of_a_script_that_goes_on_have_their_place_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.sql"
    path.write_text("SELECT 1 AS a;\n  SELECT bad; SELECT 3 AS c;\n")
    done = icesql("--continue-on-error", "--format", "csv", "-f", path)
    assert done.returncode == 1
    assert done.stdout == "a\n1\nc\n3\n"
    assert f"error: {path}:2, statement 2: " in done.stderr
    assert "(line 2, column 10)" in done.stderr


def test_a_script_from_windows_runs(tmp_path: Path) -> None:
    path = tmp_path / "report.sql"
    path.write_bytes(b"\xef\xbb\xbfSELECT 1 AS a;\r\n-- why\r\nSELECT 2 AS b\r\n")
    by_file = icesql("--format", "csv", "-f", path)
    assert (by_file.stdout, by_file.returncode) == ("a\n1\nb\n2\n", 0), by_file.stderr
    text = path.read_text(encoding="utf-8")
    assert icesql("--format", "csv", stdin=text).stdout == by_file.stdout


@pytest.mark.parametrize("more", [(), ("--continue-on-error",)])
def test_errors_are_json_where_rows_are(more: tuple[str, ...], warehouse: Path) -> None:
    sql = "SELECT nope\nFROM shop.orders"
    done = icesql("--warehouse", str(warehouse), "--format", "json", *more, "-c", sql)
    told = json.loads(done.stderr)["error"]
    assert done.returncode == 1
    assert told["type"] == "ColumnNotFoundError"
    assert (told["line"], told["column"]) == (1, 8)
    assert told["message"].startswith('column "nope" not found')
    done = icesql("--warehouse", "/nowhere", "--format", "json", "-c", "SHOW TABLES")
    assert json.loads(done.stderr)["error"]["message"]
