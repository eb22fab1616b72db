"""The COPY statement that writes the rows of a query in a format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from icesql.engine.duckdb.copying.json_text import json_line
from icesql.engine.result_schema import ResultColumn, ResultType, unique_names
from icesql.engine.struct_names import are_alike
from icesql.errors import ProgrammingError, UnsupportedSqlError
from icesql.file_format import FileFormat, Value
from icesql.quoting import literal, quoted

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
