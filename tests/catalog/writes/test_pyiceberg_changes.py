"""Commits to databases and, by PyIceberg's own commit, to Glue."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from icesql.catalog.writes.change import Done, Unknown
from icesql.commit.file_changes import change_table
from icesql.commit.rows import commit_append
from icesql.iceberg.metadata.changes import updates as u
from tests.catalog.writes.swaps import TABLE, database, swapped, value_of
from tests.catalog.writes.writers import Writers
from tests.commit.tables import create, fake, live
from tests.scenes import Scene, scenes


@pytest.fixture
def catalog(tmp_path: Path):
    with closing(database(tmp_path)) as made:
        yield made


class Foreign(Writers):
    """Writers to a catalog opened by PyIceberg."""

    def kind(self, kind: str) -> None:
        self.catalog.kind = kind

    @property
    def others(self) -> Any:
        return self.catalog

    def upgrade(self, version: str) -> None:
        change_table(
            self.catalog, self.catalog.load(TABLE), lambda _: [u.UpgradeFormatVersion(int(version))]
        )


@scenes(__file__, "pyiceberg_changes.scenes")
def test_a_writer_of_a_database(scene: Scene, catalog, tmp_path, monkeypatch) -> None:
    Foreign(lambda _: catalog, tmp_path, monkeypatch).play(scene)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("hung up")])
def test_a_commit_that_was_applied_keeps_its_file(catalog, monkeypatch, error) -> None:
    """Also if Ctrl-C arrives when COMMIT returns, or a driver fails after it."""
    from sqlalchemy.engine import Transaction

    table = create(catalog)
    committed = Transaction.commit

    def failing(transaction):
        committed(transaction)
        raise error

    monkeypatch.setattr(Transaction, "commit", failing)
    if isinstance(error, OSError):
        assert isinstance(swapped(catalog, table, "1"), Unknown)
    else:
        with pytest.raises(KeyboardInterrupt):
            swapped(catalog, table, "1")
    monkeypatch.undo()
    assert value_of(catalog) == "1"


def test_a_connection_that_does_not_end_well_changes_no_outcome(catalog, monkeypatch) -> None:
    from sqlalchemy.engine import Connection

    from icesql.catalog.writes import pyiceberg as writes

    def failing(connection):
        raise OSError("hung up")

    def and_then(*given):
        done = applied(*given)
        monkeypatch.setattr(Connection, "close", failing)
        return done

    table = create(catalog)
    applied = writes._in_transaction
    monkeypatch.setattr(writes, "_in_transaction", and_then)
    assert isinstance(swapped(catalog, table, "1"), Done)
    monkeypatch.undo()
    assert value_of(catalog) == "1"


def test_a_row_in_another_spelling_is_found(catalog) -> None:
    from sqlalchemy import text

    table = create(catalog)
    with catalog._foreign.engine.begin() as database:
        spelled = f"file://{table.metadata_location}"
        database.execute(
            text("UPDATE iceberg_tables SET metadata_location = :new"), {"new": spelled}
        )
    done = commit_append(catalog, catalog.load(TABLE), [fake("a")])
    assert live(done.table) == {"a"}


def test_what_pyiceberg_sent_and_cannot_be_looked_at_is_unknown(catalog, monkeypatch) -> None:
    table = create(catalog)
    catalog.kind = "glue"
    foreign = catalog._foreign
    committed, loaded = foreign.commit_table, foreign.load_table

    def sent(*given):
        committed(*given)
        monkeypatch.setattr(foreign, "load_table", away)
        raise OSError("hung up")

    def away(name):
        raise OSError("away")

    monkeypatch.setattr(foreign, "commit_table", sent)
    assert isinstance(swapped(catalog, table, "1"), Unknown)
    monkeypatch.setattr(foreign, "load_table", loaded)
    assert value_of(catalog) == "1"
