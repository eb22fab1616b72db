"""Convert the types in DuckDB's tree to sqlglot's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from icesql.sql.keywords import word_set
from icesql.sql.reading.engine_tree import Node, Places

_Type = exp.DataType.Type
_TYPES: Final = {
    word: _Type[kind.name]
    for word, kind in DuckDB.tokenizer_class.KEYWORDS.items()
    if kind.name in _Type.__members__
} | {
    "TIMESTAMP WITH TIME ZONE": _Type.TIMESTAMPTZ,
    "TIME WITH TIME ZONE": _Type.TIMETZ,
    "LIST": _Type.LIST,
    "ENUM": _Type.ENUM,
    "BIT": _Type.BIT,
}
# Names of one type in a line, the canonical one first.
_ALIASES: Final = """
BOOLEAN, BOOL, LOGICAL
TINYINT, INT1
SMALLINT, INT2, SHORT, INT16
INTEGER, INT, INT4, INT32, SIGNED
BIGINT, INT8, LONG, INT64
HUGEINT, INT128
UTINYINT
USMALLINT
UINTEGER
UBIGINT
UHUGEINT
FLOAT, REAL, FLOAT4
DOUBLE, FLOAT8
DECIMAL, NUMERIC, DEC
VARCHAR, TEXT, STRING, BPCHAR
DATE
TIME
TIMESTAMP, TIMESTAMP_US, DATETIME
TIMESTAMP_S
TIMESTAMP_MS
TIMESTAMP_NS
TIMESTAMPTZ, TIMESTAMP WITH TIME ZONE
UUID
BLOB, BYTEA, BINARY, VARBINARY
INTERVAL
"""
# DuckDB's canonical name of a type, by each of its aliases.
DUCKDB_NAMES: Final[dict[str, str]] = {
    name: names[0]
    for names in (line.split(", ") for line in _ALIASES.strip().splitlines())
    for name in names
}
# DuckDB accepts a length for these and ignores it.
_TEXTS: Final = word_set("VARCHAR STRING TEXT CHAR BPCHAR")
_DECIMALS: Final = word_set("DECIMAL NUMERIC DEC")
_DEFAULT_DECIMAL: Final = (18, 3)


class TypeReader(Places):
    """Reads types; see ``queries.read_query``."""

    # A method of ``ExpressionReader``.
    expression: Callable[[Node], exp.Expr]

    def data_type(self, found: Node, *, named: bool = False) -> exp.DataType:
        """Convert a type; keep the name of one that is not built in. ``named``: for a field."""
        if found["type"] != "TYPE" or (found["alias"] and not named):
            raise self.refuse("an expression in the place of a type", found)
        name, path = str(found["type_name"]).upper(), found["qualified_name"]["path"]
        children = found["children"]
        if name in ("LIST", "ARRAY") and children:
            return exp.DataType(
                this=_Type.ARRAY,
                expressions=[self.data_type(children[0])],
                values=[self.expression(each) for each in children[1:]] or None,
                nested=True,
            )
        kind = _TYPES.get(name) if len(path) < 2 else None
        if kind is None:
            begin = self.begin(found)
            written = ".".join(path) if begin is None else self.text[begin : self.end(found)]
            if begin is None and children:
                raise self.refuse(f"the type {found['type_name']} with parameters", found)
            return exp.DataType(this=_Type.USERDEFINED, kind=written)
        parts = [self._type_part(each) for each in children]
        if name in _DECIMALS and not parts:
            sizes = map(exp.Literal.number, _DEFAULT_DECIMAL)
            parts = [exp.DataTypeParam(this=each) for each in sizes]
        elif name in _TEXTS:
            kind, parts = _Type.TEXT, []
        nested = kind in (_Type.STRUCT, _Type.MAP)
        return exp.DataType(this=kind, expressions=parts, nested=nested)

    def _type_part(self, found: Node) -> exp.Expr:
        if found["class"] != "TYPE":
            return exp.DataTypeParam(this=self.expression(found))
        inner = self.data_type(found, named=True)
        if not found["alias"]:
            return inner
        return exp.ColumnDef(this=exp.Identifier(this=found["alias"], quoted=False), kind=inner)
