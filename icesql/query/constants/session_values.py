"""Replace calls such as ``current_schema()`` and ``getvariable`` by the session's values.

The engine would return its own values. So each call becomes the value that the session has
when the statement runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.query.constants.volatile import put
from icesql.sql.acceptance import SESSION_CALLS
from icesql.sql.cursor import Constant
from icesql.sql.edited_text import VALUE, Edit
from icesql.sql.parameters import write_literal
from icesql.sql.positions import unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from icesql.context import QueryContext
    from icesql.query.session_state import SessionState

GETVARIABLE: Final = "getvariable"
_CALLS: Final = {
    exp.CurrentSchema: "schema",
    exp.CurrentCatalog: "catalog",
    exp.CurrentDatabase: "catalog",
    exp.CurrentVersion: "version",
}


def put_session_values(tree: exp.Expr, session: SessionState, query: QueryContext) -> list[Edit]:
    """Replace these calls in ``tree`` by values of the session.

    ``current_schema()`` is NULL before USE, ``current_catalog()`` without a catalog, and
    ``getvariable('x')`` if x was not set. Returns the same changes as edits of the source text.
    Raises CatalogError if the catalog has to be opened to know its name and cannot.
    """
    edits: list[Edit] = []
    for node, what in list(_calls(tree)):
        value = _value(node, what, session, query)
        edits.append(Edit(node.meta["start"], node.meta["stop"], VALUE, write_literal(value)))
        value.meta["parameter_at"] = node.meta["start"]
        put(value, node, _written(node))
    return edits


def put_session_literals(
    tree: exp.Expr, dialect: str, session: SessionState, query: QueryContext
) -> None:
    """Do the same in a tree of another dialect, which defines ``current_database()``.

    It is the namespace in Spark, the catalog elsewhere. Calls with arguments are not replaced.
    """
    for node in list(tree.find_all(*_CALLS, exp.Anonymous)):
        what = _CALLS.get(type(node)) or SESSION_CALLS.get(str(node.this).lower())
        if what is None or node.expressions:
            continue
        written = node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()
        if dialect == "spark" and written == "current_database":
            what = "schema"
        put(_value(node, what, session, query), node, f"{written}()")


def _calls(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    for node in tree.find_all(*_CALLS, exp.Anonymous):
        what = _CALLS.get(type(node)) or str(node.this).lower()
        # sqlglot 28 has no node for version().
        if what not in ("version", GETVARIABLE) and type(node) not in _CALLS:
            continue
        if "stop" not in node.meta:
            # The text has no range to replace, and the engine would return its own values.
            name = _written(node).partition("(")[0]
            raise unsupported(f"{name} without parentheses", node, f"write {name}()")
        yield node, what


def _value(node: exp.Expr, what: str, session: SessionState, query: QueryContext) -> exp.Expr:
    names = session.names
    match what:
        case "version":
            from importlib import metadata

            return exp.Literal.string(metadata.version("icesql"))
        case "schema":
            found = ".".join(names.place[1]) or None
        case "catalog":
            found = names.place[0] or query.wait_for(lambda: getattr(names.catalog, "name", None))
        case _:
            variable = session.variables.get(node.expressions[0].name.lower(), Constant("NULL", ""))
            return variable.node() if isinstance(variable, Constant) else variable.copy()
    if found is None:
        return exp.cast(exp.Null(), "VARCHAR", dialect="duckdb")
    return exp.Literal.string(found)


def _written(node: exp.Expr) -> str:
    return str(node.sql(dialect="duckdb")).lower()
