"""Every statement ends with rows or with an error of icesql's own."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.sql.lexer import reading, tokenize
from tests.rows import rows_of
from tests.sessions import answer, fetched
from tests.tables import read_lines
from tests.warm import fresh_python

# Blanks, marks of order, joiners, surrogates' neighbours, controls, quotes and signs.
ODD = (
    "\u00a0\u200b\u200d\u2060\ufeff\u3000\u202e\u2028\u0085\x00\x0b\x0c\x1c\x7f\x9b\ufffd\ufffe"
    "\U0001f600\U0010ffff\u0301\u00b2\u0130\u0660'\"`$?:;\\{}[]()/*-#@%~|^&=<>,."
)
STATEMENTS = read_lines(__file__, "odd_statements.tsv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with icesql.connect(warehouse=tmp_path) as opened:
        opened.execute("CREATE SCHEMA s")
        opened.execute("CREATE TABLE s.t (a BIGINT, b VARCHAR)")
        opened.execute("INSERT INTO s.t VALUES (1, 'x')")
    return tmp_path


def texts(seed: int, count: int) -> Iterator[str]:
    """Statements with odd characters at boundaries of their tokens."""
    drawn = random.Random(seed)
    for _ in range(count):
        sql = drawn.choice(STATEMENTS)
        tokens = tokenize(sql, reading(None))
        places = [each.start for each in tokens] + [each.stop for each in tokens]
        for _ in range(drawn.choice((1, 1, 2, 3))):
            at = drawn.choice(places)
            sql = sql[:at] + drawn.choice(ODD) * drawn.choice((1, 1, 2)) + sql[at:]
        yield sql


@pytest.mark.parametrize("dialect", ["duckdb", "spark", "trino", "snowflake"])
def test_odd_characters_at_the_boundaries_of_tokens(dialect: str, folder: Path) -> None:
    """``ODD_TEXTS`` is how many are drawn, ``ODD_SEED`` from which seed: a campaign sets both."""
    count, seed = int(os.environ.get("ODD_TEXTS", 120)), int(os.environ.get("ODD_SEED", 7))
    with icesql.connect(warehouse=folder, read_only=True, dialect=dialect) as opened:
        for sql in texts(seed, count):
            with contextlib.suppress(icesql.Error):
                fetched(opened, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT B'\u200b'", "SELECT B'\x00'",
        "CREATE TABLE s.u (a " + "STRUCT(f " * 120 + "INT" + ")" * 120 + ")",
        "ALTER TABLE s.t ADD COLUMN c " + "INT" + "[]" * 120,
    ],
)  # fmt: skip
def test_what_another_library_raised(sql: str, folder: Path) -> None:
    with pytest.raises(icesql.ProgrammingError):
        answer(sql, warehouse=folder)


def test_reading_a_text_is_within_the_memory_limit(folder: Path) -> None:
    items = ",".join(str(i) + ("+0" if i % 2 else "") for i in range(20_000))
    settings = {"memory_limit": "50MB"}
    with icesql.connect(warehouse=folder, settings=settings) as opened:
        with pytest.raises(icesql.ScanLimitError, match="memory"):
            opened.execute(f"SELECT a FROM s.t WHERE a IN ({items})")
        assert fetched(opened, "SELECT a FROM s.t") == [(1,)]


@pytest.mark.parametrize("free", [0, 1, 2, 4, 8])
def test_no_descriptors_are_no_damage(free: int, folder: Path) -> None:
    call = "CALL system.rewrite_data_files(table => 's.t', options => map {'rewrite-all': 'true'})"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    raised: list[icesql.Error] = []
    with icesql.connect(warehouse=folder) as opened:
        fetched(opened, "SELECT count(*) FROM s.t")
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        try:
            with contextlib.suppress(OSError):
                while True:
                    held.append(os.open(os.devnull, os.O_RDONLY))
            for _ in range(free):
                os.close(held.pop())
            for sql in ("SELECT * FROM s.t", "DELETE FROM s.t WHERE a = 1 AND b = 'q'", call):
                try:
                    fetched(opened, sql)
                except icesql.Error as error:
                    raised.append(error)
        finally:
            for each in held:
                os.close(each)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert fetched(opened, "SELECT * FROM s.t") == [(1, "x")]
    assert not [each for each in raised if isinstance(each, icesql.CorruptFileError)]


def test_what_translates_errors_is_there_before_any() -> None:
    fresh_python("import sys, icesql; icesql.connect(); sys.modules['icesql.session.outcome']")


@rows_of(__file__, "files_of_a_service.tsv", "sql")
def test_files_are_denied_to_a_service(sql: str, folder: Path) -> None:
    with icesql.connect(warehouse=folder, service=True) as opened:
        with pytest.raises(icesql.AccessDeniedError) as caught:
            opened.execute(sql)
        assert "iceberg_scan(" not in str(caught.value).replace("/iceberg_scan", "")
        with pytest.raises(icesql.UnsupportedSqlError) as other:
            opened.execute("FROM no_such_function('x')")
        assert "iceberg_scan" not in str(other.value)


def test_a_stored_view_does_not_see_variables(tmp_path: Path) -> None:
    place = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": str(tmp_path)}
    sql = "SELECT CAST(getvariable('x') AS VARCHAR) AS x"
    with icesql.connect(**place) as opened:
        opened.execute("CREATE SCHEMA s")
        opened.execute("SET VARIABLE x = 'mine'")
        with pytest.raises(icesql.UnsupportedSqlError, match="getvariable"):
            opened.execute(f"CREATE VIEW s.v AS {sql}")
        opened.execute("CREATE VIEW s.v AS SELECT CAST('getvariabl0' AS VARCHAR) AS x")
        opened.execute(f"CREATE TEMP VIEW own AS {sql}")
        assert fetched(opened, "SELECT * FROM own") == [("mine",)]
    # As another writer makes it.
    import sqlite3

    (metadata,) = tmp_path.rglob("*.metadata.json")
    text = metadata.read_text().replace("CAST('getvariabl0' AS", "CAST(getvariable('x') AS")
    metadata.write_text(text)
    assert "getvariable" in text
    sqlite3.connect(tmp_path / "c.db").close()
    with icesql.connect(**place) as opened:
        opened.execute("SET VARIABLE x = 'mine'")
        for query in ("SELECT * FROM s.v", "WITH w AS (FROM s.v) SELECT * FROM w"):
            with pytest.raises(icesql.ProgrammingError, match="does not see"):
                fetched(opened, query)


@pytest.mark.parametrize("service", [False, True])
def test_a_long_text_is_refused_before_any_work(service: bool, folder: Path) -> None:
    limit = (1 if service else 16) << 20
    with icesql.connect(warehouse=folder, service=service) as opened:
        with pytest.raises(icesql.ScanLimitError, match="max_statement_size"):
            opened.execute("SELECT 1 -- " + "x" * limit)
        assert fetched(opened, "SELECT 1 -- " + "x" * (limit - 100)) == [(1,)]
    settings = {"max_statement_size": "100B"}
    with icesql.connect(warehouse=folder, service=service, settings=settings) as opened:
        with pytest.raises(icesql.ScanLimitError, match="100"):
            opened.execute("SELECT 1 -- " + "é" * 50)
        assert fetched(opened, "SELECT 1 -- " + "é" * 40) == [(1,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + ",".join(["a+1"] * 30_000) + " FROM s.t",
        "SELECT * FROM (VALUES " + ",".join(f"({i})" for i in range(40_000)) + ")",
        "SELECT a FROM s.t WHERE a IN (" + ",".join(f"{i}+1" for i in range(40_000)) + ")",
    ],
    ids=["columns", "values", "items"],
)
def test_a_text_is_read_within_time_and_memory(sql: str, folder: Path) -> None:
    with icesql.connect(warehouse=folder, settings={"query_timeout": 0.5}) as opened:
        start = time.process_time()
        with pytest.raises(icesql.QueryCancelledError):
            opened.execute(sql)
        # Of the processor: on a busy machine other time passes as well.
        assert time.process_time() - start < 5
    with icesql.connect(warehouse=folder, settings={"memory_limit": "100MB"}) as opened:
        with pytest.raises(icesql.ScanLimitError, match="memory"):
            opened.execute(sql)
        assert fetched(opened, "SELECT a FROM s.t") == [(1,)]


def test_blanks_of_unicode_are_blanks_between_words_alone(folder: Path) -> None:
    with icesql.connect(warehouse=folder, read_only=True) as opened:
        for blank in "\u00a0\u2003\u202f\u205f\u2060\u3000\ufeff":
            version = opened.execute("SELECT snapshot_id FROM s.t.snapshots").fetchone()[0]
            for sql in (
                f"SELECT b FROM s.t {blank}FOR{blank}VERSION{blank} AS OF {version}",
                f"SELECT{blank}b{blank}AS{blank}c FROM s.t{blank}WHERE a = 1{blank}",
            ):
                assert fetched(opened, sql) == [("x",)]
            quoted = f"SELECT '{blank}' AS \"{blank}x\" -- {blank}"
            cursor = opened.execute(quoted)
            assert cursor.description[0][0] == f"{blank}x"
            assert cursor.fetchall() == [(blank,)]


def test_a_bug_is_none_of_the_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("icesql.sql.parse._check_encodable", broken)
    with pytest.raises(icesql.InternalError, match=r"a bug in icesql: .* KeyError: 'x'"):
        answer("SELECT 1", warehouse=folder)


@pytest.mark.parametrize("dialect", [None, "spark", "trino", "snowflake"])
def test_a_text_is_left_at_its_time_whatever_reads_it(
    dialect: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.sql import parse

    stop, tokenize = threading.Event(), parse.tokenize

    def slow(sql: str, reader: Any) -> Any:
        stop.wait(60)
        return tokenize(sql, reader)

    monkeypatch.setattr(parse, "tokenize", slow)
    settings = {"query_timeout": 0.3}
    with icesql.connect(warehouse=folder, settings=settings, dialect=dialect) as opened:
        try:
            start = time.monotonic()
            with pytest.raises(icesql.QueryCancelledError):
                opened.execute("SELECT 1" + "+1" * 10_000)
            assert time.monotonic() - start < 30
        finally:
            stop.set()
        monkeypatch.undo()
        opened.execute("SET query_timeout = 60")
        assert fetched(opened, "SELECT 1") == [(1,)]
