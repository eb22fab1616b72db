"""Ctrl-C, and what is said of what was stopped; a shell that is killed; a plain terminal."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.writes.rest_writes import WritableServer
from tests.repl.in_terminal import PROMPT, spawned, talk


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WritableServer]:
    with closing(WritableServer(tmp_path / "tables")) as server:
        yield server


def test_ctrl_c_in_a_write_says_what_is_committed(server: WritableServer, tmp_path: Path) -> None:
    with spawned(tmp_path, "--uri", server.uri) as child:
        talk(child, ("CREATE TABLE ns.t (id bigint);⏎", "ok"))
        talk(child, ("INSERT INTO ns.t VALUES (1);⏎", "1 row"))
        # While rows are written, and while the rows to delete are looked for.
        many = "range(100000000) a, range(100000) b WHERE a.range * b.range % 7 = 3"
        for statement in (
            "INSERT INTO ns.t SELECT range FROM range(3000000000);",
            f"DELETE FROM ns.t WHERE id IN (SELECT a.range FROM {many});",
        ):
            stopped = "cancelled after (writing|running) .*; nothing was committed"
            talk(
                child, ("", PROMPT), (f"{statement}⏎", r"(writing \d|running \d)"), ("^C", stopped)
            )
        assert len(server.commits) == 1

        answered = threading.Event()

        def late(*_: Any) -> None:
            answered.wait(60)

        server.before = late
        talk(child, ("", PROMPT), ("INSERT INTO ns.t VALUES (2);⏎", "committing · waiting"))
        asked = time.monotonic()
        talk(
            child, ("^C", r"the commit to ns\.t was sent and its outcome is unknown"), ("", PROMPT)
        )
        assert time.monotonic() - asked < 50
        # It was done, and the shell goes on.
        answered.set()
        while True:
            child.send("SELECT count(*) + 40 AS n FROM ns.t;\r")
            if child.expect_exact(["42", "41"]) == 0:
                break


def test_ctrl_c_while_others_commit(server: WritableServer, tmp_path: Path) -> None:
    def first(_: Any, name: Any, body: Any) -> int:
        metadata = server.tables[name]["metadata"]
        metadata["properties"]["others"] = str(len(server.commits))
        metadata["last-updated-ms"] += 1
        server.kept(name, metadata)
        return 409

    with spawned(tmp_path, "--uri", server.uri, size=(24, 80)) as child:
        talk(child, ("CREATE TABLE ns.t (id bigint);⏎", "ok"), ("", PROMPT))
        server.before = first
        behind = r"not committed yet, attempt \d+ · \d+ s behind a change of its metadata · "
        talk(child, ("INSERT INTO ns.t VALUES (1);⏎", behind))
        talk(child, ("^C", r"cancelled[^\n]*; nothing was committed"))
        server.before = None
        talk(child, ("", PROMPT), ("SELECT count(*) + 40 AS n FROM ns.t;⏎", "40"))


def test_a_killed_shell_has_kept_what_was_typed_but_no_secret(
    warehouse: Path, tmp_path: Path
) -> None:
    arguments = ("--warehouse", str(warehouse))
    with spawned(tmp_path, *arguments) as first, spawned(tmp_path, *arguments) as second:
        for child, name in ((first, "of the first"), (second, "of the second"), (first, "again")):
            talk(child, (f"SELECT '{name}' AS a;⏎", r"\(1 row"), ("", PROMPT))
        hidden = "this is not kept in the history"
        talk(first, ("\\set password hunter2⏎", hidden), ("", PROMPT))
        first.kill(signal.SIGKILL)
        second.kill(signal.SIGKILL)
    path = tmp_path / "icesql" / "history"
    kept = re.findall(r"^\+(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert kept == [
        "SELECT 'of the first' AS a;", "SELECT 'of the second' AS a;", "SELECT 'again' AS a;"
    ]  # fmt: skip
    with spawned(tmp_path, *arguments) as third:
        talk(third, ("\x1b[A", "again"), ("\x1b[A", "of the second"))


def test_a_terminal_that_cannot_draw_gets_lines_alone(warehouse: Path, tmp_path: Path) -> None:
    environment = {"TERM": "dumb", "PAGER": "less"}
    with spawned(tmp_path, "--warehouse", str(warehouse), environment=environment) as child:
        asked = "SELECT NULL AS nothing, * FROM range(1000);⏎"
        talk(child, (asked, r"… 960 more, \\all shows them"))
        assert "\x1b" not in child.before
