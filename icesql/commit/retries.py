"""How often and how long a commit is tried, by the properties of its table.

Where none of them says so, it is tried as long as its statement has time: another attempt costs
metadata alone, and another statement all of its work.
Source: Java ``TableProperties`` and ``Tasks.exponentialBackoff``.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from icesql.iceberg.metadata.property_numbers import number_property, whole_number

RETRIES: Final = "commit.retry.num-retries"
MIN_WAIT: Final = "commit.retry.min-wait-ms"
MAX_WAIT: Final = "commit.retry.max-wait-ms"
TOTAL: Final = "commit.retry.total-timeout-ms"
_DEFAULTS: Final = {RETRIES: 4, MIN_WAIT: 100, MAX_WAIT: 60_000, TOTAL: 1_800_000}
# The longest wait where time alone limits the attempts: longer ones would leave few of them.
_LONGEST_MS: Final = 1_000


class RetryPolicy(Struct, frozen=True):
    """Attempts after the first one, and the waits before them in milliseconds.

    ``retries`` are those after a conflict, ``repeats`` those of a request that a busy server did
    not take. ``until`` is when the last attempt may begin, by ``time.monotonic``.
    """

    retries: int
    repeats: int
    min_wait_ms: int
    max_wait_ms: int
    until: float

    @classmethod
    def of(cls, properties: Mapping[str, str], seconds: float | None = None) -> RetryPolicy:
        """That of a commit which begins now.

        ``seconds`` limit the attempts where the properties give neither their number nor their
        time; None is the default of the time. A property that is no number from 0 on, which others
        have set, counts as not given: the statement that mends it is one of those that are tried.
        """
        retries, longest = _number(properties, RETRIES), _number(properties, MAX_WAIT)
        total = _number(properties, TOTAL)
        repeats = _DEFAULTS[RETRIES] if retries is None else retries
        if retries is None and total is None and seconds is not None:
            limit = seconds
        else:
            limit = (_DEFAULTS[TOTAL] if total is None else total) / 1000
        if longest is None:
            longest = _DEFAULTS[MAX_WAIT] if retries is not None else _LONGEST_MS
        least = _number(properties, MIN_WAIT)
        return cls(
            sys.maxsize if retries is None else retries,
            repeats,
            _DEFAULTS[MIN_WAIT] if least is None else least,
            longest,
            time.monotonic() + limit,
        )

    @property
    def limit(self) -> str:
        """The property by which there would be more attempts."""
        return TOTAL if self.retries == sys.maxsize else RETRIES

    def is_last(self, attempt: int) -> bool:
        """Whether no other attempt follows the one of this number, from 1."""
        return attempt > self.retries or time.monotonic() > self.until

    def wait_seconds(self, attempt: int) -> float:
        """Before the attempt after number ``attempt``, from 1: twice as long each time.

        Spread over half of it: writers that met once should not meet again.
        """
        longest: int = min(self.min_wait_ms << min(attempt - 1, 40), self.max_wait_ms)
        return longest * random.uniform(0.5, 1.0) / 1000


def check_retries(properties: Mapping[str, str]) -> None:
    """Raise ProgrammingError for a property that is no number from 0 on."""
    for name, default in _DEFAULTS.items():
        number_property(properties, name, default)


def _number(properties: Mapping[str, str], name: str) -> int | None:
    return whole_number(properties.get(name))
