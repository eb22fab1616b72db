"""The declared types of what Spark's own text gives: Spark's schema is the contract."""

from __future__ import annotations

from typing import Any, Final

from icesql.engine.result_schema import ResultColumn, ResultType
from icesql.errors import UnsupportedSqlError

_KINDS: Final = {
    "BooleanType": "boolean",
    "ByteType": "tinyint",
    "ShortType": "smallint",
    "IntegerType": "integer",
    "LongType": "bigint",
    "FloatType": "float",
    "DoubleType": "double",
    "DateType": "date",
    "TimeType": "time",
    "TimestampType": "timestamptz",
    "TimestampNTZType": "timestamp",
    "StringType": "varchar",
    "CharType": "varchar",
    "VarcharType": "varchar",
    "BinaryType": "blob",
    "DayTimeIntervalType": "interval",
    "NullType": "null",
}


def declared_columns(schema: Any, names: list[str]) -> tuple[ResultColumn, ...]:
    """The columns of a Spark schema under ``names``, one for each.

    Raises UnsupportedSqlError for a type that no result has.
    """
    return tuple(
        ResultColumn(name, _declared(field.dataType, name))
        for name, field in zip(names, schema.fields, strict=True)
    )


def _declared(spark: Any, name: str) -> ResultType:
    kind = type(spark).__name__
    match kind:
        case "DecimalType":
            return ResultType("decimal", spark.precision, spark.scale)
        case "ArrayType":
            return ResultType("list", children=(("element", _declared(spark.elementType, name)),))
        case "MapType":
            key, value = _declared(spark.keyType, name), _declared(spark.valueType, name)
            return ResultType("map", children=(("key", key), ("value", value)))
        case "StructType":
            inner = tuple((each.name, _declared(each.dataType, name)) for each in spark.fields)
            return ResultType("struct", children=inner)
        case _ if kind in _KINDS:
            return ResultType(_KINDS[kind])
        case _:
            raise UnsupportedSqlError(
                f"a result of Spark's type {spark.simpleString()} (column {name})",
                hint="CAST it to STRING",
            )
