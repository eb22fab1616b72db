"""DESCRIBE and SHOW of temporary views and tables."""

from __future__ import annotations

from collections.abc import Sequence

from icesql.errors import UnsupportedSqlError
from icesql.query.like import is_like
from icesql.query.shown.rows import Columns, Rows
from icesql.query.views.temporary import TemporaryTable, View
from icesql.sql.statement import Describe, ShowOfTable
from icesql.sql.user_text import quoted

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


def created(view: View) -> str:
    """The statement that makes the view again."""
    columns = f" ({', '.join(map(quoted, view.columns))})" if view.columns else ""
    return f"CREATE TEMP VIEW {quoted(view.name)}{columns} AS {view.query.text}"
