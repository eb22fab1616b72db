"""The state that icesql keeps for a user's SparkSession, as long as that session lives."""

from __future__ import annotations

from typing import Any, Final

_NAME: Final = "_icesql"


def session_cache(session: Any) -> dict[str, Any]:
    """The dictionary that icesql keeps for a session; it ends with the session."""
    # Not by a weak key: the values refer to the session.
    cache: dict[str, Any] = vars(session).setdefault(_NAME, {})
    return cache
