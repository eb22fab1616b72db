"""Examine a table, or all tables of a catalog: facts in, findings out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from icesql.catalog.table import Table
from icesql.commit.attempts import now_ms
from icesql.context import Progress, QueryContext
from icesql.errors import Error, InternalError
from icesql.health.bounds import missing_bounds, missing_nan_counts, overlap
from icesql.health.facts import Perform, facts_of
from icesql.health.files import delete_files, skew, small_files
from icesql.health.finding import WEIGHTS, Diagnosis
from icesql.health.forecast import with_gains
from icesql.health.manifests import manifests
from icesql.health.mending import examine_history
from icesql.health.metadata import (
    flink_streams,
    metadata_files,
    metadata_size,
    orphans,
    partition_names,
    snapshots,
)
from icesql.health.policy import TablePolicy
from icesql.sql.table_name import name_text

_EXAMINATIONS: Final = (
    small_files, delete_files, overlap, missing_bounds, missing_nan_counts, skew, manifests,
    snapshots, metadata_files, metadata_size, orphans, partition_names, flink_streams,
)  # fmt: skip


def diagnose(
    parts: Sequence[str], perform: Perform, table: Table, query: QueryContext
) -> Diagnosis:
    """Examine a table: its findings, the heaviest first. Changes nothing.

    Raises errors of stores, and CorruptFileError.
    """
    history = examine_history(parts, table, query)
    found = [*history.findings]
    if history.is_readable:
        facts = facts_of(
            parts, table, query, perform, TablePolicy(wants_expiry=True), now_ms(),
            last_good=history.last_good, bounds=True,
        )  # fmt: skip
        own = [finding for examine in _EXAMINATIONS for finding in examine(facts)]
        found += with_gains(own, facts)
    found.sort(key=lambda each: WEIGHTS.index(each.weight))
    return Diagnosis(name_text(parts), table.metadata.current_snapshot_id, tuple(found))


def diagnose_each(
    tables: Sequence[Sequence[str]],
    one: Callable[[Sequence[str]], Diagnosis | None],
    query: QueryContext,
) -> Iterator[Diagnosis]:
    """The diagnosis of each table by ``one``, in the order given; None for a dropped table.

    A failing table yields a diagnosis with its error. Raises QueryCancelledError if ``query``,
    which covers all tables, was cancelled.
    """
    for done, parts in enumerate(tables):
        query.check()
        query.report(Progress("tables", done, len(tables)))
        try:
            found = one(parts)
        except Exception as error:
            query.check()  # a cancelled query is not an error of this table
            found = failed(parts, error)
        if found is not None:
            yield found
    query.check()


def failed(parts: Sequence[str], error: Exception) -> Diagnosis:
    """The diagnosis for a table that could not be examined."""
    return Diagnosis(name_text(parts), None, (), error_text(error))


def error_text(error: Exception) -> str:
    """The message of an error, with its class if it is a bug."""
    text = str(error)
    if not isinstance(error, Error) or isinstance(error, InternalError):
        text = f"{type(error).__name__}: {text} (this is a bug in icesql)"
    return text or type(error).__name__


def worst_first(tables: Iterable[Diagnosis]) -> tuple[Diagnosis, ...]:
    """Tables with errors first, then by the weights of their findings, then by their gains."""
    return tuple(sorted(tables, key=_order))


def _order(table: Diagnosis) -> tuple[Any, ...]:
    weights = [-sum(each.weight == weight for each in table.findings) for weight in WEIGHTS]
    gain = table.gain
    return (not table.error, *weights, -gain.requests, -gain.bytes, table.table)
