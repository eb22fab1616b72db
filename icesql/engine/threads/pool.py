"""A thread pool for concurrent writes; no thread continues after an error."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def thread_pool(count: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """At most ``count`` threads; at the end waiting calls are cancelled, running ones awaited."""
    pool = ThreadPoolExecutor(count, name)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
