"""A full disk, a read-only folder, a catalog that answers late or never.

Each raises one of icesql's errors; the table afterwards is unchanged, with no files left over.
"""

from __future__ import annotations

import builtins
import copy
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icesql import errors
from tests.campaigns.histories import files
from tests.campaigns.histories.catalogs import Warehouse
from tests.campaigns.histories.judge import run_texts
from tests.catalog.writes.gateways import Relay

OPTIONS = "options => map('rewrite-all', 'true'))"
STATEMENTS = {
    "insert select": ("INSERT INTO ns.t SELECT id + 1000000, p, v, x FROM ns.src",),
    "update position deletes": ("UPDATE ns.t SET v = v || '!', x = x + 1 WHERE id % 3 = 0",),
    "merge position deletes": (
        "MERGE INTO ns.t USING ns.src AS s ON t.id = s.id WHEN MATCHED AND s.p = 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = s.v || '*', x = s.x "
        "WHEN NOT MATCHED THEN INSERT (id, p, v, x) VALUES (s.id, s.p, s.v, s.x)",
    ),
    "transaction": (
        "BEGIN", "INSERT INTO ns.t SELECT id + 2000000, p, v, x FROM ns.src",
        "DELETE FROM ns.t WHERE id % 7 = 1", "COMMIT",
    ),
    "compaction": (f"CALL system.rewrite_data_files(table => 'ns.t', {OPTIONS}",),
    "rewrite position deletes": (
        f"CALL system.rewrite_position_delete_files(table => 'ns.t', {OPTIONS}",
    ),
}  # fmt: skip
NAMES = [*STATEMENTS]
ROWS = 200


class Lake:
    """A catalog of one kind with ns.t, created once and restored before each test."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.warehouse = Warehouse(kind, folder / "live")
        self.live, self._kept = folder / "live", folder / "kept"
        columns, half = "i AS id, (i % 4)::INT AS p, 'value ' || i AS v, i / 8 AS x", ROWS // 2
        texts = [
            *(["CREATE SCHEMA ns"] if kind != "rest" else []),  # the server has it
            *(f"CREATE TABLE ns.{name} (id BIGINT, p INT, v VARCHAR, x DOUBLE) PARTITIONED BY (p) "
              "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'write.update.mode' = "
              "'merge-on-read', 'write.merge.mode' = 'merge-on-read')" for name in ("t", "src")),
            *(f"INSERT INTO ns.t SELECT {columns} FROM range({n * 40}, {n * 40 + 40}) r(i)"
              for n in range(5)),
            "DELETE FROM ns.t WHERE id % 10 = 3", "DELETE FROM ns.t WHERE id % 10 = 4 AND p < 2",
            f"INSERT INTO ns.src SELECT i * 2 + {half} AS id, (i % 4)::INT AS p, 'new' AS v, "
            f"i / 8 AS x FROM range({half}) r(i)",
        ]  # fmt: skip
        self.run(tuple(texts))
        shutil.copytree(self.live, self._kept)
        front = self.warehouse.front
        self._known: dict[Any, Any] = {} if front is None else front.tables
        self._tables = copy.deepcopy(self._known)
        self.made = self.rows()

    def restore(self) -> None:
        """Restore the original state."""
        shutil.rmtree(self.live)
        shutil.copytree(self._kept, self.live)
        self._known.clear()
        self._known.update(copy.deepcopy(self._tables))

    def run(self, texts: tuple[str, ...]) -> None:
        """Run statements to their end; for REST through the gateway."""
        with self.warehouse.connect(through_gateway=True) as con:
            run_texts(con, texts)

    def rows(self) -> list[Any]:
        """The rows of the table."""
        with self.warehouse.connect() as con:
            return sorted(con.execute("SELECT id, p, v, x FROM ns.t").fetchall())

    def files(self) -> set[str]:
        """All files below the table."""
        return files.there(self.document)

    @property
    def document(self) -> dict[str, Any]:
        """The table's metadata."""
        found = self.warehouse.document("ns", "t")
        assert found is not None
        return found[1]

    def orphans(self) -> set[str]:
        """Files that the table does not need."""
        found = self.warehouse.document("ns", "t")
        assert found is not None
        return self.files() - files.needed(*found)


@pytest.fixture(scope="module")
def lakes(tmp_path_factory) -> Iterator[dict[str, Lake]]:
    made = {
        kind: Lake(tmp_path_factory.mktemp("lake"), kind) for kind in ("folder", "sqlite", "rest")
    }
    yield made
    for each in made.values():
        each.warehouse.close()


@pytest.fixture(params=["folder", "sqlite"])
def lake(request, lakes: dict[str, Lake]) -> Lake:
    lakes[request.param].restore()
    return lakes[request.param]


class Disk:
    """A disk with room for ``left`` more bytes in new files; ``used`` counts the written ones."""

    def __init__(self, left: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.used = left, 0
        fdopen, open_file = os.fdopen, builtins.open

        def limited(file: Any, mode: str = "r", *more: Any, **given: Any) -> Any:
            found = fdopen(file, mode, *more, **given)
            return Limited(self, found) if mode == "wb" else found

        def limited_open(file: Any, mode: str = "r", *more: Any, **given: Any) -> Any:
            found = open_file(file, mode, *more, **given)
            return Limited(self, found) if mode == "xb" else found

        monkeypatch.setattr("icesql.storage.new_files.os.fdopen", limited)
        monkeypatch.setattr("icesql.catalog.writes.directory.open", limited_open, raising=False)


class Limited:
    """A file on such a disk."""

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
    """Check that the files and the rows of the table are the same as before."""
    assert lake.files() == files
    assert lake.rows() == lake.made


@pytest.mark.parametrize("statement", NAMES)
def test_a_full_disk(lake: Lake, statement: str, monkeypatch) -> None:
    before = lake.files()
    with monkeypatch.context() as patched:
        disk = Disk(float("inf"), patched)
        lake.run(STATEMENTS[statement])
    # In the middle, or at the final metadata: the digits of ids differ between runs.
    left = disk.used // 2 if NAMES.index(statement) % 2 else disk.used - 1_000
    lake.restore()
    with monkeypatch.context() as patched:
        Disk(left, patched)
        with pytest.raises(errors.OperationalError, match=r"^cannot write .*: no space left"):
            lake.run(STATEMENTS[statement])
    unchanged(lake, before)


@pytest.mark.parametrize("statement", NAMES[::2])
def test_a_read_only_folder(lake: Lake, statement: str, monkeypatch) -> None:
    """Simulated in the functions that open files, as the tests may run as root."""
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
            lake.run(STATEMENTS[statement])
    unchanged(lake, before)


# ------------------------------------------------------------------ a catalog that answers late


@pytest.fixture
def served(lakes: dict[str, Lake], monkeypatch) -> Iterator[Lake]:
    lake = lakes["rest"]
    monkeypatch.setattr("icesql.commit.attempts._STATUS_WAIT_SECONDS", 0.0)
    monkeypatch.setattr("icesql.catalog.rest.changes._WAIT_SECONDS", 0.0)
    lake.restore()
    yield lake
    assert lake.warehouse.gateway is not None
    lake.warehouse.gateway.relays.clear()


SENT = ["update position deletes", "merge position deletes", "compaction"]


@pytest.mark.parametrize("name", SENT)
def test_a_commit_that_is_applied_after_the_answer(served: Lake, name: str) -> None:
    """The outcome is unknown: nothing is deleted, and the table stays readable."""
    gateway, before, rows = served.warehouse.gateway, served.files(), served.rows()
    assert gateway is not None
    gateway.relays[:] = [Relay("late", 504)]
    with pytest.raises(errors.CommitStateUnknownError, match=r"SELECT \* FROM .*ns\.t\.snapshots"):
        served.run(STATEMENTS[name])
    assert served.rows() == rows, "as before, until the catalog applies it"
    assert served.files() > before
    gateway.deliver()
    after = served.rows()
    assert len(served.document["snapshots"]) == 8
    served.restore()
    served.run(STATEMENTS[name])
    assert served.rows() == after, "without a file missing"


@pytest.mark.parametrize("name", SENT)
def test_a_commit_whose_answer_is_lost(served: Lake, name: str) -> None:
    """The table shows that the commit was applied: the statement succeeds."""
    gateway, before = served.warehouse.gateway, served.rows()
    assert gateway is not None
    gateway.relays[:] = [Relay("once", 504)]
    served.run(STATEMENTS[name])
    assert (served.rows() == before) == (name == "compaction")
    assert len(served.document["snapshots"]) == 8
    assert {Path(each).suffix for each in served.orphans()} <= {".json"}, "the server's own"
