"""Where a tree has to be written back, proof that it says no less than the user's text.

sqlglot's tree may have no place for a word: a third argument, IGNORE NULLS. Whoever writes it back
would run another query. So what DuckDB reads in both texts is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from icesql.engine.duckdb.sql.splice import renamed_sql
from icesql.errors import SqlSyntaxError
from icesql.sql.positions import unsupported
from icesql.sql.reading.engine_tree import EngineTree, ParsedText, parse
from icesql.sql.trees import exp
from icesql.sql.user_text import TABLE, VALUE, UserText

Node = Mapping[str, Any]

_REPLACED: Final = ("TABLE_FUNCTION", "FUNCTION", "COLUMN_REF", "VALUE_PARAMETER")


def replaced_nodes(text: UserText, read: ParsedText) -> list[Node]:
    """What the tree has by a name or as a constant: calls that are tables, clocks, parameters."""
    starts = {edit.start for edit in text.edits if edit.kind in (TABLE, VALUE)}
    return [
        each.value
        for each in read.tree.walk()
        if each.kind in _REPLACED and (read.place(each.value) or (-1,))[0] in starts
    ]


def check_nothing_lost(
    user: EngineTree, tree: exp.Expr, cursor: Any, replaced: Sequence[Node] = ()
) -> None:
    """Raise UnsupportedSqlError if ``tree``, written back, has less than ``user``, but for what is
    ``replaced``.
    """
    try:
        written = parse(cursor, renamed_sql(tree, {}))
    except SqlSyntaxError:
        lost = True
    else:
        gone = sum((_parts(user, each) for each in replaced), Counter[object]())
        lost = bool(_parts(user) - gone - _parts(written))
    if lost:
        raise unsupported(
            "one of these words in a query over nanosecond times, UUIDs or fields whose names "
            "differ only in case",
            None,
            "CAST such columns to TIMESTAMP or VARCHAR in a nested query, and use the words there",
        )


def _parts(tree: EngineTree, top: Node | None = None) -> Counter[object]:
    """What DuckDB reads in a text, each as often as it is there: all but names and types."""
    found: Counter[object] = Counter()
    for node in tree.walk(top):
        value = node.value
        found.update(_expression(value) if "class" in value else _clause(value))
        if value.get("sample"):
            found["sample"] += 1
        if value.get("class") == "TYPE" and str(value.get("type_name")).upper() in _TEXTS:
            found["value"] -= len(value.get("children") or ())  # VARCHAR(10) is VARCHAR
    return found


def _expression(value: Node) -> Iterator[object]:
    kind = value["type"]
    match value["class"]:
        case "COLUMN_REF":
            yield "column"
        case "CONSTANT" | "PARAMETER":
            yield "value"
        case "COMPARISON" | "OPERATOR" if kind in _NEGATED:
            # sqlglot writes NOT before the opposite.
            yield _NEGATED[kind]
            yield "not"
        case "COMPARISON":
            yield "distinct from" if kind == "COMPARE_NOT_DISTINCT_FROM" else kind
        case "OPERATOR" if kind in _OPERATORS:
            yield _OPERATORS[kind]
        case "CAST" if value.get("try_cast"):
            yield "try_cast"
        case "BETWEEN" | "LAMBDA":
            yield kind
        case "COLLATE":
            yield kind, str(value.get("collation")).lower()
        case "CASE":
            yield from ["case"] * len(value["case_checks"])
        case "SUBQUERY":
            yield kind, value.get("subquery_type"), value.get("comparison_type")
        case "STAR":
            yield kind, *(len(value.get(each) or ()) for each in _STAR_LISTS)
        case "FUNCTION":
            yield from _modifiers(value, "filter")
        case "WINDOW":
            yield from _modifiers(value, "filter_expr")
            yield "frame", *(value.get(each) for each in ("start", "end", "exclude_clause"))
            yield "partitions", len(value.get("partitions") or ())
        case _:
            pass


def _modifiers(call: Node, name_of_filter: str) -> Iterator[object]:
    if call.get(name_of_filter) is not None:
        yield "filter"
    if call.get("distinct"):
        yield "distinct"
    if call.get("ignore_nulls"):
        yield "ignore nulls"


def _clause(value: Node) -> Iterator[object]:
    kind = value["type"]
    match kind:
        case _ if "null_order" in value:
            # Ascending with NULL last is what is meant where nothing is said.
            yield "order", kind == "DESCENDING", value["null_order"] == "NULLS FIRST"
        case "LIMIT_MODIFIER":
            yield kind, value.get("limit_type"), bool(value.get("limit")), bool(value.get("offset"))
        case "DISTINCT_MODIFIER":
            yield kind, len(value.get("distinct_on_targets") or ())
        case "SELECT_NODE":
            clauses = ("where_clause", "having", "qualify")
            yield kind, value.get("aggregate_handling"), len(value.get("group_sets") or ())
            yield from (each for each in clauses if value.get(each))
        case "SET_OPERATION_NODE":
            yield kind, value.get("setop_type"), value.get("setop_all")
        case "JOIN":
            columns = len(value.get("using_columns") or ())
            # A CROSS JOIN may be written as a JOIN ON true.
            how = "REGULAR" if value.get("ref_type") == "CROSS" else value.get("ref_type")
            yield kind, value.get("join_type"), how, columns
        case "RECURSIVE_CTE_NODE" | "BASE_TABLE" | "TABLE_FUNCTION" | "EXPRESSION_LIST" | "PIVOT":
            yield kind
        case _:
            pass


_NEGATED: Final = {
    "COMPARE_DISTINCT_FROM": "distinct from",
    "OPERATOR_IS_NOT_NULL": "is null",
    "COMPARE_NOT_IN": "in",
}
_OPERATORS: Final = {
    "OPERATOR_NOT": "not",
    "OPERATOR_IS_NULL": "is null",
    "COMPARE_IN": "in",
    "OPERATOR_COALESCE": "coalesce",
}
_TEXTS: Final = ("VARCHAR", "CHAR", "BPCHAR", "TEXT", "STRING", "CHARACTER")
_STAR_LISTS: Final = ("exclude_list", "replace_list", "rename_list")
