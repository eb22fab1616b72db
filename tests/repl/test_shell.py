"""The shell on a real terminal: lines, history, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import io
import re
import socket
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pexpect
import pytest
from prompt_toolkit.input import DummyInput
from prompt_toolkit.output import DummyOutput

import icesql
from icesql.repl.prompt import is_complete
from icesql.repl.shell import Shell
from tests.repl.in_terminal import PROMPT, spawned, talk
from tests.sessions import fetched
from tests.tables import read_table


def shell_of(connection: Any) -> Shell:
    options = {"input": DummyInput(), "output": DummyOutput()}
    return Shell(connection, out=io.StringIO(), session_options=options)


@pytest.fixture
def shell(connection: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return shell_of(connection)


def told(shell: Shell, text: str) -> str:
    out = shell.display.out
    assert isinstance(out, io.StringIO)
    out.seek(0)
    out.truncate()
    assert shell.handle(text)
    return out.getvalue()


def cases(name: str) -> list[Any]:
    """The lines of each case of a table."""
    lines = groupby(read_table(__file__, name), key=lambda line: line[0])
    return [pytest.param([each[1:] for each in own], id=case) for case, own in lines]


@pytest.mark.parametrize("lines", cases("shell.tsv"))
def test_what_the_shell_shows(shell: Shell, tmp_path: Path, lines: list[list[str]]) -> None:
    for typed, said, prompt in lines:
        shown = told(shell, typed.replace("{tmp}", str(tmp_path)))
        assert re.search(said.replace("{tmp}", str(tmp_path)), shown, re.DOTALL), (typed, shown)
        assert prompt in ("", shell._prompt().rstrip()), typed


def test_the_next_result_goes_to_a_file(shell: Shell, tmp_path: Path) -> None:
    for text in (
        "\\o {}/x.csv",
        "SELECT 1 AS a;",
        "\\o {}/x.csv",
        "SELECT 2 AS a;",
        "\\o {}/y.csv",
    ):
        told(shell, text.format(tmp_path))
    # The history of the shell lies there as well.
    assert [each for each in tmp_path.iterdir() if each.is_file()] == [tmp_path / "x.csv"]
    assert (tmp_path / "x.csv").read_text() == "a\n1\n"


@pytest.mark.parametrize("word", ["exit", "quit;", " EXIT ", "\\q"])
def test_words_that_leave_are_understood(shell: Shell, word: str) -> None:
    assert not shell.handle(word)
    assert is_complete(word)


def test_history_is_kept_for_its_owner_alone(shell: Shell, tmp_path: Path) -> None:
    assert (tmp_path / "icesql" / "history").stat().st_mode & 0o077 == 0


def test_the_history_of_a_table_is_drawn(shell: Shell, warehouse: Path) -> None:
    lines = told(shell, "\\snapshots shop.orders").splitlines()
    with icesql.connect(warehouse=warehouse) as connection:
        table = "shop.orders"
        ids = [
            str(row[0]) for row in connection.execute(f"SELECT snapshot_id FROM {table}.snapshots")
        ]
        refs = fetched(connection, f"SHOW REFS FROM {table}")
    words = [set(line.replace(",", "").split()) for line in lines]
    assert [sum(number in line for line in words) for number in ids] == [1] * len(ids)
    for name, kind, number in refs:
        (named,) = [line for line in lines if f"{kind.lower()} {name}" in line]
        assert str(number) in named


def test_refs_are_found_in_tables_whose_names_need_quotes(shell: Shell, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    shell.connection = icesql.connect(warehouse=own)
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


def test_commands_of_the_system_run(shell: Shell, tmp_path: Path) -> None:
    told(shell, f"\\! touch {tmp_path}/made; true")
    assert (tmp_path / "made").exists()


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
    with icesql.connect(warehouse=warehouse, service=True) as connection:
        shell = shell_of(connection)
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
    fetched(connection, f"{sql} AND a.n >= (SELECT min(id) FROM shop.orders)")
    assert "running" in seen


# ------------------------------------------------------------------ a terminal


@pytest.fixture
def terminal(warehouse: Path, tmp_path: Path) -> Iterator[Any]:
    with spawned(tmp_path, "--warehouse", str(warehouse)) as child:
        yield child


@pytest.mark.parametrize("lines", cases("terminal.tsv"))
def test_what_a_terminal_shows(terminal: Any, lines: list[list[str]]) -> None:
    talk(terminal, *lines)


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Any]:
    """A terminal whose catalog does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with spawned(tmp_path, "--uri", uri) as child:
            yield child


def test_no_key_waits_for_a_catalog_that_does_not_answer(waiting: Any) -> None:
    talk(
        waiting,
        ("SELECT count(*) FROM nowhe\t", "the catalog has not answered yet"),
        ("re;⏎", "nowhere;"),
        # Enter leaves the prompt at once, or Ctrl-C would drop the line as one being typed.
        ("", r"\x1b\[\?2004l"),
        ("", "Ctrl-C stops it"),
        ("^C", "cancelled"),
        ("", PROMPT),
    )


@pytest.mark.parametrize("columns", [80, 110])
def test_what_is_longer_than_the_screen_is_paged(
    columns: int, warehouse: Path, tmp_path: Path
) -> None:
    with spawned(tmp_path, "--warehouse", str(warehouse), size=(24, columns)) as child:
        talk(child, ("\\?⏎", "the tables, or the columns of one"), ("", r"\r\n:"))
        talk(child, ("G", "Ctrl-C"), ("q", PROMPT))
        # Ids stand whole, each on a line that fits.
        with icesql.connect(warehouse=warehouse) as connection:
            rows = fetched(connection, "SELECT snapshot_id FROM shop.orders.snapshots")
        talk(child, ("\\snapshots shop.orders⏎", r"\x1b\[\?2004l"), ("", PROMPT))
        lines = child.before.splitlines()
        for (number,) in rows:
            (line,) = [each for each in lines if str(number) in each]
            assert len(line) <= columns
        assert "tag opening" in child.before


def test_travel_does_not_wait_for_a_catalog_that_does_not_answer(waiting: Any) -> None:
    talk(waiting, ("\\at audit⏎", 'the catalog has not answered whether a table has "audit"'))
    talk(waiting, ("", "icesql @ audit>"), ("\\at release⏎", ""))
    time.sleep(0.3)
    talk(waiting, ("^C", "cancelled"), ("", "icesql @ audit>"))


def test_ctrl_d_leaves_with_0(terminal: Any) -> None:
    talk(terminal, ("^D", "EOF"))
    terminal.close()
    assert terminal.exitstatus == 0


def test_history_comes_back_in_the_next_shell(terminal: Any, tmp_path: Path) -> None:
    # The prompt is drawn again while the statement is typed; the one after its result is meant.
    talk(terminal, ("SELECT 'remembered' AS a;⏎", r"\(1 row"), ("", PROMPT), ("^D", "EOF"))
    assert "remembered" in (tmp_path / "icesql" / "history").read_text(encoding="utf-8")


def test_versions_are_completed(terminal: Any) -> None:
    terminal.send("SELECT count(*) AS n FROM shop.orders VERSION AS OF 'op\t")
    # A catalog that is slow to answer is not waited for: the next Tab has it.
    while terminal.expect_exact(["'opening'", pexpect.TIMEOUT], timeout=3):
        terminal.send("\t")
    talk(terminal, (";⏎", r"\(1 row"), ("", PROMPT))


@pytest.mark.parametrize("words", ["yesterday", "now", "yesterday 12:00"])
def test_at_takes_words_for_times(shell: Shell, words: str) -> None:
    told(shell, rf"\at {words}")
    assert shell._prompt().endswith(" UTC> ")
    assert shell.connection.settings.snapshot_ref is None
