"""The ``where`` of a procedure: which files may hold a row for which a condition is true."""

from __future__ import annotations

import re
from typing import Final

from icesql.errors import Error
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.modify.procedures.call import Call
from icesql.sql.lexer import SPARK_NAMES
from icesql.sql.spark_text.values import spark_name
from icesql.sql.user_text import quoted

_PLACE: Final = re.compile(r" (?:at|\(at|\()? ?line \d+, column \d+\)?")


def files_condition(call: Call, parameter: str = "where") -> Predicate:
    """A predicate on files by the condition; always true if there is none.

    It is bound to the table as SELECT would bind it. Raises ProgrammingError for a text that is no
    condition on this table alone, and for one that says nothing about files.
    """
    text: str | None = call[parameter]
    if text is None:
        return ALWAYS_TRUE
    name = call.table_name()
    # The text is read in the dialect of the connection, where double quotes may be a string's.
    quote = spark_name if call.services.dialect.lower() in SPARK_NAMES else quoted
    parts = ".".join(map(quote, _without_branch(name.parts)))
    try:
        scans = call.services.scans_of_condition(f"SELECT 1 FROM {parts} WHERE {text}")
    except Error as error:
        # Places in a text of our own say nothing to anybody.
        said = str(error).partition("\n")[0]
        raise call.wrong(parameter, f"{text!r} cannot be used: {_PLACE.sub('', said)}") from error
    if len(scans) != 1:
        raise call.wrong(parameter, "reads other tables; it can only be about this one")
    found = scans[0].row_filter
    if found is ALWAYS_TRUE and text.strip().lower() not in ("true", "1 = 1", "1=1"):
        raise call.wrong(
            parameter,
            f"{text!r} says nothing about files; compare columns with constants, or leave it out",
        )
    return found


def _without_branch(parts: tuple[str, ...]) -> tuple[str, ...]:
    last = parts[-1]
    if len(parts) > 1 and last.lower().startswith("branch_"):
        return parts[:-1]
    return (*parts[:-1], last.partition("@")[0])
