"""A record of each request to a store or a catalog in the log ``icesql`` at level DEBUG."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, Final

from icesql.storage.credentials import redact


class _Masked:
    """A filter of a log: the texts of its records without what is secret by its place."""

    def filter(self, record: Any) -> bool:
        """Let every record pass."""
        if isinstance(record.args, tuple):
            record.args = tuple(
                redact(each, {}) if isinstance(each, str) else each for each in record.args
            )
        return True


_MASKED: Final = _Masked()
_LOGS: Final = ("urllib3.connectionpool", "urllib3.util.retry", "botocore.auth")


def mask_logs() -> None:
    """Have the clients of catalogs and stores log no signature and no token of an address."""
    import logging

    for name in _LOGS:
        logging.getLogger(name).addFilter(_MASKED)  # the same one is added once


def log_request(
    method: str, url: str, begun: float, size: int, outcome: object, secrets: Mapping[str, Any]
) -> None:
    """Log one line: method, URL, outcome, the bytes that came, and ms since ``begun``.

    ``begun`` is of ``time.perf_counter``; ``secrets`` are properties whose secrets are masked, as
    are signatures in the URL. Nothing is imported for it: where nobody imported ``logging``, nobody
    listens.
    """
    logging = sys.modules.get("logging")
    if logging is None:
        return
    logger = logging.getLogger("icesql")
    if not logger.isEnabledFor(logging.DEBUG):
        return
    took = (time.perf_counter() - begun) * 1000
    where, result = redact(url, secrets), redact(str(outcome), secrets)
    logger.debug("%s %s: %s · %d B · %.1f ms", method, where, result, size, took)
