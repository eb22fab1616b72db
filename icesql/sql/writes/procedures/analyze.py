"""ANALYZE: the statistics of a table, in Spark's and Trino's words."""

from __future__ import annotations

from collections.abc import Sequence

from icesql.sql.cursor import Words
from icesql.sql.lexer import Token
from icesql.sql.positions import unsupported
from icesql.sql.statement import Query
from icesql.sql.writes.procedures.call import CallArgument, CallProcedure, ListValue, read_value
from icesql.sql.writes.statements import TableName


def read_analyze(words: Words) -> CallProcedure | None:
    """The statement after ANALYZE, as Spark and Trino have it; None for that of a database."""
    at = words.here
    is_named = words.skip("TABLE")
    if words.token is None:
        if is_named:
            raise words.unexpected("a table")
        return None
    place = words.here
    given = [CallArgument("table", TableName(words.name("a table"), place), place)]
    here = words.here
    if words.peek() == "PARTITION" or words.skip("DELETE"):
        hint = "the statistics of a table are of a snapshot, and go with it"
        raise unsupported("ANALYZE of partitions, and without STATISTICS", here, hint)
    if words.skip("COMPUTE", "STATISTICS"):
        words.skip("NOSCAN")
        words.skip("FOR", "ALL", "COLUMNS")
        if words.skip("FOR", "COLUMNS"):
            names = [".".join(words.name("a column"))]
            while words.skip(","):
                names.append(".".join(words.name("a column")))
            given.append(CallArgument("columns", ListValue(tuple(names)), here))
    elif words.skip("WITH"):
        inner = words.in_brackets()
        inner.need("COLUMNS")
        inner.need("=")
        here = inner.here
        value = read_value(inner, _no_query)
        inner.end()
        given.append(CallArgument("columns", value, here))
    words.end()
    return CallProcedure(("system", "compute_table_stats"), tuple(given), at)


def _no_query(tokens: Sequence[Token]) -> Query:
    raise unsupported("an argument that is no constant", tokens[0], "ARRAY['a', 'b']")
