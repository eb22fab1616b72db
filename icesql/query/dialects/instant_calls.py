"""Names of calls that represent instants computed from a wall clock; see ``spark/instants``."""

from __future__ import annotations

from typing import Final

# Arguments: a DATE or TIMESTAMP and optionally its zone, the session's by default; a unit and an
# and the months to go.
FIRST_INSTANT: Final = "first_instant"
TRUNCATED: Final = "instant_truncated"
MOVED: Final = "instant_moved"
MOVED_BACK: Final = "instant_moved_back"

INSTANTS: Final = frozenset({FIRST_INSTANT, TRUNCATED, MOVED, MOVED_BACK})
