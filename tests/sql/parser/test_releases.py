r"""SQL that older releases of sqlglot parse differently, tested by each system's rows."""

from __future__ import annotations

import contextlib
import functools

import pytest
from sqlglot import exp
from sqlglot.tokens import TokenType

import icesql
from icesql.sql.lexer import reading
from icesql.sql.parser.dialect import reader_of
from icesql.sql.parser.sqlglot_releases import as_products, check_is, remainders, unescaped
from tests.tables import read_cases

READER = reader_of(reading(None))
DIALECTS = ("icesql", "trino", "spark", "databricks", "hive", "snowflake")


@functools.cache
def opened(dialect: str) -> icesql.Connection:
    return icesql.connect(dialect=dialect)


def rows(dialect: str, sql: str) -> list[tuple[object, ...]]:
    return opened(dialect).execute(sql).fetchall()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_remainder_has_the_rank_of_a_product(dialect: str) -> None:
    sums = "1 + 5 % 3, 10 - 7 % 4, 7 % 4 + 1, -7 % 3 - 1"
    assert rows(dialect, f"SELECT {sums}") == [(3, 7, 4, -2)]
    assert rows(dialect, "SELECT 2 * 7 % 5 * 3, 9 % 5 % 3, (1 + 5) % 4") == [(12, 1, 2)]
    assert rows(dialect, "SELECT 3 * mod(7, 4), mod(2 + 3, 4) * 2, 9 % mod(7, 4)") == [(9, 2, 0)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_filter_with_a_remainder(dialect: str) -> None:
    values = "(VALUES (1), (2), (3), (4), (5)) AS t(x)"
    sql = f"SELECT x FROM {values} WHERE x + 1 % 2 = 3 OR x * 3 % 2 * 2 = 0 ORDER BY x"
    assert rows(dialect, sql) == [(2,), (4,)]


def test_a_percentage_stays_one() -> None:
    values = "(VALUES (1), (2), (3), (4)) AS t(x)"
    assert len(rows("icesql", f"SELECT x FROM {values} LIMIT 50%")) == 2
    assert len(rows("icesql", f"SELECT x FROM {values} LIMIT 50% OFFSET 1")) == 2
    assert len(rows("icesql", f"SELECT x FROM {values} WHERE x % 2 = 0 USING SAMPLE 100%")) == 2
    assert (
        len(rows("icesql", f"SELECT x FROM {values} TABLESAMPLE (100%) WHERE 1 + x % 2 = 2")) == 2
    )


@pytest.mark.parametrize(("sql", "kept"), read_cases(__file__, "remainders.tsv", 1))
def test_which_signs_are_remainders(sql: str, kept: int) -> None:
    tokens = as_products(READER.tokenize(sql))
    assert [each.token_type for each in tokens].count(TokenType.MOD) == kept


def test_the_tree_of_products_has_remainders() -> None:
    sql = "SELECT a + b % 2 * c, d % 3"
    (tree,) = READER.parser().parse(as_products(READER.tokenize(sql)), sql)
    mended = remainders(tree)
    assert mended is not None
    assert mended.sql(dialect="duckdb") == sql
    assert not mended.find(exp.Distance)


def test_a_distance_beside_a_remainder_is_refused() -> None:
    tokens = READER.tokenize("SELECT a <-> b, c % 2")
    with pytest.raises(icesql.UnsupportedSqlError, match=r"<-> beside %.*; write list_distance"):
        as_products(tokens)


@pytest.mark.parametrize("like", ["LIKE", "ILIKE"])
def test_not_like_all_is_like_none(like: str) -> None:
    """By Spark's documentation: NOT LIKE ALL matches none, NOT LIKE ANY does not match one."""
    listed = "('a%', '%b')"
    sql = f"SELECT 'b' NOT {like} ALL {listed}, 'b' NOT {like} ANY {listed}, 'b' NOT {like} 'ALL'"
    assert rows("spark", sql) == [(False, True, True)]
    around = f"SELECT NOT 'b' {like} ALL {listed}, NOT 'b' {like} ANY {listed}"
    assert rows("spark", around) == [(True, False)]


@pytest.mark.parametrize(
    ("dialect", "body", "text"),
    read_cases(__file__, "escapes.tsv", 2),
)
def test_escapes_are_those_of_the_system(dialect: str, body: str, text: str) -> None:
    assert unescaped(body, reader_of(reading(dialect))) == text
    assert rows(dialect, f"SELECT '{body}'") == [(text,)]


def test_a_backslash_is_a_character_elsewhere() -> None:
    assert rows("trino", r"SELECT '\d'") == [(r"\d",)]
    assert rows("icesql", r"SELECT '\101'") == [(r"\101",)]
    assert rows("spark", r"SELECT r'\d\101'") == [(r"\d\101",)]


VALUES = "(VALUES (1, 2), (1, 3)) AS t(a, b)"


@pytest.mark.parametrize("dialect", ["icesql", "trino", "spark", "snowflake"])
def test_grouping_sets_behind_a_comma_have_the_keys_before_it(dialect: str) -> None:
    sql = f"SELECT a, b, count(*) FROM {VALUES} GROUP BY a, GROUPING SETS ((b), ()) ORDER BY 3, 2"
    assert rows(dialect, sql) == [(1, 2, 1), (1, 3, 1), (1, None, 2)]


@pytest.mark.parametrize("dialect", ["trino", "snowflake"])
def test_grouping_sets_without_a_comma_are_spark_s(dialect: str) -> None:
    sql = (
        f"SELECT a, b, count(*) FROM {VALUES} GROUP BY a, b GROUPING SETS ((a), (b)) ORDER BY 1, 2"
    )
    assert rows("spark", sql) == [(None, 2, 1), (None, 3, 1), (1, None, 2)]
    with pytest.raises(icesql.UnsupportedSqlError, match="GROUPING SETS without a comma"):
        rows(dialect, sql)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "what", ["1 NOT, 2", "TRUE NOT AND TRUE", "1 NOT FROM t", "(1 NOT)", "1 NOT"]
)
def test_not_stands_before_what_it_negates(dialect: str, what: str) -> None:
    """Older sqlglot parses ``a NOT`` as ``NOT a``."""
    with pytest.raises(icesql.SqlSyntaxError, match="nothing follows NOT"):
        rows(dialect, f"SELECT {what}")


def test_the_word_behind_an_interval_is_no_unit_of_it() -> None:
    at = "TIMESTAMP '2026-01-01'"
    assert rows("icesql", f"SELECT {at} + INTERVAL '22:13:22' > {at} AND FALSE") == [(False,)]
    ordered = f"SELECT x FROM (VALUES (1), (2)) t(x) ORDER BY {at} + x * INTERVAL '1:00' DESC"
    assert rows("icesql", ordered) == [(2,), (1,)]
    assert rows("icesql", "SELECT INTERVAL '1:00' FROM (VALUES (1), (2)) t(x)")[1:] != []


@pytest.mark.parametrize("dialect", ["spark", "hive", "databricks"])
@pytest.mark.parametrize("more", ["", " INTERSECT SELECT 2"])
def test_intersect_goes_before_union_or_asks_for_parentheses(dialect: str, more: str) -> None:
    sql = f"SELECT 1 UNION SELECT 2 INTERSECT SELECT 2{more} ORDER BY 1"
    # Older releases apply it to the UNION.
    with contextlib.suppress(icesql.UnsupportedSqlError):
        assert rows(dialect, sql) == [(1,), (2,)]


def test_a_pattern_that_ends_inside_of_an_escape_is_refused() -> None:
    with pytest.raises(icesql.UnsupportedSqlError, match="the regular expression"):
        rows("spark", r"SELECT regexp_replace('a', '\\', 'x')")


@pytest.mark.parametrize("what", ["1 = NULL IS NULL", "'a' NOT LIKE NULL IS NULL"])
def test_is_belongs_to_the_comparison_before_it_or_is_refused(what: str) -> None:
    """In Spark IS applies to the comparison before it; ``1 = (NULL IS NULL)`` is also true."""
    with contextlib.suppress(icesql.UnsupportedSqlError):
        assert rows("spark", f"SELECT {what}") == [(True,)]


def test_is_beside_a_comparison_is_told_at_its_place() -> None:
    from sqlglot.dialects.trino import Trino

    for sql in (
        "SELECT (a = b) IS NULL",
        "SELECT a = (b IS NULL)",
        "SELECT NOT a IS NULL AND b = c",
    ):
        (tree,) = Trino().parse(sql)
        assert check_is(tree) is tree
    with pytest.raises(icesql.UnsupportedSqlError, match="IS beside another comparison"):
        check_is(exp.select(exp.Is(this=exp.EQ(this=exp.null(), expression=exp.null()))))
