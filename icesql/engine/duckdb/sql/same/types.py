"""Names of types that DuckDB reads alike, by the type that sqlglot makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlglot import exp

# The first name of each is DuckDB's own; a test compares the rest with it in DuckDB.
NAMES: Final[dict[exp.DType, tuple[str, ...]]] = {
    exp.DataType.Type.BOOLEAN: ("BOOLEAN", "BOOL", "LOGICAL"),
    exp.DataType.Type.TINYINT: ("TINYINT", "INT1"),
    exp.DataType.Type.SMALLINT: ("SMALLINT", "INT2", "SHORT", "INT16"),
    exp.DataType.Type.INT: ("INTEGER", "INT", "INT4", "INT32", "SIGNED"),
    exp.DataType.Type.BIGINT: ("BIGINT", "INT8", "LONG", "INT64"),
    exp.DataType.Type.INT128: ("HUGEINT", "INT128"),
    exp.DataType.Type.UTINYINT: ("UTINYINT",),
    exp.DataType.Type.USMALLINT: ("USMALLINT",),
    exp.DataType.Type.UINT: ("UINTEGER",),
    exp.DataType.Type.UBIGINT: ("UBIGINT",),
    exp.DataType.Type.UINT128: ("UHUGEINT",),
    exp.DataType.Type.FLOAT: ("FLOAT", "REAL", "FLOAT4"),
    exp.DataType.Type.DOUBLE: ("DOUBLE", "FLOAT8"),
    exp.DataType.Type.DECIMAL: ("DECIMAL", "NUMERIC", "DEC"),
    exp.DataType.Type.TEXT: ("VARCHAR", "TEXT", "STRING", "BPCHAR"),
    exp.DataType.Type.VARCHAR: ("VARCHAR",),
    exp.DataType.Type.DATE: ("DATE",),
    exp.DataType.Type.TIME: ("TIME",),
    exp.DataType.Type.TIMESTAMP: ("TIMESTAMP", "TIMESTAMP_US"),
    exp.DataType.Type.TIMESTAMPNTZ: ("TIMESTAMP", "DATETIME"),
    exp.DataType.Type.TIMESTAMP_S: ("TIMESTAMP_S",),
    exp.DataType.Type.TIMESTAMP_MS: ("TIMESTAMP_MS",),
    exp.DataType.Type.TIMESTAMP_NS: ("TIMESTAMP_NS",),
    exp.DataType.Type.TIMESTAMPTZ: ("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"),
    exp.DataType.Type.UUID: ("UUID",),
    exp.DataType.Type.VARBINARY: ("BLOB", "BYTEA", "BINARY", "VARBINARY"),
}
_LENGTHS_MEAN_NOTHING: Final = (exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR)
_DEFAULT_DECIMAL: Final = ["18", "3"]


def same_type(to: exp.Expr | None, found: Mapping[str, Any]) -> bool:
    """Whether DuckDB's node of a type is the type ``to``."""
    if not isinstance(to, exp.DataType) or found.get("type") != "TYPE":
        return False
    path = found.get("qualified_name", {}).get("path", ())
    if len(path) > 1 or str(found["type_name"]).upper() not in NAMES.get(to.this, ()):
        return False
    if to.this in _LENGTHS_MEAN_NOTHING:
        return not to.expressions
    written = [_whole(each) for each in found.get("children", ())]
    if to.this is exp.DataType.Type.DECIMAL and not written:
        written = list(_DEFAULT_DECIMAL)
    return written == [each.name for each in to.expressions]


def _whole(found: Mapping[str, Any]) -> str | None:
    literal = found.get("literal") or {}
    return str(literal["text"]) if literal.get("kind") == "INTEGER" else None
