"""Run the tasks of a conversion on this machine, one after the other, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.engine.duckdb.tasks.rows import one_engine
from icesql.maintain.convert.task import ConversionResult, Tasks, run_conversion_task

# DuckDB's share, which spills what is more; settings may allow less.
_MEMORY: Final = 512 << 20


def run_locally(tasks: Tasks, query: QueryContext) -> Iterator[ConversionResult]:
    """The results of tasks as they end; each uses all threads of the settings."""
    settings = replace(query.settings, memory_limit=min(query.settings.memory_limit, _MEMORY))
    own = QueryContext(settings, query.cancel, query.deadline, query.now, None, query.tables)
    with one_engine():
        for each in tasks(1):
            yield run_conversion_task(each, own)
