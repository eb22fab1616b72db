"""Three catalogs in one session: a SQLite file, a folder of tables and a REST server."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import icesql
from tests.catalog.rest_server import Server
from tests.query.views.stored import metadata
from tests.sessions import fetched
from tests.slt.runner import Case, read_cases, run_record
from tests.writer.fields import fields
from tests.writer.table import TableWriter


@pytest.fixture
def lake(warehouse: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder ``ns/things`` of tables; SQLite is ``files``, REST ``remote``, ``gone`` is not there."""
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    folder = tmp_path / "lake"
    table = TableWriter(folder / "ns" / "things", fields("id long"))
    table.commit([table.data_file([{"id": 1}, {"id": 2}])])
    (tmp_path / ".pyiceberg.yaml").write_text(
        f"catalog:\n  Files:\n    type: sql\n    uri: sqlite:///{warehouse}/catalog.db\n"
        f"  remote:\n    type: rest\n    uri: {server.uri}\n"
        "  gone:\n    type: sql\n    uri: sqlite:////nowhere/x.db\n"
        "  missing:\n    type: hive\n    uri: thrift://127.0.0.1:1\n"
    )
    return folder


@pytest.fixture
def con(lake: Path) -> Iterator[icesql.Connection]:
    with icesql.connect(warehouse=lake) as connection:
        yield connection


def found_or_said(con: icesql.Connection, sql: str) -> str:
    try:
        return str(fetched(con, sql))
    except icesql.Error as error:
        return str(error)


def test_catalogs_are_listed_without_asking_any(con: icesql.Connection, server: Server) -> None:
    assert fetched(con, "SHOW CATALOGS") == [
        ("lake", "directory"), ("files", "sql"), ("gone", "sql"), ("missing", "hive"), ("remote", "rest"),
    ]  # fmt: skip
    assert con.catalogs() == ["lake", "files", "gone", "missing", "remote"]
    assert server.asked == []


def test_one_query_reads_all_three(con: icesql.Connection) -> None:
    sql = (
        "SELECT count(*) FROM ns.things a JOIN files.shop.orders b ON a.id = b.id "
        "JOIN REMOTE.shop.orders VERSION AS OF 'opening' c ON c.id = b.id"
    )
    ids = "SELECT id FROM {}"
    kept = set(fetched(con, ids.format("ns.things"))) & set(
        fetched(con, ids.format("files.shop.orders"))
    )
    opening = fetched(con, ids.format("lake.ns.things"))
    past = set(fetched(con, ids.format("remote.shop.orders VERSION AS OF 'opening'")))
    assert fetched(con, sql) == [(len(kept & past & set(opening)),)]


@pytest.mark.parametrize(
    "case", read_cases(Path(__file__).with_name("several_catalogs.slt")), ids=lambda own: own.name
)
def test_what_sessions_show(con: icesql.Connection, case: Case) -> None:
    for record in case.records:
        run_record(con, record, None)


def test_tables_of_each_catalog(con: icesql.Connection) -> None:
    assert [row[0] for row in fetched(con, "DESCRIBE remote.shop.orders")][:2] == ["id", "region"]
    assert con.tables("remote") == ["remote.shop.orders"]
    assert con.tables("lake") == ["lake.ns.things"]
    for (name,) in fetched(con, "SHOW TABLES FROM files"):
        fetched(con, f"SELECT * FROM {name} LIMIT 1")


def test_own_namespaces_go_before_catalogs(lake: Path) -> None:
    shutil.copytree(lake / "ns", lake / "remote")
    with icesql.connect(warehouse=lake) as con:
        assert fetched(con, "SHOW TABLES FROM remote") == [("remote.things",)]
        con.execute("USE remote")
        assert fetched(con, "SELECT count(*) FROM things") == [(2,)]
        assert fetched(con, "SELECT count(*) FROM remote.shop.orders") != [(2,)]


def test_without_a_catalog_of_its_own_a_session_has_the_configured_ones(lake: Path) -> None:
    with icesql.connect() as con:
        shown = [name for name, _ in fetched(con, "SHOW CATALOGS")]
        assert shown == ["files", "gone", "missing", "remote"]
        con.execute("USE files.shop")
        assert fetched(con, "SELECT count(*) FROM customers") == [(4,)]
        with pytest.raises(icesql.ProgrammingError, match='no catalog "file"; did you mean files'):
            con.execute("USE file")


def test_a_restricted_session_sees_what_it_may_open(lake: Path) -> None:
    with icesql.connect(warehouse=lake, catalogs=["FILES"]) as con:
        assert con.catalogs() == ["lake", "files"]
        assert fetched(con, "SELECT count(*) FROM files.shop.customers") == [(4,)]
        for sql in (
            "USE remote",
            "SHOW TABLES FROM remote.shop",
            "SELECT * FROM remote.shop.orders",
        ):
            said = found_or_said(con, sql)
            assert "access" not in said  # as if there were none of that name
            assert "shop.orders'" not in said
    with icesql.connect(warehouse=lake, service=True) as con:
        assert con.catalogs() == ["lake"]


def test_a_catalog_that_hangs_is_left_when_the_time_is_over(lake: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        home = lake.parent / ".pyiceberg.yaml"
        home.write_text(
            f"catalog:\n  slow:\n    type: rest\n    uri: http://127.0.0.1:{silent.getsockname()[1]}\n"
        )
        with icesql.connect(warehouse=lake) as con:
            assert fetched(con, "SHOW CATALOGS")[1] == ("slow", "rest")
            assert fetched(con, "SELECT count(*) FROM ns.things") == [(2,)]
            con.execute("SET query_timeout = 0.3")
            for sql in (
                "SELECT * FROM slow.a.b",
                "SHOW TABLES FROM slow",
                "USE slow.a",
                "DESCRIBE slow.a.b",
            ):
                began = time.monotonic()
                with pytest.raises(icesql.QueryCancelledError):
                    con.execute(sql)
                assert time.monotonic() - began < 30
        with icesql.connect(warehouse=lake) as con:
            cursor = con.cursor()

            held = []

            def cancel_what_arrives() -> None:
                # The requests that were left above arrive first.
                with suppress(OSError):
                    while True:
                        held.append(silent.accept())
                        cursor.cancel()

            threading.Thread(target=cancel_what_arrives, daemon=True).start()
            with pytest.raises(icesql.QueryCancelledError):
                cursor.execute("SELECT * FROM slow.a.b")
        silent.shutdown(socket.SHUT_RDWR)


def test_a_view_of_another_catalog_reads_no_table_of_the_own_one(
    con: icesql.Connection, lake: Path, server: Server
) -> None:
    shutil.copytree(lake / "ns" / "things", lake / "shop" / "only_here")
    asked = {
        "v": "SELECT count(*) AS n FROM orders", "w": "SELECT count(*) AS n FROM only_here",
        "x": "SELECT count(*) AS n FROM shop.only_here", "y": "SELECT n FROM shop.z",
        "u": "SELECT count(*) AS n FROM lake.ns.things",
    }  # fmt: skip
    for name, sql in asked.items():
        server.views.add(("shop", name))
        server.view_metadata["shop", name] = metadata({"duckdb": sql}, {"n": "long"})
    assert fetched(con, "SELECT count(*) FROM shop.only_here") == [(2,)]
    assert fetched(con, "SELECT n FROM remote.shop.v") == [(39,)]
    assert fetched(con, "SELECT n FROM remote.shop.u") == [(2,)]
    for name in "wxy":
        with pytest.raises(icesql.TableNotFoundError, match=f'in view "shop.{name}"'):
            con.execute(f"SELECT n FROM remote.shop.{name}")


def test_a_name_with_a_namespace_in_a_view_means_that_namespace(
    con: icesql.Connection, server: Server
) -> None:
    deep = {**server.tables["shop", "orders"], "metadata": None}
    server.tables["shop", "shop", "orders"] = deep
    view = metadata({"duckdb": "SELECT count(*) AS n FROM shop.orders"}, {"n": "long"})
    server.views.add(("shop", "v"))
    server.view_metadata["shop", "v"] = view
    assert fetched(con, "SELECT n FROM remote.shop.v") == [(39,)]
