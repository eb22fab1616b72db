"""Statements that change tables, in the spellings of Spark and DuckDB."""

from __future__ import annotations

from icesql.frozen import Frozen
from icesql.sql.statement import FileReference, Query, Write
from icesql.sql.table_name import Parts

Properties = tuple[tuple[str, str], ...]


class TypeName(Frozen):
    """A type as written: name in upper case, numeric or text arguments, and nested types."""

    name: str
    arguments: tuple[int | str, ...] = ()
    fields: tuple[ColumnDefinition, ...] = ()
    offset: int | None = None


class ColumnDefinition(Frozen):
    """A column of CREATE TABLE, or a field of a struct; ``default`` is a query of
    the one constant.

    The name of a list's element, or of a map's key and value, is "".
    """

    name: str
    type: TypeName
    required: bool = False
    comment: str | None = None
    default: Query | None = None
    offset: int | None = None


class PartitionTerm(Frozen):
    """One entry of PARTITIONED BY: a column by its dotted name and Iceberg's transform of it."""

    source: str
    transform: str = "identity"
    name: str | None = None
    offset: int | None = None


class SortTerm(Frozen):
    """One entry of a sort order; ``nulls_first`` None is the usual order for the direction."""

    source: str
    transform: str = "identity"
    descending: bool = False
    nulls_first: bool | None = None
    offset: int | None = None


class TableName(Frozen):
    """The name of a table as written, and the branch to write to, if a clause names one."""

    parts: Parts
    offset: int | None = None
    branch: str | None = None

    @property
    def text(self) -> str:
        """The parts joined by dots."""
        return ".".join(self.parts)


class CreateTable(Write):
    """CREATE TABLE, with columns, AS a query, or LIKE another table.

    ``must_exist``: REPLACE TABLE, which replaces an existing table only.
    """

    table: TableName
    columns: tuple[ColumnDefinition, ...] = ()
    partitioning: tuple[PartitionTerm, ...] = ()
    ordering: tuple[SortTerm, ...] = ()
    properties: Properties = ()
    location: str | None = None
    query: Query | None = None
    if_not_exists: bool = False
    or_replace: bool = False
    like: TableName | None = None
    must_exist: bool = False


class CreateNamespace(Write):
    """CREATE SCHEMA, NAMESPACE or DATABASE."""

    parts: Parts
    if_not_exists: bool = False
    properties: Properties = ()


class DropNamespace(Write):
    """DROP SCHEMA, NAMESPACE or DATABASE; one that has tables is not dropped."""

    parts: Parts
    if_exists: bool = False


class DropTable(Write):
    """DROP TABLE; PURGE removes its files too."""

    table: TableName
    if_exists: bool = False
    purge: bool = False


class RenameTable(Write):
    """ALTER TABLE … RENAME TO."""

    table: TableName
    new: Parts


class SetProperties(Write):
    """ALTER TABLE … SET or UNSET TBLPROPERTIES."""

    table: TableName
    set: Properties = ()
    unset: tuple[str, ...] = ()
    if_exists: bool = False


class IfExists(Write):
    """ALTER TABLE IF EXISTS: a change of a table that may be missing."""

    table: TableName
    change: Write


class ColumnChange(Frozen):
    """The change of one column by ALTER TABLE, by its path.

    ``kind`` is "add", "drop", "rename", "type", "optional", "required", "default", "comment" or
    "move"; ``column`` has the type, default or comment, ``text`` the new name. ``place`` is
    "first", "after" or "before", the last two with a ``sibling``. ``offset`` is that of
    a new name. ``lenient``: IF EXISTS, or for "add" IF NOT EXISTS: a missing column, or for "add"
    an existing one, is no error.
    """

    kind: str
    path: Parts
    column: ColumnDefinition | None = None
    text: str = ""
    place: str = ""
    sibling: str = ""
    lenient: bool = False
    offset: int | None = None


class AlterColumns(Write):
    """ALTER TABLE … ADD, DROP, RENAME and ALTER COLUMN."""

    table: TableName
    changes: tuple[ColumnChange, ...]


class PartitionValue(Frozen):
    """A column of ``PARTITION (…)``; ``value`` is a query of its constant, None for a bare name."""

    name: str
    value: Query | None = None
    offset: int | None = None


class Insert(Write):
    """INSERT INTO, INSERT OVERWRITE and COPY … FROM: insert the rows of a query into a table.

    ``columns`` are those of the column list, None without one. ``by_name``: match columns of the
    query by name. ``copied`` is the file of COPY … FROM, read with the table's columns.
    ``partition`` are the columns of PARTITION. ``replaced`` selects the rows that REPLACE WHERE
    replaces, as ``rows`` of ``Delete``; then the last column of the query is True for rows that
    satisfy its condition. ``evolves``: add columns of the
    query that the table lacks to it. ``defaults`` are the positions of DEFAULT in
    VALUES, as (row, column), both from 0.
    """

    table: TableName
    query: Query
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    overwrite: bool = False
    copied: FileReference | None = None
    partition: tuple[PartitionValue, ...] = ()
    replaced: Query | None = None
    evolves: bool = False
    defaults: frozenset[tuple[int, int]] = frozenset()


class Delete(Write):
    """DELETE FROM and TRUNCATE.

    ``rows`` selects ``_file`` and ``_pos`` of the rows to delete; None deletes all rows.
    """

    table: TableName
    rows: Query | None = None


class ColumnValue(Frozen):
    """An assignment ``SET column = value``, by its path as written; ``default``: SET … = DEFAULT.

    The path may begin with the alias or name of the table.
    """

    path: Parts
    offset: int | None = None
    default: bool = False


class Update(Write):
    """UPDATE: ``rows`` selects the values in the order of ``assigned``, NULL for a default, from
    the table and those of FROM; ``alias`` is that of the table."""

    table: TableName
    assigned: tuple[ColumnValue, ...]
    rows: Query
    alias: str | None = None
