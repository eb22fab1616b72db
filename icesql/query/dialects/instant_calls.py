"""Calls that stand in trees for instants by the clock; see ``spark/instants``."""

from __future__ import annotations

from typing import Final

# A DATE or TIMESTAMP in the session's zone or that of a text; a unit and an instant; an instant
# and the months to go.
FIRST_INSTANT: Final = "first_instant"
TRUNCATED: Final = "instant_truncated"
MOVED: Final = "instant_moved"
MOVED_BACK: Final = "instant_moved_back"

INSTANTS: Final = frozenset({FIRST_INSTANT, TRUNCATED, MOVED, MOVED_BACK})
