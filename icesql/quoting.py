"""Names and texts as SQL writes them. Imports nothing, for doors that start without the reader."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def spark_name(name: str) -> str:
    """A name as Spark's quoted identifier."""
    return "`" + name.replace("`", "``") + "`"


def spark_string(text: str) -> str:
    """A text as Spark's literal, with backslash escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
