"""Spark Connect: a server in a separate process, and a client without Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.conftest import SOURCES, needs
from tests.spark.processes import ConnectServer, Driver, is_alive, until
from tests.spark.test_cluster import EACH, GROUPED, PARTIAL, ROWS

# Spark joins the last two statements.
CHANGES = """
MERGE INTO w.t USING w.source s ON s.x = t.x WHEN MATCHED AND s.x % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET k = s.k WHEN NOT MATCHED THEN INSERT *
UPDATE w.t SET k = 'twice' || k WHERE x % 10 = 7
DELETE FROM w.t WHERE x IN (SELECT x - 1 FROM w.source)
MERGE INTO w.t USING (SELECT 1 AS x) s ON s.x = t.x WHEN MATCHED THEN UPDATE SET k = NULL WHEN NOT MATCHED BY SOURCE AND t.x > 11000 THEN DELETE
UPDATE w.t SET k = 'right ' || r.x FROM w.source l RIGHT JOIN w.source r ON l.x = r.x + 1 WHERE r.x = t.x AND r.x % 7 = 1
DELETE FROM w.t USING w.source l RIGHT JOIN w.source r ON l.x = r.x + 1 WHERE r.x = t.x AND r.x % 7 = 2
""".strip().splitlines()
pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def client(server: ConnectServer, cluster_tables: dict[str, str]) -> Driver:
    """A client that cannot start a JVM."""
    made = Driver(server, "remote", server.address, JAVA_HOME="/nowhere", PATH="/nowhere")
    made.ask("tables", cluster_tables)
    return made


def test_the_core_gives_the_local_rows(client: Driver) -> None:
    assert client.ask("core", {"types": False}) == []


def test_scans_without_files_give_no_rows(client: Driver) -> None:
    assert client.ask("error", "SELECT sum(i), count(*) FROM t WHERE false") == ["", ""]


def test_what_users_see_is_the_same(client: Driver, warehouse: Path) -> None:
    """Includes time travel."""
    assert client.ask("scripts", str(warehouse)) == []


@pytest.mark.parametrize(
    ("way", "sql"),
    [
        ("tasks", ROWS),
        ("tasks", GROUPED),
        ("partial", PARTIAL),
        ("partial", EACH),
        pytest.param("format", ROWS, marks=needs("4.0", why=SOURCES)),
        ("write", ROWS),
    ],
)
def test_each_way_gives_the_local_rows(client: Driver, way: str, sql: str) -> None:
    outcome = client.ask("rows", way, sql)
    assert outcome["same"]
    assert outcome["count"] == outcome["expected"] == outcome["distinct"]


def test_the_server_compacts_what_it_wrote(client: Driver) -> None:
    assert client.ask("compacted", "SELECT x, k FROM numbers WHERE x < 1000", "x") == [6, 3, True]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_the_servers_tasks_change_rows(client: Driver, mode: str) -> None:
    found, expected = client.ask("changed", CHANGES, mode)
    assert found == expected
    assert found[0] == 4000


@pytest.mark.parametrize("way", ["tasks", "partial"])
def test_cancel_ends_the_task_on_the_server(
    server: ConnectServer, client: Driver, way: str
) -> None:
    server.arm()
    client.ask("start", way, EACH)
    halted = server.halted(client)
    outcome = client.ask("cancel")
    assert outcome["error"] == "QueryCancelledError"
    assert outcome["seconds"] < 2
    until(lambda: not is_alive(halted["pid"]), "the cancelled task goes on", 30)
    assert client.ask("rows", way, EACH)["same"]


def test_a_corrupt_file_is_the_icesql_error(client: Driver, corrupt: Path) -> None:
    client.ask("tables", {"corrupt": str(corrupt.parents[1])})
    for sql in ("SELECT x FROM corrupt", "SELECT sum(x) FROM corrupt WHERE x > 0"):
        kind, text = client.ask("error", sql)
        assert kind == "CorruptFileError"
        assert str(corrupt) in text
        assert "grpc" not in text.lower()


def test_errors_of_the_data_are_data_errors(client: Driver) -> None:
    assert client.ask("error", "SELECT CAST(s AS INT) FROM t")[0] == "DataError"


def test_progress_counts_tasks(client: Driver) -> None:
    reports = client.ask("progress", GROUPED)
    assert reports
    done, total, _ = reports[-1]
    assert 0 < done <= total


def test_data_frames_leave_no_views(client: Driver, cluster_tables: dict[str, str]) -> None:
    folder = str(Path(cluster_tables["numbers"]).parents[1])
    assert client.ask("framed", folder) == [3, 2]


@needs("4.0", why=SOURCES)
def test_the_source_takes_its_options(client: Driver, cluster_tables: dict[str, str]) -> None:
    path = str(Path(cluster_tables["evolved"]).parents[1])
    columns, rows = client.ask("load", path, {"snapshot-id": "1000", "columns": "gone"})
    assert (columns, rows) == (["gone"], [["old"]] * 5)
    columns, rows = client.ask("load", path)
    assert columns == ["added", "x"]
    assert len(rows) == 10
    folder = str(Path(cluster_tables["numbers"]).parents[1])
    _, rows = client.ask("load", folder, {"tag": "half", "columns": "x"})
    assert sorted(rows) == [[x] for x in range(30_000)]


@needs("4.0", why=SOURCES)
def test_a_stream_gives_all_rows(client: Driver, cluster_tables: dict[str, str]) -> None:
    folder = str(Path(cluster_tables["numbers"]).parents[1])
    assert client.ask("stream", folder, {"max-files-per-batch": "4"}) == 60_000


def test_no_spark_context_was_made(client: Driver) -> None:
    assert client.ask("error", ROWS) == ["", ""]
    assert not client.ask("has_context")
