"""Names of columns that are computed by a nested query and have none of their own.

The engine would use the text of the expression, which contains icesql's internal table names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from icesql.sql.statement import TableReference

_SCAN: Final = re.compile(r"__scan_(\d+)")


def name_nested_queries(tree: exp.Expr, references: Sequence[TableReference]) -> None:
    """Give such columns the name that they would have over tables that are called as written."""
    found = [
        (column, _text(column, references))
        for select in tree.find_all(exp.Select)
        for column in select.expressions
        if not isinstance(column, exp.Alias) and _reads_a_scan(column)
    ]
    for column, name in found:
        named = exp.Alias(alias=exp.to_identifier(name, quoted=True))
        column.replace(named)
        named.set("this", column)


def _reads_a_scan(column: exp.Expr) -> bool:
    return any(_SCAN.fullmatch(table.name) for table in column.find_all(exp.Table))


def _text(column: exp.Expr, references: Sequence[TableReference]) -> str:
    column = column.copy()
    for table in list(column.find_all(exp.Table)):
        found = _SCAN.fullmatch(table.name)
        if found is None:
            continue
        reference = references[int(found[1])]
        written: exp.Expr = exp.Identifier(this=reference.name, quoted=False)
        if reference.path is not None:
            written = exp.Anonymous(
                this="iceberg_scan", expressions=[exp.Literal.string(reference.path)]
            )
        implied = reference.parts[-1] if reference.path is None else "iceberg_scan"
        alias = table.alias if table.alias != implied else None
        table.replace(exp.Table(this=written, alias=alias and exp.to_identifier(alias)))
    return str(column.sql(dialect="duckdb", normalize_functions="lower"))
