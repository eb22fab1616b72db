"""DESCRIBE and SHOW of views, and of temporary tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from icesql.query.like import is_like
from icesql.query.show_rows.request import Rows
from icesql.query.views.temporary import TemporaryTable, View
from icesql.quoting import quoted
from icesql.sql.positions import unsupported
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    from icesql.catalog.view import StoredView
    from icesql.sql.statement import Shown


def shown(
    statement: Shown, made: View | TemporaryTable, columns: Sequence[tuple[str, str]]
) -> Rows:
    """The rows of a statement about a temporary view or table, which has ``columns``.

    Raises UnsupportedSqlError for statements that need a table of a catalog, and for time travel.
    """
    called = f"the temporary {made.kind} {made.name}"
    about = {
        "# Detailed Table Information": "",
        "Name": made.name,
        "Type": f"temporary {made.kind}",
    }
    sql = created(made) if isinstance(made, View) else None
    hint = "it has no snapshots, partitions or properties"
    described: Rows = [(name, kind, True, None, None, None) for name, kind in columns]
    return _rows(statement, called, described, about, sql, None, hint)


def shown_stored(statement: Shown, view: StoredView, dialect: str | None) -> Rows:
    """The rows of a statement about a view of a catalog, from its metadata.

    Raises UnsupportedSqlError for statements that need a table, and for time travel.
    """
    metadata, text = view.metadata, definition(view, dialect)
    fields = metadata.schema.fields
    described: Rows = [
        (each.name, str(each.type), not each.required, each.field_id, None, each.doc)
        for each in fields
    ]
    held = ", ".join(each.dialect for each in metadata.representations)
    about = {
        "# Detailed View Information": "",
        "Name": f"{view.catalog}.{view.name}",
        "Type": "view",
        "Version": str(metadata.version_id),
        "Default Catalog": metadata.default_catalog or view.catalog,
        "Default Namespace": ".".join(metadata.default_namespace),
        "Dialects": held,
        "View Text": text,
    }
    names = ", ".join(quoted(each.name) for each in fields)
    sql = f"CREATE VIEW {view.name} ({names}) AS {text}"
    hint = "it has no snapshots and no partitions"
    called = f"the view {view.name}"
    return _rows(statement, called, described, about, sql, metadata.properties, hint)


def _rows(
    statement: Shown,
    called: str,
    described: Rows,
    about: Mapping[str, str],
    sql: str | None,
    properties: Mapping[str, str] | None,
    hint: str,
) -> Rows:
    """The rows of a statement about a view or a temporary table.

    ``described`` are those of DESCRIBE, ``about`` the lines of DESCRIBE EXTENDED after the columns,
    ``sql`` is the statement that creates it, and ``properties`` are those of its metadata; None
    without one.
    """
    reference = statement.reference
    assert reference is not None
    if reference.travel is not None or reference.changes is not None:
        raise unsupported(f"time travel on {called}", reference.offset)
    # The columns are those of ``OF_TABLE`` in ``query`` for the same statement about a table.
    match statement.what:
        case "DESCRIBE":
            return described
        case "COLUMNS":
            like = "%" if statement.like is None else statement.like.lower()
            return [
                (name, kind, None, comment)
                for name, kind, *_, comment in described
                if is_like(name.lower(), like)
            ]
        case "EXTENDED":
            return [
                *((name, kind, comment) for name, kind, *_, comment in described),
                ("", "", ""),
                *((name, value, "") for name, value in about.items()),
            ]
        case "CREATE VIEW" | "CREATE TABLE" if sql is not None:
            return [(sql,)]
        case "TBLPROPERTIES" if properties is not None:
            return sorted((key, redact_urls(value)) for key, value in properties.items())
        case _:
            raise unsupported(f"{statement.label} of {called}", reference.offset, hint)


def definition(view: StoredView, dialect: str | None) -> str:
    """The SQL of a view, in the requested dialect if the view has it, else in its first one."""
    held = view.metadata.representations
    wanted = (dialect or "duckdb").lower()
    own = [each.sql for each in held if each.dialect == wanted]
    return (own or [each.sql for each in held] or [""])[0]


def created(view: View) -> str:
    """The statement that creates the view again."""
    columns = f" ({', '.join(map(quoted, view.columns))})" if view.columns else ""
    return f"CREATE TEMP VIEW {quoted(view.name)}{columns} AS {view.query.text}"
