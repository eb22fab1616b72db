"""Find the table of ``format("icesql")``, select its snapshot, and plan its tasks.

Runs in the Python processes that plan for Spark, never in icesql's own queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.datasource.options import ReadOptions, read_options, split_identifier
from icesql.errors import (
    CatalogError,
    ColumnNotFoundError,
    ProgrammingError,
    SnapshotNotFoundError,
    TableNotFoundError,
    TypeMismatchError,
    UnsupportedTableError,
    similar_names,
)
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Operation, Predicate, Term
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.schema import METADATA_COLUMNS, Schema
from icesql.iceberg.types import NestedField, PrimitiveType, walk
from icesql.scan.changes import APPEND, REPLACE, added_files, operation_of
from icesql.scan.plan import TableScan, scan_context
from icesql.scan.tasks import CombinedScanTask, FileScanTask, Packing, pack_files, without_metrics

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Identifier, Table
    from icesql.iceberg.manifest.data_file import DataFile

MAIN: Final = "main"


class Columns(Frozen):
    """The schema to read by and the columns of the result, as they were at ``load()``.

    Spark keeps them while the DataFrame or the query lives, whatever happens to the table.
    """

    schema: Schema
    projection: Schema
    table_uuid: str | None = None


class ReadRequest(Frozen):
    """Options and connection of a read; ``connect`` may hold credentials, so the repr is empty."""

    options: ReadOptions
    connect: Mapping[str, Any]
    fixed: Columns | None = None

    @classmethod
    def of(
        cls, options: Mapping[str, str], connect: Mapping[str, Any], fixed: Columns | None = None
    ) -> ReadRequest:
        """Read the options. Raises ProgrammingError as ``read_options`` does."""
        chosen = read_options(options)
        return cls(chosen, {**connect, **chosen.connect}, fixed)

    def __repr__(self) -> str:
        return "ReadRequest()"

    # ------------------------------------------------------------------ the table

    def table(self) -> Table:
        """The table of ``load("catalog.db.table" | path)`` in its current state.

        Raises TableNotFoundError, CatalogError.
        """
        from icesql.catalog.open import open_table

        name = self.options.path
        if "/" in name or name.endswith(".json"):
            return open_table(name, properties=self.connect.get("properties"))
        catalog, table = find_table(name, self.connect)
        catalog.close()
        return table

    def head(self, table: Table) -> Snapshot | None:
        """The newest snapshot of the option ``branch``, or of main; None before the first one.

        Raises SnapshotNotFoundError for a branch that does not exist.
        """
        branch = self.options.branch
        ref = table.metadata.refs.get(branch or MAIN)
        if branch in (None, MAIN) and ref is None:
            return table.metadata.current_snapshot
        return self._of_ref(table, "branch", branch or MAIN)

    def _of_ref(self, table: Table, kind: str, name: str) -> Snapshot:
        refs = table.metadata.refs
        ref = refs.get(name)
        snapshot = None if ref is None else table.metadata.snapshot(ref.snapshot_id)
        if ref is None or ref.kind != kind or snapshot is None:
            names = [each for each in refs if refs[each].kind == kind and each != name]
            hint = f"{name} is a {ref.kind}" if ref is not None and ref.kind != kind else ""
            raise SnapshotNotFoundError(
                f'{kind} "{name}"', table=table.name, similar=similar_names(name, names), hint=hint
            )
        return snapshot

    def selected(self, table: Table) -> tuple[Snapshot | None, Schema]:
        """The snapshot of a batch read and the schema to read it by.

        A branch is read by the table's schema, a tag or another snapshot by its own schema.
        """
        from icesql.query.snapshot_selection import select_snapshot
        from icesql.sql.time_travel import AsOf, SnapshotId

        options = self.options
        if options.tag is not None:
            snapshot = self._of_ref(table, "tag", options.tag)
            return snapshot, table.metadata.schema_of(snapshot)
        travel: AsOf | SnapshotId
        if options.snapshot_id is not None:
            travel = SnapshotId(options.snapshot_id)
        elif options.as_of_timestamp is not None:
            instant = options.as_of_timestamp
            travel = AsOf(instant * 1000, str(instant))
        else:
            return self.head(table), table.metadata.schema
        found = select_snapshot(table, travel, self.query())
        return found.snapshot, found.schema

    def query(self) -> QueryContext:
        """A context with the sizes of the options."""
        return QueryContext(settings=self.options.settings)

    # ------------------------------------------------------------------ columns

    def columns(self) -> Columns:
        """The columns of ``load()``; raises errors of the options, the table or a name."""
        table = self.table()
        snapshot, schema = self.selected(table)
        projection = self._projection(TableScan(table, snapshot, schema, schema))
        return Columns(schema, projection, table.metadata.table_uuid)

    def columns_now(self, table: Table, schema: Schema) -> Columns:
        """The columns of ``load()`` for a read by the current ``schema``.

        A column that was dropped since ``load()`` is still read from files that have it, else it is
        NULL. Raises TypeMismatchError for a column whose type has changed, TableNotFoundError if
        another table has the name now.
        """
        fixed = self.fixed
        if fixed is None:
            raise ProgrammingError(
                "icesql uses the table's schema and takes no other; "
                'option("columns", "a, b") chooses among them'
            )
        if fixed.table_uuid != table.metadata.table_uuid:
            raise TableNotFoundError(
                table.name, hint="another table has that name since load(); load() it again"
            )
        for column in walk(fixed.projection.fields):
            now = schema.field_by_id.get(column.field_id)
            if now is None or not isinstance(column.type, PrimitiveType) or now.type == column.type:
                continue
            raise TypeMismatchError(
                f'column "{column.name}" of table "{table.name}" was {column.type} at load() and '
                f"is {now.type} now; load() it again; a stream continues from its checkpoint"
            )
        return Columns(_relaxed(fixed.schema, schema), _relaxed(fixed.projection, schema))

    def _projection(self, scan: TableScan) -> Schema:
        schema = scan.schema
        if self.options.columns is None:
            return schema
        found: dict[int, NestedField] = {}
        for name in self.options.columns:
            column = _find(scan, name)
            if column is None:
                near = [*(each.name for each in schema.fields), *METADATA_COLUMNS]
                hint = [name.partition(".")[0]] if _find(scan, name.partition(".")[0]) else []
                raise ColumnNotFoundError(
                    name, table=scan.table.name, similar=hint or similar_names(name, near)
                )
            if column.field_id in found:
                raise ProgrammingError(f'option "columns" names "{name}" twice')
            found[column.field_id] = column
        return replace(schema, fields=tuple(found.values()))

    # ------------------------------------------------------------------ appended files

    def takes(self, table: Table, snapshot: Snapshot) -> bool:
        """True if a snapshot's rows are read as appended; False if the snapshot is skipped.

        Raises UnsupportedTableError if it overwrote or deleted rows, unless such ones are skipped.
        """
        operation = operation_of(snapshot, table.name)
        if operation in (APPEND, REPLACE) or operation in self.options.skipped:
            return operation == APPEND
        raise UnsupportedTableError(
            f"reading what was appended by snapshot {snapshot.snapshot_id}, "
            f"whose operation is {operation}",
            table=table.name,
            hint=f'option("on-{operation}", "skip") leaves it out, and what it changed with it',
        )

    def appended(self, table: Table, snapshot: Snapshot) -> tuple[DataFile, ...]:
        """The data files that a snapshot appended, () if the snapshot is skipped."""
        if not self.takes(table, snapshot):
            return ()
        return added_files(table, snapshot, self.query())

    def whole_files(
        self, table: Table, files: Iterable[DataFile], columns: Columns
    ) -> list[CombinedScanTask]:
        """Tasks that read whole files as they were appended, without deletes."""
        context = scan_context(TableScan(table, None, columns.schema, columns.projection))
        packing = Packing.choose(self.options.settings, table.metadata.properties)
        bare = map(without_metrics, files)
        tasks = [FileScanTask(file, 0, file.file_size_in_bytes) for file in bare]
        return [CombinedScanTask(group, context) for group in pack_files(tasks, packing)]


def find_table(name: str, connect: Mapping[str, Any]) -> tuple[Catalog, Table]:
    """The table "catalog.db.table" in its current state, and its catalog, which the caller closes.

    Raises TableNotFoundError, CatalogError.
    """
    from icesql.catalog.open import open_catalog

    parts = split_identifier(name)
    try:
        return _load(open_catalog(**connect), parts)
    except (TableNotFoundError, CatalogError) as error:
        from icesql.catalog.configuration import configuration

        # The first part may be another catalog in the user's configuration.
        tried = isinstance(error, CatalogError) and connect
        if tried or len(parts) < 3 or not configuration().catalog(parts[0]):
            raise
        return _load(open_catalog(parts[0]), parts[1:])


def _load(catalog: Catalog, parts: Identifier) -> tuple[Catalog, Table]:
    try:
        try:
            return catalog, catalog.load(parts)
        except TableNotFoundError:
            if len(parts) < 2 or parts[0].lower() != catalog.name.lower():
                raise
            return catalog, catalog.load(parts[1:])
    except BaseException:
        catalog.close()
        raise


def _find(scan: TableScan, name: str) -> NestedField | None:
    from icesql.query.columns import united_partition_column

    found = scan.schema.find_column(name)
    if found is not None:
        return found
    if name.lower() == "_partition":
        return united_partition_column(scan)
    return METADATA_COLUMNS.get(name.lower())


def _relaxed(schema: Schema, now: Schema) -> Schema:
    """``schema`` with columns that the table no longer has made optional."""
    return replace(
        schema,
        fields=tuple(
            column if column.field_id in now.field_by_id else replace(column, required=False)
            for column in schema.fields
        ),
    )


# ------------------------------------------------------------------ filters


def predicate_of(filters: Iterable[Any], schema: Schema) -> Predicate:
    """A predicate that PySpark's filters imply; Spark evaluates every one of them again."""
    found: Predicate = ALWAYS_TRUE
    for each in filters:
        found = found & _of_filter(each, schema)
    return found


def _of_filter(given: Any, schema: Schema) -> Predicate:
    from icesql.iceberg.expressions.literals import compare
    from icesql.query.constants.times import read_for

    kind = type(given).__name__
    operation = _OPERATIONS.get(kind)
    column = _column(getattr(given, "attribute", ()), schema)
    if operation is None or column is None:
        return ALWAYS_TRUE
    term = Term(column.field_id, column.name)
    value = getattr(given, "value", None)
    if isinstance(value, list | tuple):
        value = tuple(read_for(column.type, each) for each in value)
    else:
        value = read_for(column.type, value)
    found = compare(operation, term, column.type, value)
    if operation in (Operation.GT, Operation.GT_EQ):
        from icesql.iceberg.types import is_floating

        if is_floating(column.type):
            # Spark orders NaN above every number.
            found = found | compare(Operation.IS_NAN, term, column.type, None)
    return found


_OPERATIONS: Final = {
    "EqualTo": Operation.EQ,
    "GreaterThan": Operation.GT,
    "GreaterThanOrEqual": Operation.GT_EQ,
    "LessThan": Operation.LT,
    "LessThanOrEqual": Operation.LT_EQ,
    "In": Operation.IN,
    "IsNull": Operation.IS_NULL,
    "IsNotNull": Operation.NOT_NULL,
    "StringStartsWith": Operation.STARTS_WITH,
}


def _column(path: Sequence[str], schema: Schema) -> NestedField | None:
    """The column of a filter; None for nested ones and those that Spark has in another type."""
    from icesql.engine.spark.types import is_carried

    if len(path) != 1:
        return None
    column = schema.find_column(path[0])
    if column is None or not isinstance(column.type, PrimitiveType) or is_carried(column.type):
        return None
    return column
