"""A record of each statement's reads in the log ``icesql`` at level INFO."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icesql.session.outcome import Outcome


def log_scans(query_id: str, outcome: Outcome, seconds: float) -> None:
    """Log one line for each table of the statement, with its id and the seconds until it began.

    Nothing is imported for it: where nobody imported ``logging``, nobody listens.
    """
    logging = sys.modules.get("logging")
    if logging is None:
        return
    logger = logging.getLogger("icesql")
    if not logger.isEnabledFor(logging.INFO) or not outcome.plans:
        return
    from icesql.scan.report_text import scan_line
    from icesql.storage.credentials import redact_urls

    for report in outcome.reports:
        snapshot = report.snapshot_id if report.snapshot_id is not None else "none"
        line = redact_urls(scan_line(report))
        logger.info("query %s: %s · snapshot %s · %.3f s", query_id, line, snapshot, seconds)
