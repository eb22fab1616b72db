"""While a session reads tables at a past time, no statement changes their current state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.errors import ProgrammingError
from icesql.modify.procedures.procedure import find_procedure, procedure_names
from icesql.sql.parse import parse
from icesql.sql.statement import TransactionControl, Write
from icesql.sql.writes import (  # noqa: F401  (their classes are found below)
    create,
    statements,
)
from icesql.sql.writes.procedure_calls import CallProcedure
from tests.tables import read_lines

ACCEPTED = Path(__file__).parents[2] / "grammar" / "accepted.sql"
# Statements of the grammar are added with its examples.
CHANGES = [
    *read_lines(__file__, "changes_now.tsv"),
    *(f"CALL system.{name}('s.t')" for name in procedure_names() if find_procedure(name).changes),
]
PINS = ["SET SNAPSHOT TIME = now()", "SET snapshot_ref = 'b'", "SET snapshot_ref = 'g'"]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.fixture(scope="module")
def there(tmp_path_factory) -> Iterator[tuple[icesql.Connection, Path]]:
    """Tables with a history, in a SQLite catalog, which also has views."""
    folder = tmp_path_factory.mktemp("past")
    (folder / "rows.csv").write_text("a,b\n7,x\n")
    from pyiceberg.catalog.sql import SqlCatalog

    uri = f"sqlite:///{folder}/catalog.db"
    SqlCatalog("c", uri=uri, warehouse=f"file://{folder}/wh").engine.dispose()
    with icesql.connect(uri=uri, warehouse=str(folder / "wh"), files=True) as connection:
        for statement in (
            "CREATE SCHEMA s",
            "CREATE SCHEMA empty",
            "CREATE TABLE s.t (a BIGINT, b VARCHAR)",
            "INSERT INTO s.t VALUES (1, 'x'), (2, 'y')",
            "CREATE TABLE s.o (a BIGINT)",
            "INSERT INTO s.o VALUES (1)",
            "CREATE TABLE s.p (a BIGINT, b VARCHAR) PARTITIONED BY (b)",
            "INSERT INTO s.p VALUES (1, 'x')",
            *(f"ALTER TABLE s.{t} CREATE BRANCH b" for t in "top"),
            *(f"ALTER TABLE s.{t} CREATE TAG g" for t in "top"),
            "CREATE VIEW s.v AS SELECT 1 AS a",
        ):
            connection.execute(statement)
        yield connection, folder


def kinds(of: type) -> set[type]:
    return {each for sub in of.__subclasses__() for each in (sub, *kinds(sub))}


def test_every_kind_of_statement_that_changes_something_is_below() -> None:
    written = [each.format(folder="/f") for each in CHANGES]
    found = {type(one) for text in written if (one := read(text)) is not None}
    assert kinds(Write) - found == {TransactionControl}


def read(text: str) -> Any:
    try:
        (one,) = parse(text)
    except (icesql.Error, ValueError):
        return None
    return one


@pytest.mark.parametrize("pin", PINS)
def test_nothing_is_changed_while_the_past_is_read(
    there: tuple[icesql.Connection, Path], pin: str
) -> None:
    con, folder = there
    before = files_of(folder)
    reset = "RESET SNAPSHOT TIME" if "TIME" in pin else "RESET snapshot_ref"
    examples = [
        text
        for text in ACCEPTED.read_text().split(";\n")
        if isinstance(one := read(text), Write)
        and not isinstance(one, TransactionControl)
        and not (isinstance(one, CallProcedure) and (one.explain or "ancestors" in text))
        and not (isinstance(one, statements.CreateTable) and one.query and not one.or_replace)
    ]
    assert len(examples) > 15
    con.execute(pin)
    try:
        for text in (*(each.format(folder=folder) for each in CHANGES), *examples):
            with pytest.raises(ProgrammingError, match="reads tables as they were") as raised:
                con.execute(text)
            assert reset in str(raised.value), text
            assert "CREATE TABLE new_name AS SELECT" in str(raised.value)
        with pytest.raises(ProgrammingError, match="reads tables as they were"):
            con.cursor().executemany("INSERT INTO s.t VALUES (?, ?)", [(1, "x")])
    finally:
        con.execute(reset)
    assert files_of(folder) == before


def test_both_pins_are_named(there: tuple[icesql.Connection, Path]) -> None:
    con, _ = there
    con.execute("SET snapshot_ref = 'b'")
    con.execute("SET SNAPSHOT TIME = now()")
    with pytest.raises(ProgrammingError, match="RESET SNAPSHOT TIME and RESET snapshot_ref before"):
        con.execute("DELETE FROM s.t")
    con.execute("RESET SNAPSHOT TIME")
    con.execute("RESET snapshot_ref")


def test_what_tells_only_is_told(there: tuple[icesql.Connection, Path]) -> None:
    con, _ = there
    con.execute("SET SNAPSHOT TIME = now()")
    try:
        assert con.execute("CALL system.ancestors_of('s.t')").fetchall()
        assert con.execute("EXPLAIN CALL system.rewrite_data_files('s.t')").description
    finally:
        con.execute("RESET SNAPSHOT TIME")
