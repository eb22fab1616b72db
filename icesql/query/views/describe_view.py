"""DESCRIBE and SHOW of views, and of temporary tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icesql.errors import UnsupportedSqlError
from icesql.query.like import is_like
from icesql.query.show_rows.rows import Columns, Rows
from icesql.query.views.temporary import TemporaryTable, View
from icesql.sql.positions import unsupported
from icesql.sql.statement import Describe, ShowOfTable
from icesql.sql.user_text import quoted
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    from icesql.catalog.view import StoredView

_DESCRIBE: Columns = (
    ("column", "varchar"), ("type", "varchar"), ("nullable", "boolean"), ("field_id", "integer"),
    ("partition", "varchar"), ("comment", "varchar"),
)  # fmt: skip

_COLUMNS: Columns = (
    ("column", "varchar"), ("type", "varchar"), ("extra", "varchar"), ("comment", "varchar"),
)  # fmt: skip
_EXTENDED: Columns = (("col_name", "varchar"), ("data_type", "varchar"), ("comment", "varchar"))


def shown(
    statement: Describe | ShowOfTable,
    made: View | TemporaryTable,
    columns: Sequence[tuple[str, str]],
) -> tuple[Columns, Rows]:
    """Columns and rows of a statement about what a session made, which has ``columns``.

    Raises UnsupportedSqlError for what only a table of a catalog has, and for time travel.
    """
    reference = statement.reference
    if reference.travel is not None or reference.changes is not None:
        raise UnsupportedSqlError(f"time travel on the temporary {made.kind} {made.name}")
    what = "DESCRIBE" if isinstance(statement, Describe) else statement.what
    match what:
        case "DESCRIBE":
            return _DESCRIBE, [(name, kind, True, None, None, None) for name, kind in columns]
        case "COLUMNS":
            like = statement.like if isinstance(statement, ShowOfTable) else None
            wanted = "%" if like is None else like.lower()
            return _COLUMNS, [
                (name, kind, None, None) for name, kind in columns if is_like(name.lower(), wanted)
            ]
        case "EXTENDED":
            return _EXTENDED, [
                *((name, kind, None) for name, kind in columns),
                ("", "", ""),
                ("# Detailed Table Information", "", ""),
                ("Name", made.name, ""),
                ("Type", f"temporary {made.kind}", ""),
            ]
        case "CREATE VIEW" | "CREATE TABLE" if isinstance(made, View):
            return (("createtab_stmt", "varchar"),), [(created(made),)]
        case _:
            raise UnsupportedSqlError(
                f"SHOW {what} of the temporary {made.kind} {made.name}",
                hint="it has no snapshots, partitions or properties",
            )


def shown_stored(
    statement: Describe | ShowOfTable, view: StoredView, dialect: str | None
) -> tuple[Columns, Rows]:
    """Columns and rows of a statement about a view of a catalog, as its metadata has it.

    Raises UnsupportedSqlError for what only a table has, and for time travel.
    """
    reference, metadata = statement.reference, view.metadata
    if reference.travel is not None or reference.changes is not None:
        raise unsupported(f"time travel on the view {view.name}", reference.offset)
    what = "DESCRIBE" if isinstance(statement, Describe) else statement.what
    fields = metadata.schema.fields
    match what:
        case "DESCRIBE":
            return _DESCRIBE, [
                (each.name, str(each.type), not each.required, each.field_id, None, each.doc)
                for each in fields
            ]
        case "COLUMNS":
            like = statement.like if isinstance(statement, ShowOfTable) else None
            wanted = "%" if like is None else like.lower()
            return _COLUMNS, [
                (each.name, str(each.type), None, each.doc)
                for each in fields
                if is_like(each.name.lower(), wanted)
            ]
        case "EXTENDED":
            held = ", ".join(each.dialect for each in metadata.representations)
            return _EXTENDED, [
                *((each.name, str(each.type), each.doc) for each in fields),
                ("", "", ""),
                ("# Detailed View Information", "", ""),
                ("Name", f"{view.catalog}.{view.name}", ""),
                ("Type", "view", ""),
                ("Version", str(metadata.version_id), ""),
                ("Default Catalog", metadata.default_catalog or view.catalog, ""),
                ("Default Namespace", ".".join(metadata.default_namespace), ""),
                ("Dialects", held, ""),
                ("View Text", definition(view, dialect), ""),
            ]
        case "CREATE VIEW" | "CREATE TABLE":
            columns = ", ".join(quoted(each.name) for each in fields)
            text = f"CREATE VIEW {view.name} ({columns}) AS {definition(view, dialect)}"
            return (("createtab_stmt", "varchar"),), [(text,)]
        case "TBLPROPERTIES":
            return (("key", "varchar"), ("value", "varchar")), sorted(
                (key, redact_urls(value)) for key, value in metadata.properties.items()
            )
        case _:
            raise UnsupportedSqlError(
                f"SHOW {what} of the view {view.name}",
                hint="it has no snapshots and no partitions",
            )


def definition(view: StoredView, dialect: str | None) -> str:
    """The SQL of a view, in the dialect that is asked for if it has that."""
    held = view.metadata.representations
    wanted = (dialect or "duckdb").lower()
    own = [each.sql for each in held if each.dialect == wanted]
    return (own or [each.sql for each in held] or [""])[0]


def created(view: View) -> str:
    """The statement that makes the view again."""
    columns = f" ({', '.join(map(quoted, view.columns))})" if view.columns else ""
    return f"CREATE TEMP VIEW {quoted(view.name)}{columns} AS {view.query.text}"
