"""Commits to databases and, by PyIceberg's own commit, to Glue."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from icesql.catalog.writes.change import Conflict, Done, Unknown
from icesql.commit.append import commit_append
from icesql.commit.change import change_table
from icesql.commit.create import create_table, stage_table
from icesql.errors import CatalogError, CommitConflictError, NotSupportedError, TableNotFoundError
from icesql.iceberg.metadata.changes import updates as u
from tests.catalog.writes.swaps import TABLE, database, swapped, value_of
from tests.commit.tables import SCHEMA, create, fake, live


@pytest.fixture
def catalog(tmp_path: Path):
    with closing(database(tmp_path)) as made:
        yield made


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_table_of_a_database_is_made_and_filled(catalog, version) -> None:
    table = create(catalog, version=version, partitioned=True)
    assert table.metadata.location.endswith("/wh/ns/t")
    table = commit_append(catalog, table, [fake("a", partition=("x",))]).table
    table = commit_append(catalog, table, [fake("b", partition=("y",))]).table
    assert live(table) == {"a", "b"}
    assert table.metadata.format_version == version
    with pytest.raises(CatalogError, match="already"):
        stage_table(catalog, TABLE, SCHEMA)
    with pytest.raises(CatalogError, match="namespace zz not found"):
        stage_table(catalog, ("zz", "t"), SCHEMA)


def test_who_is_second_goes_on_what_the_first_left(catalog) -> None:
    table = create(catalog)
    stale = catalog.load(TABLE)
    commit_append(catalog, table, [fake("a")])
    assert isinstance(swapped(catalog, stale, "2"), Conflict)
    folder = Path(table.metadata.location) / "metadata"
    assert len(list(folder.glob("*.metadata.json"))) == 2, "what lost is not left behind"
    done = commit_append(catalog, stale, [fake("b")])
    assert live(done.table) == {"a", "b"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("hung up")])
def test_a_commit_that_was_applied_keeps_its_file(catalog, monkeypatch, error) -> None:
    """Whether it is Ctrl-C that comes when COMMIT returns, or a driver that fails after it."""
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


def test_a_table_is_created_once(catalog) -> None:
    first, second = (stage_table(catalog, TABLE, SCHEMA) for _ in range(2))
    create_table(catalog, first)
    with pytest.raises(CommitConflictError, match="created meanwhile"):
        create_table(catalog, second)


def test_names_come_and_go(catalog) -> None:
    create(catalog)
    catalog.rename(TABLE, ("ns", "u"))
    assert catalog.tables(("ns",)) == [("ns", "u")]
    with pytest.raises(TableNotFoundError):
        catalog.rename(TABLE, ("ns", "v"))
    with pytest.raises(CatalogError, match="not empty"):
        catalog.drop_namespace(("ns",))
    catalog.drop(("ns", "u"))
    catalog.drop_namespace(("ns",))
    assert catalog.namespaces() == []


def test_pyiceberg_commits_where_it_alone_knows_how(catalog) -> None:
    table = create(catalog)
    catalog.kind = "glue"
    done = commit_append(catalog, table, [fake("a")])
    assert live(done.table) == {"a"}
    stale = done.table
    after = change_table(catalog, stale, lambda base: [u.SetProperties({"k": "1"})]).table
    assert after.metadata.properties["k"] == "1"
    assert isinstance(swapped(catalog, stale, "2"), Conflict)
    assert isinstance(swapped(catalog, after, "2"), Done)
    with pytest.raises(NotSupportedError, match="format version 3"):
        change_table(catalog, catalog.load(TABLE), lambda base: [u.UpgradeFormatVersion(3)])
    with pytest.raises(NotSupportedError, match="new tables"):
        stage_table(catalog, ("ns", "v"), SCHEMA)


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


@pytest.mark.parametrize("kind", ["hive", "dynamodb", "bigquery"])
def test_other_kinds_are_only_read(catalog, kind) -> None:
    table = create(catalog)
    catalog.kind = kind
    for call in (
        lambda: commit_append(catalog, table, [fake("a")]), lambda: catalog.create_namespace(("x",)),
        lambda: catalog.drop_namespace(("ns",)), lambda: catalog.rename(TABLE, ("ns", "u")),
        lambda: stage_table(catalog, ("ns", "v"), SCHEMA),
    ):  # fmt: skip
        with pytest.raises(NotSupportedError, match=f"of type {kind}; icesql writes to"):
            call()
