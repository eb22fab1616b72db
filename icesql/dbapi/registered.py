"""Registers rows that the program holds under a name, for a connection or for one statement."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from msgspec.structs import replace

from icesql.engine.result_schema import unique_names
from icesql.errors import DataError, Error, ProgrammingError, TableNotFoundError, nearest
from icesql.query.views.temporary import SparkFrame, Temporary, TemporaryTable
from icesql.quoting import quoted
from icesql.read.formats.file_fields import arrow_children

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection
    from icesql.session.session import Session


# ------------------------------------------------------------------ rows as Arrow


# Arrow types that no engine scans: half floats, and decimals of more than 38 digits.

_DIGITS: Final = 38


def narrowed(table: Any) -> Any:
    """The Arrow table with half floats as floats, and wide decimals as decimals of 38 digits.

    Raises DataError, with column and row, for a value that has more digits.
    """
    for index, field in enumerate(table.schema):
        kind = narrow_type(field.type)
        if kind != field.type:
            table = table.set_column(index, field.with_type(kind), _cast(field, table[index], kind))
    return table


def narrow_type(kind: Any) -> Any:
    """The replacement for an Arrow type that no engine scans, at any depth; else the type."""
    import pyarrow as pa

    if kind == pa.float16():
        return pa.float32()
    if pa.types.is_decimal256(kind):
        return pa.decimal128(min(kind.precision, _DIGITS), min(kind.scale, _DIGITS))
    fields = () if isinstance(kind, pa.BaseExtensionType) else arrow_children(kind)
    new = [each.with_type(narrow_type(each.type)) for each in fields]
    if [each.type for each in new] == [each.type for each in fields]:
        return kind
    if pa.types.is_struct(kind):
        return pa.struct(new)
    if pa.types.is_map(kind):
        return pa.map_(*new)
    return pa.large_list(*new) if pa.types.is_large_list(kind) else pa.list_(*new)


def _cast(field: Any, values: Any, kind: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    def cast(count: int) -> Any:
        # ``take`` copies, because casting a slice also casts list elements outside of the slice.
        return values.take(pa.array(np.arange(count))).cast(kind)

    def fails(count: int) -> bool:
        try:
            cast(count)
        except pa.ArrowInvalid:
            return True
        return False

    try:
        return cast(len(values))
    except pa.ArrowInvalid as error:
        row = bisect_left(range(len(values) + 1), True, key=fails)
        raise DataError(
            f'row {row}, column "{field.name}": a value of type {field.type} does not fit {kind}: '
            f"{error}; CAST the column to a type with the digits that it needs"
        ) from error
    except pa.ArrowNotImplementedError as error:
        problem = f'column "{field.name}" has the type {field.type}, which cannot be read'
        raise DataError(f"{problem}; CAST it to {kind}") from error


_TAKEN = (
    "a pandas or Polars DataFrame, a LazyFrame, an Arrow table, batch, reader or dataset, a "
    "mapping of columns, or anything with __arrow_c_stream__"
)
# Readers that have been read: a second read would return no rows.
_READ: Final[WeakSet[Any]] = WeakSet()


def as_arrow(rows: Any, check: Callable[[int], None]) -> tuple[tuple[str, ...], Any, int]:
    """Unique column names (ignoring case), the rows, and the number of copied bytes.

    Arrow data is used without a copy, except for types that no engine scans (``narrowed``). A
    dataset stays a dataset, whose files each query reads with its own columns and filters. A
    LazyFrame is run now; a reader is read to its end, once. ``check`` is called with the number of
    copied bytes, and raises if they are too many. Raises ProgrammingError for values that are not
    tables and for a reader that was read before, DataError for values that Arrow or the engines do
    not support and for failures of the library that produces the rows.
    """
    import pyarrow as pa

    copied = 0
    try:
        if isinstance(rows, pa.Table):
            table = rows
        elif isinstance(rows, pa.RecordBatch):
            table = pa.Table.from_batches([rows])
        elif _is(rows, "pyarrow.dataset", "Dataset"):
            for each in rows.schema:
                if narrow_type(each.type) != each.type:
                    raise DataError(
                        f'column "{each.name}" of the dataset has the type {each.type}, which '
                        f"cannot be read there; give dataset.to_table(), or CAST it to "
                        f"{narrow_type(each.type)} in the files"
                    )
            return tuple(_named_apart(rows.schema.names)), rows, 0
        elif _is(rows, "pandas", "DataFrame"):
            table = pa.Table.from_pandas(rows, preserve_index=False)
        elif isinstance(rows, Mapping):
            table = pa.table(dict(rows))
        elif _is(rows, "polars", "LazyFrame"):
            frame = rows.collect()
            check(copied := frame.estimated_size())
            table = pa.table(frame)
        elif hasattr(rows, "__arrow_c_stream__"):
            if isinstance(rows, pa.RecordBatchReader):
                _begin(rows)
            reader = pa.RecordBatchReader.from_stream(rows)
            batches = []
            # Objects with a shape are in memory already, so only the batches of readers count.
            is_new = not hasattr(rows, "shape")
            for batch in reader:
                copied += batch.nbytes if is_new else 0
                check(copied)
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
        else:
            raise ProgrammingError(f"{type(rows).__name__} is no table; give {_TAKEN}")
    except Error:
        raise
    except Exception as error:  # any error of the library that produces the rows
        raise DataError(f"these rows cannot be read as Arrow: {error}") from error
    names, read = _named_apart(table.column_names), narrowed(table)
    if read is not table:
        check(copied := copied + read.nbytes)
    return tuple(names), read.rename_columns(names), copied


def _begin(reader: Any) -> None:
    if reader in _READ:
        raise ProgrammingError(
            "this reader was read before, and a reader gives its rows once; register what its rows "
            "are of, or reader.read_all()"
        )
    _READ.add(reader)


def _named_apart(names: list[str]) -> list[str]:
    if not names:
        raise ProgrammingError("a table without columns cannot be queried")
    return unique_names([str(name) for name in names])


def _is(value: Any, module: str, name: str) -> bool:
    """True for a value of a library's class; if the library is not imported, it is none."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(value, found)


# ------------------------------------------------------------------ registration


def register(connection: Connection, session: Session, name: str, rows: Any) -> None:
    """Register ``rows`` as ``name`` on a connection. Raises as ``as_arrow`` and as reading rows.

    Raises OperationalError if the copied bytes exceed ``memory_limit``.
    """
    made = session.state.temporary
    before = made.find((_checked(name),))
    table = _table(session, made, name, rows)
    made.keep(table)
    session.pipeline.drop_prepared()
    if isinstance(table, SparkFrame):
        return
    try:
        with connection.execute(f"SELECT * FROM {quoted(name)} LIMIT 0") as cursor:
            types = [column[1] for column in cursor.description or []]
    except BaseException:
        made.forget(name)
        if before is not None:
            made.keep(before)
        raise
    columns = tuple(
        (column, type_text, "")
        for (column, _, _), type_text in zip(table.columns, types, strict=True)
    )
    made.keep(replace(table, columns=columns))


def unregister(session: Session, name: str) -> None:
    """Undo ``register``. Raises ProgrammingError if no rows have the name."""
    made = session.state.temporary
    if not isinstance(made.find((name,)), TemporaryTable):
        hint = nearest(name, [each.name for each in made.all])
        raise ProgrammingError(f'nothing is registered as "{name}"{hint}')
    made.forget(name)
    session.pipeline.drop_prepared()


def name_rows(error: TableNotFoundError) -> None:
    """Add a hint about ``register`` if the calling code has a variable with the table's name.

    The variable's value is only tested for being None, callable or a module.
    """
    frame = sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] == "icesql":
        frame = frame.f_back
    name = error.table
    value = frame.f_locals.get(name, frame.f_globals.get(name))
    if value is not None and not callable(value) and not isinstance(value, ModuleType):
        error.similar = ()
        error.hint = f'for the variable of the program: register("{name}", {name}) first'
        error.args = (error._message(),)


def tables_of(session: Session, tables: Mapping[str, Any]) -> dict[str, TemporaryTable]:
    """Tables for one statement by their names in lower case. Raises as ``as_arrow``."""
    made = Temporary()
    return {
        _checked(name).lower(): _table(session, made, name, rows) for name, rows in tables.items()
    }


def _table(session: Session, made: Temporary, name: str, rows: Any) -> TemporaryTable:
    if _is_of_spark(rows) and session.state.settings.engine != "local":
        from icesql.session.frames import spark_frame

        session.engines.spark().sessions.check_frame(rows, name)
        return spark_frame(name, rows)
    limit = session.state.settings.memory_limit
    names, data, size = as_arrow(rows, lambda copied: made.check_room(copied, limit, name))
    return TemporaryTable(name, tuple((column, "", "") for column in names), data, size)


def _is_of_spark(rows: Any) -> bool:
    """True for a DataFrame of PySpark, also of Spark Connect."""
    kind = type(rows)
    return kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


def _checked(name: str) -> str:
    if not isinstance(name, str) or not name or "\0" in name:
        raise ProgrammingError(f"{name!r} is no name for a table")
    return name
