"""A transaction that is open when the command, the shell or the process ends is rolled back."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pexpect
import pytest

import icesql
from tests.repl.in_terminal import spawned, talk
from tests.rows import rows_of
from tests.waits import wait_until
from tests.warm import ROOT
from tests.warm import icesql as command

ENDLESS = "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range * b.range % 7 = 3"
DELETES = "BEGIN; DELETE FROM s.t WHERE id < 5"
LOST = "error: a transaction was open at the end and was rolled back"


@pytest.fixture(autouse=True)
def heard_sighup() -> Iterator[None]:
    """Commands that hear SIGHUP, also where nohup runs the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    with icesql.connect(warehouse=folder) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t AS SELECT range AS id FROM range(10)")
    return folder


def files(lake: Path) -> set[Path]:
    return {each for each in lake.rglob("*") if each.is_file()}


def count(lake: Path) -> int:
    with icesql.connect(warehouse=lake) as con:
        row = con.execute("SELECT count(*) FROM s.t").fetchone()
    assert row is not None
    return int(row[0])


def started(lake: Path, *arguments: str, program: Sequence[str] = ("-m", "icesql")) -> Any:
    """The command in a process that goes on."""
    command = [sys.executable, *program, "--warehouse", lake, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, text=True, **pipes)


@pytest.fixture
def child(lake: Path, tmp_path: Path) -> Iterator[Any]:
    with spawned(tmp_path, "--warehouse", str(lake)) as made:
        yield made


@pytest.fixture
def unchanged(lake: Path) -> Iterator[None]:
    """The table and its folder are as they were in the end."""
    before = files(lake)
    yield
    assert (count(lake), files(lake)) == (10, before)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("way", ["-c", "two -c", "-f", "query", "input", "goes on", "-o"])
def test_the_end_of_a_script_commits_nothing(lake: Path, tmp_path: Path, way: str) -> None:
    script = tmp_path / "open.sql"
    script.write_text(f"{DELETES};\n-- no COMMIT\n")
    arguments: dict[str, list[str | Path]] = {
        "-c": ["-c", DELETES],
        "two -c": ["-c", "BEGIN", "-c", "DELETE FROM s.t WHERE id < 5;"],
        "-f": ["-f", script],
        "query": ["query", DELETES],
        "input": [],
        "goes on": ["--continue-on-error", "-c", DELETES],
        "-o": ["-o", tmp_path / "rows.csv", "-c", f"{DELETES}; SELECT * FROM s.t"],
    }
    stdin = script.read_text() if way == "input" else ""
    done = command("--warehouse", lake, *arguments[way], stdin=stdin)
    assert done.returncode == 1
    assert LOST in done.stderr
    assert not (tmp_path / "rows.csv").exists(), "its rows are nobody's"


ENDED = "a statement of this transaction failed; ROLLBACK ends it"


@rows_of(__file__, "left_open.tsv", "options", "script", "code", "left", "written", "told")
def test_what_a_script_leaves(
    lake: Path, options: str, script: str, code: str, left: str, written: str, told: str
) -> None:
    before = files(lake)
    script = script.replace("DELETES", DELETES)
    done = command("--warehouse", lake, *options.split(), "-c", script)
    assert (done.returncode, count(lake)) == (int(code), int(left))
    assert re.search(written, done.stdout, re.DOTALL)
    assert re.search(told.removeprefix("THRICE"), done.stderr, re.DOTALL)
    assert done.stderr.count(ENDED) == (3 if told.startswith("THRICE") else 0)
    assert (code, left) != ("1", "10") or files(lake) == before


def test_a_reader_that_leaves_commits_nothing(lake: Path) -> None:
    script = f"{DELETES}; SELECT * FROM range(1000000); COMMIT"
    running = started(lake, "--format", "csv", "-c", script)
    running.stdout.readline()
    running.stdout.close()
    assert LOST in running.stderr.read()
    running.stderr.close()
    assert (running.wait(60), count(lake)) == (1, 10)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_rolls_back(lake: Path, number: int) -> None:
    running = started(lake, "--format", "csv", "-c", f"{DELETES}; {ENDLESS}; COMMIT")
    assert "not committed yet" in running.stderr.readline()
    running.send_signal(number)
    _, errors = running.communicate(timeout=600)
    assert running.returncode == -number
    assert LOST in errors
    assert "Traceback" not in errors


def test_nohup_goes_on_ignoring_sighup(lake: Path) -> None:
    program = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
        "os.execv(sys.executable, [sys.executable, '-m', 'icesql', *sys.argv[1:]])"
    )
    slow = "SELECT sum(range) FROM range(300000000)"
    running = started(lake, "-c", f"{DELETES}; {slow}; COMMIT", program=("-c", program))
    running.stderr.readline()
    running.send_signal(signal.SIGHUP)
    running.communicate(timeout=600)
    assert (running.returncode, count(lake)) == (0, 5)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("key", ["^D", "\\q⏎"])
def test_leaving_the_shell_commits_nothing(child: Any, key: str) -> None:
    talk(child, (f"{DELETES};⏎", "not committed yet"), ("", r"icesql\*>"), (key, LOST))
    child.wait()
    assert child.exitstatus == 1


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_a_shell_rolls_back(child: Any, number: int) -> None:
    talk(child, (f"{DELETES};⏎", r"icesql\*>"))
    child.kill(number)
    child.expect_exact(LOST)
    wait_until(lambda: not child.isalive())
    assert child.signalstatus == number


# The signal comes while the loop of the prompt is about to note that a task can go on.
INTERRUPTS_THE_LOOP = """
import asyncio, os, signal, sys
from icesql import cli
call_soon = asyncio.BaseEventLoop.call_soon
def interrupted(loop, callback, *arguments, **named):
    if "wakeup" in repr(callback).lower():
        asyncio.BaseEventLoop.call_soon = call_soon
        os.kill(os.getpid(), signal.SIGTERM)
    return call_soon(loop, callback, *arguments, **named)
asyncio.BaseEventLoop.call_soon = interrupted
sys.exit(cli.main())
"""


def test_a_signal_inside_of_the_loop_of_the_prompt_loses_no_task(
    lake: Path, tmp_path: Path
) -> None:
    with spawned(tmp_path, "--warehouse", str(lake), program=("-c", INTERRUPTS_THE_LOOP)) as child:
        child.expect(pexpect.EOF, timeout=60)
        wait_until(lambda: not child.isalive())
        assert child.signalstatus == signal.SIGTERM


def test_the_shell_refuses_what_comes_behind_a_failed_statement(lake: Path, child: Any) -> None:
    talk(
        child,
        (f"{DELETES};⏎", r"icesql\*>"),
        ("\\d s.nothing⏎", r"icesql\*>"),
        ("\\nothing⏎", r"icesql\*>"),
        ("SELECT nope;⏎", "icesql!>"),
        ("SELECT 1;⏎", "ROLLBACK ends it"),
        ("COMMIT;⏎", "so it was rolled back"),
        ("SELECT count(*) + 30 FROM s.t;⏎", "40"),
        ("", "icesql>"),
        ("^D", ""),
    )
    child.wait()
    assert (child.exitstatus, count(lake)) == (0, 10)


def test_a_command_inside_of_a_statement_joins_no_lines(lake: Path, child: Any) -> None:
    lines = ("DELETE FROM s.t", "WHERE id < 5 -- some", "\\timing", "AND id = 3;")
    talk(child, *((f"{each}⏎", "") for each in lines), ("", "1 row, "))
    assert count(lake) == 9


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_inside_of_a_finalizer_is_heard(name: str) -> None:
    """Python drops what is raised there."""
    script = f"""
import os, signal, time
from icesql.repl.signals import raise_swallowed, unwind_on_signals
unwind_on_signals()
raise_swallowed()
class Ends:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        time.sleep(0.001)
try:
    Ends()
    time.sleep(60)
except BaseException as error:
    print(type(error).__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=50
    )
    expected = "KeyboardInterrupt" if name == "SIGINT" else "Signalled"
    assert (done.stdout.strip(), done.stderr) == (expected, "")


def test_a_shell_of_another_thread_sets_no_handlers() -> None:
    """Only the main thread can."""
    script = """
import threading
from icesql.repl.signals import unwind_between_callbacks, unwind_on_signals
unwind_on_signals()
thread = threading.Thread(target=unwind_between_callbacks, args=(lambda: None,))
thread.start()
thread.join()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=50
    )
    assert (done.returncode, done.stderr) == (0, "")
