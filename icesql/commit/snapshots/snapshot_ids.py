"""Ids of new snapshots: random, positive, 63 bits."""

from __future__ import annotations

import uuid
from collections.abc import Container
from typing import Final

_LAST_63: Final = (1 << 63) - 1


def new_snapshot_id(taken: Container[int]) -> int:
    """An id that is not among those ``taken``."""
    while True:
        number = uuid.uuid4().int
        found = ((number >> 64) ^ number) & _LAST_63
        if found and found not in taken:
            return found
