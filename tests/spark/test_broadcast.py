"""A side of a join that is small by metadata is broadcast to every task; no larger one is."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import icesql
from icesql.engine.spark import scans, sessions
from icesql.engine.spark.releases import frame_of_rows
from icesql.engine.spark.sessions import SparkSessions
from tests.spark.conftest import NUMBERS
from tests.writer.table import TableWriter

LIMIT = "spark.sql.autoBroadcastJoinThreshold"
# Joins of a table with 60,000 rows and one with some hundred rows and deletes, on either side.
JOINS = """
SELECT l.x, r.k FROM numbers l JOIN deleted r ON l.x = r.x
SELECT l.x, r.k FROM numbers l LEFT JOIN deleted r ON l.x = r.x
SELECT l.x, r.k FROM deleted l RIGHT JOIN numbers r ON l.x = r.x
SELECT x FROM numbers WHERE x IN (SELECT x FROM deleted)
SELECT x FROM numbers n WHERE EXISTS (SELECT 1 FROM deleted d WHERE d.x = n.x)
SELECT n.x, c FROM numbers n JOIN (SELECT k, x, count(*) AS c FROM deleted GROUP BY k, x) d ON d.x = n.x
WITH d AS (SELECT * FROM deleted WHERE k <> 'k9') SELECT n.x FROM numbers n JOIN d ON d.x = n.x
""".strip().splitlines()


@pytest.fixture(scope="module")
def limited(
    request: pytest.FixtureRequest, session: Any, cluster_tables: dict[str, str]
) -> Iterator[tuple[icesql.Connection, str]]:
    """A connection on a user's session with this limit, and the limit."""
    own = session.newSession()
    own.conf.set(LIMIT, request.param)
    with icesql.connect(engine="spark", spark=own) as con:
        for name in ("numbers", "deleted"):
            con.register_table(name, cluster_tables[name])
        yield con, request.param
        assert own.conf.get(LIMIT) == request.param


def broadcasts(con: icesql.Connection, query: str) -> str:
    with con.execute(query) as cursor:
        result: Any = cursor._result
        return "\n".join(line for line in result.engine_plan() if "Broadcast" in line)


# With the limit of 10 MB Spark broadcasts in tasks; DuckDB may join in the other ways.
@pytest.mark.parametrize(
    ("limited", "ways"),
    [*itertools.product(["100", "-1"], ["tasks", "fragments", "reader"]), ("10m", "tasks")],
    indirect=True,
)
@pytest.mark.parametrize("query", JOINS)
def test_a_side_above_the_limit_is_never_broadcast(
    limited: tuple[icesql.Connection, str], query: str, ways: frozenset[str]
) -> None:
    con, limit = limited
    found = broadcasts(con, query)
    assert bool(found) == (limit == "10m")


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_which_side_is_small_does_not_depend_on_its_tasks(
    session: Any,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    dialect: str,
) -> None:
    """The small table has more files, and so more tasks, than the large one."""
    monkeypatch.setattr(scans.Scans, "ways", frozenset())
    folder = tmp_path_factory.mktemp("sides")
    small, large = TableWriter(folder / "small", NUMBERS), TableWriter(folder / "large", NUMBERS)
    small.commit(small.data_file([{"x": x, "k": "s"}]) for x in range(12))
    large.commit([large.data_file([{"x": x, "k": f"k{x}"} for x in range(20_000)])])
    own = session.newSession()
    own.conf.set(LIMIT, "20kb")
    with icesql.connect(engine="spark", spark=own, dialect=dialect) as con:
        con.register_table("small", str(small.metadata_path))
        con.register_table("large", str(large.metadata_path))
        # For a LEFT JOIN only the right side can be broadcast.
        for left, right, is_broadcast in (("large", "small", True), ("small", "large", False)):
            query = f"SELECT l.x, r.k FROM {left} l LEFT JOIN {right} r ON l.x = r.x"
            assert bool(broadcasts(con, query)) == is_broadcast
            assert len(con.execute(query).fetchall()) == (20_000 if is_broadcast else 12)


def test_many_bytes_of_jobs_are_as_many_partitions(session: Any) -> None:
    pinned = SparkSessions({"session": session}).session("UTC")
    rows = pa.table({"files": pa.array([os.urandom(130_000) for _ in range(400)], pa.binary())})
    assert frame_of_rows(pinned, rows, "files BINARY").rdd.getNumPartitions() == 400


def test_a_whole_side_is_sent_once(
    session: Any, sixteen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []

    def counted(given: Any, rows: pa.Table, schema: str) -> Any:
        sent.extend(map(len, rows.column(0).to_pylist()))
        return frame_of_rows(given, rows, schema)

    monkeypatch.setattr(sessions, "frame_of_rows", counted)
    with icesql.connect(engine="spark", spark=session) as con:
        con.execute("SET split_target_size = '1kb'")
        con.register_table("t", sixteen)
        alone = con.execute("SELECT k, sum(x) FROM t GROUP BY k").fetchall()
        one, sent[:] = max(sent), []
        query = "SELECT a.k, sum(a.x) FROM t a JOIN t b ON a.x = b.x GROUP BY a.k"
        assert sorted(con.execute(query).fetchall()) == sorted(alone)
    assert len(sent) > 1
    assert max(sent) <= one * 1.1
