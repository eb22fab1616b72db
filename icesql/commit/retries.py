"""Decides how often and how long a commit is tried, by the properties of its table.

If none is set, it is retried as long as its statement has time: another attempt rewrites only
metadata, while another statement repeats all of its work.
Source: Java ``TableProperties`` and ``Tasks.exponentialBackoff``.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Mapping
from typing import Final

from icesql.frozen import Frozen
from icesql.iceberg.metadata.property_numbers import number_property, whole_number

RETRIES: Final = "commit.retry.num-retries"
MIN_WAIT: Final = "commit.retry.min-wait-ms"
MAX_WAIT: Final = "commit.retry.max-wait-ms"
TOTAL: Final = "commit.retry.total-timeout-ms"
_DEFAULTS: Final = {RETRIES: 4, MIN_WAIT: 100, MAX_WAIT: 60_000, TOTAL: 1_800_000}
# The longest wait if only the time is limited: longer waits would leave few attempts.
_LONGEST_MS: Final = 1_000


class RetryPolicy(Frozen):
    """The number of attempts after the first one, and the waits before them in milliseconds.

    ``retries`` limits attempts after conflicts, ``repeats`` those after a busy server's response.
    ``until`` is the latest start of an attempt, in ``time.monotonic``.
    """

    retries: int
    repeats: int
    min_wait_ms: int
    max_wait_ms: int
    until: float

    @classmethod
    def of(cls, properties: Mapping[str, str], seconds: float | None = None) -> RetryPolicy:
        """The policy of a commit that starts now.

        ``seconds`` limits the attempts if the properties set neither their number nor their time;
        None means the default time. An invalid property, which another writer must have set, counts
        as not set: the statement that corrects it has to be committed, too.
        """
        retries, least, longest, total = (whole_number(properties.get(each)) for each in _DEFAULTS)
        repeats = _DEFAULTS[RETRIES] if retries is None else retries
        if retries is None and total is None and seconds is not None:
            limit = seconds
        else:
            limit = (_DEFAULTS[TOTAL] if total is None else total) / 1000
        if longest is None:
            longest = _DEFAULTS[MAX_WAIT] if retries is not None else _LONGEST_MS
        return cls(
            sys.maxsize if retries is None else retries,
            repeats,
            _DEFAULTS[MIN_WAIT] if least is None else least,
            longest,
            time.monotonic() + limit,
        )

    @property
    def limit(self) -> str:
        """The property to raise for more attempts."""
        return TOTAL if self.retries == sys.maxsize else RETRIES

    def is_last(self, attempt: int) -> bool:
        """True if no attempt follows the one of this number, from 1."""
        return attempt > self.retries or time.monotonic() > self.until

    def wait_seconds(self, attempt: int) -> float:
        """The wait after attempt number ``attempt``, from 1, in seconds; it doubles each time.

        Random between half and all of it, so that two writers do not collide again.
        """
        longest: int = min(self.min_wait_ms << min(attempt - 1, 40), self.max_wait_ms)
        return longest * random.uniform(0.5, 1.0) / 1000


def check_retries(properties: Mapping[str, str]) -> None:
    """Raise ProgrammingError for a property that is not a whole number of at least 0."""
    for name, default in _DEFAULTS.items():
        number_property(properties, name, default)
