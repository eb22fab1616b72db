"""Where in a file of statements an error is."""

from __future__ import annotations

from icesql.errors import Error


def place_in_file(
    file: str, script: str, number: int, error: Error, dialect: str | None = None
) -> str:
    """``file:line``, which editors open: that of the error, if it knows it, else of its statement.

    ``number`` counts statements from 1.
    """
    from icesql.sql.parse import split_statements

    line: int | None = getattr(error, "line", None)
    try:
        texts = split_statements(script, dialect=dialect)
    except Error:  # a quote that is not closed
        return f"{file}:{line}" if line is not None else file
    lines, position = [], 0
    for text in texts:
        start = script.index(text, position)
        lines.append(script.count("\n", 0, start) + 1)
        position = start + len(text)
    if line is None:
        line = lines[number - 1]
    elif number == 1:
        # Nothing has run if one of the statements does not parse.
        number = max(1, sum(each <= line for each in lines))
    return f"{file}:{line}, statement {number} of {len(texts)}"
