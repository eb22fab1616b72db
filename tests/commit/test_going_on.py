"""How long a commit is retried after conflicts: by properties, by time, and whom it waits for."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from icesql.catalog.writes.change import Conflict
from icesql.commit.attempts import RetryPolicy
from icesql.commit.rows import commit_append
from icesql.context import COMMITTING, NOT_COMMITTED, Progress, QueryContext
from icesql.errors import CommitConflictError, QueryCancelledError
from tests.commit.tables import CATALOGS, FAST, create, fake, files_on_disk, live, written

RETRIES, TOTAL = "commit.retry.num-retries", "commit.retry.total-timeout-ms"


class Busy:
    """A catalog in which others commit before each of the first swaps."""

    def __init__(self, catalog, times: int, *, really: bool = False) -> None:
        self.catalog, self.times, self.swaps, self.really = catalog, times, 0, really

    def __getattr__(self, name):
        return getattr(self.catalog, name)

    def swap(self, identifier, base, change):
        self.swaps += 1
        if self.swaps > self.times:
            return self.catalog.swap(identifier, base, change)
        if self.really:
            table = self.catalog.load(identifier)
            commit_append(self.catalog, table, [fake(f"o{self.swaps}")])
            return self.catalog.swap(identifier, base, change)
        return Conflict("another was first")


@pytest.fixture(params=CATALOGS)
def catalog(request, tmp_path):
    return CATALOGS[request.param](tmp_path)


@pytest.mark.parametrize(
    ("properties", "seconds", "retries", "limit"),
    [
        ({}, 60.0, None, 60),
        ({}, None, None, 1800),
        ({RETRIES: "7"}, 60.0, 7, 1800),
        ({TOTAL: "5000"}, 60.0, None, 5),
        ({TOTAL: "5000"}, None, None, 5),
        ({RETRIES: "7", TOTAL: "5000"}, 60.0, 7, 5),
        ({RETRIES: "many", TOTAL: "-1"}, 60.0, None, 60),
    ],
)
def test_properties_that_are_given_count_and_else_time_does(
    properties, seconds, retries, limit
) -> None:
    begun = time.monotonic()
    policy = RetryPolicy.of(properties, seconds)
    assert begun + limit <= policy.until <= time.monotonic() + limit
    for attempt in (1, 5, 7, 8, 10_000):
        assert policy.is_last(attempt) == (retries is not None and attempt > retries)
    assert policy.repeats == (4 if retries is None else retries)


@pytest.mark.parametrize("properties", [{}, {TOTAL: "600000"}])
def test_a_commit_goes_on_after_many_conflicts(catalog, properties, monkeypatch) -> None:
    monkeypatch.setattr("icesql.commit.attempts.wait", lambda seconds, query: None)
    table = create(catalog, **properties)
    busy = Busy(catalog, 20)
    assert live(commit_append(busy, table, [fake("a")]).table) == {"a"}
    assert busy.swaps == 21


def test_the_time_of_a_statement_ends_it(catalog) -> None:
    table = create(catalog)
    file = written(table, "a", [(1, "x")])
    busy = Busy(catalog, 10_000)
    query = QueryContext(commit_seconds=0.5)
    with pytest.raises(CommitConflictError, match=f"another was first; .* raise {TOTAL}"):
        commit_append(busy, table, [file], query=query)
    assert busy.swaps > 1
    assert files_on_disk(table, "*.avro") == set()
    assert not Path(file.path).exists()


def test_it_is_told_who_was_first(catalog, monkeypatch) -> None:
    monkeypatch.setattr("icesql.commit.attempts._PATIENCE_SECONDS", 0.0)
    told: list[Progress] = []
    table = create(catalog, **FAST)
    query = QueryContext(progress=told.append)
    after = commit_append(Busy(catalog, 3, really=True), table, [fake("a")], query=query).table
    assert live(after) == {"a", "o1", "o2", "o3"}
    assert [each.done for each in told if each.stage == COMMITTING] == [1, 2, 3, 4]
    details = [each.detail for each in told if each.stage == NOT_COMMITTED]
    assert details[0] == "", "nobody was seen yet"
    ids = [each.snapshot_id for each in after.metadata.snapshots.values()]
    for detail, snapshot_id in zip(details[1:], ids[:2], strict=True):
        assert re.match(r"\d+ s behind append of icesql", detail)
        assert f"snapshot {snapshot_id} ·" in detail


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, None])
def test_what_is_stopped_between_attempts_says_that_nothing_was_committed(
    catalog, interrupt, monkeypatch
) -> None:
    told: list[Progress] = []
    query = QueryContext(progress=told.append)

    def stopped(seconds, query) -> None:
        if interrupt is not None:
            raise interrupt
        query.cancel.set()
        query.check()

    monkeypatch.setattr("icesql.commit.attempts.wait", stopped)
    table = create(catalog)
    file = written(table, "a", [(1, "x")])
    expected = interrupt or QueryCancelledError
    with pytest.raises(expected, match=None if interrupt else "cancelled; nothing was committed"):
        commit_append(Busy(catalog, 10), table, [file], query=query)
    assert told[-1].stage == NOT_COMMITTED
    assert not Path(file.path).exists()
