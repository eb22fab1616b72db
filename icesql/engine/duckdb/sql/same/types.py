"""Names of types that DuckDB reads alike, by the type that sqlglot makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlglot import exp

# The first name of each is DuckDB's own; a test compares the rest with it in DuckDB.
NAMES: Final[dict[exp.DType, tuple[str, ...]]] = {
    exp.DType.BOOLEAN: ("BOOLEAN", "BOOL", "LOGICAL"),
    exp.DType.TINYINT: ("TINYINT", "INT1"),
    exp.DType.SMALLINT: ("SMALLINT", "INT2", "SHORT", "INT16"),
    exp.DType.INT: ("INTEGER", "INT", "INT4", "INT32", "SIGNED"),
    exp.DType.BIGINT: ("BIGINT", "INT8", "LONG", "INT64"),
    exp.DType.INT128: ("HUGEINT", "INT128"),
    exp.DType.UTINYINT: ("UTINYINT",),
    exp.DType.USMALLINT: ("USMALLINT",),
    exp.DType.UINT: ("UINTEGER",),
    exp.DType.UBIGINT: ("UBIGINT",),
    exp.DType.UINT128: ("UHUGEINT",),
    exp.DType.FLOAT: ("FLOAT", "REAL", "FLOAT4"),
    exp.DType.DOUBLE: ("DOUBLE", "FLOAT8"),
    exp.DType.DECIMAL: ("DECIMAL", "NUMERIC", "DEC"),
    exp.DType.TEXT: ("VARCHAR", "TEXT", "STRING", "BPCHAR"),
    exp.DType.VARCHAR: ("VARCHAR",),
    exp.DType.DATE: ("DATE",),
    exp.DType.TIME: ("TIME",),
    exp.DType.TIMESTAMP: ("TIMESTAMP", "TIMESTAMP_US"),
    exp.DType.TIMESTAMPNTZ: ("TIMESTAMP", "DATETIME"),
    exp.DType.TIMESTAMP_S: ("TIMESTAMP_S",),
    exp.DType.TIMESTAMP_MS: ("TIMESTAMP_MS",),
    exp.DType.TIMESTAMP_NS: ("TIMESTAMP_NS",),
    exp.DType.TIMESTAMPTZ: ("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"),
    exp.DType.UUID: ("UUID",),
    exp.DType.VARBINARY: ("BLOB", "BYTEA", "BINARY", "VARBINARY"),
}
_LENGTHS_MEAN_NOTHING: Final = (exp.DType.TEXT, exp.DType.VARCHAR)
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
    if to.this is exp.DType.DECIMAL and not written:
        written = list(_DEFAULT_DECIMAL)
    return written == [each.name for each in to.expressions]


def _whole(found: Mapping[str, Any]) -> str | None:
    literal = found.get("literal") or {}
    return str(literal["text"]) if literal.get("kind") == "INTEGER" else None
