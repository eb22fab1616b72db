"""For the user's own text on Spark: its tables, its types, and the offsets of its errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from icesql.engine.result_schema import ResultColumn, ResultType
from icesql.engine.spark.errors import is_gone, refusal_of_text, sentence, spark_exceptions
from icesql.engine.spark.releases import error_condition
from icesql.engine.spark.sessions import is_connect
from icesql.errors import Error, SqlSyntaxError, UnsupportedSqlError

_LINE: Final = re.compile(r"(?P<depth>(?:[ :]  )*(?:[+:]- )?)(?P<operator>.*)")
# These operators may start a plan, on a line without indentation.
_SCRIPT: Final = re.compile(r"'?(Script|Relation|View|.*Scan\b)")
_WORD: Final = re.compile(r"!?(\w+)")
_COMPUTING: Final = frozenset(
    re.findall(
        r"\w+",
        """
        Aggregate AsOfJoin CTE CTERelationDef CTERelationRef Deduplicate Distinct DomainJoin Except
        Expand Filter Generate GlobalLimit InlineCTE Intersect Join LateralJoin Limit LocalLimit
        LocalRelation Offset OneRowRelation Project Range Repartition RepartitionByExpression
        ResolvedHint ResolvedInlineTable Sort SubqueryAlias Tail Union UnionLoop UnionLoopRef
        Unpivot Window WindowGroupLimit WithCTE
        """,
    )
)


def check_plan(frame: Any, views: Sequence[str]) -> None:
    """Raise UnsupportedSqlError if a DataFrame reads more than the ``views``."""
    inside: int | None = None
    for number, line in enumerate(_plan(frame).splitlines()):
        match = _LINE.fullmatch(line)
        if match is None or not (match["depth"] or number == 0):
            # The rest of a literal or a name with line breaks; an operator is indented.
            if not _SCRIPT.match(line):
                continue
            raise _refused(line)
        depth, operator = len(match["depth"]), match["operator"]
        if inside is not None and depth > inside:
            continue
        inside = None
        if any(operator.startswith(f"View (`{view}`,") for view in views):
            inside = depth
            continue
        word = _WORD.match(operator)
        if (word is None or word[1] not in _COMPUTING) and not operator.startswith(("'", "==")):
            raise _refused(operator)


def _refused(operator: str) -> UnsupportedSqlError:
    return UnsupportedSqlError(
        f"what Spark reads this statement as ({operator[:80].strip()})",
        hint="a query reads its tables and nothing else",
    )


def _plan(frame: Any) -> str:
    if not is_connect(frame.sparkSession):
        return str(frame._jdf.queryExecution().analyzed().toString())
    plan = str(frame._explain_string(extended=True))
    # The next section follows the analysed plan. A literal may contain such a line: use the last.
    analysed = plan.rpartition("== Optimized Logical Plan ==")[0]
    if not analysed:
        raise UnsupportedSqlError("Spark's own text on a Spark that tells no plan")
    return analysed


# The declared types of results of Spark's own text: Spark's schema is the contract.

_KINDS: Final = dict(
    line.split()
    for line in """
    BooleanType boolean
    ByteType tinyint
    ShortType smallint
    IntegerType integer
    LongType bigint
    FloatType float
    DoubleType double
    DateType date
    TimeType time
    TimestampType timestamptz
    TimestampNTZType timestamp
    StringType varchar
    CharType varchar
    VarcharType varchar
    BinaryType blob
    DayTimeIntervalType interval
    NullType null
    """.strip().splitlines()
)


def declared_columns(schema: Any, names: list[str]) -> tuple[ResultColumn, ...]:
    """The columns of a Spark schema under ``names``, one for each.

    Raises UnsupportedSqlError for a type that a result cannot have.
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


# Spark's errors about a text, at their offsets in the user's SQL.

_PLACE: Final = re.compile(r"line (\d+),? pos (\d+)")


@contextmanager
def placed(sql: str, original: Callable[[int], int]) -> Iterator[None]:
    """Place errors of a block that analyses ``sql``; ``original`` maps offsets to the user's."""
    try:
        yield
    except spark_exceptions() as error:
        found = _of_text(error, sql, original)
        if found is None:
            raise
        raise found from error


def _of_text(error: Any, sql: str, original: Callable[[int], int]) -> Error | None:
    """The error for SQL that Spark's analysis refuses; None for any other failure."""
    name = error_condition(error)
    if name is None or is_gone(error):
        return None
    place = _PLACE.search(str(error))
    offset = None
    if place is not None:
        lines = sql.split("\n")
        before = sum(len(each) + 1 for each in lines[: int(place[1]) - 1])
        offset = original(before + int(place[2]))
    if name.startswith("PARSE_SYNTAX_ERROR") or "ParseException" in type(error).__name__:
        said = re.sub(r"^\[[\w.]+\] ", "", sentence(error))
        return SqlSyntaxError(said, offset=offset)
    found = refusal_of_text(error)
    if isinstance(found, UnsupportedSqlError):
        found.offset = offset
    return found
