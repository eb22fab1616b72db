"""Methods of the engine's tree as calls: ``g.upper()`` is ``upper(g)``."""

from __future__ import annotations

from icesql.engine.duckdb.sql.checked import SCHEMAS
from icesql.engine.duckdb.sql.engine_tree import Node


def as_call(found: Node) -> Node:
    """A node of the engine's tree; a function behind the name of a column has it as an argument."""
    if found["type"] != "FUNCTION":
        return found
    path = found.get("qualified_name", {}).get("path", ())
    if len(path) < 2 or str(path[0]).lower() in SCHEMAS:
        return found
    *names, function = path
    column = {
        "class": "COLUMN_REF",
        "type": "COLUMN_REF",
        "alias": "",
        "query_location": found["query_location"],
        "column_names": names,
    }
    return {
        **found,
        "function_name": function,
        "qualified_name": {"path": [function]},
        "arguments": [{"name": "", "expression": column}, *found["arguments"]],
    }
