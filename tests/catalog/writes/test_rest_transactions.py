"""A transaction over several tables, where a REST catalog applies it as a whole."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.commit import transaction
from tests.catalog.writes.rest_writes import WritableServer
from tests.sessions import fetched

TOGETHER = "POST /v1/{prefix}/transactions/commit"


class TransactionServer(WritableServer):
    """Applies the changes of several tables, or none of them; ``answers`` comes instead."""

    answers: int | None = None
    loses: bool = False
    busy: int = 0

    def together(self, changes: list[dict[str, Any]]) -> tuple[int, Any]:
        if self.answers is not None:
            return self.answers, {"error": {"message": "no"}}
        if self.busy:
            self.busy -= 1
            if self.busy == 1:  # it applies the request all the same
                super().together(changes)
            return (503 if self.busy else 429), {"error": {"message": "busy"}}
        status, answer = super().together(changes)
        return (502, {"error": {"message": "lost"}}) if self.loses else (status, answer)


@pytest.fixture
def server(tmp_path: Path) -> Any:
    with closing(TransactionServer(tmp_path / "wh")) as made:
        with icesql.connect(uri=made.uri) as con:
            for name in "tu":
                con.execute(f"CREATE TABLE ns.{name} (a INT)")
                con.execute(f"INSERT INTO ns.{name} VALUES (1)")
        made.config["endpoints"] = [
            "GET /v1/{prefix}/namespaces",
            "GET /v1/{prefix}/namespaces/{namespace}/tables",
            "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
            "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
            TOGETHER,
        ]
        yield made


def begun(con: icesql.Connection) -> None:
    con.execute("BEGIN")
    con.execute("INSERT INTO ns.t VALUES (2)")
    con.execute("DELETE FROM ns.u WHERE a = 1")
    con.execute("INSERT INTO ns.u SELECT a + 10 FROM ns.t")


def rows(con: icesql.Connection) -> list[list[int]]:
    found = (fetched(con, f"SELECT a FROM ns.{name} ORDER BY a") for name in "tu")
    return [[row[0] for row in each] for each in found]


def parquet(tmp_path: Path) -> set[Path]:
    return set(tmp_path.rglob("*.parquet")) | set(tmp_path.rglob("*.avro"))


def test_both_tables_change_or_none(server: TransactionServer, tmp_path: Path) -> None:
    with icesql.connect(uri=server.uri) as con, icesql.connect(uri=server.uri) as other:
        begun(con)
        assert rows(con) == [[1, 2], [11, 12]]
        assert rows(other) == [[1], [1]]
        con.execute("COMMIT")
        assert rows(con) == rows(other) == [[1, 2], [11, 12]]
        before = parquet(tmp_path)
        begun(con)
        con.execute("ROLLBACK")
        assert parquet(tmp_path) == before
        begun(con)
        other.execute("INSERT INTO ns.u VALUES (99)")
        before = parquet(tmp_path)
        with pytest.raises(errors.CommitConflictError, match="run the transaction again"):
            con.commit()
        assert parquet(tmp_path) < before
        assert rows(con) == [[1, 2], [11, 12, 99]]


def test_an_answer_that_is_lost(server: TransactionServer, tmp_path: Path) -> None:
    with icesql.connect(uri=server.uri) as con:
        server.loses = True
        begun(con)
        con.commit()
        assert rows(con) == [[1, 2], [11, 12]]
        server.answers = 504
        begun(con)
        before = parquet(tmp_path)
        with pytest.raises(errors.CommitStateUnknownError, match=r"ns.t and ns.u"):
            con.commit()
        assert parquet(tmp_path) == before
        assert rows(con) == [[1, 2], [11, 12]]


def test_what_a_busy_server_has_applied_is_seen_when_it_refuses_to_answer_again(
    server: TransactionServer, monkeypatch
) -> None:
    with icesql.connect(uri=server.uri) as con, icesql.connect(uri=server.uri) as other:
        begun(con)
        server.busy, loads = 2, 0
        load = transaction._Fixed.loaded

        def late(request: Any) -> Any:
            nonlocal loads
            loads += 1
            if loads == 1:  # the first look finds the server as busy as the request did
                raise errors.CatalogError("busy")
            return load(request)

        monkeypatch.setattr(transaction._Fixed, "loaded", late)
        con.execute("COMMIT")
        assert server.busy == 0
        assert rows(con) == rows(other) == [[1, 2], [11, 12]]


def test_a_server_without_transactions(server: TransactionServer) -> None:
    server.config["endpoints"].remove(TOGETHER)
    with icesql.connect(uri=server.uri) as con:
        con.execute("BEGIN")
        con.execute("INSERT INTO ns.t VALUES (2)")
        with pytest.raises(errors.NotSupportedError, match="REST catalog that offers"):
            con.execute("INSERT INTO ns.u VALUES (2)")
        con.execute("COMMIT")
        assert rows(con) == [[1, 2], [1]]
