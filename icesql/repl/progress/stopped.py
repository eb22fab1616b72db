"""The message for a statement that was stopped: how far it was, and what remains of it."""

from __future__ import annotations

from typing import Final

from icesql.errors import Error
from icesql.repl.progress.line import ProgressLine

_CHANGES: Final = frozenset(
    {"INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "REPLACE", "ALTER", "DROP", "TRUNCATE"}
)


def stopped_text(
    cause: str, progress: ProgressLine, script: str, number: int, dialect: str | None
) -> str:
    """The line for the person; ``number`` statements of the script had ended before this one.

    A commit that was sent and interrupted is an error of its own, which says so.
    """
    if "nothing was committed" in cause:
        return cause
    if progress.done:
        cause += f" after {progress.done}"
    if progress.committing:
        # The statement was done, or the answer to its commit was on its way.
        return f"{cause}; it may be committed: look at the snapshots before you run it again"
    if not (progress.wrote or _changes(script, number, dialect)):
        return cause
    return f"{cause}; nothing {'of this statement ' if number else ''}was committed"


def _changes(script: str, number: int, dialect: str | None) -> bool:
    from icesql.sql.parse import first_tokens, split_statements

    try:
        text = split_statements(script, dialect=dialect)[number]
        return first_tokens(text, dialect)[0].word in _CHANGES
    except (Error, IndexError):  # it was stopped before it was read
        return False
