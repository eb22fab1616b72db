"""The SQL that reads a TableScan in DuckDB: Parquet by field id, the rest as Arrow streams.

Files whose values all follow from metadata are not read: generated rows replace them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec import field

from icesql.engine.duckdb.described import register
from icesql.engine.duckdb.relations.opened_files import OpenedFiles, locations
from icesql.engine.duckdb_types import duckdb_type
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.schema import (
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    LINEAGE_IDS,
    POS,
    ROW_ID,
    SNAPSHOT_ID,
    SPEC_ID,
    Schema,
)
from icesql.quoting import literal, quoted
from icesql.scan.tasks import FileScanTask, ScanContext

if TYPE_CHECKING:
    from icesql.query.bound import FileScan


# A scan without columns still has rows, but SQL cannot select zero columns.
_NO_COLUMNS: Final = '1 AS "__row"'

# Above every ``file_index`` but not its type's maximum, so the optimizer cannot drop the test.
_MORE_THAN_FILES: Final = 1 << 40

_WILDCARD: Final = re.compile(r"[*?\[]")


class Relation(Frozen):
    """A subquery, its named parameters, and the objects that must be registered for it."""

    sql: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    registered: Mapping[str, Any] = field(default_factory=dict)


def stored_name(field_id: int) -> str:
    """The internal name of a column; field ids may be negative, so quote it in SQL."""
    return f"c{field_id}"


def escape_glob(path: str) -> str:
    """A path without wildcards for DuckDB's file functions: special characters are escaped."""
    return _WILDCARD.sub(r"[\g<0>]", path)


def parquet_function(files: str, columns: Sequence[t.NestedField], options: str = "") -> str:
    """``read_parquet`` of the parameter ``files``; columns by field id, called ``c<field id>``."""
    entries = ", ".join(
        f"{column.field_id}: {{name: {literal(stored_name(column.field_id))}, "
        f"type: {literal(duckdb_type(column.type))}, "
        f"default_value: {_default(column)}}}"
        for column in columns
    )
    # A field id that no file has: DuckDB then only counts the rows.
    entries = entries or "2147483000: {name: 'none', type: 'INTEGER', default_value: NULL::VARCHAR}"
    schema = f"schema = MAP {{{entries}}}"
    return f"read_parquet(${files}, {schema}, hive_partitioning = false{options})"


def empty_relation(projection: Schema) -> Relation:
    """No rows, with the columns of the scan."""
    columns = ", ".join(
        f"CAST(NULL AS {duckdb_type(column.type)}) AS {quoted(column.name)}"
        for column in projection.fields
    )
    return Relation(f"SELECT {columns or _NO_COLUMNS} WHERE false")


def union_all(relations: Sequence[Relation]) -> Relation:
    """All rows of several relations of the same columns."""
    if len(relations) == 1:
        return relations[0]
    parameters: dict[str, Any] = {}
    registered: dict[str, Any] = {}
    for each in relations:
        parameters.update(each.parameters)
        registered.update(each.registered)
    return Relation(" UNION ALL ".join(f"({r.sql})" for r in relations), parameters, registered)


def stream_relation(projection: Schema, name: str, source: Any) -> Relation:
    """Rows of a registered Arrow source whose columns are called ``c<field id>``."""
    columns = ", ".join(
        f"{quoted(stored_name(column.field_id))} AS {quoted(column.name)}"
        for column in projection.fields
    )
    return Relation(
        f"SELECT {columns or _NO_COLUMNS} FROM {quoted(name)}", registered={name: source}
    )


def registered_sql(cursor: Any, relation: Relation) -> str:
    """The SQL of a relation, whose sources a cursor can read from now on."""
    for name, source in relation.registered.items():
        register(cursor, name, source)
    return relation.sql


class PlainFiles(Frozen):
    """The call of ``read_parquet`` for some files of a scan.

    ``function`` returns columns ``c<field id>``, or columns with the ``names`` by field id; a
    missing column is NULL or its default. ``file_index`` and ``file_row_number`` are the position
    of a row. ``prefix`` distinguishes the parameters of several calls. ``opened`` maps locations to
    the paths that DuckDB opens.
    """

    context: ScanContext
    tasks: Sequence[FileScanTask]
    prefix: str
    columns: Sequence[t.NestedField]
    names: Mapping[int, str] | None
    opened: OpenedFiles

    @property
    def function(self) -> str:
        """The call, for a FROM clause."""
        files = f"{self.prefix}_files"
        options = "" if self._rows is None else f", explicit_cardinality = ${self.prefix}_rows"
        if any(isinstance(c.type, t.StructType) and self._may_have_nan(c) for c in self.columns):
            options += ", can_have_nan = true"
        if self.names is not None:
            return f"read_parquet(${files}, hive_partitioning = false{options})"
        return parquet_function(files, self.columns, options)

    @property
    def _rows(self) -> int | None:
        """The rows of all files, where DuckDB would estimate them from the first file."""
        counts = [task.data_file.record_count for task in self.tasks]
        if min(counts) < 0 or (len(counts) == 1 and self.names is not None):
            return None
        return sum(counts) or None

    @property
    def parameters(self) -> dict[str, Any]:
        """The named parameters of the call and of ``expression``."""
        places = map(self.opened.path, locations(self.tasks, self.context))
        found: dict[str, Any] = {f"{self.prefix}_files": [escape_glob(each) for each in places]}
        if self._rows is not None:
            found[f"{self.prefix}_rows"] = self._rows
        for column in self.context.projection.fields:
            if (of_file := OF_FILE.get(column.field_id)) is not None:
                values = [of_file(task.data_file) for task in self.tasks]
                found[self._parameter(column)] = values
        return found

    def expression(self, column: t.NestedField) -> str:
        """SQL for a projected column over ``function``."""
        if column.field_id == POS.field_id:
            return "file_row_number"
        if column.field_id in OF_FILE:
            sql_type = duckdb_type(column.type)
            values = f"(${self._parameter(column)})[CAST(file_index AS BIGINT) + 1]"
            value = f"CAST({values} AS {sql_type})"
            is_lineage = column.field_id in LINEAGE_IDS
            return self._lineage(column, value) if is_lineage else value
        name = self.stored(column)
        if self._may_have_nan(column) and not isinstance(column.type, t.StructType):
            # DuckDB prunes row groups by bounds that exclude NaN, and so loses NaN rows. It prunes
            # by a bare column but not by an expression over the position of a row. The file's
            # index is constant in a vector, while row numbers are computed one by one. For a
            # struct, the CASE would read all its fields; ``function`` declares that they may be
            # NaN instead, which makes conditions on numbers in small files a sixth slower.
            return f"CASE WHEN file_index < {_MORE_THAN_FILES} THEN {name} END"
        return name

    def _lineage(self, column: t.NestedField, of_file: str) -> str:
        """SQL of a lineage column: stored, else derived; NULL in a file without row ids."""
        if all(task.data_file.first_row_id is None for task in self.tasks):
            return f"CAST(NULL AS {duckdb_type(column.type)})"
        is_id = column.field_id == ROW_ID.field_id
        derived = f"({of_file} + file_row_number)" if is_id else of_file
        stored = self.stored(column)
        return f"CASE WHEN {of_file} IS NOT NULL THEN coalesce({stored}, {derived}) END"

    def _parameter(self, column: t.NestedField) -> str:
        # By id: a name may contain any character.
        return f"{self.prefix}_c{column.field_id}"

    def stored(self, column: t.NestedField) -> str:
        """SQL for the stored values of a column, in a query where the files have alias ``f``."""
        if self.names is None:
            return f"f.{quoted(stored_name(column.field_id))}"
        stored = self.names.get(column.field_id)
        if stored is not None:
            return f"f.{quoted(stored)}"
        return f"CAST({_default(column)} AS {duckdb_type(column.type)})"

    def _may_have_nan(self, column: t.NestedField) -> bool:
        return not are_free_of_nan(t.walk((column,)), self.tasks)

    def select(self, suffix: str = "") -> Relation:
        """The relation of these files; ``suffix`` follows the FROM clause (alias ``f``)."""
        columns = ", ".join(
            f"{self.expression(column)} AS {quoted(column.name)}"
            for column in self.context.projection.fields
        )
        return Relation(
            f"SELECT {columns or _NO_COLUMNS} FROM {self.function} AS f{suffix}",
            self.parameters,
        )


def are_free_of_nan(columns: Iterable[t.NestedField], tasks: Sequence[FileScanTask]) -> bool:
    """True if, according to metadata, no file has a NaN in these columns."""
    floats = [each.field_id for each in columns if t.is_floating(each.type)]
    return all(
        (task.data_file.nan_value_counts or {}).get(field_id) == 0
        for task in tasks
        for field_id in floats
    )


def _last_updated(file: DataFile) -> int | None:
    return None if file.first_row_id is None else file.sequence_number


# The metadata columns that are constant in a file, by field id.
OF_FILE: Final[Mapping[int, Callable[[DataFile], Any]]] = {
    FILE.field_id: attrgetter("path"),
    SPEC_ID.field_id: attrgetter("spec_id"),
    SNAPSHOT_ID.field_id: attrgetter("snapshot_id"),
    ROW_ID.field_id: attrgetter("first_row_id"),
    LAST_UPDATED_SEQUENCE_NUMBER.field_id: _last_updated,
}


def file_relation(scan: FileScan) -> Relation:
    """The files that a query names itself, with its options."""
    parameter = f"{scan.name.strip('_')}_paths"
    options = "".join(f", {name} = {value}" for name, value in scan.options)
    return Relation(
        f"SELECT * FROM {scan.function}(${parameter}{options})",
        {parameter: [escape_glob(location) for location in scan.locations]},
    )


# Types that DuckDB keeps when it writes Arrow and reads it again.
_KEPT: Final = frozenset(
    {"BOOLEAN", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "VARCHAR", "BLOB", "DATE", "TIMESTAMP"}
    | {"TIMESTAMP WITH TIME ZONE", "TIME"}
)


def register_tables(cursor: Any, tables: Sequence[Any]) -> dict[str, str]:
    """Register temporary tables with a cursor; returns the SQL of each by its name in trees."""
    sources = {}
    for index, table in enumerate(tables):
        register(cursor, f"__rows_{index}", table.data)
        sources[f"__temp_{index}"] = temporary_sql(f"__rows_{index}", table.columns)
    return sources


def temporary_sql(name: str, columns: Sequence[tuple[str, str, str]]) -> str:
    """The rows registered as ``name``, in the types that the engine gave them before."""
    chosen = ", ".join(
        quoted(column)
        if not kind or kind in _KEPT
        else f"CAST({quoted(column)} AS {kind}) AS {quoted(column)}"
        for column, _, kind in columns
    )
    return f"SELECT {chosen} FROM {quoted(name)}"


def has_default(column: t.NestedField) -> bool:
    """True if rows of files without the column have another value than NULL."""
    return column.initial_default not in (t.MISSING, None)


def _default(column: t.NestedField) -> str:
    if not has_default(column):
        return "NULL::VARCHAR"
    value = column.initial_default
    if isinstance(column.type, t.DateType):
        value = date(1970, 1, 1) + timedelta(days=value)
    return literal(str(value))


# ------------------------------------------------------------------ rows of metadata


_COPIES: Final = "copies"
# A power of two; DuckDB holds one side of a cross product in memory.
_MOST_COPIES: Final = 1 << 20


def constant_rows(
    index: int,
    projection: Schema,
    rows: Sequence[tuple[object, ...]],
    counts: Sequence[int],
) -> Relation:
    """The rows, each repeated by its number in ``counts``; once if ``counts`` is empty.

    A row is repeated by cross products with ranges of powers of two: DuckDB makes 100 million rows
    in about a second, and takes 20 times longer with a function that is called for each row.
    """
    import pyarrow as pa

    from icesql.read.columns.arrow_schema import column_of

    pairs = list(_products(rows, counts)) if counts else [(row, 1) for row in rows]
    columns: dict[str, Any] = {
        f"c{column.field_id}": column_of([row[place] for row, _ in pairs], column.type)
        for place, column in enumerate(projection.fields)
    }
    name = f"__constants_{index}"
    if not counts:
        return stream_relation(projection, name, pa.table(columns))
    columns[_COPIES] = pa.array([copies for _, copies in pairs], pa.int64())
    plain = stream_relation(projection, name, pa.table(columns))
    sql = " UNION ALL ".join(
        f"{plain.sql}, range({copies}) WHERE {quoted(_COPIES)} = {copies}"
        for copies in sorted({copies for _, copies in pairs})
    )
    return Relation(sql, registered=plain.registered)


def _products(
    rows: Sequence[tuple[object, ...]], counts: Sequence[int]
) -> Iterator[tuple[tuple[object, ...], int]]:
    """Each row with powers of two that add up to its count; the greatest may come several times."""
    for row, count in zip(rows, counts, strict=True):
        for _ in range(count // _MOST_COPIES):
            yield row, _MOST_COPIES
        rest, copies = count % _MOST_COPIES, 1
        while rest:
            if rest & 1:
                yield row, copies
            rest, copies = rest >> 1, copies * 2
