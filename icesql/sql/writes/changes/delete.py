"""DELETE and TRUNCATE."""

from __future__ import annotations

from icesql.quoting import quoted
from icesql.sql.cursor import TokenCursor
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.sources import spliced
from icesql.sql.writes.changes.conditions import (
    RETURNING,
    alias_of,
    check_condition,
    read_target,
    refuse_endings,
)
from icesql.sql.writes.statements import Delete


def read_delete(words: TokenCursor) -> Delete:
    """Read the statement after DELETE: a query over the table itself finds its rows.

    The query's text is the user's own from the name of the table on, with a comma for USING.
    """
    words.need("FROM")
    at = words.here
    table = read_target(words)
    after = words.index
    between = words.until("WHERE", "USING", "RETURNING")
    if words.peek() == "RETURNING":
        raise unsupported("DELETE … RETURNING", words.here, RETURNING)
    if words.token is None and not between:
        return Delete(table)
    if words.peek() not in ("WHERE", "USING"):
        words.index = after
        raise words.unexpected("WHERE", "USING", "the end of the statement")
    condition = words.rest
    using = words.token if words.peek() == "USING" else None
    if using is not None:
        words.need("USING")
        if words.token is None or words.peek() == "WHERE":
            # The engine ignores a trailing comma and would run another statement.
            raise syntax_error("nothing follows USING", using.stop, ("a table",))
    refuse_endings(condition)
    alias = alias_of(between, "WHERE")
    owner = table.parts[-1:] if using is not None else ()
    of = f"{quoted(owner[0])}." if owner else ""
    if alias is not None:
        of = words.sql[alias.start : alias.stop] + "."
    edits = [(at, at, f"SELECT {of}_file, {of}_pos FROM ")]
    if using is not None:
        # In FROM, the tables of USING follow the statement's table.
        edits.append((using.start, using.stop, ","))
    rows = words.parse.composed(*spliced(words.sql, at, words.tokens[-1].stop, edits))
    check_condition(rows, condition, "DELETE", () if using is None else ("joins", "laterals"))
    return Delete(table, rows)


def read_truncate(words: TokenCursor) -> Delete:
    """Read the statement after TRUNCATE."""
    words.skip("TABLE")
    table = read_target(words)
    words.end()
    return Delete(table)
