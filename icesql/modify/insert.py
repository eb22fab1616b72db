"""INSERT and COPY … FROM: rows of a query become files of a table, in one commit."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from icesql.commit.branches import Branch, start_of
from icesql.commit.file_changes import CommitResult, SchemaChange, as_it_is
from icesql.commit.rows import (
    commit_append,
    commit_delete_where,
    commit_replace_partitions,
    matched_files,
)
from icesql.engine.duckdb_types import column_types
from icesql.engine.result_schema import ResultColumn
from icesql.errors import (
    DataError,
    IntegrityError,
    ProgrammingError,
    UnsupportedSqlError,
)
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Leaf, Operation, Predicate, Term
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.schema import Schema
from icesql.modify.create import constant_of, constant_value
from icesql.modify.evolution import Evolution
from icesql.modify.rows.commit import change_rows, row_target
from icesql.modify.rows.new_files import NewRows, RowBatch, write_files
from icesql.modify.services import Modified, StatementServices
from icesql.modify.targets import column_named, find_target, read_of
from icesql.sql.trees import exp
from icesql.sql.writes.statements import Insert
from icesql.storage.new_files import Uncommitted
from icesql.write.assignment import constant_array, stored_array
from icesql.write.casts import Misfit
from icesql.write.write_task import write_task, write_task_for

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.catalog.table import Catalog, Table
    from icesql.engine.result import Result
    from icesql.scan.plan import TableScan
    from icesql.write.write_task import WriteTask


# ------------------------------------------------------------------ PARTITION (p = 1, q)


class FixedValue(Frozen):
    """A column and its constant value in internal form."""

    field: t.NestedField
    value: Any


def partition_values(
    statement: Insert, metadata: TableMetadata, services: StatementServices
) -> tuple[FixedValue, ...]:
    """The constants of PARTITION, in its order.

    Raises ProgrammingError for a column that is no identity partition field,
    ColumnNotFoundError, and DataError for a value that the column cannot hold.
    """
    own = {each.source_id for each in metadata.spec.fields if each.transform.lower() == "identity"}
    found = []
    for each in statement.partition:
        field = column_named(each.name, metadata.schema, each.offset)
        if field.field_id not in own:
            raise ProgrammingError(
                f'PARTITION names "{field.name}", by whose values {statement.table.text} is not '
                "partitioned; INSERT INTO t REPLACE WHERE takes any condition"
            )
        if each.value is not None:
            # Evaluated once, so that the new rows go to the partition whose rows are replaced.
            constant, place = constant_of(each.value, services), (field.name, each.offset)
            value = constant_value(place, field.type, constant, services, "value")
            found.append(FixedValue(field, value))
    return tuple(found)


def as_defaults(task: WriteTask, values: Sequence[FixedValue]) -> WriteTask:
    """A write task that gives the constants to every row, wherever the rows are written."""
    fixed = {each.field.field_id: each.value for each in values}
    if not fixed:
        return task
    old = task.assignment
    fields = tuple(
        replace(each, write_default=fixed[each.field_id]) if each.field_id in fixed else each
        for each in old.schema.fields
    )
    sources = tuple(
        None if each.field_id in fixed else source
        for each, source in zip(old.schema.fields, old.sources, strict=True)
    )
    made = replace(old, schema=replace(old.schema, fields=fields), sources=sources)
    return replace(task, assignment=made)


# ------------------------------------------------------------------ rows added


_TAKES_ANY: Final = "write.spark.accept-any-schema"


def insert(statement: Insert, services: StatementServices) -> Modified:
    """Run the query and append its rows, or replace other rows with them.

    WITH SCHEMA EVOLUTION, and with BY NAME if the table accepts any schema, the same commit adds
    the query's columns that the table lacks, and widens types.

    OVERWRITE replaces all rows, those of the partition that PARTITION names, or, with the setting
    ``partition_overwrite_mode`` dynamic, those of every partition that gets rows; REPLACE WHERE
    replaces those that satisfy its condition.

    Raises ColumnNotFoundError, ProgrammingError and IntegrityError for columns that do not fit,
    DataError and TypeMismatchError for rows that do not, and what the query or the commit raises.
    """
    if statement.replaced is not None:
        return replace_where(statement, services)
    catalog, table, branch = find_target(statement.table, services)
    if statement.evolves or _takes_any(statement, table):
        table = as_it_is(catalog, table)
    schema = table.metadata.schema
    if statement.copied is not None:
        statement = _read_by_columns(statement, schema, services)
    values = partition_values(statement, table.metadata, services) if statement.partition else ()
    if statement.defaults:  # in the order of the text
        result, scans = services.run_here(statement.query, {}, lambda read: read)
    else:
        result, scans = services.run(statement.query)
    with closing(result):
        evolution = insert_evolution(statement, table, result.columns)
        change, note = None, ""
        if evolution is not None:
            note = evolution.note(table.metadata.schema, branch)
            table, change = evolution.planned(table, services.query)
        given = [each.name for each in result.columns]
        sources = column_sources(statement, table.metadata.schema, given)
        task = write_task_for(
            table.metadata, table.storage, sources, zone=services.query.settings.timezone
        )
        if statement.defaults and not values:
            batches, shape = _with_defaults(result, statement, table, sources, services)
            written = write_task(task, batches, services.query, shape)
        elif statement.defaults:
            raise UnsupportedSqlError("DEFAULT with PARTITION", hint="leave the column out")
        else:
            written = write_files(result, as_defaults(task, values), services.query)
    if statement.overwrite:
        done = overwrite(
            statement, (catalog, table, branch), values, written.files, scans, services, change
        )
    else:
        done = commit_append(
            catalog,
            table,
            written.files,
            branch=branch,
            rows=written.rows,
            schema=change,
            query=services.query,
        )
    made = Modified.of(written, done.snapshot_id)
    return replace(made, note=note, evolved=change is not None)


def _with_defaults(
    result: Result,
    statement: Insert,
    table: Table,
    sources: Sequence[int | None],
    services: StatementServices,
) -> tuple[Iterable[pa.RecordBatch], pa.Schema]:
    """The rows of VALUES, with the column's default in place of each DEFAULT."""
    import pyarrow as pa

    rows = result.arrow_reader().read_all()
    for field, source in zip(table.metadata.schema.fields, sources, strict=True):
        wanted = [(row, source) in statement.defaults for row in range(rows.num_rows)]
        if source is None or not any(wanted):
            continue
        value = field.written_default
        if value is None and field.required:
            raise IntegrityError(f'column "{field.name}" is required and has no default')
        own = constant_array(value, field.type, len(wanted))
        if not all(wanted):
            optional = t.NestedField(field.field_id, field.name, field.type)
            column = rows.column(source).combine_chunks()
            try:
                given = stored_array(optional, column, services.query.settings.timezone)
            except Misfit as misfit:
                what = f'column "{field.name}" ({field.type}): {misfit.reason}'
                raise DataError(what) from misfit
            places = [row + len(wanted) * default for row, default in enumerate(wanted)]
            own = pa.concat_arrays([given, own]).take(pa.array(places))
        rows = rows.set_column(source, field.name, own)
    return rows.combine_chunks().to_batches(), rows.schema


def insert_many(statements: Iterable[Insert], services: StatementServices) -> Modified:
    """Append the rows of several statements that insert into one table, in one commit."""
    several = iter(statements)
    first = next(several, None)
    if first is None:
        return Modified(0)
    if first.evolves:
        raise UnsupportedSqlError(
            "WITH SCHEMA EVOLUTION with several sets of values", hint="SELECT … FROM rows"
        )
    if first.defaults:
        raise UnsupportedSqlError(
            "DEFAULT with several sets of values", hint="leave the column out of the list"
        )
    if first.overwrite or first.copied is not None or first.partition or first.replaced:
        raise UnsupportedSqlError("this statement with several sets of values")
    catalog, table, branch = find_target(first.table, services)
    schema = table.metadata.schema

    def batches() -> Generator[pa.RecordBatch, None, None]:
        for statement in (first, *several):
            with closing(services.run(statement.query)[0]) as result:
                column_sources(statement, schema, [each.name for each in result.columns])
                yield from result.arrow_reader()

    if first.by_name:
        raise UnsupportedSqlError("BY NAME with several sets of values", hint="name the columns")
    sources = column_sources(first, schema, [], counted=False)
    task = write_task_for(
        table.metadata, table.storage, sources, zone=services.query.settings.timezone
    )
    with closing(batches()) as rows:
        written = write_task(task, rows, services.query)
    done = commit_append(
        catalog,
        table,
        written.files,
        branch=branch,
        rows=written.rows,
        query=services.query,
    )
    return Modified.of(written, done.snapshot_id)


def insert_evolution(
    statement: Insert, table: Table, columns: Sequence[ResultColumn]
) -> Evolution | None:
    """The evolution of the table by the columns of the query; None if evolution is not allowed."""
    if not statement.evolves and not _takes_any(statement, table):
        return None
    names = [each.name for each in columns]
    if statement.columns is not None:
        names[: len(statement.columns)] = statement.columns
    elif not statement.by_name:
        fixed = {each.name.lower() for each in statement.partition if each.value is not None}
        own = [each.name for each in table.metadata.schema.fields if each.name.lower() not in fixed]
        beyond = names[len(own) :]
        for name in beyond:
            if table.metadata.schema.find_column(name) is not None:
                raise ProgrammingError(
                    f'the query gives "{name}" behind the {len(own)} columns that '
                    f"{statement.table.text} has, and it has that one; BY NAME goes by names"
                )
        if beyond and _is_values(statement.query.tree):
            raise ProgrammingError(
                f"VALUES gives {len(names)} columns, and {statement.table.text} has {len(own)}; "
                "name the new ones in a column list"
            )
        names = [*own[: len(names)], *beyond]
    given = [ResultColumn(name, each.type) for name, each in zip(names, columns, strict=True)]
    is_text = statement.copied is not None and "parquet" not in statement.copied.function
    return Evolution(given, widens=not is_text)


def _takes_any(statement: Insert, table: Table) -> bool:
    takes = table.metadata.properties.get(_TAKES_ANY, "false").lower() == "true"
    return takes and statement.by_name


def _is_values(tree: exp.Expr) -> bool:
    """True for VALUES without an alias, whose column names are generated."""
    clause = tree.args.get("from_")
    return clause is not None and isinstance(clause.this, exp.Values) and not clause.this.alias


def column_sources(
    statement: Insert, schema: Schema, given: Sequence[str], *, counted: bool = True
) -> tuple[int | None, ...]:
    """For each column of the table, the index of its values in the query's columns, or None.

    Columns that PARTITION assigns follow the query's columns.
    """
    fields = schema.fields
    fixed = [each.name for each in statement.partition if each.value is not None]
    place = None if statement.by_name else statement.table.offset
    own = [column_named(name, schema, place) for name in fixed]
    if statement.by_name:
        targets = [column_named(name, schema, place) for name in given]
    elif statement.columns is not None:
        targets = [column_named(name, schema, place) for name in statement.columns]
    else:
        targets = [each for each in fields if each not in own]
    if counted and len(given) != len(targets):
        listed = "the column list" if statement.columns is not None else statement.table.text
        raise ProgrammingError(
            f"the query gives {len(given)} column{'s' * (len(given) != 1)}, "
            f"and {listed} has {len(targets)}"
        )
    places: dict[int, int] = {}
    for place, field in enumerate((*targets, *own)):
        if field.field_id in places:
            raise ProgrammingError(f'column "{field.name}" is given twice')
        places[field.field_id] = place
    for field in fields:
        missing = field.field_id not in places and field.written_default is None
        if missing and field.required:
            raise IntegrityError(
                f'column "{field.name}" is required and the statement gives it no value'
            )
    return tuple(places.get(field.field_id) for field in fields)


def _read_by_columns(statement: Insert, schema: Schema, services: StatementServices) -> Insert:
    """Make the reader use the types of the table's columns, unless options give types."""
    file = statement.copied
    assert file is not None
    options = file.options
    if "csv" in file.function and statement.evolves:
        # By the names in the first line; the types of new columns are inferred from the file.
        if "header" not in dict(options):
            options = (*options, ("header", "true"))
        columns = [schema.find_column(each) for each in _names_in(statement, options, services)]
        known = [each for each in columns if each is not None]
        options = (*options, ("types", column_types(known))) if known else options
    elif "csv" in file.function:
        targets = list(schema.fields)
        if statement.columns is not None:
            place = statement.table.offset
            targets = [column_named(name, schema, place) for name in statement.columns]
        options = (*options, ("columns", column_types(targets)))
    return _with_options(statement, options)


def _names_in(
    statement: Insert, options: tuple[tuple[str, str], ...], services: StatementServices
) -> list[str]:
    """The column names of the file, read with these options."""
    with closing(services.run(_with_options(statement, options).query)[0]) as result:
        return [each.name for each in result.columns]


def _with_options(statement: Insert, options: tuple[tuple[str, str], ...]) -> Insert:
    assert statement.copied is not None
    file = replace(statement.copied, options=options)
    return replace(statement, query=replace(statement.query, files=(file,)))


# ------------------------------------------------------------------ OVERWRITE and REPLACE WHERE


Target = tuple["Catalog", "Table", Branch]


def overwrite(
    statement: Insert,
    target: Target,
    values: Sequence[FixedValue],
    files: Sequence[DataFile],
    scans: Sequence[TableScan],
    services: StatementServices,
    schema: SchemaChange | None,
) -> CommitResult:
    """Commit the files of new rows in place of the rows that the statement replaces.

    If the new rows were computed from the table's own, by ``scans``, the rows read must not have
    changed since: additions would be lost, and deleted rows would reappear.
    Raises UnsupportedSqlError for a file of an older partition spec that also holds rows to keep.
    """
    catalog, table, branch = target
    metadata = table.metadata
    start_id = start_of(metadata, branch)
    head = None if start_id is None else metadata.snapshot(start_id)
    read = read_of(scans, table, start_id)
    with Uncommitted(table.storage) as new:
        new.take(each.path for each in files)
        dynamic = _is_dynamic(statement, metadata, services, bool(files))
        wanted = reduce(lambda all, each: all & _is(each), values, ALWAYS_TRUE)
        if not dynamic and values:
            partly = matched_files(table, head, wanted, services.query).partly
            if partly:
                raise UnsupportedSqlError(
                    f"INSERT OVERWRITE of a partition where {partly[0]}, written by an older "
                    "partitioning, may hold rows of others, too",
                    hint="INSERT INTO t REPLACE WHERE does it row by row",
                    offset=statement.table.offset,
                )
        new.hand_over()
    commit: Callable[..., CommitResult] = commit_replace_partitions
    if not dynamic:
        commit = partial(commit_delete_where, predicate=wanted)
    return commit(
        catalog,
        table,
        added=files,
        start_id=start_id,
        read=read,
        branch=branch,
        schema=schema,
        query=services.query,
    )


def _is_dynamic(
    statement: Insert, metadata: TableMetadata, services: StatementServices, has_rows: bool
) -> bool:
    """As in Spark: static if PARTITION gives all values, or for a table without partitions.

    A table without partitions counts as one partition, which stays unchanged if there are no new
    rows.
    """
    if services.query.settings.partition_overwrite_mode != "dynamic":
        return False
    live = [each for each in metadata.spec.fields if each.transform.lower() != "void"]
    fixed = [each for each in statement.partition if each.value is not None]
    if not live:
        return not has_rows
    return len(fixed) < len(live)


def _is(given: FixedValue) -> Predicate:
    term = Term(given.field.field_id, given.field.name)
    if given.value is None:
        return Leaf(Operation.IS_NULL, term)
    if given.value != given.value:
        return Leaf(Operation.IS_NAN, term)
    return Leaf(Operation.EQ, term, given.value)


# ------------------------------------------------------------------ REPLACE WHERE


def replace_where(statement: Insert, services: StatementServices) -> Modified:
    """Remove the rows that satisfy the condition and add those of the query, in one commit.

    Raises DataError for a new row that does not satisfy the condition; then nothing is changed.
    """
    replaced = statement.replaced
    assert replaced is not None
    catalog, _, branch = find_target(statement.table, services)
    with replaced.sources.placing():
        gone, scans = services.run(replaced)
    with closing(gone):
        with statement.query.sources.placing():
            coming, sources = services.run(statement.query)
        with closing(coming):
            target = row_target(catalog, scans[0], command="delete", branch=branch, alone=False)
            if len(scans) == 1 and read_of(sources, target.table, target.start_id) is None:
                target = replace(target, row_filter=scans[0].row_filter)
            reader = coming.arrow_reader()
            names = [each.name for each in coming.columns[:-1]]
            places = column_sources(statement, target.metadata.schema, names)
            new = NewRows(places, schema=reader.schema.remove(len(names)))
            done = change_rows(target, _both(gone, reader), services, new=new, once=False)
    return done.modified(done.written.rows)


def _both(gone: Result, reader: pa.RecordBatchReader) -> Iterator[RowBatch]:
    for batch in gone.arrow_reader():
        yield RowBatch(batch.column(0), batch.column(1))
    seen = 0
    for batch in reader:
        last = batch.num_columns - 1
        fits = pc.fill_null(batch.column(last), False)
        if fits.false_count:
            row = seen + fits.index(False).as_py() + 1
            raise DataError(
                f"row {row} does not satisfy the condition of REPLACE WHERE: it would come again "
                "each time; put the same condition into the query, or widen it"
            )
        seen += batch.num_rows
        yield RowBatch(rows=batch.remove_column(last))
