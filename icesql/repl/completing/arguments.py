"""The arguments of a function, as the text beside its name in the menu."""

from __future__ import annotations

from typing import Final

from icesql.repl.cells import shortened

_WIDEST: Final = 72
_TABLES: Final = {
    "spark": "spark", "databricks": "spark", "hive": "spark", "trino": "trino",
    "presto": "trino", "athena": "trino", "snowflake": "snowflake",
}  # fmt: skip
# What DuckDB's parser knows and its catalog does not.
_BY_PARSER: Final = {
    "coalesce": "(value, …)", "row_number": "() OVER (…)", "rank": "() OVER (…)",
    "dense_rank": "() OVER (…)", "percent_rank": "() OVER (…)", "cume_dist": "() OVER (…)",
    "ntile": "(buckets) OVER (…)", "lag": "(value[, offset[, default]]) OVER (…)",
    "lead": "(value[, offset[, default]]) OVER (…)", "first_value": "(value) OVER (…)",
    "last_value": "(value) OVER (…)", "nth_value": "(value, n) OVER (…)",
}  # fmt: skip


def arguments_of_functions(dialect: str) -> dict[str, str]:
    """The arguments, result and purpose of each function of a dialect that knows them."""
    if dialect.lower() in _TABLES:
        return _from_table(_TABLES[dialect.lower()])
    from icesql.engine.duckdb.functions.signatures import signatures

    found = {
        name: f"{each.arguments} · {each.description}" if each.description else each.arguments
        for name, each in signatures().items()
    }
    found |= _BY_PARSER
    return {name: shortened(text, _WIDEST) for name, text in found.items()}


def _from_table(name: str) -> dict[str, str]:
    """From the tables of ``grammar/``: the first form, and whether there are others."""
    from icesql.sql.function_table import table_rows

    found: dict[str, str] = {}
    for row in table_rows(name):
        if row.name not in found:
            gives = "" if row.gives.startswith("$") or row.gives == "any" else f" → {row.gives}"
            found[row.name] = f"({row.takes}){gives}"
        elif not found[row.name].endswith(", …"):
            found[row.name] += ", …"
    return found
