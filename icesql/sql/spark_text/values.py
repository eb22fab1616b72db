"""Python values and names in Spark's spelling."""

from __future__ import annotations

from typing import Any, Final

from icesql.errors import DataError
from icesql.quoting import spark_string
from icesql.sql.parameters import literal, write_literal
from icesql.sql.trees import exp

# Keys are sqlglot's names of types.
_TYPES: Final = {"TIMESTAMPNTZ": "TIMESTAMP_NTZ", "TIMESTAMPTZ": "TIMESTAMP_LTZ"}
_REFUSED: Final = ("TIME", "TIMESTAMP_NS")


def spark_literal(value: Any, *, listed: bool = False) -> str:
    """Return a parameter's value as an expression; a list after IN in parentheses.

    Raises DataError for a value that Spark's SQL cannot hold, ProgrammingError for Python types
    that are not SQL values.
    """
    if listed and isinstance(value, list | tuple | set | frozenset) and value:
        return "(" + ", ".join(_written(literal(each)) for each in value) + ")"
    return _written(literal(value))


def _written(node: exp.Expr) -> str:
    match node:
        case exp.Literal() if node.is_string:
            return spark_string(str(node.this))
        case exp.Null() | exp.Boolean() | exp.Literal() | exp.Neg():
            return write_literal(node)
        case exp.Cast():
            kind = node.to.this
            if kind.name in _REFUSED:
                raise DataError("a time of day or of nanoseconds is no value of Spark's SQL")
            if kind is exp.DataType.Type.UUID:
                return _written(node.this)
            name = _TYPES.get(kind.name, kind.value)
            sizes = ", ".join(str(each.name) for each in node.to.expressions)
            return f"CAST({_written(node.this)} AS {name}{sizes and f'({sizes})'})"
        case exp.HexString():
            return f"X'{node.this}'"
        case exp.Interval():
            return f"INTERVAL {spark_string(node.name)} {node.text('unit')}"
        case exp.Array():
            return f"array({', '.join(map(_written, node.expressions))})"
        case exp.Struct():
            fields = (
                f"{spark_string(each.this.name)}, {_written(each.expression)}"
                for each in node.expressions
            )
            return f"named_struct({', '.join(fields)})"
        case _:
            raise DataError(f"a parameter of this kind ({node.key}) is no value of Spark's SQL")
