"""Write rows to files with DuckDB: its COPY statement, rows as JSON, results of other engines."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.duckdb.arrow_stream import ArrowStream
from icesql.engine.duckdb.described import register
from icesql.engine.duckdb.errors import translate
from icesql.engine.duckdb.sources import OpenQuery
from icesql.engine.duckdb_types import are_alike, engine_schema
from icesql.engine.query_thread import MemoryWatch, Worker
from icesql.engine.result_schema import ResultColumn, ResultType, cast_batch, unique_names
from icesql.errors import ProgrammingError, UnsupportedSqlError
from icesql.file_format import FileFormat, Value
from icesql.quoting import literal, quoted

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.context import QueryContext
    from icesql.engine.duckdb.instance import InstancePool
    from icesql.engine.engines import Sink


# ------------------------------------------------------------------ JSON
# DuckDB's own to_json turns decimals inside of other values into doubles, and writes a NaN that is
# not valid JSON. Here decimals are exact numbers, FLOAT and DOUBLE the shortest number that reads
# back as the same value, NaN and infinities the strings "NaN", "Infinity" and "-Infinity". Bytes
# are hexadecimal: DuckDB cannot read its own form back as bytes. Everything else is as DuckDB
# writes it: a struct or map is an object, a list or tuple an array, a union an object of its
# member, times DuckDB's strings.


# Types whose text in SQL is a JSON number or word.
_BARE: Final = frozenset(
    {"boolean", "tinyint", "smallint", "integer", "bigint", "ubigint", "hugeint", "decimal"}
)
_TIMES: Final = frozenset({"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})


def json_line(
    columns: Sequence[ResultColumn],
    expressions: Sequence[str],
    formats: tuple[str | None, str | None] = (None, None),
) -> str:
    """An expression for one row as a JSON object, whose values are ``expressions``.

    ``formats`` are strftime formats of dates and of timestamps, None for DuckDB's own form.
    """
    text = _JsonText(*formats)
    keys = unique_names([column.name for column in columns], ignore_case=False)
    members = [
        (key, text.of(expression, column.type))
        for key, expression, column in zip(keys, expressions, columns, strict=True)
    ]
    return _object(members)


class _JsonText:
    def __init__(self, dates: str | None, times: str | None) -> None:
        self._dates, self._times = dates, times
        self._depth = 0

    def of(self, value: str, declared: ResultType) -> str:
        """An expression for the JSON text of ``value``, never NULL."""
        return f"coalesce({self._present(value, declared)}, 'null')"

    def _present(self, value: str, declared: ResultType) -> str:
        kind = declared.kind
        if kind in _BARE:
            return f"CAST({value} AS VARCHAR)"
        if kind in ("float", "double"):
            return (
                f"CASE WHEN isfinite({value}) THEN CAST({value} AS VARCHAR) "
                f"WHEN isnan({value}) THEN '\"NaN\"' WHEN {value} > 0 THEN '\"Infinity\"' "
                f"WHEN {value} < 0 THEN '\"-Infinity\"' END"
            )
        own = self._dates if kind == "date" else self._times if kind in _TIMES else None
        if own is not None:
            return f"CAST(to_json(strftime({value}, {literal(own)})) AS VARCHAR)"
        if kind == "variant":
            # The value is JSON already; it has line ends only between its tokens.
            return f"replace(replace(CAST({value} AS VARCHAR), chr(10), ' '), chr(13), ' ')"
        if kind == "blob":
            return f"'\"' || lower(hex({value})) || '\"'"
        if declared.is_nested:
            return self._nested(value, declared)
        return f"CAST(to_json(CAST({value} AS VARCHAR)) AS VARCHAR)"

    def _nested(self, value: str, declared: ResultType) -> str:
        children = declared.children
        match declared.kind:
            case "list":
                items = self._each(value, lambda item: self.of(item, children[0][1]))
                return f"'[' || {items} || ']'"
            case "map":
                pairs = self._each(
                    f"map_entries({value})",
                    lambda pair: (
                        f"to_json(CAST(struct_extract_at({pair}, 1) AS VARCHAR)) || ':' || "
                        + self.of(f"struct_extract_at({pair}, 2)", children[1][1])
                    ),
                )
                return f"'{{' || {pairs} || '}}'"
            case "union":
                cases = " ".join(
                    f"WHEN {literal(name)} THEN "
                    + _object([(name, self.of(f"union_extract({value}, {literal(name)})", child))])
                    for name, child in children
                )
                return f"CASE CAST(union_tag({value}) AS VARCHAR) {cases} END"
        parts = [
            (name, self.of(f"struct_extract_at({value}, {place})", child))
            for place, (name, child) in enumerate(children, start=1)
        ]
        if declared.kind == "tuple":
            texts = " || ',' || ".join(text for _, text in parts)
            inner = f"'[' || {texts} || ']'"
        else:
            inner = _object(parts)
        return f"CASE WHEN {value} IS NOT NULL THEN {inner} END"

    def _each(self, values: str, text: Callable[[str], str]) -> str:
        self._depth += 1
        name = f"j{self._depth}"
        made = f"list_transform({values}, lambda {name}: {text(name)})"
        self._depth -= 1
        return f"array_to_string({made}, ',')"


def _object(members: Sequence[tuple[str, str]]) -> str:
    pairs = " || ',' || ".join(
        f"{literal(json.dumps(name, ensure_ascii=False) + ':')} || {text}" for name, text in members
    )
    return f"'{{' || {pairs} || '}}'" if members else "'{}'"


# ------------------------------------------------------------------ the statement


_ONE_COLUMN: Final[tuple[tuple[str, Value], ...]] = (
    ("header", False),
    ("quote", ""),
    ("escape", ""),
    ("delimiter", "\n"),
)


def copy_statement(query: str, columns: Sequence[ResultColumn], form: FileFormat, path: str) -> str:
    """The statement that copies the rows of ``query`` to a path.

    The query's columns have the declared types of ``columns``. Raises UnsupportedSqlError for
    columns that the format cannot represent.
    """
    own = [f"c{place}" for place in range(len(columns))]
    if form.name == "json":
        formats = form.option("dateformat"), form.option("timestampformat")
        line = json_line(columns, [f"w.{name}" for name in own], formats)
        selected, options = f"{line} AS line", [*_ONE_COLUMN]
        if form.option("array"):
            options += [("prefix", "[\n"), ("new_line", ",\n"), ("suffix", "\n]\n")]
        if form.option("compression"):
            options.append(("compression", form.option("compression")))
        name = "csv"
    else:
        for column in columns:
            _check(column, column.type, form)
        names = unique_names([column.name for column in columns])
        selected = ", ".join(
            f"w.{mine} AS {quoted(name)}" for mine, name in zip(own, names, strict=True)
        )
        options, name = list(form.options), form.name
        if name == "csv":
            given = dict(options) | {"header": form.option("header", True)}
            options = [(key, _force(value, names)) for key, value in given.items()]
    clauses = ", ".join([f"FORMAT {name}", *(f"{key} {_value(value)}" for key, value in options)])
    return (
        f"COPY (SELECT {selected} FROM ({query}\n) AS w({', '.join(own)})) "
        f"TO {literal(path)} ({clauses})"
    )


def columns_to_write(
    columns: Sequence[ResultColumn], engine_types: Sequence[Any]
) -> list[ResultColumn]:
    """The columns with DuckDB's JSON type declared as variant, so they are written as documents."""
    return [
        ResultColumn(column.name, ResultType("variant")) if str(kind).upper() == "JSON" else column
        for column, kind in zip(columns, engine_types, strict=True)
    ]


def _force(value: Value, names: Sequence[str]) -> Value:
    """The value of FORCE_QUOTE with the columns' own spelling. Raises if a column is missing."""
    if not isinstance(value, tuple) or value == ("*",):
        return value
    by_lower = {name.lower(): name for name in names}
    for each in value:
        if each.lower() not in by_lower:
            raise ProgrammingError(f'the option FORCE_QUOTE: the result has no column "{each}"')
    return tuple(by_lower[each.lower()] for each in value)


def _value(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return literal(value)
        case ("*",):
            return "*"
        case _:
            return f"({', '.join(map(quoted, value))})"


def _check(column: ResultColumn, declared: ResultType, form: FileFormat) -> None:
    if declared.kind == "struct" and are_alike([name for name, _ in declared.children]):
        raise UnsupportedSqlError(
            f'column "{column.name}" in format {form.name}: a struct with fields whose names '
            "differ only in case",
            hint="write json",
        )
    for _, child in declared.children:
        _check(column, child, form)


# ------------------------------------------------------------------ results of other engines


def copy_stream(
    pool: InstancePool,
    reader: pa.RecordBatchReader,
    columns: Sequence[ResultColumn],
    form: FileFormat,
    sink: Sink,
    query: QueryContext,
) -> int:
    """Write the rows of ``reader``, in the declared schema of ``columns``; returns their number.

    Raises the errors of the reader and of a result.
    """
    import duckdb

    stream = _stream(reader)
    opened = OpenQuery()
    opened.streams.append(stream)

    def run() -> int:
        instance, cursor = pool.cursor((), query.settings)
        opened.begin(instance, cursor)
        register(cursor, "result_rows", stream)
        with instance.outputs.path_of(sink) as path:
            sql = copy_statement("SELECT * FROM result_rows", columns, form, path)
            (count,) = cursor.execute(sql).fetchone()
        return int(count)

    worker = Worker(
        opened.interrupt, opened.release, MemoryWatch(query.settings.memory_limit, pool)
    )
    try:
        return worker.call(run, query)
    except (duckdb.Error, OSError) as error:
        for failed in (stream.error, sink.error):
            if failed is not None:
                raise failed from None
        query.check()
        raise translate(error, ()) from error
    finally:
        worker.close()


def _stream(reader: pa.RecordBatchReader) -> ArrowStream:
    """The rows for one scan, with columns c0, c1 … and struct fields under the engine's names."""
    schema = engine_schema(reader.schema, [f"c{at}" for at in range(len(reader.schema))])
    return ArrowStream(schema, lambda: (cast_batch(batch, schema) for batch in reader))
