"""How often and how long a commit is tried, by the properties of its table.

Source: Java ``TableProperties`` and ``Tasks.exponentialBackoff``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from icesql.errors import ProgrammingError

RETRIES: Final = "commit.retry.num-retries"
MIN_WAIT: Final = "commit.retry.min-wait-ms"
MAX_WAIT: Final = "commit.retry.max-wait-ms"
TOTAL: Final = "commit.retry.total-timeout-ms"
_DEFAULTS: Final = {RETRIES: 4, MIN_WAIT: 100, MAX_WAIT: 60_000, TOTAL: 1_800_000}


class RetryPolicy(Struct, frozen=True):
    """Attempts after the first one, and the waits before them in milliseconds."""

    retries: int
    min_wait_ms: int
    max_wait_ms: int
    total_ms: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> RetryPolicy:
        """A property that is no number from 0 on, which others have set, counts as not given.

        The statement that mends it is one of those that are tried.
        """
        return cls(*(_number(properties, name) for name in _DEFAULTS))

    def wait_seconds(self, attempt: int) -> float:
        """Before the attempt after number ``attempt``, from 1: twice as long each time.

        Spread over half of it: writers that met once should not meet again.
        """
        longest: int = min(self.min_wait_ms << min(attempt - 1, 40), self.max_wait_ms)
        return longest * random.uniform(0.5, 1.0) / 1000


def check_retries(properties: Mapping[str, str]) -> None:
    """Raise ProgrammingError for a property that is no number from 0 on."""
    for name in _DEFAULTS:
        text = properties.get(name)
        if text is not None and not _is_number(text):
            raise ProgrammingError(f"property {name} is {text!r}; it has to be a number from 0 on")


def _number(properties: Mapping[str, str], name: str) -> int:
    text = properties.get(name)
    return int(text) if text is not None and _is_number(text) else _DEFAULTS[name]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
