"""The shell on a real terminal: lines, history, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest
from prompt_toolkit.input import DummyInput
from prompt_toolkit.output import DummyOutput

import icesql
from icesql.repl.prompt.typed import is_complete
from icesql.repl.shell import Shell, history_path
from tests.repl.in_terminal import PROMPT, spawned

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
    out = shell.display.out
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
    assert "+09" in told(shell, "SELECT instant FROM shop.types WHERE small = -7;")


def test_the_prompt_says_when_tables_are_read(shell: Shell) -> None:
    assert shell._prompt() == "icesql> "
    assert "until RESET" in told(shell, "SET SNAPSHOT TIME = '2100-01-31 12:00:00';")
    assert shell._prompt() == "icesql @ 2100-01-31 12:00:00 UTC> "
    told(shell, "RESET SNAPSHOT TIME;")
    assert shell._prompt() == "icesql> "


def test_the_prompt_says_that_a_transaction_is_open(shell: Shell) -> None:
    told(shell, "BEGIN;")
    assert shell._prompt() == "icesql*> "
    told(shell, "SET SNAPSHOT TIME = '2100-01-31 12:00:00';")
    assert shell._prompt() == "icesql* @ 2100-01-31 12:00:00 UTC> "
    told(shell, "RESET SNAPSHOT TIME;")
    told(shell, "ROLLBACK;")
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
    assert "Several writers" in told(shell, "\\? several writers")
    assert "nothing about 'zzz'" in told(shell, "help(zzz)")
    assert not shell.handle("\\q")


@pytest.mark.parametrize("word", ["exit", "quit;", " EXIT "])
def test_words_of_other_shells_are_understood(shell: Shell, word: str) -> None:
    assert not shell.handle(word)
    assert is_complete(word)
    assert "this help" in told(shell, "help")
    assert is_complete(".tables")
    assert "shop.orders" in told(shell, ".tables")


def test_history_is_kept_for_its_owner_alone(shell: Shell, tmp_path: Path) -> None:
    assert history_path() == tmp_path / "icesql" / "history"
    assert history_path().stat().st_mode & 0o077 == 0


def test_the_history_of_a_table_is_drawn(shell: Shell, warehouse: Path) -> None:
    lines = told(shell, "\\snapshots shop.orders").splitlines()
    with icesql.connect(warehouse=str(warehouse)) as connection:
        table = "shop.orders"
        ids = [
            str(row[0]) for row in connection.execute(f"SELECT snapshot_id FROM {table}.snapshots")
        ]
        refs = connection.execute(f"SHOW REFS FROM {table}").fetchall()
    words = [set(line.replace(",", "").split()) for line in lines]
    assert [sum(number in line for line in words) for number in ids] == [1] * len(ids)
    for name, kind, number in refs:
        (named,) = [line for line in lines if f"{kind.lower()} {name}" in line]
        assert str(number) in named


def test_the_whole_session_travels(shell: Shell) -> None:
    assert told(shell, "\\at") == "at is off: tables are read as they are\n"
    now = told(shell, "SELECT count(*) AS n FROM shop.orders;").splitlines()[2]
    told(shell, "\\at opening")
    assert shell._prompt() == "icesql @ opening> "
    said = told(shell, "SELECT count(*) AS n FROM shop.orders;")
    assert "snapshot_ref opening" in said
    assert now not in said.splitlines()
    told(shell, "\\at 2100-01-01")
    assert shell._prompt() == "icesql @ 2100-01-01 00:00:00 UTC> "
    told(shell, "\\at off")
    assert shell._prompt() == "icesql> "
    assert told(shell, "\\at 'nonsense'").startswith("error: ")
    # Neither does a ref that no table has: not only the next query says so.
    said = told(shell, "\\at openin")
    assert said.startswith('error: branch or tag "openin" not found in any of the ')
    assert said.endswith('did you mean "opening"?\n')
    assert told(shell, "\\at 123456789012").startswith('error: snapshot "123456789012" not found')
    assert shell._prompt() == "icesql> "
    said = told(shell, "\\at opening")
    assert "note: opening is a tag of shop.orders; tables without it cannot be read" in said


def test_refs_are_found_in_tables_whose_names_need_quotes(shell: Shell, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    shell.connection = icesql.connect(warehouse=str(own))
    shell.connection.execute("CREATE SCHEMA shop")
    shell.connection.execute("CREATE TABLE shop.plain AS SELECT 1 AS id")
    shell.connection.register("rows", {"id": [1]})  # they have no history
    for name, tag in (("x y", "wide"), ("a\nb", "tall"), ("select", "reserved")):
        shell.connection.execute(f'CREATE TABLE shop."{name}" AS SELECT 1 AS id')
        shell.connection.execute(f'ALTER TABLE shop."{name}" CREATE TAG {tag}')
        assert f"note: {tag} is a tag of shop." in told(shell, f"\\at {tag}")
        told(shell, "\\at off")
    assert "not found in any of the 4 tables" in told(shell, "\\at nowhere")
    assert told(shell, "\\at ²").startswith("error: ")
    shell.connection.close()


def test_variables_are_values_and_never_text(shell: Shell) -> None:
    told(shell, "\\timing off")
    told(shell, "\\set who 1 OR 1 = 1")
    assert told(shell, "\\set") == "who = '1 OR 1 = 1'\n"
    assert "1 OR 1 = 1" in told(shell, "SELECT $who AS who;")
    told(shell, "\\set n 41")
    assert told(shell, "SELECT :n + 1 AS a;").splitlines()[2].strip() == "42"
    assert "one" in told(shell, "SELECT 1 AS one;")
    assert told(shell, "\\unset nothing").startswith("error: there is no variable")
    told(shell, "\\unset n")
    assert "no value for the parameter :n" in told(shell, "SELECT :n;")


def test_the_last_statement_is_known(shell: Shell) -> None:
    assert told(shell, "\\explain") == "error: no statement was run yet\n"
    told(shell, "SELECT id FROM shop.orders WHERE region = 'eu';")
    said = told(shell, "\\last")
    assert "filter:" in said
    assert "data files:" in said
    assert "shop.orders" in told(shell, "\\explain")
    assert "shop.customers" in told(shell, "\\explain SELECT id FROM shop.customers")
    assert "shop.orders" in told(shell, "\\explain")  # what is explained was not run
    assert " id" in told(shell, "\\all")


def test_files_of_statements_run_and_errors_have_their_line(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "report.sql"
    path.write_text("SELECT 1 AS one;\n\nSELECT nothing FROM shop.orders;\n")
    said = told(shell, f"\\i {path}")
    assert " one" in said
    assert f"error: {path}:3, statement 2 of 2: column" in said
    assert told(shell, "\\i /nowhere.sql").startswith("error: cannot read /nowhere.sql: No such")


def test_what_the_editor_leaves_is_at_the_prompt(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told(shell, "SELECT 1 AS one;")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/one/two/")
    told(shell, "\\e")
    assert shell.prefill == "SELECT 1 AS two;"
    monkeypatch.setenv("EDITOR", "no-such-editor")
    assert "cannot run no-such-editor" in told(shell, "\\e")


def test_commands_of_the_system_and_of_this_shell(shell: Shell, tmp_path: Path) -> None:
    told(shell, f"\\! touch {tmp_path}/made; true")
    assert (tmp_path / "made").exists()
    said = told(shell, "\\conninfo")
    assert "engine:    local" in said
    assert "changes:   " in said
    assert told(shell, "\\engine") == "engine is local\n"
    assert told(shell, "\\engine fast").startswith("error: ")
    assert told(shell, "\\watch soon").startswith("error: \\watch takes seconds")
    assert told(shell, "\\x auto") == "expanded display is auto\n"
    assert told(shell, "\\x wide").startswith("error: \\x is on, off or auto")


def test_a_stop_ends_what_is_run_again_and_again(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(shell, "SELECT 1 AS one;")
    runs = []

    def stopped(*given: Any, **named: Any) -> Iterator[Any]:
        runs.append(given)
        raise KeyboardInterrupt

    monkeypatch.setattr(shell.connection, "execute_script", stopped)
    assert "cancelled" in told(shell, "\\watch 0.1")
    assert len(runs) == 1


def test_a_restricted_shell_reaches_no_files_and_commands(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    options = {"input": DummyInput(), "output": DummyOutput()}
    with icesql.connect(warehouse=str(warehouse), service=True) as connection:
        shell = Shell(connection, out=io.StringIO(), session_options=options)
        outside = ("\\! id", "\\! off", "\\e", "\\i /etc/passwd", "\\i off", "\\o x.csv", "\\s off")
        for command in (*outside, ".shell id", "\\pager on"):
            assert "this shell is restricted" in told(shell, command)
        # An editor and a pager run commands as well.
        assert not shell._session.enable_open_in_editor
        assert not shell.display.paged
        assert "shop.orders" in told(shell, "\\dt")


def test_what_is_slow_says_how_far_it_is(connection: Any) -> None:
    seen: list[str] = []
    connection.progress = lambda progress: seen.append(progress.stage)
    sql = "SELECT count(*) FROM range(4000000) a(n), range(4) b(m) WHERE a.n * b.m % 7 = 3"
    connection.execute(f"{sql} AND a.n >= (SELECT min(id) FROM shop.orders)").fetchall()
    assert "running" in seen


# ------------------------------------------------------------------ a terminal


@pytest.fixture
def terminal(warehouse: Path, tmp_path: Path) -> Iterator[Any]:
    child = spawned(tmp_path, "--warehouse", str(warehouse))
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
    terminal.expect(r"running \d+")
    terminal.sendintr()
    terminal.expect(r"cancelled after running \d+")
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


def test_enter_says_what_it_waits_for(terminal: Any) -> None:
    terminal.send("SELECT 40 + 2 AS answer\r")
    terminal.expect_exact("an empty line runs it, so does ;")
    terminal.send("\r")
    terminal.expect_exact("(1 row")
    terminal.expect_exact(PROMPT)
    terminal.send("SHOW TABLES\r")
    terminal.expect_exact("shop.orders")
    terminal.expect_exact(PROMPT)
    terminal.send("DELETE FROM shop.orders\r")
    terminal.expect_exact("; runs it")
    terminal.send("exit\r")
    terminal.expect(pexpect.EOF)


def test_no_key_waits_for_a_catalog_that_does_not_answer(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        child = spawned(tmp_path, "--uri", f"http://127.0.0.1:{silent.getsockname()[1]}")
        try:
            child.send("SELECT count(*) FROM nowhe\t")
            child.expect_exact("the catalog has not answered yet")
            child.send("re;\r")
            child.expect_exact("nowhere;")
            # Enter leaves the prompt at once, or Ctrl-C would drop the line as one being typed.
            child.expect_exact("\x1b[?2004l")
            child.expect_exact("Ctrl-C stops it")
            child.sendintr()
            child.expect_exact("cancelled")
            child.expect_exact(PROMPT)
        finally:
            child.close(force=True)


@pytest.mark.parametrize("columns", [80, 110])
def test_what_is_longer_than_the_screen_is_paged(
    columns: int, warehouse: Path, tmp_path: Path
) -> None:
    child = spawned(tmp_path, "--warehouse", str(warehouse), size=(24, columns))
    try:
        child.send("\\?\r")
        child.expect_exact("the tables, or the columns of one")
        child.expect_exact("\r\n:")
        child.send("G")
        child.expect_exact("Ctrl-C")
        child.send("q")
        child.expect_exact(PROMPT)
        # Ids stand whole, each on a line that fits.
        with icesql.connect(warehouse=str(warehouse)) as connection:
            rows = connection.execute("SELECT snapshot_id FROM shop.orders.snapshots").fetchall()
        child.send("\\snapshots shop.orders\r")
        child.expect_exact("\x1b[?2004l")
        child.expect_exact(PROMPT)
        lines = child.before.splitlines()
        for (number,) in rows:
            (line,) = [each for each in lines if str(number) in each]
            assert len(line) <= columns
        assert "tag opening" in child.before
    finally:
        child.close(force=True)


def test_travel_does_not_wait_for_a_catalog_that_does_not_answer(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        child = spawned(tmp_path, "--uri", f"http://127.0.0.1:{silent.getsockname()[1]}")
        try:
            child.send("\\at audit\r")
            child.expect_exact('the catalog has not answered whether a table has "audit"')
            child.expect_exact("icesql @ audit>")
            child.send("\\at release\r")
            time.sleep(0.3)
            child.sendintr()
            child.expect_exact("cancelled")
            child.expect_exact("icesql @ audit>")
        finally:
            child.close(force=True)


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


def test_versions_are_completed(terminal: Any) -> None:
    terminal.send("SELECT count(*) AS n FROM shop.orders VERSION AS OF 'op\t")
    # A catalog that is slow to answer is not waited for: the next Tab has it.
    while terminal.expect_exact(["'opening'", pexpect.TIMEOUT], timeout=3):
        terminal.send("\t")
    terminal.send(";\r")
    terminal.expect_exact("(1 row")
    terminal.expect_exact(PROMPT)


def test_a_session_travels_and_shows_its_history_on_a_terminal(terminal: Any) -> None:
    terminal.send("\\at opening\r")
    terminal.expect_exact("icesql @ opening>")
    terminal.send("\\at off\r")
    terminal.expect_exact(PROMPT)
    terminal.send("\\snapshots shop.orders\r")
    terminal.expect_exact("tag opening")
    terminal.send("\\x on\r")
    terminal.expect_exact("expanded display is on")
    terminal.send("SELECT 1 AS one;\r")
    terminal.expect_exact("-[ row 1 ]")
    terminal.expect_exact("one | 1")
    terminal.send("SELEC 1;\r")
    terminal.expect_exact("error: syntax error at line 1")
    terminal.expect_exact(PROMPT)


def test_a_long_result_is_paged_on_a_terminal(terminal: Any) -> None:
    terminal.send("SELECT * FROM range(500) t(n);\r")
    terminal.expect_exact("\r\n:")  # less waits
    terminal.send("G")
    terminal.expect_exact("499")
    terminal.send("q")
    terminal.expect_exact("(500 rows")
    terminal.expect_exact(PROMPT)


def test_at_takes_a_number_of_commits_and_words_for_times(shell: Shell) -> None:
    told(shell, r"\at -1")
    assert shell._prompt() == "icesql @ -1> "
    assert "1 commits before" in told(shell, "SELECT count(*) FROM shop.types;")
    for words in ("yesterday", "now", "yesterday 12:00"):
        told(shell, rf"\at {words}")
        assert shell._prompt().endswith(" UTC> ")
        assert shell.connection.settings.snapshot_ref is None
    assert "error" in told(shell, r"\at -0")
    told(shell, r"\at off")
    assert shell._prompt() == "icesql> "
