"""Write expressions of DuckDB's tree as SQL; DuckDB names columns after this SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from icesql.sql.parser.literal_list import MARK
from icesql.sql.reading.engine_tree import Node

_NOTHING: Final[dict[str, Any]] = {
    "type": "SELECT_NODE", "modifiers": [], "cte_map": {"map": []}, "group_expressions": [],
    "from_table": {"type": "EMPTY", "alias": "", "sample": None}, "where_clause": None,
    "group_sets": [], "aggregate_handling": "STANDARD_HANDLING", "having": None, "sample": None,
    "qualify": None,
}  # fmt: skip


def column_name(node: Node, lists: Sequence[str], cursor: Any) -> str:
    """The name that DuckDB gives to a column of this expression.

    ``lists`` replace its placeholders of long lists, in the order of the text.
    """
    if node["class"] == "COLUMN_REF":
        return str(node["column_names"][-1])
    name = written(node, cursor)
    for shown in lists:
        name = name.replace(MARK, shown, 1)
    return name


def written(node: Mapping[str, Any], cursor: Any) -> str:
    """The expression as DuckDB writes it, without its alias.

    Raises duckdb.Error and RecursionError for an expression that is nested too deep.
    """
    select = {**_NOTHING, "select_list": [{**node, "alias": ""}]}
    return written_query(select, cursor).removeprefix("SELECT ")


def written_query(node: Mapping[str, Any], cursor: Any) -> str:
    """The query as DuckDB writes it. Raises the errors of ``written``."""
    tree = {"error": False, "statements": [{"node": node, "named_param_map": []}]}
    sql = cursor.execute("SELECT json_deserialize_sql($1::JSON)", [json.dumps(tree)])
    return str(sql.fetchall()[0][0])
