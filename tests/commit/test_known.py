"""The table of outcomes in the docstring of ``icesql.commit``: each row is tested."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import icesql.commit
from icesql import errors
from icesql.catalog.directory import DirectoryCatalog
from icesql.catalog.pyiceberg import PyIcebergCatalog
from icesql.catalog.writes import directory, sqlite
from icesql.commit.create import create_table, stage_table
from icesql.commit.rows import commit_append
from icesql.commit.transaction import Transaction
from icesql.context import QueryContext
from icesql.iceberg.manifest.data_file import DataFile
from tests.catalog.rest_server import rest
from tests.catalog.writes.gateways import HANGS_UP, Gateway, Relay
from tests.commit.tables import SCHEMA, fake, live, written
from tests.commit.tables import sqlite as sqlite_catalog

Row = tuple[str, str, str, str, str, str]
# A conflict of one table is raised at once; a request to a busy server is sent once more.
ONCE = {"commit.retry.num-retries": "0", "commit.retry.min-wait-ms": "1"}
TWICE = {**ONCE, "commit.retry.num-retries": "1"}


def rows() -> Iterator[Row]:
    lines = re.findall(r"^\|(.*)\|$", icesql.commit.__doc__ or "", re.MULTILINE)
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert cells[0] == ["catalog", "sent", "came back", "then seen", "known", "deleted"]
    for each in cells[2:]:
        yield from product(*(cell.split(", ") for cell in each))  # type: ignore[misc]


ROWS = [*rows()]


def test_the_table_is_of_all_catalogs_and_leaves_nothing_open() -> None:
    keys = [row[:4] for row in ROWS]
    assert len(set(keys)) == len(keys) > 100, "what is known follows from what was seen"
    assert {row[0] for row in ROWS} == {"REST", "SQLite", "SQL", "Glue", "folder"}
    assert {row[4] for row in ROWS} == {"applied", "not applied", "conflict", "unknown"}
    # Files are deleted exactly if the change is not applied and cannot be.
    assert {row[4:] for row in ROWS} == {
        ("applied", "nothing"), ("unknown", "nothing"), ("conflict", "its files"),
        ("not applied", "its files"),
    }  # fmt: skip


@pytest.fixture(autouse=True)
def no_waits(monkeypatch) -> None:
    monkeypatch.setattr("icesql.commit.attempts._STATUS_WAIT_SECONDS", 0.0)
    monkeypatch.setattr("icesql.catalog.rest.client._FIRST_WAIT", 0.0)
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.05)


class Double:
    """A catalog that behaves once as a row says; ``others`` commit besides ``catalog``."""

    def __init__(self, folder: Path, row: Row, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, patch
        _, self.sent, self.came, self.seen, self.known, _ = row
        self.foreign: set[str] = set()
        (folder / "wh").mkdir(exist_ok=True)
        self.catalog: Any = self.opened()
        self.properties = TWICE if "then" in self.came else ONCE
        # In a folder another one is staged before there are files.
        self.staged = {name: self.stage(name) for name in ("c" if self.sent == "CREATE" else "tu")}
        for name in "tu" if self.sent != "CREATE" else "":
            self.make(name)

    def opened(self) -> Any:
        """The catalog."""

    def arrange(self) -> None:
        """Make the next commit behave as the row says."""

    def deliver(self) -> None:
        """Deliver a delayed request."""

    def stage(self, name: str) -> Any:
        properties = {**self.properties, "write.metadata.delete-after-commit.enabled": "true"}
        properties["write.metadata.previous-versions-max"] = "1"
        return stage_table(self.catalog, ("ns", name), SCHEMA, properties=properties)

    def make(self, name: str) -> None:
        create_table(self.catalog, self.staged[name], [fake(f"first{name}")])

    def files(self) -> set[str]:
        """All files except metadata written by a REST server."""
        found = {str(path) for path in self.folder.rglob("*") if path.is_file()}
        return {
            path
            for path in found
            if path.endswith((".parquet", ".avro"))
            or (path.endswith(".json") and not isinstance(self, Rest))
        }

    def others(self) -> None:
        """The changes of others that a look shows: commits, or another table of the name."""
        before = self.files()
        if self.seen == "another table":
            self.make("c")
        if self.seen in ("moved on", "no answer") or isinstance(self, Folder):
            name = "c" if self.sent == "CREATE" else "t"
            for number in range(3):
                table = self.catalog.load(("ns", name))
                commit_append(self.catalog, table, [fake(f"other{number}")])
        self.foreign |= self.files() - before

    def another_commit(self) -> None:
        """Another writer creates the table, or commits to it."""
        before = self.files()
        if self.sent == "CREATE":
            self.make("c")
        else:
            commit_append(self.catalog, self.catalog.load(("ns", "t")), [fake("other")])
        self.foreign |= self.files() - before

    def unreadable(self) -> None:
        """All loads fail from now on."""
        kind = type(self.catalog)

        def away(*_: Any) -> None:
            raise errors.CatalogError("away")

        self.patch.setattr(kind, "load", away)


class Rest(Double):
    server: Gateway

    def opened(self) -> Any:
        self.server = Gateway(self.folder / "wh")
        return rest(self.server)

    def arrange(self) -> None:
        first, *more = self.came.split(" then ")
        status = HANGS_UP if first == "none" else int(first)
        refused = first in ("400", "403", "422", "429", "409")
        if first == "200":
            relay = Relay()
        elif self.seen in ("its snapshot", "no answer"):
            relay = Relay("once", status)
        elif self.seen == "some of them changed":
            relay = Relay("half", status)
        elif refused:
            relay = Relay("never", status)
        else:
            relay = Relay("late", status)
        again = [Relay() if each == "200" else Relay("never", int(each)) for each in more]
        self.is_late = relay.applies == "late"
        self.server.relays = [relay, *again]
        self.server.after = self.meanwhile

    def meanwhile(self) -> None:
        if self.seen == "no answer":
            self.server.looks = [503] * 100
        elif self.seen in ("moved on", "another table"):
            relays, self.server.relays = self.server.relays, []
            self.others()
            self.server.relays = relays

    def deliver(self) -> None:
        self.server.looks = []
        self.server.deliver()


class InDatabase(Double):
    """The common base of SQLite and other databases."""

    def arrange(self) -> None:
        match self.came:
            case "committed":
                pass
            case "another row":
                self.before_commit(self.another_commit)
            case "locked":
                self.hold("BEGIN IMMEDIATE")
            case "COMMIT refused":
                self.refused()
            case _:
                self.at_commit(self.failure)

    def failure(self, commit: Callable[[], Any]) -> None:
        """Raise as COMMIT does that fails or is interrupted, applied or not."""
        if self.seen == "its snapshot" or self.came == "Ctrl-C":
            commit()
        else:
            self.not_committed()
        if self.seen in ("moved on", "another table"):
            self.others()
        if self.seen == "no answer":
            self.unreadable()
        if self.came == "Ctrl-C":
            raise KeyboardInterrupt

    def hold(self, *statements: str) -> None:
        """Lock the file by another session."""
        self.holder = sqlite3.connect(self.folder / "c.db", isolation_level=None)
        for each in statements:
            self.holder.execute(each).fetchall()

    def deliver(self) -> None:
        with suppress(AttributeError):
            self.holder.close()

    def before_commit(self, action: Callable[[], None]) -> None:
        raise NotImplementedError

    def at_commit(self, failure: Callable[[Callable[[], Any]], None]) -> None:
        raise NotImplementedError

    def not_committed(self) -> None:
        """End the transaction without COMMIT."""

    def refused(self) -> None:
        raise NotImplementedError


class InSqlite(InDatabase):
    def opened(self) -> Any:
        return sqlite_catalog(self.folder)

    def before_commit(self, action: Callable[[], None]) -> None:
        writing = sqlite.writing

        def late(file: str) -> Any:
            self.patch.setattr(sqlite, "writing", writing)
            action()
            return writing(file)

        self.patch.setattr(sqlite, "writing", late)

    def at_commit(self, failure: Callable[[Callable[[], Any]], None]) -> None:
        committed = sqlite._committed

        def failing(database: Any, new: str) -> Any:
            self.patch.setattr(sqlite, "_committed", committed)
            self.database = database
            failure(lambda: database.execute("COMMIT"))
            return committed(Broken(), new)  # type: ignore[arg-type]

        self.patch.setattr(sqlite, "_committed", failing)

    def not_committed(self) -> None:
        self.database.execute("ROLLBACK")

    def refused(self) -> None:
        self.hold("BEGIN", "SELECT * FROM iceberg_tables")


class Broken:
    """A connection whose disk fails."""

    def execute(self, statement: str) -> None:
        raise sqlite3.OperationalError("disk I/O error")


class InSql(InDatabase):
    def opened(self) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        theirs = SqlCatalog(
            "c", uri=f"sqlite:///{self.folder}/c.db", warehouse=str(self.folder / "wh")
        )
        made = PyIcebergCatalog(theirs, "c", {"type": "sql"})
        made.create_namespace(("ns",))
        return made

    def before_commit(self, action: Callable[[], None]) -> None:
        from icesql.catalog.writes import pyiceberg

        in_transaction = pyiceberg._in_transaction

        def late(*given: Any) -> None:
            self.patch.setattr(pyiceberg, "_in_transaction", in_transaction)
            action()
            in_transaction(*given)

        self.patch.setattr(pyiceberg, "_in_transaction", late)

    def at_commit(self, failure: Callable[[Callable[[], Any]], None]) -> None:
        from sqlalchemy.engine import Transaction as Theirs

        committed = Theirs.commit

        def failing(transaction: Any) -> None:
            self.patch.setattr(Theirs, "commit", committed)
            self.transaction = transaction
            failure(lambda: committed(transaction))
            raise OSError("the connection was lost")

        self.patch.setattr(Theirs, "commit", failing)

    def not_committed(self) -> None:
        self.transaction.rollback()

    def refused(self) -> None:
        from sqlalchemy.exc import OperationalError

        class Serialization(Exception):
            sqlstate = "40001"

        def fails(_: Any) -> None:
            self.not_committed()
            raise OperationalError("COMMIT", {}, Serialization("could not serialize"))

        self.at_commit(fails)


class Glue(InSql):
    """PyIceberg's own commit, as to Glue, here to a database."""

    def opened(self) -> Any:
        made = super().opened()
        self.foreign_catalog = made._foreign
        return made

    def arrange(self) -> None:
        from pyiceberg.exceptions import CommitFailedException

        self.catalog.kind = "glue"
        foreign = self.foreign_catalog
        commit = foreign.commit_table

        def failing(*given: Any) -> Any:
            self.patch.setattr(foreign, "commit_table", commit)
            if self.came == "committed":
                return commit(*given)
            self.failure(lambda: commit(*given))
            if self.came == "another version":
                raise CommitFailedException("concurrent update")
            raise OSError("hung up")

        self.patch.setattr(foreign, "commit_table", failing)

    def not_committed(self) -> None:
        """End it before the request is sent."""


class Folder(Double):
    def opened(self) -> Any:
        return DirectoryCatalog(str(self.folder / "wh"))

    def arrange(self) -> None:
        link_new, link = directory._link_new, os.link

        def linked(data: bytes, final: str) -> Any:
            self.patch.setattr(directory, "_link_new", link_new)
            before = self.seen in ("moved on", "another table", "no answer")
            if before:
                self.others()
            made = link_new(data, final)
            if self.seen == "its snapshot":
                self.others()
            if self.seen == "no answer":
                Path(max(self.foreign, key=version_of)).write_text("{")
            return made

        def failing(source: str, target: str) -> None:
            if not target.endswith(".metadata.json"):
                link(source, target)
                return
            self.patch.setattr(os, "link", link)
            match self.came:
                case "name taken":
                    self.another_commit()
                    link(source, target)
                case "no links":
                    raise PermissionError(1, "Operation not permitted")
                case "none":
                    if self.seen == "its snapshot":
                        link(source, target)
                    raise OSError(5, "Input/output error")
                case "Ctrl-C":
                    link(source, target)
                    raise KeyboardInterrupt

        if self.came == "linked" and self.seen != "-":
            self.patch.setattr(directory, "_link_new", linked)
        elif self.came != "linked":
            self.patch.setattr(os, "link", failing)


def version_of(path: str) -> int:
    found = re.search(r"/v(\d+)\.metadata\.json$", path)
    return int(found[1]) if found else 0


KINDS: dict[str, type[Double]] = {
    "REST": Rest, "SQLite": InSqlite, "SQL": InSql, "Glue": Glue, "folder": Folder,
}  # fmt: skip


def commit(double: Double) -> tuple[errors.Error | None, list[DataFile]]:
    """The error of the row's commit, and the data files that it brought."""
    catalog, made = double.catalog, []
    names = {"one table": "t", "CREATE": "c", "several": "tu"}[double.sent]
    try:
        if double.sent == "CREATE":
            staged = stage_table(catalog, ("ns", "c"), SCHEMA, properties=double.properties)
            made = [written(staged.table, "minec", [(1, "x")])]
            double.arrange()
            create_table(catalog, staged, made)
            return None, made
        tables = [catalog.load(("ns", name)) for name in names]
        made = [written(each, f"mine{each.name[-1]}", [(1, "x")]) for each in tables]
        if double.sent == "one table":
            double.arrange()
            commit_append(catalog, tables[0], made)
            return None, made
        transaction = Transaction()
        for table, file in zip(tables, made, strict=True):
            commit_append(transaction.catalog(catalog), table, [file])
        double.arrange()
        transaction.commit(QueryContext())
    except errors.Error as error:
        return error, made
    return None, made


@pytest.mark.parametrize("row", ROWS, ids=lambda row: ", ".join(row[:4]))
def test_what_the_table_says_is_what_happens(row: Row, tmp_path, monkeypatch) -> None:
    double = KINDS[row[0]](tmp_path, row, monkeypatch)
    with closing(double.catalog):
        before = double.files()
        error, made = commit(double)
        monkeypatch.undo()
        left = double.files() - before - double.foreign
        assert known(error) == row[4], error
        if row[5] == "its files":
            assert left == set()
        else:
            assert {each.path for each in made} <= left
            assert any("/snap-" in path for path in left)
        if isinstance(error, errors.CommitStateUnknownError):
            assert error.snapshot_ids
            named = set(error.files)
            for each in (*error.snapshot_ids, error.files[0]):
                assert str(each) in str(error)
            assert (row[2] == "200") is ("could not be looked at after it" in str(error))
            assert {each for each in left if not each.endswith(".json")} <= named
            # Whether the folder's version was created is the unknown itself.
            assert {each for each in named if not os.path.exists(each)} <= {
                each for each in named if version_of(each)
            }
        double.deliver()
        if row[3] == "no answer" and isinstance(double, Folder):
            return  # the table cannot be read any more
        read_well(double, row)
    if isinstance(double, Rest):
        double.server.close()


def known(error: errors.Error | None) -> str:
    match error:
        case None:
            return "applied"
        case errors.CommitConflictError():
            return "conflict"
        case errors.CommitStateUnknownError():
            return "unknown"
    return "not applied"


def read_well(double: Double, row: Row) -> None:
    """Check that no file is missing and no row exists twice, whatever the outcome."""
    for name in {"one table": "t", "CREATE": "c", "several": "tu"}[double.sent]:
        try:
            table = double.catalog.load(("ns", name))
        except errors.TableNotFoundError:
            assert name == "c"
            assert row[4] != "applied"
            continue
        found = live(table)  # reads every manifest
        mine = [each for each in found if each.startswith("mine")]
        is_late = isinstance(double, Rest) and double.is_late and row[4] == "unknown"
        if row[4] == "applied" or is_late:
            assert mine == [f"mine{name}"]
        if row[4] in ("conflict", "not applied"):
            assert mine == []
        for each in mine:
            assert (Path(table.metadata.location) / "data" / f"{each}.parquet").exists()
