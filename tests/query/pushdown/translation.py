"""Translate conditions to predicates, with an engine that evaluates constants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from icesql.context import QueryContext
from icesql.query.names import Resolve
from icesql.query.pushdown.computed.expression import expression_of
from icesql.query.pushdown.predicate import Implied, implied_by


@cache
def _engine(zone: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = '{zone}'")
    return connection


def ask(sql: str, values: Sequence[Any], query: QueryContext) -> list[tuple[Any, ...]] | None:
    try:
        return _engine(query.settings.timezone).execute(sql, list(values)).fetchall()
    except duckdb.Error:
        return None


def translate(condition: str | exp.Expr, resolve: Resolve, query: QueryContext) -> Implied:
    """The implications of a condition in DuckDB's dialect."""
    tree = sqlglot.parse_one(condition, read="duckdb") if isinstance(condition, str) else condition
    query.evaluate = ask
    return implied_by(expression_of(tree), resolve, query)
