"""SHOW and DESCRIBE: a table of what each lists, from catalogs and metadata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icesql.context import QueryContext
from icesql.query.show_rows import of_session, of_table
from icesql.query.show_rows.asked import Asked, Columns, Provider, Rows
from icesql.query.show_rows.create_table import create_table
from icesql.query.views.temporary import TemporaryTable
from icesql.sql.table_name import name_parts

if TYPE_CHECKING:
    from icesql.query.session_state import SessionState
    from icesql.sql.statement import Shown


def show(
    statement: Shown, session: SessionState, query: QueryContext
) -> tuple[Columns, Rows, tuple[str, ...]]:
    """Columns (name, kind), rows and notes that answer a statement.

    Raises what ``names.load`` raises, SnapshotNotFoundError, UnsupportedSqlError for time travel
    where it makes no difference, CatalogError, and what reading manifests raises.
    """
    asked = Asked(statement, session, query)
    rows = ANSWERS[statement.what][1](asked)
    return *_wide(columns_of(statement), rows), asked.notes


def columns_of(statement: Shown) -> Columns:
    """The names and kinds of the columns that a statement shows."""
    listed = (ANSWERS[statement.what][0] or f"{statement.name} varchar").split(", ")
    return [(name, kind) for name, _, kind in (each.partition(" ") for each in listed)]


def column_names(name: str, session: SessionState) -> list[str]:
    """The columns of a table by its name, which is never read as other SQL."""
    parts = name_parts(name)
    made = session.temporary.find(parts)
    if isinstance(made, TemporaryTable):
        return [column for column, _, _ in made.columns]
    table = session.names.open_table(parts)
    return [column.name for column in table.metadata.schema.fields]


def _wide(columns: Columns, rows: Rows) -> tuple[Columns, Rows]:
    """The same with ids as text where one of them has more than 63 bits."""
    far = {
        index
        for row in rows
        for index, value in enumerate(row)
        if columns[index][1] == "bigint" and value is not None and value.bit_length() > 63
    }
    if not far:
        return columns, rows
    told = [
        (name, "varchar" if index in far else kind) for index, (name, kind) in enumerate(columns)
    ]
    return told, [
        tuple(
            str(value) if index in far and value is not None else value
            for index, value in enumerate(row)
        )
        for row in rows
    ]


def _diff_summary(asked: Asked) -> Rows:
    from icesql.query.travel.diff_summary import diff_summary

    return diff_summary(asked)


_CREATED: Final = (
    "createtab_stmt varchar",
    lambda asked: [(create_table(asked.table()),)],
)
_NAMED: Final = "name varchar, snapshot_id bigint, max_reference_age_in_ms bigint"
# What a statement is about: its columns ("" for one of the setting's name), and its rows.
ANSWERS: Final[dict[str, tuple[str, Provider]]] = {
    "TABLES": ("table varchar", of_session.tables),
    "VIEWS": ("view varchar, temporary boolean", of_session.views),
    "NAMESPACES": ("namespace varchar", of_session.namespaces),
    "CATALOGS": ("catalog varchar, type varchar", of_session.catalogs),
    "ALL": (
        "name varchar, value varchar, default varchar, description varchar",
        of_session.settings,
    ),
    "SETTING": ("", of_session.setting),
    "FUNCTIONS": ("function varchar", of_session.functions),
    # DuckDB's columns.
    "ALL TABLES": (
        "database varchar, schema varchar, name varchar, column_names varchar[], "
        "column_types varchar[], temporary boolean",
        of_session.all_tables,
    ),
    "SNAPSHOTS": (
        "committed_at timestamp, snapshot_id bigint, operation varchar, refs varchar, "
        "records bigint",
        of_table.short_snapshots,
    ),
    "SNAPSHOTS EXTENDED": (
        "committed_at timestamptz, snapshot_id bigint, parent_id bigint, operation varchar, "
        "refs varchar, records bigint, summary varchar",
        of_table.snapshots,
    ),
    "REFS": ("name varchar, type varchar, snapshot_id bigint", of_table.refs),
    "BRANCHES": (
        f"{_NAMED}, min_snapshots_to_keep integer, max_snapshot_age_in_ms bigint",
        of_table.branches,
    ),
    "TAGS": (_NAMED, of_table.tags),
    "HISTORY": (
        "made_current_at timestamptz, snapshot_id bigint, parent_id bigint, "
        "is_current_ancestor boolean",
        of_table.history,
    ),
    "PARTITIONS": (
        "partition varchar, spec_id integer, record_count bigint, file_count bigint, "
        "total_data_file_size_in_bytes bigint",
        of_table.partitions,
    ),
    "CREATE TABLE": _CREATED,
    "CREATE VIEW": _CREATED,
    "TBLPROPERTIES": ("key varchar, value varchar", of_table.properties),
    # Trino's columns.
    "COLUMNS": ("column varchar, type varchar, extra varchar, comment varchar", of_table.columns),
    "DESCRIBE": (
        "column varchar, type varchar, nullable boolean, field_id integer, partition varchar, "
        "comment varchar",
        of_table.describe,
    ),
    # Spark's columns.
    "EXTENDED": ("col_name varchar, data_type varchar, comment varchar", of_table.extended),
    "DETAIL": (
        "format varchar, id varchar, name varchar, location varchar, last_modified timestamptz, "
        "partition_columns varchar, num_files bigint, size_in_bytes bigint, num_records bigint, "
        "format_version integer, snapshots bigint",
        of_table.detail,
    ),
    # Rows deleted by delete files may still be counted as records, so both are told.
    "DIFF SUMMARY": (
        "part varchar, name varchar, before varchar, after varchar, files_before bigint, "
        "files_after bigint, records_before bigint, records_after bigint, deletes_before bigint, "
        "deletes_after bigint",
        _diff_summary,
    ),
}
