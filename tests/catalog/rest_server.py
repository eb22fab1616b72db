"""A REST catalog of the tests' own that follows the OpenAPI specification."""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from icesql.catalog.open import open_catalog
from icesql.catalog.rest.catalog import RestCatalog

ORDERS: Final = ("shop", "orders")


class Server:
    """A server of tables by namespace and name; ``asked`` records its requests."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = {"defaults": {}, "overrides": {}}
        self.tables: dict[tuple[str, ...], dict[str, Any]] = {}
        self.views: set[tuple[str, ...]] = set()
        # Namespaces that exist without a table or a view in them.
        self.namespaces: set[tuple[str, ...]] = set()
        # The response for each view.
        self.view_metadata: dict[tuple[str, ...], dict[str, Any]] = {}
        self.asked: list[tuple[str, str, dict[str, list[str]], dict[str, str]]] = []
        self.failures: list[int] = []
        self.tokens: list[str] = []
        self.needs_token = False
        self.page: int | None = None
        # Reports are recorded separately, since they arrive at any time.
        self.reporting = 204
        self.reports: list[tuple[str, dict[str, Any]]] = []
        self.redirects: dict[str, tuple[int, str]] = {}
        # The bodies of the requests in progress.
        self.bodies: dict[int, bytes] = {}
        # The paths and bodies of changes of views.
        self.changes: list[tuple[str, bytes]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                server.answer(self)

            do_POST = do_DELETE = do_HEAD = do_GET

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
        self.uri = f"http://127.0.0.1:{self.http.server_port}"

    def answer(self, request: Any) -> None:
        url = urlsplit(request.path)
        headers = {key.lower(): value for key, value in request.headers.items()}
        length = int(headers.get("content-length", 0))
        body = request.body = request.rfile.read(length)
        if url.path.endswith("/metrics") and self.reporting == 204:
            self.reports.append((url.path, json.loads(body)))
            self.send(request, 204, None)
            return
        self.asked.append((request.command, url.path, parse_qs(url.query), headers))
        if url.path in self.redirects:
            status, place = self.redirects[url.path]
            self.send(request, status, None, {"Location": place})
            return
        if self.failures:
            self.send(request, self.failures.pop(0), {"error": {"message": "busy"}})
            return
        if url.path == "/v1/oauth/tokens":
            given = parse_qs(body.decode())
            basic = headers.get("authorization", "").removeprefix("Basic ")
            if basic:
                given["client_secret"] = [b64decode(basic).decode().partition(":")[2]]
            if given["client_secret"] != ["s3cret!"]:
                refusal = {"error": "invalid_client", "error_description": "no such client"}
                self.send(request, 401, refusal)
                return
            self.tokens.append(f"token{len(self.tokens) + 1}")
            self.send(request, 200, {"access_token": self.tokens[-1], "expires_in": 3600})
            return
        wanted = f"Bearer {self.tokens[-1] if self.tokens else ''}"
        if self.needs_token and headers.get("authorization") != wanted:
            self.send(request, 401, {"error": {"message": "who are you"}})
            return
        if url.path == "/v1/config":
            self.send(request, 200, self.config)
            return
        parts = [unquote(each) for each in url.path.split("/")[2:]]
        if self.config["overrides"].get("prefix"):
            assert parts.pop(0) == self.config["overrides"]["prefix"]
        self.bodies[id(request)] = body
        if request.command == "POST" and "/views" in request.path:
            self.changes.append((request.path, body))
        self.catalog(request, parts, parse_qs(url.query), headers)

    def catalog(
        self, request: Any, parts: list[str], query: dict[str, Any], headers: dict[str, str]
    ) -> None:
        match parts:
            case ["namespaces"]:
                above = tuple(query["parent"][0].split("\x1f")) if "parent" in query else ()
                depth = len(above) + 1
                found = {
                    name[:depth]
                    for name in self.tables
                    if len(name) > depth and name[: depth - 1] == above
                }
                self.listed(request, "namespaces", sorted(map(list, found)), query)
            case ["namespaces", namespace, "tables"]:
                self.named(request, namespace, self.tables, query)
            case ["namespaces", namespace, "tables", table]:
                name = (*namespace.split("\x1f"), table)
                found = self.tables.get(name)
                if found is None:
                    error = {"message": "gone", "type": "NoSuchTableException", "code": 404}
                    self.send(request, 404, {"error": error})
                    return
                tag = found.get("etag")
                if tag and headers.get("if-none-match") == tag:
                    self.send(request, 304, None)
                    return
                sent = {key: value for key, value in found.items() if key not in ("etag", "all")}
                if query.get("snapshots") == ["refs"]:
                    sent = {**sent, "metadata": found.get("refs", found["metadata"])}
                sent.pop("refs", None)
                self.send(request, 200, sent, {"ETag": tag} if tag else {})
            case ["views", "rename"]:
                self.send(request, 204, None)
            case ["namespaces", namespace, "views"]:
                self.named(request, namespace, self.views, query)
            case ["namespaces", namespace, "views", view]:
                name = (*namespace.split("\x1f"), view)
                metadata = self.view_metadata.get(name)
                if request.command == "GET" and metadata is not None:
                    self.send(request, 200, {"metadata-location": "x", "metadata": metadata})
                else:
                    self.send(request, 204 if name in self.views else 404, None)
            case _:
                self.send(request, 404, {"error": {"message": "no such path"}})

    def named(self, request: Any, namespace: str, names: Iterable[Any], query: Any) -> None:
        inside = tuple(namespace.split("\x1f"))
        known = {each[: len(inside)] for each in (*self.tables, *self.views, *self.namespaces)}
        if inside not in known:
            error = {"message": "it is not there", "type": "NoSuchNamespaceException"}
            self.send(request, 404, {"error": error})
            return
        found = [
            {"namespace": [*inside], "name": name[-1]}
            for name in sorted(names)
            if name[:-1] == inside
        ]
        self.listed(request, "identifiers", found, query)

    def listed(self, request: Any, key: str, items: list[Any], query: dict[str, Any]) -> None:
        if self.page is None:
            self.send(request, 200, {key: items})
            return
        start = int(query.get("pageToken", ["0"])[0] or 0)
        end = start + self.page
        told: dict[str, Any] = {key: items[start:end]}
        if end < len(items):
            told["next-page-token"] = str(end)
        self.send(request, 200, told)

    def send(
        self, request: Any, status: int, content: Any, headers: dict[str, str] | None = None
    ) -> None:
        """Send a response: JSON, or bytes unchanged."""
        data = content
        if not isinstance(content, bytes):
            data = b"" if content is None else json.dumps(content).encode()
        request.send_response(status)
        for key, value in (headers or {}).items():
            request.send_header(key, value)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def answer_all(
        self, content: Any, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        """Send this response to all requests except those for the configuration."""
        self.catalog = lambda request, *_: self.send(request, status, content, headers)  # type: ignore[method-assign]

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()

    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.asked]


def rest(server: Server, **properties: Any) -> RestCatalog:
    catalog = open_catalog("lake", uri=server.uri, properties={"type": "rest", **properties})
    assert isinstance(catalog, RestCatalog)
    return catalog
