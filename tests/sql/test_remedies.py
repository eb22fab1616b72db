"""Mistakes common in SQL of other systems, each with its remedy, as data."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

import icesql
from icesql.errors import Error
from icesql.sql.acceptance import is_known
from icesql.sql.grammar import folder
from icesql.sql.keywords import NO_COLUMN
from icesql.sql.parse import parse
from icesql.sql.syntax_errors import _sections, meaning
from tests.tables import read_table

MISTAKES = read_table(__file__, "remedies.tsv")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    with icesql.connect(warehouse=folder) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t (a VARCHAR, b VARCHAR, id INT)")
        con.execute("INSERT INTO s.t VALUES ('x', 'y', 1)")
    return folder


@pytest.mark.parametrize("dialect", sorted({dialect for dialect, *_ in MISTAKES}))
def test_each_mistake_is_told_its_remedy(lake: Path, dialect: str) -> None:
    wrong = []
    with icesql.connect(warehouse=lake, dialect=dialect.replace("own", "") or None) as con:
        for spoken, text, remedy in MISTAKES:
            if spoken != dialect:
                continue
            try:
                con.execute(text).fetchall()
                wrong.append((text, "it runs"))
            except icesql.Error as error:
                if not re.search(remedy, str(error)) or "unexpected error" in str(error):
                    wrong.append((text, str(error)))
    assert wrong == []


VALUES = ("'2026-01-31'", "'x'", "3", "0.5", "true", "DATE '2026-01-31'", "'{\"x\": 1}'", "['p']")


def runs(con: icesql.Connection, text: str) -> bool:
    """True if an expression of a, b and c runs with some of the values."""
    for a in VALUES:
        for b in VALUES:
            named = {"a": a, "b": b, "c": b}
            parts = re.split(r"('[^']*'|\b[abc]\b(?!\())", text)
            sql = "".join(named.get(part, part) for part in parts)
            with contextlib.suppress(icesql.Error):
                con.execute(f"SELECT {sql}").fetchall()
                return True
    return False


def test_what_is_written_instead_of_a_function_runs(lake: Path) -> None:
    functions = _sections()["functions"]
    # ISNULL is an operator of the engine, not a function.
    assert [name for name in functions if is_known(name)] == ["isnull"]
    with icesql.connect(warehouse=lake) as con:
        assert [name for name, text in functions.items() if not runs(con, text)] == []


def test_meaning_comes_from_the_tables_of_other_systems() -> None:
    for name, text in (
        ("nvl", "write coalesce(a, b)"),
        ("NVL2", "write CASE WHEN a IS NOT NULL THEN b ELSE c END"),
        ("charindex", "write strpos(b, a)"),
        ("approx_distinct", "write approx_count_distinct(a)"),
        ("iff", "write CASE WHEN a THEN b ELSE c END"),
    ):
        assert meaning(name) == text
    assert "--dialect" in meaning("posexplode_outer") or meaning("posexplode_outer") == ""
    assert meaning("nothing_of_that_name") == ""
    assert meaning("iif", "snowflake") == "did you mean iff()?"


@pytest.mark.parametrize("section", ["any", "own"])
def test_each_row_of_words_is_an_expression(section: str) -> None:
    for words, remedy in _sections()[section].items():
        assert re.compile(words)
        assert remedy


# ------------------------------------------------------------------ reserved words


def candidates() -> set[str]:
    """All keywords of the engine, sqlglot and the grammar."""
    import duckdb

    with duckdb.connect() as engine:
        rows = engine.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    tokens = (folder() / "tokens.lark").read_text(encoding="utf-8")
    found = {row[0] for row in rows} | set(re.findall(r"/([a-z_]+)\\b/i", tokens))
    return found | {word.lower() for word in DuckDB.Tokenizer.KEYWORDS if word.isidentifier()}


def is_readable(word: str) -> bool:
    """True if the reader accepts the word as a column everywhere."""
    for form in (
        "SELECT {} FROM t", "SELECT a FROM t WHERE {} > 1", "SELECT a FROM t WHERE a = {}",
        "SELECT a FROM t ORDER BY {}", "SELECT a FROM s.t WHERE {} IS NULL",
    ):  # fmt: skip
        try:
            (query,) = parse(form.format(word))
        except Error:
            return False
        if word not in {column.name.lower() for column in query.tree.find_all(exp.Column)}:  # type: ignore[union-attr]
            return False
    return True


def test_the_reserved_words_are_those_that_the_reader_cannot_name() -> None:
    assert {word for word in candidates() if not is_readable(word)} == NO_COLUMN


def test_a_column_of_a_reserved_word_is_refused_where_it_is_made(tmp_path: Path) -> None:
    with icesql.connect(warehouse=tmp_path) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t (a INT, o STRUCT(x INT))")
        for word in sorted(NO_COLUMN):
            constraint = word in ("like", "check", "constraint", "foreign", "primary", "unique")
            for form in (
                "CREATE TABLE s.u (id INT, {} INT)", "ALTER TABLE s.t ADD COLUMN {} INT",
                "ALTER TABLE s.t RENAME COLUMN a TO {}",
                "ALTER TABLE IF EXISTS s.t ADD COLUMN IF NOT EXISTS {} INT",
            ):  # fmt: skip
                with pytest.raises(icesql.Error) as caught:
                    con.execute(form.format(word))
                told = f'write "{word}"' in str(caught.value)
                assert told or constraint, (form.format(word), caught.value)
