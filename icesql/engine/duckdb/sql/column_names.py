"""The names of columns, as the engine would give them to the text that the user wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
    """The name that DuckDB gives a column of this expression.

    ``lists`` are shown for the long lists of literals in it, in the order of the text.
    """
    if node["class"] == "COLUMN_REF":
        return str(node["column_names"][-1])
    select = {**_NOTHING, "select_list": [{**node, "alias": ""}]}
    tree = {"error": False, "statements": [{"node": select, "named_param_map": []}]}
    sql = cursor.execute("SELECT json_deserialize_sql($1::JSON)", [json.dumps(tree)])
    name = str(sql.fetchall()[0][0]).removeprefix("SELECT ")
    for shown in lists:
        name = name.replace(MARK, shown, 1)
    return name
