"""What icesql keeps for a SparkSession of the user, as long as that session lives."""

from __future__ import annotations

from typing import Any, Final

_NAME: Final = "_icesql"


def kept_for(session: Any) -> dict[str, Any]:
    """What is kept for a session: a dictionary of its own, which ends with it."""
    # Not by a weak key: what is kept refers to the session.
    kept: dict[str, Any] = vars(session).setdefault(_NAME, {})
    return kept
