"""BEGIN, COMMIT and ROLLBACK."""

from __future__ import annotations

from typing import Final

from icesql.sql.cursor import Words
from icesql.sql.positions import unsupported
from icesql.sql.statement import TransactionControl

WORDS: Final = ("BEGIN", "START", "COMMIT", "ROLLBACK")


def read_transaction(words: Words, first: str) -> TransactionControl | None:
    """The statement after its first word; None for another that begins so.

    Raises UnsupportedSqlError for options, SAVEPOINT among them.
    """
    if first == "START" and words.peek() != "TRANSACTION":
        return None
    if first == "ROLLBACK" and words.peek() not in ("", "TRANSACTION", "WORK", "TO", "AND"):
        return None
    if words.token is not None and not (words.skip("TRANSACTION") or words.skip("WORK")):
        raise unsupported(f"{first} {words.peek()}".strip(), words.here, f"write {first} alone")
    if words.token is not None:
        raise unsupported(f"{first} TRANSACTION {words.peek()}", words.here, "leave it out")
    match first:
        case "COMMIT":
            return TransactionControl("commit")
        case "ROLLBACK":
            return TransactionControl("rollback")
        case _:
            return TransactionControl("begin")
