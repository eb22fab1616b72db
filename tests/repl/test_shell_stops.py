"""Ctrl-C, and what is said of what was stopped; a shell that is killed; a plain terminal."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.writes.rest_writes import WritableServer
from tests.repl.in_terminal import PROMPT, spawned


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WritableServer]:
    server = WritableServer(tmp_path / "tables")
    yield server
    server.close()


def test_ctrl_c_in_a_write_says_what_is_committed(server: WritableServer, tmp_path: Path) -> None:
    child = spawned(tmp_path, "--uri", server.uri)
    try:
        child.send("CREATE TABLE ns.t (id bigint);\r")
        child.expect_exact("ok")
        child.send("INSERT INTO ns.t VALUES (1);\r")
        child.expect_exact("1 row")
        # While rows are written, and while the rows to delete are looked for.
        many = "range(100000000) a, range(100000) b WHERE a.range * b.range % 7 = 3"
        for statement in (
            "INSERT INTO ns.t SELECT range FROM range(3000000000);",
            f"DELETE FROM ns.t WHERE id IN (SELECT a.range FROM {many});",
        ):
            child.expect_exact(PROMPT)
            child.send(f"{statement}\r")
            child.expect(r"(writing \d|running \d)")
            child.sendintr()
            child.expect(r"cancelled after (writing|running) .*; nothing was committed")
        assert len(server.commits) == 1

        answered = threading.Event()

        def late(*_: Any) -> None:
            answered.wait(60)

        server.before = late
        child.expect_exact(PROMPT)
        child.send("INSERT INTO ns.t VALUES (2);\r")
        child.expect_exact("committing · waiting")
        asked = time.monotonic()
        child.sendintr()
        child.expect_exact("the commit to ns.t was sent and its outcome is unknown")
        child.expect_exact(PROMPT)
        assert time.monotonic() - asked < 50
        # It was done, and the shell goes on.
        answered.set()
        while True:
            child.send("SELECT count(*) + 40 AS n FROM ns.t;\r")
            if child.expect_exact(["42", "41"]) == 0:
                break
    finally:
        child.close(force=True)


def test_ctrl_c_while_others_commit(server: WritableServer, tmp_path: Path) -> None:
    child = spawned(tmp_path, "--uri", server.uri, size=(24, 80))
    try:
        child.send("CREATE TABLE ns.t (id bigint);\r")
        child.expect_exact("ok")

        def first(_: Any, name: Any, body: Any) -> int:
            metadata = server.tables[name]["metadata"]
            metadata["properties"]["others"] = str(len(server.commits))
            metadata["last-updated-ms"] += 1
            server.kept(name, metadata)
            return 409

        server.before = first
        child.expect_exact(PROMPT)
        child.send("INSERT INTO ns.t VALUES (1);\r")
        child.expect(r"not committed yet, attempt \d+ · \d+ s behind a change of its metadata · ")
        child.sendintr()
        child.expect(r"cancelled[^\n]*; nothing was committed")
        server.before = None
        child.expect_exact(PROMPT)
        child.send("SELECT count(*) + 40 AS n FROM ns.t;\r")
        child.expect_exact("40")
    finally:
        child.close(force=True)


def test_a_killed_shell_has_kept_what_was_typed_but_no_secret(
    warehouse: Path, tmp_path: Path
) -> None:
    first = spawned(tmp_path, "--warehouse", str(warehouse))
    second = spawned(tmp_path, "--warehouse", str(warehouse))
    try:
        for child, statement in (
            (first, "SELECT 'of the first' AS a;"),
            (second, "SELECT 'of the second' AS a;"),
            (first, "SELECT 'again' AS a;"),
        ):
            child.send(f"{statement}\r")
            child.expect_exact("(1 row")
            child.expect_exact(PROMPT)
        first.send("\\set password hunter2\r")
        first.expect_exact("this is not kept in the history")
        first.expect_exact(PROMPT)
        first.kill(signal.SIGKILL)
        second.kill(signal.SIGKILL)
    finally:
        first.close(force=True)
        second.close(force=True)
    path = tmp_path / "icesql" / "history"
    kept = re.findall(r"^\+(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert kept == [
        "SELECT 'of the first' AS a;", "SELECT 'of the second' AS a;", "SELECT 'again' AS a;"
    ]  # fmt: skip
    third = spawned(tmp_path, "--warehouse", str(warehouse))
    try:
        third.send("\x1b[A")
        third.expect_exact("again")
        third.send("\x1b[A")
        third.expect_exact("of the second")
    finally:
        third.close(force=True)


def test_a_terminal_that_cannot_draw_gets_lines_alone(warehouse: Path, tmp_path: Path) -> None:
    child = spawned(
        tmp_path, "--warehouse", str(warehouse), environment={"TERM": "dumb", "PAGER": "less"}
    )
    try:
        child.send("SELECT NULL AS nothing, * FROM range(1000);\r")
        child.expect_exact("… 960 more, \\all shows them")
        assert "\x1b" not in child.before
    finally:
        child.close(force=True)
