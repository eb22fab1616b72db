"""Responses of a REST catalog that drip: requests end, and none are left behind."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any

import pytest

import icesql
from icesql.catalog.rest import client
from tests.catalog.rest_server import Server
from tests.sessions import answer
from tests.waits import wait_until


@pytest.fixture(params=["body", "headers"])
def uri(request: pytest.FixtureRequest, server: Server) -> str:
    """The URI of a server whose responses drip after their first line, or after their headers."""
    is_body = request.param == "body"

    def drip(asked: Any, *_: object) -> None:
        asked.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"Content-Length: 600\r\n\r\n" * is_body)
        with suppress(OSError):
            while True:
                asked.wfile.write(b" " if is_body else b"X: y\r\n")
                time.sleep(0.05 if is_body else 0.3)
        asked.close_connection = True

    server.catalog = drip  # type: ignore[method-assign]
    return server.uri


def test_an_answer_ends_at_its_deadline(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_ANSWER_SECONDS", 1.0)
    with pytest.raises(icesql.CatalogError, match="did not come"):
        answer("SELECT * FROM s.t", uri=uri)


def test_a_statement_that_ended_leaves_no_request(uri: str) -> None:
    with icesql.connect(uri=uri, settings={"query_timeout": 0.3}) as opened:
        for _ in range(5):
            with pytest.raises(icesql.QueryCancelledError):
                opened.execute("SELECT * FROM s.t")
        name = "icesql-background-call"
        wait_until(lambda: all(each.name != name for each in threading.enumerate()))


def test_an_answer_is_bounded_by_what_it_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    made = client.RestClient.__new__(client.RestClient)
    made.name = "c"
    body = b'{"identifiers":[' + b",".join([b"[]"] * 3_000_000) + b"]}"
    answered = client.Answer(200, {}, body)
    monkeypatch.setattr(client.RestClient, "request", lambda *given, **options: answered)
    with pytest.raises(icesql.CatalogError, match="values"):
        made.json("GET")
