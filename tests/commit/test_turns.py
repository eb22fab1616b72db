"""Turns of writers on one machine: kernel locks for fairness, on which no commit depends."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from icesql.commit.attempts import Turn, _held
from icesql.commit.rows import commit_append
from icesql.context import QueryContext
from icesql.errors import QueryCancelledError
from tests.commit.tables import CATALOGS, create, fake, live

fcntl = pytest.importorskip("fcntl")


@pytest.fixture(params=CATALOGS)
def catalog(request, tmp_path):
    return CATALOGS[request.param](tmp_path)


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch) -> Path:
    """A folder of temporary files of this test alone."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def waited(catalog, table) -> bool:
    """Whether another thread has to wait for a turn at a table."""
    query = QueryContext()
    seen: list[bool] = []

    def other() -> None:
        query.cancel.set()  # so that a wait ends at once
        with Turn(catalog, table, query) as turn:
            try:
                turn.take()
            except QueryCancelledError:
                seen.append(True)
            else:
                seen.append(False)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    return seen == [True]


def test_threads_take_turns_and_leave_them(catalog, temporary: Path, tmp_path) -> None:
    table = create(catalog)
    before = {*(tmp_path / "wh").rglob("*")}
    with Turn(catalog, table, QueryContext()) as turn:
        turn.take()
        assert waited(catalog, table)
        with Turn(catalog, table, QueryContext()) as own:
            own.take()  # a thread does not wait for its own lock
        assert waited(catalog, table)
        turn.leave()
        assert not waited(catalog, table)
        turn.take()
    assert not waited(catalog, table)
    assert not _held
    assert {*(tmp_path / "wh").rglob("*")} == before, "nothing lies beside the table"
    (folder,) = temporary.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_turn_ends_with_its_process(catalog, temporary: Path) -> None:
    table = create(catalog)
    with Turn(catalog, table, QueryContext()) as turn:
        turn.take()
    (folder,) = temporary.iterdir()
    (file,) = folder.iterdir()
    holding = (
        "import fcntl, sys, time\n"
        f"file = open({str(file)!r}, 'r+')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "time.sleep(600)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", holding], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert waited(catalog, table)
    finally:
        child.kill()
        child.wait()
    assert not waited(catalog, table)


def test_a_commit_waits_for_a_while_and_goes_on(catalog, monkeypatch) -> None:
    monkeypatch.setattr("icesql.commit.attempts._MOST_SECONDS", 0.2)
    table = create(catalog)
    ready, done = threading.Event(), threading.Event()

    def hold() -> None:
        with Turn(catalog, table, QueryContext()) as turn:
            turn.take()
            ready.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert ready.wait(600)
        begun = time.monotonic()
        assert live(commit_append(catalog, table, [fake("a")]).table) == {"a"}
        assert time.monotonic() - begun >= 0.2
    finally:
        done.set()
        thread.join()


def of_another(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)


def a_link(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir()
    folder.symlink_to(folder.parent / "elsewhere")


def a_file(folder: Path) -> None:
    folder.write_text("")


def links_inside(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for number in range(1024):
        (folder / str(number)).symlink_to(folder.parent / f"made-{number}")


@pytest.mark.parametrize("planted", [of_another, a_link, a_file, links_inside])
def test_what_others_put_into_its_place_is_left_alone(catalog, temporary, planted) -> None:
    planted(temporary / f"icesql-turns-{os.getuid()}")
    before = {*temporary.rglob("*")}
    table = create(catalog)
    with Turn(catalog, table, QueryContext()) as turn:
        turn.take()
        assert not waited(catalog, table)
    assert live(commit_append(catalog, table, [fake("a")]).table) == {"a"}
    assert {*temporary.rglob("*")} == before


def test_without_a_place_for_it_nobody_waits(catalog, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    table = create(catalog)
    with Turn(catalog, table, QueryContext()) as turn:
        turn.take()
        assert not waited(catalog, table)
    assert live(commit_append(catalog, table, [fake("a")]).table) == {"a"}


def test_without_locks_of_the_kernel_nobody_waits(catalog, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    table = create(catalog)
    assert live(commit_append(catalog, table, [fake("a")]).table) == {"a"}
