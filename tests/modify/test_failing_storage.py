"""A full disk, a folder that is read-only, a catalog that answers late or never.

Each is an error of ours, and the table afterwards is the one before, with nothing left behind.
"""

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icesql import errors
from tests.campaigns.kills.lake import Lake
from tests.campaigns.kills.statements import NAMED

STATEMENTS = [
    NAMED[each]
    for each in (
        "insert select", "update position deletes", "merge position deletes", "transaction",
        "compaction", "rewrite position deletes",
    )
]  # fmt: skip
NAMES = [each.name for each in STATEMENTS]


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: Any) -> Iterator[dict[str, Lake]]:
    made = {
        kind: Lake(tmp_path_factory.mktemp("lake"), kind, "mor2", 200)
        for kind in ("directory", "sqlite", "rest")
    }
    yield made
    for each in made.values():
        each.close()


@pytest.fixture(params=["directory", "sqlite"])
def lake(request: Any, lakes: dict[str, Lake]) -> Lake:
    lakes[request.param].restore()
    return lakes[request.param]


class Disk:
    """Takes ``left`` bytes more into new files; what is written counts in ``used``."""

    def __init__(self, left: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.used = left, 0
        fdopen, open_file = os.fdopen, builtins.open

        def limited(file: Any, mode: str = "r", *more: Any, **given: Any) -> Any:
            found = fdopen(file, mode, *more, **given)
            return Limited(self, found) if mode == "wb" else found

        def limited_open(file: Any, mode: str = "r", *more: Any, **given: Any) -> Any:
            found = open_file(file, mode, *more, **given)
            return Limited(self, found) if mode == "xb" else found

        monkeypatch.setattr("icesql.storage.output_file.os.fdopen", limited)
        monkeypatch.setattr("icesql.catalog.writes.directory.open", limited_open, raising=False)


class Limited:
    """A file of such a disk."""

    def __init__(self, disk: Disk, file: Any) -> None:
        self._disk, self._file = disk, file

    def write(self, data: bytes) -> int:
        self._disk.used += len(data)
        self._disk.left -= len(data)
        if self._disk.left < 0:
            self._file.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return int(self._file.write(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Limited:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def unchanged(lake: Lake, files: set[str]) -> None:
    """The same files as before, and the same rows of the table."""
    assert lake.files() == files
    assert lake.rows() == lake.made


@pytest.mark.parametrize("statement", STATEMENTS, ids=NAMES)
def test_a_full_disk(lake: Lake, statement: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lake.files()
    with monkeypatch.context() as patched:
        disk = Disk(float("inf"), patched)
        lake.run(statement.sql)
    # In the middle, and for the metadata at the end.
    left = disk.used // 2 if STATEMENTS.index(statement) % 2 else disk.used - 100
    lake.restore()
    with monkeypatch.context() as patched:
        Disk(left, patched)
        with pytest.raises(errors.OperationalError, match=r"^cannot write .*: no space left"):
            lake.run(statement.sql)
    unchanged(lake, before)


@pytest.mark.parametrize("statement", STATEMENTS[::2], ids=NAMES[::2])
def test_a_read_only_folder(lake: Lake, statement: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made so by what opens files, as the tests may run as root."""
    before = lake.files()
    open_file, makedirs = os.open, os.makedirs

    def refused(path: Any, flags: int, *more: Any, **given: Any) -> int:
        if flags & os.O_CREAT and str(path).startswith(str(lake.live)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return open_file(path, flags, *more, **given)

    def no_folder(path: Any, *more: Any, **given: Any) -> None:
        if not os.path.isdir(path):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        makedirs(path, *more, **given)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refused)
        patched.setattr(os, "makedirs", no_folder)
        with pytest.raises(errors.OperationalError, match=r"^cannot write .*: read-only file"):
            lake.run(statement.sql)
    unchanged(lake, before)


# ------------------------------------------------------------------ a catalog that answers late


@pytest.fixture
def served(lakes: dict[str, Lake], monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    lake = lakes["rest"]
    monkeypatch.setattr("icesql.commit.attempts._STATUS_WAIT_SECONDS", 0.0)
    monkeypatch.setattr("icesql.catalog.rest.changes._WAIT_SECONDS", 0.0)
    lake.restore()
    yield lake
    assert lake.server is not None
    lake.server.before = None


SENT = ["update position deletes", "merge position deletes", "compaction"]


@pytest.mark.parametrize("name", SENT)
def test_a_commit_that_is_applied_after_the_answer(served: Lake, name: str) -> None:
    """Nobody knows how it ended: nothing is deleted, and what comes of it reads."""
    server, before, rows = served.server, served.files(), served.rows()
    assert server is not None
    held: list[Any] = []

    def hold(_: Any, table: Any, body: Any) -> int:
        held.append((table, body))
        return 504

    server.before = hold
    with pytest.raises(errors.CommitStateUnknownError, match=r"SELECT \* FROM .*ns\.t\.snapshots"):
        served.run(NAMED[name].sql)
    assert served.rows() == rows, "as before, until the catalog applies it"
    assert served.files() > before
    status, _ = server.applied(*held[0])
    assert status == 200
    after = served.rows()
    server.before = None
    served.restore()
    served.run(NAMED[name].sql)
    assert served.rows() == after, "without a file missing"


@pytest.mark.parametrize("name", SENT)
def test_a_commit_whose_answer_is_lost(served: Lake, name: str) -> None:
    """It can be seen in the table: the statement went well."""
    server, before = served.server, served.rows()
    assert server is not None

    def lose(_: Any, table: Any, body: Any) -> int:
        server.applied(table, body)
        return 504

    server.before = lose
    served.run(NAMED[name].sql)
    assert (served.rows() == before) == (not NAMED[name].changes_rows)
    assert len(server.tables["ns", "t"]["metadata"]["snapshots"]) == len(served.snapshots) + 1
    left = {Path(each).suffix for each in served.orphans() if "orphan" not in each}
    assert left <= {".json"}, "those that the server wrote"
