"""Errors of catalogs name the true cause, in a line, without the clients' own decoration."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import icesql
from icesql.catalog.client_errors import translated
from icesql.catalog.open import open_catalog
from icesql.errors import CatalogError, MissingExtraError, TableNotFoundError


class _Rest(BaseHTTPRequestHandler):
    """A REST catalog with one table name in the namespace demo, or one fixed answer."""

    answer: tuple[int, str] | None = None

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if type(self).answer is not None:
            self._send(*type(self).answer)
        elif path.endswith("/config"):
            self._send(200, json.dumps({"defaults": {}, "overrides": {}}))
        elif path.endswith("/namespaces"):
            nested = "parent=" in self.path
            self._send(200, json.dumps({"namespaces": [] if nested else [["demo"]]}))
        elif path.endswith("/demo/tables"):
            self._send(200, json.dumps({"identifiers": [{"namespace": ["demo"], "name": "trips"}]}))
        else:
            kind = "NoSuchTableException" if path.count("/") > 4 else "NoSuchNamespaceException"
            told = {"error": {"message": "it does not exist", "type": kind, "code": 404}}
            self._send(404, json.dumps(told))

    do_HEAD = do_POST = do_GET

    def _send(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture
def rest() -> Iterator[Callable[..., str]]:
    """Starts a server that gives one answer, or those of a small catalog; its URI."""
    servers = []

    def start(status: int | None = None, text: str = "") -> str:
        handler = type("Handler", (_Rest,), {"answer": status and (status, text)})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def told(uri: str, **properties: str) -> str:
    with pytest.raises(icesql.Error) as caught:
        open_catalog("lake", uri=uri, properties={"type": "rest", **properties}).tables()
    text = str(caught.value)
    assert "catalog lake: " in text
    for noise in ("Max retries", "HTTPConnectionPool", "errors.pydantic", "sqlalche.me", "\n"):
        assert noise not in text
    return text


def refusal(message: str) -> str:
    return json.dumps({"error": {"message": message, "type": "Refused", "code": 0}})


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, ("401 Unauthorized", "who are you", "check its token or credential")),
        (403, ("403 Forbidden", "who are you", "may not")),
        (419, ("419", "who are you", "the token has expired")),
        (503, ("503 Service Unavailable", "who are you", "try again later")),
        (500, ("the catalog failed", "who are you")),
    ],
)
def test_refusals_of_a_rest_catalog_say_what_to_do(
    rest: Callable[..., str], status: int, words: tuple[str, ...]
) -> None:
    text = told(rest(status, refusal("who are you")), token="abcdef")
    assert all(word in text for word in words)


def test_an_html_page_is_told_as_one(rest: Callable[..., str]) -> None:
    page = "<!doctype html><html><title>Sign in</title><body>hello</body></html>"
    uri = rest(200, page)
    text = told(uri)
    assert "not JSON (an HTML page)" in text
    assert f"is {uri} the address of an Iceberg REST catalog?" in text
    assert "Sign in" in told(rest(502, page))


def test_a_closed_port_and_an_unknown_host_are_unreachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = told(f"http://127.0.0.1:{port}/x")
    assert text.endswith(f"cannot reach http://127.0.0.1:{port}: connection refused")


def test_a_wrong_namespace_is_named_with_what_is_there(rest: Callable[..., str]) -> None:
    catalog = open_catalog("lake", uri=rest(), properties={"type": "rest"})
    with pytest.raises(TableNotFoundError) as caught:
        catalog.load(("nope", "trips"))
    assert 'catalog lake has no namespace "nope"; it has: demo' in str(caught.value)
    with pytest.raises(TableNotFoundError) as caught:
        catalog.load(("demmo", "trips"))
    assert caught.value.similar == ("demo.trips",)
    assert 'no namespace "demmo"; near it is: demo' in str(caught.value)
    with pytest.raises(TableNotFoundError, match=r'did you mean "demo.trips"\?'):
        catalog.load(("demo", "trip"))


@pytest.mark.parametrize(
    ("properties", "package", "extra"),
    [
        ({"type": "hive", "uri": "thrift://127.0.0.1:9"}, "thrift", "hive"),
        ({"type": "glue"}, "boto3", "glue"),
        ({"type": "dynamodb"}, "boto3", "dynamodb"),
        ({"type": "bigquery"}, "google", "bigquery"),
        ({"uri": "postgresql://me@127.0.0.1:9/db"}, "psycopg2", "sql-postgres"),
        (
            {"type": "sql", "uri": "postgresql+psycopg2://me@127.0.0.1:9/db"},
            "psycopg2",
            "sql-postgres",
        ),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    properties: dict[str, str], package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util
    import sys

    for name in ("thrift", "boto3", "google.api_core", "psycopg2", "psycopg"):
        monkeypatch.setitem(sys.modules, name, None)
    there = importlib.util.find_spec
    monkeypatch.setattr(
        "icesql.catalog.pyiceberg.find_spec",
        lambda name: None if name.startswith("psycopg") else there(name),
    )
    with pytest.raises(MissingExtraError) as caught:
        open_catalog("lake", properties=properties)
    assert caught.value.extra == extra
    assert f"the package {package}" in str(caught.value)
    assert f"pip install '.[{extra}]'" in str(caught.value)


@pytest.mark.parametrize(
    ("module", "extra"), [("s3fs", "s3fs"), ("gcsfs", "gcsfs"), ("adlfs", "adlfs")]
)
def test_a_missing_store_package_is_named(module: str, extra: str) -> None:
    error = ImportError(f"No module named {module!r}", name=module)
    found = translated(error, "catalog lake", {})
    assert isinstance(found, MissingExtraError)
    assert (found.extra, f"the package {module}" in str(found)) == (extra, True)


def test_the_usual_spelling_of_postgres_takes_the_driver_that_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from icesql.catalog import pyiceberg

    for there in ("psycopg2", "psycopg"):
        monkeypatch.setattr(pyiceberg, "find_spec", lambda name, there=there: name == there or None)
        for scheme in ("postgresql", "postgres"):
            assert (
                pyiceberg._with_driver(f"{scheme}://me:pw@h/db", "")
                == f"postgresql+{there}://me:pw@h/db"
            )
    assert pyiceberg._with_driver("postgresql+asyncpg://h/db", "") == "postgresql+asyncpg://h/db"


class _Sql:
    """PyIceberg's SQL catalog over SQLite, as one over a server's database would come."""

    def __new__(cls, name: str, **properties: str) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        return SqlCatalog(name, **properties)


def test_a_database_says_which_catalog_names_it_holds(
    tmp_path: Any, warehouse: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyIceberg looks only at the rows of its own name, and never says so."""
    from icesql.catalog.pyiceberg import open_pyiceberg

    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    given = {"py-catalog-impl": "tests.catalog.test_client_errors._Sql"}
    monkeypatch.setattr(
        "pyiceberg.catalog.load_catalog",
        lambda name, **more: _Sql(name, uri=more["uri"]),
    )
    uri = f"sqlite:///{warehouse}/catalog.db"
    only = open_pyiceberg(uri=uri, properties=given)
    assert ("shop", "orders") in only.tables()
    only.close()
    other = open_pyiceberg("other", uri=uri, properties=given)
    with pytest.raises(TableNotFoundError, match=r'of a catalog "other", but of .*--catalog '):
        other.load(("shop", "orders"))
    other.close()


def test_sqlalchemys_link_is_left_out() -> None:
    error = type("OperationalError", (Exception,), {"__module__": "sqlalchemy.exc"})
    base = type("SQLAlchemyError", (Exception,), {"__module__": "sqlalchemy.exc"})
    error = type("OperationalError", (base,), {"__module__": "sqlalchemy.exc"})(
        "(psycopg2.OperationalError) no route\n(Background on this error at: https://sqlalche.me/e/21)"
    )
    found = translated(error, "catalog pg", {})
    assert isinstance(found, CatalogError)
    assert str(found) == "catalog pg: (psycopg2.OperationalError) no route"


@pytest.mark.parametrize("before", range(250, 320, 7))
def test_a_text_that_is_cut_keeps_no_half_of_a_secret(before: int) -> None:
    error = type("UnauthorizedError", (Exception,), {"__module__": "pyiceberg.exceptions"})(
        "x" * before + "SECRETSECRETSECRET and more of it" * 5
    )
    found = translated(error, "catalog lake", {"token": "SECRETSECRETSECRET"})
    assert "SECRET" not in str(found)


@pytest.mark.parametrize("statement", ["SHOW TABLES", "SHOW NAMESPACES"])
def test_a_list_of_nothing_says_that_there_is_no_catalog(statement: str) -> None:
    with icesql.connect() as connection:
        with pytest.warns(icesql.Warning, match="no catalog"):
            cursor = connection.execute(statement)
        assert cursor.fetchall() == []
        assert "no catalog; name one with --warehouse" in cursor.notes[0]


class _Issuing(_Rest):
    """Gives a token for the credential, and tells it to everybody afterwards."""

    def do_GET(self) -> None:
        if self.path.endswith("/config"):
            self._send(200, json.dumps({"defaults": {}, "overrides": {}}))
        else:
            said = self.headers["Authorization"].removeprefix("Bearer ")
            self._send(403, refusal(f"token {said} may not list"))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self._send(200, json.dumps({"access_token": "opaquetoken", "token_type": "bearer"}))


def test_a_token_that_the_catalog_gave_is_a_secret_too() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Issuing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    text = told(f"http://127.0.0.1:{server.server_port}", credential="id:secret")
    server.shutdown()
    server.server_close()
    assert "token *** may not list" in text
