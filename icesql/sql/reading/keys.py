"""Every kind of node that icesql accepts in DuckDB's tree, and every key of it.

A key may have any value if the reader uses it, or else one of the listed values, which the reader
can ignore. Any other kind, key or value is refused by ``closed``: a newer DuckDB adds a key to a
node before it adds another kind of node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


class _Any(tuple[()]):
    """The reader uses the value, whatever it is."""


ANY: Final = _Any()
# The allowed values of a key: ANY, or one of these.
Values = tuple[object, ...]
Keys = Mapping[str, Values]

_PLACE: Final[Keys] = {"query_location": ANY, "query_location_length": ANY}


def _any(*names: str) -> Keys:
    return dict.fromkeys(names, ANY)


def _expression(kinds: tuple[str, ...], *names: str, **others: Values) -> Keys:
    return {"class": ANY, "type": kinds, "alias": ANY, **_PLACE, **_any(*names), **others}


def _reference(kind: str, *names: str, **others: Values) -> Keys:
    return {"type": (kind,), "alias": ANY, "sample": ANY, **_PLACE, **_any(*names), **others}


def _query(kind: str, *names: str, **others: Values) -> Keys:
    return {"type": (kind,), "modifiers": ANY, "cte_map": ANY, **_any(*names), **others}


_CALL: Final[Keys] = {
    **_any("function_name", "arguments", "qualified_name", "distinct"),
    # ``qualified_name`` has the same information.
    **_any("schema", "catalog"),
    "is_legacy_function_call": (False,),  # not in DuckDB 2.0.0
}
_FRAME_ENDS: Final = (
    *(f"CURRENT_ROW_{each}" for each in ("ROWS", "RANGE", "GROUPS")),
    *(f"EXPR_{side}_{each}" for side in ("PRECEDING", "FOLLOWING")
      for each in ("ROWS", "RANGE", "GROUPS")),
)  # fmt: skip
_COMPARISONS: Final = (
    "COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO",
    "COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO", "COMPARE_NOT_DISTINCT_FROM",
    "COMPARE_DISTINCT_FROM",
)  # fmt: skip

# The keys of expressions, by their ``class``.
EXPRESSIONS: Final[Mapping[str, Keys]] = {
    "BETWEEN": _expression(("COMPARE_BETWEEN",), "input", "lower", "upper"),
    "CASE": _expression(("CASE_EXPR",), "case_checks", "else_expr"),
    "CAST": _expression(("OPERATOR_CAST",), "child", "try_cast", "type_expr"),
    "COLLATE": _expression(("COLLATE",), "child", "collation"),
    "COLUMN_REF": _expression(("COLUMN_REF",), "column_names"),
    "COMPARISON": _expression(_COMPARISONS, "left", "right"),
    "CONJUNCTION": _expression(("CONJUNCTION_AND", "CONJUNCTION_OR"), "children"),
    "CONSTANT": _expression(("VALUE_CONSTANT",), "literal"),
    "FUNCTION": {
        **_expression(("FUNCTION",), "filter", "order_bys", "is_operator", export_state=(False,)),
        **_CALL,
    },
    "LAMBDA": _expression(("LAMBDA",), "lhs", "expr", "syntax_type"),
    "OPERATOR": _expression(
        ("ARRAY_CONSTRUCTOR", "ARRAY_EXTRACT", "ARRAY_SLICE", "STRUCT_EXTRACT", "COMPARE_IN",
         "GROUPING_FUNCTION", "OPERATOR_COALESCE", "OPERATOR_IS_NULL",
         "OPERATOR_IS_NOT_NULL", "OPERATOR_NOT", "OPERATOR_TRY", "OPERATOR_UNPACK"),
        "children",
    ),
    "PARAMETER": _expression(("VALUE_PARAMETER",), "identifier"),
    "POSITIONAL_REFERENCE": _expression(("POSITIONAL_REFERENCE",), "index"),
    "STAR": _expression(
        ("STAR",), "relation_name", "exclude_list", "replace_list", "columns", "expr",
        "qualified_exclude_list", "rename_list",
    ),
    "SUBQUERY": _expression(
        ("SUBQUERY",), "subquery", "child",
        subquery_type=("SCALAR", "ANY", "EXISTS"),
        comparison_type=("INVALID", *_COMPARISONS[:6]),
    ),
    "TYPE": _expression(("TYPE",), "catalog", "schema", "type_name", "children", "qualified_name"),
    "WINDOW": {
        **_expression(
            ("WINDOW_AGGREGATE", "WINDOW_CUME_DIST", "WINDOW_FILL", "WINDOW_FIRST_VALUE",
             "WINDOW_LAG", "WINDOW_LAST_VALUE", "WINDOW_LEAD", "WINDOW_NTH_VALUE", "WINDOW_NTILE",
             "WINDOW_PERCENT_RANK", "WINDOW_RANK", "WINDOW_RANK_DENSE", "WINDOW_ROW_NUMBER"),
            "partitions", "orders", "start_expr", "end_expr", "offset_expr", "default_expr",
            "filter_expr", "arg_orders", "ignore_nulls", "has_ignore_nulls",
            start=("UNBOUNDED_PRECEDING", *_FRAME_ENDS),
            end=("UNBOUNDED_FOLLOWING", *_FRAME_ENDS),
            exclude_clause=("NO_OTHER", "CURRENT_ROW", "TIES", "GROUP"),
        ),
        **_CALL,
    },
}  # fmt: skip

# The keys of other nodes, by their ``type``.
NODES: Final[Mapping[str, Keys]] = {
    "BASE_TABLE": _reference(
        "BASE_TABLE", "table_name", "schema_name", "catalog_name", "qualified_name",
        "column_name_alias", at_clause=(None,),
    ),
    "EMPTY": _reference("EMPTY"),
    "EXPRESSION_LIST": _reference(
        "EXPRESSION_LIST", "values", expected_names=ANY, expected_types=ANY
    ),
    "JOIN": _reference(
        "JOIN", "left", "right", "condition", "using_columns", "is_implicit",
        join_type=("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"),
        # POSITIONAL JOIN pairs rows by their order, but the rows of a table have no order.
        ref_type=("REGULAR", "CROSS", "NATURAL", "ASOF"),
        delim_flipped=(False,),
        duplicate_eliminated_columns=ANY,
        ranking_expression=(None,),
        nearest_count=ANY,
        nearest_order_type=ANY,
        nearest_approx=(False,),
    ),
    "PIVOT": _reference(
        "PIVOT", "source", "aggregates", "unpivot_names", "pivots", "groups", "column_name_alias",
        "include_nulls",
    ),
    "SUBQUERY": _reference("SUBQUERY", "subquery", "column_name_alias"),
    "TABLE_FUNCTION": _reference(
        "TABLE_FUNCTION", "function", "column_name_alias",
        with_ordinality=("WITHOUT_ORDINALITY", "WITH_ORDINALITY"),
    ),
    "SELECT_NODE": _query(
        "SELECT_NODE", "select_list", "from_table", "where_clause", "group_expressions",
        "group_sets", "having", "sample", "qualify",
        aggregate_handling=("STANDARD_HANDLING", "FORCE_AGGREGATES"),
    ),
    "SET_OPERATION_NODE": _query(
        "SET_OPERATION_NODE", "setop_all", "children",
        setop_type=("UNION", "INTERSECT", "EXCEPT", "UNION_BY_NAME"),
        left=(None,),
        right=(None,),
    ),
    "RECURSIVE_CTE_NODE": _query(
        "RECURSIVE_CTE_NODE", "cte_name", "union_all", "left", "right", "aliases", "key_targets"
    ),
    "DISTINCT_MODIFIER": {"type": ANY, "distinct_on_targets": ANY},
    "LIMIT_MODIFIER": {
        **_any("type", "limit", "offset"), "limit_type": ("ROW_COUNT", "PERCENTAGE"),
    },
    "ORDER_MODIFIER": {"type": ANY, "orders": ANY},
    **{
        order: {
            **_any("type", "expression"),
            "null_order": ("ORDER_DEFAULT", "NULLS FIRST", "NULLS LAST"),
        }
        for order in ("ASCENDING", "DESCENDING", "ORDER_DEFAULT")
    },
}  # fmt: skip

# Objects without a ``type``, by the key that holds them.
PARTS: Final[Mapping[str, Keys]] = {
    "arguments": _any("name", "expression"),
    "case_checks": _any("when_expr", "then_expr"),
    "cte_map": _any("map"),
    "entries": {**_any("star_expr", "alias"), "values": ANY},
    "key": _any("catalog", "schema", "table", "column"),
    "literal": {
        "kind": ("STRING", "INTEGER", "NUMERIC", "BOOLEAN", "NULL_LITERAL", "HEX", "BIT"),
        "text": ANY,
    },
    "map": _any("key", "value"),
    "pivots": _any("pivot_expressions", "unpivot_names", "entries", "pivot_enum"),
    "qualified_exclude_list": _any("catalog", "schema", "table", "column"),
    "qualified_name": _any("path"),
    "rename_list": _any("key", "value"),
    "replace_list": _any("key", "value"),
    "sample": _any("sample_size", "is_percentage", "method", "seed", "repeatable", "sample_rate"),
    "subquery": {"node": ANY, "named_param_map": ANY},
    "value": {
        **_any("aliases", "materialized", "key_targets", "query_node"),
        "payload_aggregates": ([],),
    },
}
# The size of a sample, which is a plain value, not an expression.
SAMPLE_SIZE: Final[Keys] = {"type": ANY, "is_null": (False,), "value": ANY}
