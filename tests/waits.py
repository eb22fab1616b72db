"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_until(is_done: Callable[[], Any], seconds: float = 600) -> Any:
    """What ``is_done`` gives once it is true; fails if that takes longer than ``seconds``."""
    until = time.monotonic() + seconds
    while not (found := is_done()):
        assert time.monotonic() < until, "what is waited for does not come"
        time.sleep(0.01)
    return found
