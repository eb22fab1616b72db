"""A text that comes again gives what it would give if it were parsed and bound again."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.tables import read_cases, read_table

ONE = "SELECT * FROM shop.orders WHERE id = ?"


@pytest.fixture
def moving(warehouse: Path, tmp_path: Path) -> Path:
    """A copy of the catalog of ``warehouse``, whose tables may be moved to other versions."""
    shutil.copy(warehouse / "catalog.db", tmp_path / "catalog.db")
    return tmp_path / "catalog.db"


def versions(catalog: Path) -> list[str]:
    """The metadata files of shop.orders, oldest first."""
    with sqlite3.connect(catalog) as opened:
        sql = "SELECT metadata_location FROM iceberg_tables WHERE table_name = 'orders'"
        ((location,),) = opened.execute(sql).fetchall()
    folder = Path(location.removeprefix("file://")).parent
    return sorted(f"file://{each}" for each in folder.glob("*.metadata.json"))


def commit(catalog: Path, location: str) -> None:
    with sqlite3.connect(catalog) as opened:
        sql = "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = 'orders'"
        opened.execute(sql, [location])


@pytest.fixture
def connection(moving: Path) -> Iterator[Any]:
    with icesql.connect(uri=f"sqlite:///{moving}") as opened:
        yield opened


def kept(connection: Any) -> int:
    return len(connection._session.pipeline.prepared)


def test_a_text_that_comes_again_is_neither_parsed_nor_bound(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = [connection.execute(ONE, [key]).fetchall() for key in range(8)]
    assert kept(connection) == 1
    assert sum(map(len, every)) > 3
    monkeypatch.setattr("icesql.sql.parse.parse", None)
    monkeypatch.setattr("icesql.query.bind.bind", None)
    assert [connection.execute(ONE, [key]).fetchall() for key in range(8)] == every


def test_execute_takes_what_is_prepared(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    connection.execute(f"PREPARE one AS {ONE}")
    every = [connection.execute(f"EXECUTE one({key})").fetchall() for key in range(8)]
    assert every == [connection.execute(ONE, [key]).fetchall() for key in range(8)]
    assert kept(connection) == 1
    monkeypatch.setattr("icesql.query.bind.bind", None)
    assert [connection.execute(f"EXECUTE one({key})").fetchall() for key in range(8)] == every
    connection.execute("DEALLOCATE one")
    with pytest.raises(icesql.ProgrammingError, match="no statement is prepared"):
        connection.execute("EXECUTE one(1)")


@pytest.mark.parametrize(("sql", "parameters"), read_cases(__file__, "not_kept.tsv", 1))
def test_what_depends_on_more_than_its_text_is_not_kept(
    connection: Any, sql: str, parameters: Any
) -> None:
    for _ in range(3):
        with suppress(icesql.SnapshotNotFoundError):
            connection.execute(sql, parameters).fetchall()
    assert kept(connection) == 0


def test_a_commit_is_seen(connection: Any, moving: Path) -> None:
    counts = set()
    for location in versions(moving) * 2:
        commit(moving, location)
        rows = connection.execute("SELECT id FROM shop.orders WHERE id > ?", [0]).fetchall()
        assert rows == connection.execute("SELECT id FROM shop.orders WHERE id > 0 ").fetchall()
        counts.add(len(rows))
    assert len(counts) > 2


def test_a_table_that_is_gone_is_missed(connection: Any, moving: Path) -> None:
    for _ in range(3):
        connection.execute(ONE, [1]).fetchall()
    with sqlite3.connect(moving) as opened:
        opened.execute("UPDATE iceberg_tables SET table_name = 'old' WHERE table_name = 'orders'")
    with pytest.raises(icesql.TableNotFoundError, match="line 1, column 15"):
        connection.execute(ONE, [1])


def test_what_was_bound_before_a_temporary_table_was_made_is_not_kept(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that share a connection bind while another one makes the table."""
    sql = "SELECT id FROM orders WHERE id > 0"
    meanwhile = [sql, "CREATE TEMP TABLE orders AS SELECT 7 AS id"]
    connection.execute("USE shop")
    connection.execute(sql).close()
    bound = connection._session.pipeline.bind

    def slowly(*given: Any, **told: Any) -> Any:
        made = bound(*given, **told)
        if meanwhile:
            connection.execute(meanwhile.pop(0)).close()
        return made

    monkeypatch.setattr(connection._session.pipeline, "bind", slowly)
    connection.execute(sql).close()
    assert not meanwhile
    assert connection.execute(sql).fetchall() == [(7,)]


def test_texts_are_kept_up_to_a_number(connection: Any) -> None:
    for number in range(80):
        for _ in range(2):
            connection.execute(f"SELECT id FROM shop.orders WHERE id = {number}").close()
    assert kept(connection) == 64
    assert len(connection._session.pipeline.prepared._texts) <= 256


# ---------------------------------------------------------------------------- any order of them

STATEMENTS = [
    "USE shop", "SET VARIABLE x = 2", "SET VARIABLE x = 5", "RESET VARIABLE x",
    "SET timezone = 'Asia/Tokyo'", "RESET timezone", "SET prune = off", "RESET prune",
    "SET local_reader = 'arrow'", "RESET local_reader", "SET max_scan_files = 1", "RESET ALL",
]  # fmt: skip
INTEGERS = [0, 1, 2, 3, 5, 8, -1, 10**6, 2**31, 2**63 - 1, -(2**63) + 1, 2**70, True, None, 1.5]
TEXTS = ["eu", "us", "EU", "", "it's", "e%", "é", "inf", "a" * 40, None, 7]


@pytest.mark.parametrize("seed", range(2))
def test_any_order_of_statements_gives_the_same_with_and_without_keeping(
    seed: int, moving: Path, warehouse: Path
) -> None:
    chance = random.Random(seed)
    known, queries = versions(moving), chance.sample(read_table(__file__, "queries.tsv"), 9)
    uri = f"sqlite:///{moving}"
    hits = 0
    with icesql.connect(uri=uri) as keeping, icesql.connect(uri=uri) as forgetful:
        forgetful._session.pipeline.prepared.find = lambda *_: None
        both = (keeping, forgetful)
        for connection in both:
            connection.execute("USE shop")
            connection.register_table("t", known[0])
        for _ in range(100):
            step = chance.random()
            if step < 0.08:
                commit(moving, chance.choice(known))
            elif step < 0.11:
                location = chance.choice(known)
                for connection in both:
                    connection.register_table("t", location)
            elif step < 0.2:
                sql = chance.choice(STATEMENTS)
                for connection in both:
                    connection.execute(sql)
            else:
                sql, kinds = chance.choice(queries)
                values = [_value(chance, each) for each in kinds]
                given = values or None
                hits += keeping._session.pipeline.prepared.find(sql, given) is not None
                assert answer(keeping, sql, given) == answer(forgetful, sql, given), (sql, given)
    assert hits > 10


def _value(chance: random.Random, kind: str) -> Any:
    if chance.random() < 0.6:
        return chance.randrange(9) if kind == "i" else chance.choice(["eu", "us"])
    return chance.choice(INTEGERS if kind == "i" else TEXTS)


def answer(connection: Any, sql: str, parameters: Any) -> Any:
    try:
        cursor = connection.execute(sql, parameters)
        # FROM orders without an ORDER BY has rows in any order.
        rows = sorted(map(repr, cursor.fetchall()))
        return rows, cursor.description, cursor.notes, cursor.rowcount
    except icesql.Error as error:
        # Of the values that cannot be cast the engine names the one that a thread met first.
        return type(error), re.sub(r"convert string '[^']*'", "convert a string", str(error))
