"""Comments of a table and its columns, changed where they differ, in one commit."""

from __future__ import annotations

from typing import Any

from icesql.dbt.catalog import Rows, columns_of, comment_of
from icesql.dbt.names import literal, quoted


def changes_sql(
    rows: Rows, relation: Any, description: str | None, columns: dict[str, Any] | None
) -> str:
    """A script that sets the comments that are not as given; "" where all are.

    ``columns`` are dbt's: each with a name and a description. Those of a view stand in its
    CREATE VIEW.
    """
    name = relation.render()
    statements = []
    if description and description != comment_of(rows, relation):
        statements.append(
            f"ALTER VIEW {name} SET TBLPROPERTIES ('comment' = {literal(description)})"
            if relation.is_view
            else f"COMMENT ON TABLE {name} IS {literal(description)}"
        )
    if columns and not relation.is_view:
        there = {each.lower(): (each, comment) for each, _, comment in columns_of(rows, relation)}
        for key, column in columns.items():
            asked = column.get("description")
            found = there.get(column.get("name", key).lower())
            if not asked or found is None or found[1] == asked:
                continue
            statements.append(f"COMMENT ON COLUMN {name}.{quoted(found[0])} IS {literal(asked)}")
    if len(statements) < 2:
        return "".join(statements)
    return ";\n".join(["BEGIN", *statements, "COMMIT"])
