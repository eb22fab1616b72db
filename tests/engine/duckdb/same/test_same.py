"""Only conditions that both parsers read the same are marked; what DuckDB keeps, pruning keeps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from icesql.context import QueryContext
from icesql.engine.duckdb.sql.engine_tree import parse as engine_parse
from icesql.engine.duckdb.sql.same.queries import mark_tree
from icesql.engine.duckdb.sql.same.types import NAMES, same_type
from icesql.query.constants.constant import NotConstant
from icesql.query.constants.current_time import stop_clock
from icesql.query.constants.time_units import interval_of_text
from icesql.query.pushdown.same import is_same
from icesql.sql.parse import parse
from icesql.sql.parser.literal_list import held
from icesql.sql.statement import Query


@pytest.fixture(scope="module")
def cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def marked(sql: str, cursor: Any, parameters: Any = None) -> exp.Expr:
    (statement,) = parse(sql, parameters=parameters)
    assert isinstance(statement, Query)
    stop_clock(statement.tree, QueryContext())
    mark_tree(statement.tree, engine_parse(cursor, statement.engine_text), statement.start)
    return statement.tree


def condition_is_same(condition: str, cursor: Any) -> bool:
    tree = marked(f"SELECT a FROM t WHERE {condition}", cursor)
    where = tree.args["where"].this
    while isinstance(where, exp.Paren):
        where = where.this
    return is_same(where)


# ------------------------------------------------------------------ conditions


@pytest.mark.parametrize(
    "condition",
    [
        # The unit is a column.
        "date_trunc(u, d) = DATE '2026-01-01'",
        "extract(u FROM d) = 2026 AND date_trunc(u, d) = DATE '2026-01-01'",
        # Arguments that sqlglot drops.
        "list_has_any([1], [2], a) = true",
        "jaro_winkler_similarity(s, 'TRACE', 0.8) > 0.5",
        "regexp_extract(s, 'x', 1, 'k') = 'a'",
        # Texts of other kinds.
        "s = E'a\\n'",
        "a = x'ff'",
        # What the engine's parser says by other nodes, or cannot say.
        "a = ANY([1, 2])",
        "CASE WHEN a > 1 THEN true END",
        "s COLLATE NOCASE = 'x'",
        "s SIMILAR TO 'x.*'",
    ],
)
def test_what_is_read_otherwise_is_not_the_same(condition: str, cursor: Any) -> None:
    assert not condition_is_same(condition, cursor)


@pytest.mark.parametrize(
    "condition",
    [
        "a = 1", "1 < a", "a BETWEEN 1 AND 2", "a IN (1, 2)", "a NOT IN (1, 2)", "a IS NULL",
        "a IS NOT NULL", "a ISNULL", "NOT a IS NULL", "a IS NOT TRUE", "a IS DISTINCT FROM 1",
        "a = -1", "a = - -1", "a = .5", "a = 5.", "a = 1_000", "a = 1E3", "-a = +b", "a + 1 * 2 > 3",
        "s LIKE 'a%'", "s NOT LIKE 'a%'", "s LIKE 'a$%' ESCAPE '$'", "s NOT LIKE 'a$%' ESCAPE '$'",
        "s ^@ 'a'", "starts_with(s, 'a')", "prefix(s, 'a')", "substr(s, 1, 2) = 'a'",
        "substring(s FROM 1 FOR 2) = 'a'", "left(s, 2) = 'it''s'", "upper(s) = 'A'",
        "d = DATE '2026-01-01'", "d = '2026-01-01'::date", "d > now()", "d > current_date - 3",
        "d > get_current_timestamp()", "ts::DATE = d", "date(ts) = d", "year(ts) = 1",
        "extract(years FROM ts) = 1", "date_part('y', ts) = 1", "date_trunc('Month', ts) = d",
        "ts > d - INTERVAL 3 DAYS", "ts > d - INTERVAL '3' hour", "ts > d - INTERVAL '3 hrs'",
        "ts > d - INTERVAL '1 day 2 hours'", "ts > d - INTERVAL (a) MONTH",
        "a::NUMERIC(10, 2) = 1", "a::DECIMAL = 1", "TRY_CAST(a AS INT) = 1", "s::VARCHAR(3) = 'a'",
        "st.x = 1", "t.st.x.y.z.w = 1", "(st).x = 1", "st['x'] = 1", '"ST"."x" = 1', "isnan(a)",
        "(a, b) = (1, 2)", "(a, b) IN ((1, 2), (3, 4))", "make_date(2026, 1, 2) = d", "true", "NULL",
        "a IN [1, 2]", "a = ((1))", "DATE '2026-01-01'::TIMESTAMP < ts",
        "ts > TIMESTAMP '2026-01-01 12:00:00'::DATE", "s = DATE '2026-01-01'::VARCHAR", "s = 'ěšč' OR s = '€'",
    ],
)  # fmt: skip
def test_simple_forms_are_the_same(condition: str, cursor: Any) -> None:
    tree = marked(f"SELECT 'ž', a FROM t WHERE {condition}", cursor)
    where = tree.args["where"].this
    leaves = where.flatten() if isinstance(where, exp.Or) else [where]
    assert all(is_same(each) for each in leaves)


def test_long_sums_and_alternatives_are_compared(cursor: Any) -> None:
    assert condition_is_same("a" + " + 1" * 900 + " > 5", cursor)
    below = " OR ".join(f"a < {number}" for number in range(2000))
    tree = marked(f"SELECT 1 FROM t WHERE {below}", cursor)
    assert all(is_same(each) for each in tree.args["where"].this.flatten())


@pytest.mark.parametrize(
    "literal", ["{}", "-{}", "'x{}'", "{}.5", "DATE '2026-01-{:02}'"], ids=lambda each: each
)
@pytest.mark.parametrize("around", ["{}", "b = 3 AND ({})", "({}) AND b = 3", "NOT ({}) OR b > 3"])
def test_chains_that_became_a_list_are_compared(literal: str, around: str, cursor: Any) -> None:
    for operator, word in (("=", "OR"), ("<>", "AND")):
        values = [literal.format(number % 28 + 1) for number in range(150)]
        chain = f" {word} ".join(
            f"a {operator} {value}" if index % 3 else f"{value} {operator} a"
            for index, value in enumerate(values)
        )
        tree = marked(f"SELECT 1 FROM t WHERE {around.format(chain)}", cursor)
        lists = [each for each in tree.find_all(exp.In) if held(each) is not None]
        assert [is_same(each) for each in lists] == [True]
        assert all(is_same(each) for each in tree.find_all(exp.EQ, exp.GT))


def test_a_chain_of_other_values_keeps_no_mark(cursor: Any) -> None:
    chain = " OR ".join(f"a = {number}" for number in range(150))
    (statement,) = parse(f"SELECT 1 FROM t WHERE {chain}")
    assert isinstance(statement, Query)
    other = statement.engine_text.replace("a = 149", "a = 148")
    mark_tree(statement.tree, engine_parse(cursor, other), statement.start)
    assert is_same(statement.tree)
    assert not any(is_same(each) for each in statement.tree.find_all(exp.In))


def test_what_and_and_or_connect_is_compared_part_by_part(cursor: Any) -> None:
    tree = marked(
        "SELECT 1 FROM t WHERE (a = 1 AND date_trunc(u, d) = d) OR NOT (b = 2 OR c = 3)", cursor
    )
    found = {each.sql(): is_same(each) for each in tree.find_all(exp.EQ)}
    assert found == {
        "a = 1": True, "TIMESTAMP_TRUNC(d, (u)) = d": False, "b = 2": True, "c = 3": True
    }  # fmt: skip


def test_parameters_and_time_travel_are_read_in_their_places(cursor: Any) -> None:
    tree = marked(
        "SELECT 1 FROM t FOR VERSION AS OF 3 x JOIN u AT (VERSION => 4) ON x.a = :b WHERE x.b < :a",
        cursor,
        {"a": 5, "b": datetime(2026, 1, 2, tzinfo=UTC)},
    )
    assert is_same(tree)
    assert is_same(tree.args["joins"][0].args["on"])
    assert is_same(tree.args["where"].this)
    tree = marked("SELECT 1 FROM t WHERE a = ? AND b IN ? AND c = ?", cursor, [-1, [1, 2], "x"])
    assert [is_same(each) for each in tree.args["where"].this.flatten()] == [True] * 3


def test_a_long_list_is_compared_by_its_place(cursor: Any) -> None:
    values = ", ".join(map(str, range(500)))
    tree = marked(f"SELECT 1 FROM t WHERE a NOT IN ({values}) AND b > 3", cursor)
    assert all(is_same(each) for each in tree.args["where"].this.flatten())


# ------------------------------------------------------------------ queries


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t",
        "FROM t",
        "SELECT DISTINCT a FROM t, u WHERE t.a = 1 ORDER BY a LIMIT 3 OFFSET 1",
        "SELECT a FROM t, u LEFT JOIN v ON u.a = v.a WHERE t.a = 1",
        "SELECT a FROM t JOIN u ON t.a = u.a FULL JOIN v ON u.a = v.a, w RIGHT JOIN x USING (a)",
        "SELECT a FROM t SEMI JOIN u ON t.a = u.a ANTI JOIN v USING (a)",
        "SELECT a FROM t ASOF JOIN u ON t.a >= u.a",
        "SELECT a FROM t NATURAL JOIN u CROSS JOIN v",
        "SELECT a, sum(b) FROM t GROUP BY ALL HAVING sum(b) > 1 QUALIFY a > 1",
        "SELECT a FROM t GROUP BY ROLLUP (a)",
        "SELECT a FROM (SELECT a FROM t LIMIT 10%) x, LATERAL (SELECT x.a) y",
        "SELECT a FROM t JOIN (u JOIN v ON u.a = v.a) ON t.a = u.a",
        "WITH q AS (SELECT 1 AS a), r AS MATERIALIZED (FROM q) SELECT * FROM r WHERE a = 1",
        "SELECT a FROM t WHERE a IN (SELECT b FROM u WHERE EXISTS (SELECT 1 FROM v WHERE v.a = 1))",
        "SELECT (SELECT max(a) FROM u), 'é' FROM t WHERE (SELECT 1) IN (SELECT 2 FROM v)",
        "(SELECT a FROM t UNION ALL SELECT b FROM u) EXCEPT SELECT c FROM v ORDER BY 1",
    ],
)
def test_queries_are_followed_into_all_their_parts(sql: str, cursor: Any) -> None:
    tree = marked(sql, cursor)
    queries = [each for each in tree.walk() if isinstance(each, exp.Select | exp.SetOperation)]
    assert queries
    assert all(is_same(each) for each in queries)


@pytest.mark.parametrize(
    ("sql", "other"),
    [
        ("SELECT a FROM t LEFT JOIN u ON t.a = u.a", "SELECT a FROM t      JOIN u ON t.a = u.a"),
        ("SELECT a FROM t, u WHERE a = 1", "SELECT a FROM t,  u WHERE a = 1"),
        ("SELECT a FROM t WHERE a = 1", "SELECT a FROM t GROUP BY a"),
        ("SELECT a FROM t WHERE a = 1", "SELECT a FROM t WHERE a = 1 LIMIT 3"),
        ("SELECT a FROM t WHERE a = 1", "SELECT DISTINCT a FROM t WHERE a = 1"),
        ("SELECT a FROM t x WHERE a = 1", "SELECT a FROM t x(a) WHERE a = 1"),
        ("SELECT a FROM t UNION SELECT b FROM u", "SELECT a FROM t EXCEPT SELECT b FROM u"),
    ],
)
def test_another_query_keeps_no_mark(sql: str, other: str, cursor: Any) -> None:
    (statement,) = parse(sql)
    assert isinstance(statement, Query)
    mark_tree(statement.tree, engine_parse(cursor, other), statement.start)
    assert not is_same(statement.tree)


def test_a_condition_at_another_place_keeps_no_mark(cursor: Any) -> None:
    (statement,) = parse("SELECT a FROM t WHERE  a = 1")
    assert isinstance(statement, Query)
    mark_tree(statement.tree, engine_parse(cursor, "SELECT a FROM t WHERE a = 1"), 0)
    assert is_same(statement.tree)
    assert not is_same(statement.tree.args["where"].this)


def test_a_limit_in_percent_is_no_number_of_rows(cursor: Any) -> None:
    assert is_same(marked("SELECT a FROM t LIMIT 10", cursor).args["limit"])
    assert not is_same(marked("SELECT a FROM t LIMIT 10%", cursor).args["limit"])


# ------------------------------------------------------------------ synonyms, asked of DuckDB


@pytest.mark.parametrize("kind", NAMES, ids=lambda kind: kind.name)
def test_names_of_a_type_are_one_type_to_duckdb(kind: exp.DataType.Type, cursor: Any) -> None:
    names = NAMES[kind]
    types = {cursor.execute(f"SELECT typeof(NULL::{name})").fetchone()[0] for name in names}
    assert len(types) == 1
    for name in names:
        tree = engine_parse(cursor, f"SELECT NULL::{name}").statements[0]
        to = exp.DataType(this=kind)
        if kind is exp.DataType.Type.DECIMAL:
            parameters = [exp.DataTypeParam(this=exp.Literal.number(each)) for each in (18, 3)]
            to.set("expressions", parameters)
        assert same_type(to, tree["select_list"][0]["type_expr"])


@pytest.mark.parametrize(
    "text",
    [
        "1 year", "2 years", "3 mon", "3 mons", "1 month", "1 quarter", "2 weeks", "1 w", "5 d",
        "5 days", "2 h", "2 hr", "2 hrs", "90 min", "90 mins", "7 m", "30 sec", "30 secs", "30 s",
        "5 ms", "5 msec", "5 us", "5 usec", "1 decade", "1 century", "1 y", "1 yr", "01:30:00",
        "-01:30:00", "1 day 02:00:00", "1 year 2 months 3 days", "-1 day", "1.5 days",
        "0.5 hours", "3 microseconds", "4 milliseconds", "1 month -2 days", "2h", "3 DAYS",
    ],
)  # fmt: skip
def test_the_text_of_an_interval_is_read_as_duckdb_reads_it(text: str, cursor: Any) -> None:
    """Or not at all: then it prunes nothing."""
    try:
        found = interval_of_text(text)
    except NotConstant:
        return
    parts = cursor.execute(
        "SELECT datepart('year', i) * 12 + datepart('month', i), datepart('day', i),"
        " epoch_us(i - to_months((datepart('year', i) * 12 + datepart('month', i))::INTEGER)"
        " - to_days(datepart('day', i)::INTEGER)) FROM (SELECT ?::INTERVAL AS i)",
        [text],
    ).fetchone()
    assert (found.months, found.days, found.micros) == parts
    assert timedelta(microseconds=parts[2]) == timedelta(microseconds=found.micros)
