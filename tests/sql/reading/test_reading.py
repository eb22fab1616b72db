"""DuckDB's tree of a text becomes the sqlglot tree, without loss."""

from __future__ import annotations

import cProfile
import json
import re
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from icesql.errors import Error, UnsupportedSqlError
from icesql.sql.acceptance import Accepts
from icesql.sql.edited_text import Segment, Sources, joined
from icesql.sql.parse import parse
from icesql.sql.reading.engine_tree import read_tree
from icesql.sql.reading.queries import read_query
from icesql.sql.statement import Query
from tests.tables import read_table

# Names of one function, type or form in DuckDB, each with its synonym.
_ALIKE = {
    "array_agg": "list", "listagg": "string_agg", "str_split": "string_split", "length": "len",
    "int128": "hugeint", "uint128": "uhugeint", "text": "varchar", "int": "integer",
    "starts_with": "^@", "strpos": "position", "list_apply": "list_transform",
    "array_sort": "list_sort",
}  # fmt: skip
_DROPPED = {"query_location", "query_location_length", "is_legacy_function_call", "syntax_type"}


def whole(text: str) -> Sources:
    return joined([Segment(text, -1, 0, len(text))])[1]


def tree_of(text: str) -> exp.Expr:
    """The tree of a text that is all from the user."""
    return read_query(read_tree(text), whole(text), Accepts())[0]


def _plain(value: Any) -> Any:
    """DuckDB's tree without offsets, and with one name instead of synonyms."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, str):
        return _ALIKE.get(value.lower(), value.lower())
    if not isinstance(value, dict):
        return value
    if value.get("type") == "OPERATOR_IS_NOT_NULL":
        inner = {**value, "type": "OPERATOR_IS_NULL"}
        return _not(value, inner)
    if str(value.get("function_name")).startswith("!~~"):
        inner = {**value, "function_name": value["function_name"][1:]}
        inner["qualified_name"] = {"path": [inner["function_name"]]}
        return _not(value, inner)
    return {key: _plain(each) for key, each in value.items() if key not in _DROPPED}


def _not(value: dict[str, Any], inner: dict[str, Any]) -> Any:
    node = {"class": "OPERATOR", "type": "OPERATOR_NOT", "alias": value["alias"]}
    return {**_plain(node), "children": [_plain({**inner, "alias": ""})]}


def _differences(one: Any, other: Any) -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        if one.get("type") != other.get("type"):
            return [f"{one.get('type')} / {other.get('type')}"]
        return [d for key in one for d in _differences(one[key], other.get(key))]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [d for a, b in zip(one, other, strict=True) for d in _differences(a, b)]
    return [] if one == other else [f"{one} / {other}"]


def test_what_is_written_of_the_tree_is_what_duckdb_read(texts: list[str]) -> None:
    compared, others = 0, {}
    for text in texts:
        try:
            read = read_tree(text)
            tree = tree_of(text)
        except Error:
            continue  # icesql's own syntax, or refused by name
        if tree.find(exp.Pivot):
            continue  # only the text of a PIVOT runs
        again = read_tree(tree.sql(dialect="duckdb"))
        compared += 1
        found = _differences(_plain(read.statements[0]), _plain(again.statements[0]))
        if found:
            others[text] = found
    assert compared > 140
    # DuckDB has two forms for each of these meanings.
    expected = json.loads((Path(__file__).parent / "two_forms.json").read_text(encoding="utf-8"))
    assert others == expected


@pytest.mark.parametrize(("sql", "problem"), read_table(__file__, "no_nodes.tsv"))
def test_what_has_no_node_is_refused_by_name(sql: str, problem: str) -> None:
    with pytest.raises(Error, match=problem):
        tree_of(sql)


def test_a_key_or_value_that_is_not_known_is_refused() -> None:
    text = "SELECT sum(a) FROM t"
    tree = read_tree(text)
    (call,) = tree.statements[0]["select_list"]
    for key, value in (("a_new_key", True), ("type", "A_NEW_TYPE"), ("export_state", True)):
        changed = {**call, key: value}
        statement = {**tree.statements[0], "select_list": [changed]}
        with pytest.raises(UnsupportedSqlError, match=r"column 8|line 1|NEW|EXPORT"):
            read_query(
                type(tree)(text, (statement,)),
                whole(text),
                Accepts(),
            )


def test_a_tree_without_a_key_is_refused_by_name() -> None:
    text = "SELECT a FROM t"
    tree = read_tree(text)
    statement = {key: each for key, each in tree.statements[0].items() if key != "qualify"}
    with pytest.raises(UnsupportedSqlError, match="without qualify"):
        read_query(type(tree)(text, (statement,)), whole(text), Accepts())


def test_group_by_nothing_is_written_as_it_is() -> None:
    assert tree_of("SELECT count(*) FROM t GROUP BY ()").sql("duckdb").endswith("GROUP BY ()")


_LONG = {
    "tables": lambda n: "SELECT 1 FROM " + ", ".join(f"t a{i}" for i in range(n)),
    "joins": lambda n: "SELECT 1 FROM t " + " ".join(f"JOIN t a{i} USING (x)" for i in range(n)),
    "subqueries": lambda n: "SELECT 1 FROM " + ", ".join(f"(SELECT {i}) a{i}" for i in range(n)),
    "times": lambda n: "SELECT 1 FROM " + ", ".join(f"t VERSION AS OF 1 a{i}" for i in range(n)),
    "columns": lambda n: "SELECT " + ", ".join(f"f.c{i}" for i in range(n)) + " FROM f",
    "exclude": lambda n: f"SELECT * EXCLUDE ({', '.join(f'c{i}' for i in range(n))}) FROM t",
    "with": lambda n: f"WITH {', '.join(f'c{i} AS (SELECT 1)' for i in range(n))} SELECT 1",
    "windows": lambda n: f"SELECT 1 WINDOW {', '.join(f'w{i} AS (ORDER BY a)' for i in range(n))}",
    "using": lambda n: f"SELECT 1 FROM t JOIN u USING ({', '.join(f'c{i}' for i in range(n))})",
    "group": lambda n: f"SELECT 1 FROM t GROUP BY {', '.join(f'abs(c{i})' for i in range(n))}",
}


def _calls(sql: str) -> int:
    profile = cProfile.Profile()
    profile.runcall(parse, sql)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("kind", _LONG)
def test_work_grows_with_the_length_of_a_text(kind: str) -> None:
    parse(_LONG[kind](2))
    few, many = (_calls(_LONG[kind](count)) for count in (100, 400))
    assert many < 5 * few


def _places(sql: str) -> list[tuple[str, str]]:
    """The names of a tree, each with the SQL at its offsets."""
    (statement,) = parse(sql)
    assert isinstance(statement, Query)
    return [
        (name.name, sql[name.meta["start"] : name.meta["end"] + 1].strip('"'))
        for name in statement.tree.find_all(exp.Identifier)
        if "start" in name.meta and not name.name.startswith("__")
    ]


@pytest.mark.parametrize(
    "sql",
    [
        'WITH a (x, "y z") AS (SELECT 1, 2), b AS (FROM a) SELECT x, "y z" FROM a JOIN b USING (x)',
        "WITH a AS (WITH b AS (SELECT 1 AS q) SELECT q FROM b), b AS (SELECT 2 AS q) "
        "SELECT * FROM a, b",
        "SELECT * EXCLUDE (k) FROM (SELECT 1 AS k, 2 AS l) s (k, l)",
        "SELECT é.k, 'ü' FROM (SELECT 1 AS k) é -- ö",
        "/* ä */ SELECT s.f.g, list_transform(l, w -> w + 1) FROM u AS s",
    ],
)
def test_names_know_their_places(sql: str) -> None:
    found = _places(sql)
    assert found
    assert all(name == written for name, written in found), found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT .5",
        "SELECT DISTINCT .5, .1_0",
        "SELECT a FROM t WHERE .5 < a AND .5e3 > b OR NOT .5 = c",
        "SELECT CASE WHEN .5 > a THEN .2 ELSE .3 END",
        "SELECT a BETWEEN .5 AND .7 FROM t LIMIT .5 OFFSET 1",
        "SELECT a FROM t JOIN u ON .5 < b GROUP BY a HAVING .5 < sum(b) UNION ALL SELECT .5",
    ],
)
def test_a_number_may_begin_with_its_point_after_any_word(sql: str) -> None:
    (query,), (whole,) = parse(sql), parse(sql.replace(" .", " 0."))
    assert isinstance(query, Query)
    assert isinstance(whole, Query)
    points = sorted(each.this for each in query.tree.find_all(exp.Literal) if each.this[0] == ".")
    assert points == sorted(re.findall(r"\.\w+", sql.replace("_", "")))
    assert query.tree.sql("duckdb").replace(" .", " 0.") == whole.tree.sql("duckdb")


def test_a_list_in_brackets_is_no_list_of_values_unless_it_has_plain_ones() -> None:
    # NOT (x IN [1, NULL]) is true for 2, and NOT (x IN (1, NULL)) is NULL.
    assert tree_of("SELECT a IN [1, 2] FROM t").find(exp.In).expressions
    for items in ("1, NULL", "1, 2.5", "1, 'a'", "b", "DATE '2026-01-01'"):
        found = tree_of(f"SELECT a IN [{items}] FROM t").find(exp.In)
        assert found is not None
        assert not found.expressions


def test_a_unit_of_time_that_is_a_column_stays_one() -> None:
    tree = tree_of("SELECT date_trunc(month, a), date_trunc('month', a) FROM t")
    assert [type(each).__name__ for each in tree.expressions] == ["Anonymous", "TimestampTrunc"]
