"""The shell on a real terminal: lines, history, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest
from prompt_toolkit.input import DummyInput
from prompt_toolkit.output import DummyOutput

from icesql.repl.commands import is_complete
from icesql.repl.shell import Shell, history_path

ROOT = Path(__file__).parents[2]
PROMPT = "icesql>"
# Runs far longer than any test: only an interrupt ends it.
ENDLESS = (
    "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range * b.range % 7 = 3;"
)


@pytest.fixture
def shell(connection: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    options = {"input": DummyInput(), "output": DummyOutput()}
    return Shell(connection, out=io.StringIO(), session_options=options)


def told(shell: Shell, text: str) -> str:
    out = shell._out
    assert isinstance(out, io.StringIO)
    out.seek(0)
    out.truncate()
    assert shell.handle(text)
    return out.getvalue()


def test_a_result_is_followed_by_rows_time_and_scan(shell: Shell) -> None:
    lines = told(shell, "SELECT id FROM shop.orders WHERE region = 'eu' AND id < 4;").splitlines()
    assert lines[:4] == [" id", "---", "  0", "  3"]
    assert lines[4].startswith("(2 rows, ")
    assert lines[5].startswith("shop.orders: manifests ")
    assert " · files " in lines[5]


def test_errors_are_shown_and_the_shell_goes_on(shell: Shell) -> None:
    assert told(shell, "SELECT regoin FROM shop.orders;").startswith("error: column")
    assert told(shell, "\\nonsense").startswith("error: unknown command")
    assert "5" in told(shell, "SELECT 5;")


def test_settings_stay_between_statements(shell: Shell) -> None:
    assert told(shell, "SET TIME ZONE 'Asia/Tokyo';") == "ok\n"
    assert "+09:00" in told(shell, "SELECT instant FROM shop.types WHERE small = -7;")


def test_the_prompt_says_when_tables_are_read(shell: Shell) -> None:
    assert shell._prompt() == "icesql> "
    assert "until RESET" in told(shell, "SET SNAPSHOT TIME = '2100-01-31 12:00:00';")
    assert shell._prompt() == "icesql @ 2100-01-31 12:00:00 UTC> "
    told(shell, "RESET SNAPSHOT TIME;")
    assert shell._prompt() == "icesql> "


def test_tables_columns_snapshots_and_refs_are_listed(shell: Shell) -> None:
    assert "shop.customers" in told(shell, "\\d")
    assert "ordered_at" in told(shell, "\\d shop.orders")
    assert "append" in told(shell, "\\snapshots shop.orders")
    refs = told(shell, "\\refs shop.orders")
    assert "opening" in refs
    assert "audit" in refs


def test_the_next_result_goes_to_a_file(shell: Shell, tmp_path: Path) -> None:
    told(shell, "\\timing off")
    path = tmp_path / "x.csv"
    assert told(shell, f"\\o {path}") == f"the next result: {path}\n"
    said = told(shell, "SELECT name FROM shop.customers WHERE id = 1;")
    assert said.startswith(f"written to {path}\n(1 row)\n")
    assert path.read_text() == "name\nGrace\n"
    assert told(shell, "SELECT 1 AS one;") == " one\n----\n   1\n(1 row)\n"
    # A file that is there, or of no format, is left alone, and the shell goes on with the screen.
    told(shell, f"\\o {path}")
    assert "the file exists" in told(shell, "SELECT 2 AS two;")
    assert path.read_text() == "name\nGrace\n"
    assert "names no format" in told(shell, f"\\o {tmp_path}/x.foo")
    assert told(shell, "SELECT 3 AS n;") == " n\n--\n 3\n(1 row)\n"
    told(shell, f"\\o {tmp_path}/y.csv")
    assert told(shell, "\\o") == "results are shown\n"
    # The history of the shell lies there as well.
    assert [each for each in tmp_path.iterdir() if each.is_file()] == [path]


def test_format_and_timing_are_switched(shell: Shell) -> None:
    assert told(shell, "\\timing off") == "timing is off\n"
    assert told(shell, "\\format csv") == ""
    assert told(shell, "SELECT 1 AS one;") == "one\n1\n(1 row)\n"
    assert "csv" in told(shell, "\\format")
    assert told(shell, "\\format cvs") == 'error: unknown format "cvs"; try csv\n'


def test_help_and_leaving(shell: Shell) -> None:
    assert "\\snapshots TABLE" in told(shell, "\\?")
    assert not shell.handle("\\q")


@pytest.mark.parametrize("word", ["exit", "quit;", " EXIT "])
def test_words_of_other_shells_are_understood(shell: Shell, word: str) -> None:
    assert not shell.handle(word)
    assert is_complete(word)
    assert "this help" in told(shell, "help")
    assert is_complete(".tables")
    assert "\\d the tables" in told(shell, ".tables")


def test_history_is_kept_for_its_owner_alone(shell: Shell, tmp_path: Path) -> None:
    assert history_path() == tmp_path / "icesql" / "history"
    assert history_path().stat().st_mode & 0o077 == 0


# ------------------------------------------------------------------ a terminal


@pytest.fixture
def terminal(warehouse: Path, tmp_path: Path) -> Iterator[Any]:
    child = pexpect.spawn(
        sys.executable,
        ["-m", "icesql", "--warehouse", str(warehouse)],
        cwd=str(ROOT),
        # Nobody answers requests for the cursor position.
        env={
            **os.environ,
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "XDG_STATE_HOME": str(tmp_path),
        },
        encoding="utf-8",
        timeout=30,
        dimensions=(40, 120),
    )
    child.expect_exact(PROMPT)
    yield child
    child.close(force=True)


def test_a_statement_may_span_lines(terminal: Any) -> None:
    terminal.send("SELECT name\r")
    terminal.expect_exact("...>")
    terminal.send("FROM shop.customers WHERE id = 1;\r")
    terminal.expect_exact("Grace")
    terminal.expect(r"\(1 row, ")
    terminal.expect_exact(PROMPT)


def test_ctrl_c_stops_a_query_and_keeps_the_shell(terminal: Any) -> None:
    terminal.send(ENDLESS + "\r")
    time.sleep(1.5)
    asked = time.monotonic()
    terminal.sendintr()
    terminal.expect("cancelled")
    assert time.monotonic() - asked < 5
    terminal.expect_exact(PROMPT)
    terminal.send("SELECT 40 + 2 AS answer;\r")
    terminal.expect_exact("42")
    terminal.expect_exact(PROMPT)


def test_ctrl_c_at_the_prompt_drops_the_line(terminal: Any) -> None:
    terminal.send("SELECT nothing")
    terminal.sendintr()
    terminal.expect_exact(PROMPT)
    terminal.send("SELECT 40 + 2 AS answer;\r")
    terminal.expect_exact("42")


def test_ctrl_d_leaves_with_0(terminal: Any) -> None:
    terminal.sendeof()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


def test_history_comes_back_in_the_next_shell(
    terminal: Any, warehouse: Path, tmp_path: Path
) -> None:
    terminal.send("SELECT 'remembered' AS a;\r")
    # The prompt is drawn again while the statement is typed; the one after its result is meant.
    terminal.expect_exact("(1 row")
    terminal.expect_exact(PROMPT)
    terminal.sendeof()
    terminal.expect(pexpect.EOF)
    assert "remembered" in (tmp_path / "icesql" / "history").read_text(encoding="utf-8")
