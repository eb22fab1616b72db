"""Compare a stored view's columns with the current columns of its query."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from icesql.errors import ProgrammingError
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.quoting import quoted
from icesql.sql.keywords import word_set

# The property in which Spark stores the query's column names of a view that renames them.
_QUERY_COLUMNS: Final = "spark.query-column-names"
_NAMES: Final[dict[type[t.IcebergType], str]] = {
    t.BooleanType: "BOOLEAN",
    t.IntegerType: "INTEGER",
    t.LongType: "BIGINT",
    t.FloatType: "FLOAT",
    t.DoubleType: "DOUBLE",
    t.DateType: "DATE",
    t.TimeType: "TIME",
    t.TimestampType: "TIMESTAMP",
    t.TimestamptzType: "TIMESTAMP WITH TIME ZONE",
    t.TimestampNanoType: "TIMESTAMP_NS",
    t.StringType: "VARCHAR",
    t.UUIDType: "UUID",
    t.BinaryType: "BLOB",
    t.FixedType: "BLOB",
}
# Types that hold every value of the types on the right. A HUGEINT is a sum of integers; the cast
# raises an error if one is too large.
_WIDER: Final[Mapping[str, frozenset[str]]] = {
    "INTEGER": word_set("TINYINT SMALLINT UTINYINT USMALLINT"),
    "BIGINT": word_set("TINYINT SMALLINT INTEGER UTINYINT USMALLINT UINTEGER HUGEINT"),
    "DOUBLE": frozenset({"FLOAT"}),
    "VARCHAR": frozenset({"JSON"}),
}
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_NULL: Final = '"NULL"'


def select_list(
    view: str,
    schema: Schema,
    properties: Mapping[str, str],
    found: Sequence[tuple[str, str]],
) -> list[tuple[str, str, str]] | None:
    """For each column its name in the query, the type to cast it to ("" for none), its own name.

    None if the query returns exactly the declared columns. ``found`` are names and engine
    types of the query's columns. Raises ProgrammingError with the difference.
    """
    fields = schema.fields
    said = ", ".join(f"{each.name} {engine_name(each.type)}" for each in fields)
    if len(fields) != len(found):
        given = ", ".join(f"{name} {kind}" for name, kind in found)
        raise ProgrammingError(
            f'the view "{view}" says that it has the columns {said}, but its query gives {given}; '
            "replace the view in the system that made it"
        )
    named = query_names(properties)
    chosen: list[tuple[str, str, str]] = []
    differences = []
    for index, (field, (name, kind)) in enumerate(zip(fields, found, strict=True)):
        renamed = len(named) == len(fields) and _is_called(name.lower(), named, index)
        wanted = engine_name(field.type)
        if name.lower() != field.name.lower() and not renamed:
            differences.append(f'"{field.name}" is called "{name}" by its query')
        elif kind != wanted and not _holds(wanted, kind):
            differences.append(f'"{field.name}" is {wanted}, by its query {kind}')
        chosen.append((name, "" if kind == wanted else wanted, field.name))
    if differences:
        raise ProgrammingError(
            f'the columns of the view "{view}" have changed: {"; ".join(differences)}; '
            "replace the view in the system that made it"
        )
    if all(name == own and not cast for name, cast, own in chosen):
        return None
    return chosen


def query_names(properties: Mapping[str, str]) -> list[str]:
    """The names, in lower case, that Spark stored for the columns of a view's query."""
    return [each.strip().lower() for each in properties.get(_QUERY_COLUMNS, "").split(",")]


def _is_called(name: str, named: Sequence[str], index: int) -> bool:
    """Whether a column of the query has its stored name; DuckDB numbers repeated names."""
    wanted = named[index]
    if name == wanted or len(set(named)) == len(named):
        return name == wanted
    return re.fullmatch(rf"{re.escape(wanted)}(_\d+)+", name) is not None


def engine_name(node: t.IcebergType) -> str:
    """The name of a type in DuckDB's DESCRIBE."""
    match node:
        case t.DecimalType(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case t.ListType():
            return f"{engine_name(node.element)}[]"
        case t.MapType():
            return f"MAP({engine_name(node.key)}, {engine_name(node.value)})"
        case t.StructType(fields):
            inner = ", ".join(f"{_quoted(each.name)} {engine_name(each.type)}" for each in fields)
            return f"STRUCT({inner})"
        case _:
            return _NAMES.get(type(node), str(node))


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else quoted(name)


def _holds(wanted: str, kind: str) -> bool:
    if kind == _NULL or kind in _WIDER.get(wanted, ()):
        return True
    one, other = _DECIMAL.fullmatch(wanted), _DECIMAL.fullmatch(kind)
    if one is not None and other is not None:
        digits = [int(each[1]) - int(each[2]) for each in (one, other)]
        return digits[0] >= digits[1] and int(one[2]) >= int(other[2])
    # Struct types may differ in the case and quotes of their fields' names.
    return wanted.lower().replace('"', "") == kind.lower().replace('"', "")
