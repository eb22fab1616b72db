"""The function tables of other systems' dialects, read from ``grammar/<dialect>_functions.txt``.

A row is ``name(types) -> type = expression``: what the dialect calls it, what it takes and gives,
and the same in DuckDB's spelling. The head of each file has its words.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from msgspec import Struct

from icesql.sql.grammar import folder

SPARK: Final = "spark"
# The dialects that have such a table.
TRANSLATED: Final = frozenset({SPARK, "trino", "snowflake"})
_ROW: Final = re.compile(r"(\w+)\((.*?)\) -> (\S.*?) (:?=|@) (.+)")


class TableRow(Struct, frozen=True):
    """One form of a function as the file writes it.

    ``sign`` is ``=``, ``:=`` for an expression that conditions prune by, or ``@`` where ``text`` is
    the name of what builds the expression. ``section`` is scalar, aggregate or window.
    """

    name: str
    takes: str
    gives: str
    sign: str
    text: str
    section: str


def table_rows(dialect: str) -> tuple[TableRow, ...]:
    """The rows of the table of a dialect in ``TRANSLATED``, in the order of the file."""
    return _read(dialect)[0]


def function_names(dialect: str) -> frozenset[str]:
    """The functions of a dialect in ``TRANSLATED``, in lower case."""
    return _read(dialect)[1]


@functools.cache
def _read(dialect: str) -> tuple[tuple[TableRow, ...], frozenset[str]]:
    """The rows, and the names of all functions: also of those that code translates."""
    rows: list[TableRow] = []
    by_code: set[str] = set()
    section = ""
    for line in (folder() / f"{dialect}_functions.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif section == "code":
            by_code.update(line.split())
        elif line and not line.startswith("#"):
            parsed = _ROW.fullmatch(line)
            if parsed is None:
                raise ValueError(f"not a row of the function table: {line}")
            name, takes, gives, sign, text = parsed.groups()
            rows.append(TableRow(name, takes, gives, sign, text, section))
    return tuple(rows), frozenset({row.name for row in rows} | by_code)
