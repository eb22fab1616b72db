"""Answers of a REST catalog that drip: they end, and leave nothing behind."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import icesql
from icesql.catalog.rest import client


class Drip(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    header_drips = False

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path.startswith("/v1/config"):
            body = json.dumps({"defaults": {}, "overrides": {}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            if not self.header_drips:
                self.wfile.write(b"Content-Length: 600\r\n\r\n")
            while True:
                self.wfile.write(b" " if not self.header_drips else b"X: y\r\n")
                self.wfile.flush()
                time.sleep(0.05 if not self.header_drips else 0.3)
        except OSError:
            self.close_connection = True


@pytest.fixture(params=[False, True], ids=["body", "headers"])
def uri(request: pytest.FixtureRequest) -> Iterator[str]:
    handler = type("Handler", (Drip,), {"header_drips": request.param})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_an_answer_ends_at_its_deadline(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_ANSWER_SECONDS", 1.0)
    with (
        icesql.connect(uri=uri) as opened,
        pytest.raises(icesql.CatalogError, match="did not come"),
    ):
        opened.execute("SELECT * FROM s.t")


def test_a_statement_that_ended_leaves_no_request(uri: str) -> None:
    with icesql.connect(uri=uri, settings={"query_timeout": 0.3}) as opened:
        for _ in range(5):
            with pytest.raises(icesql.QueryCancelledError):
                opened.execute("SELECT * FROM s.t")
        names = ("icesql-background-call",)
        until = time.monotonic() + 60
        while any(each.name in names for each in threading.enumerate()):
            assert time.monotonic() < until, "a request goes on behind its statement"
            time.sleep(0.05)


def test_an_answer_is_bounded_by_what_it_builds() -> None:
    made = client.RestClient.__new__(client.RestClient)
    made.name = "c"
    body = b'{"identifiers":[' + b",".join([b"[]"] * 3_000_000) + b"]}"
    with pytest.raises(icesql.CatalogError, match="values"):
        client.RestClient.decoded(made, body, Any)
