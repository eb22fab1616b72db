"""Errors of catalogs name the true cause, in a line, without the clients' own decoration."""

from __future__ import annotations

import json
from typing import Any

import pytest

import icesql
from icesql.catalog.client_errors import translated
from icesql.catalog.open import open_catalog
from icesql.errors import CatalogError, MissingExtraError, TableNotFoundError
from tests.catalog.rest_server import Server, rest
from tests.rows import rows_of


def told(server: Server, **properties: str) -> str:
    with pytest.raises(icesql.Error) as caught:
        rest(server, **properties).tables()
    text = str(caught.value)
    assert "catalog lake: " in text
    for noise in ("Max retries", "HTTPConnectionPool", "errors.pydantic", "sqlalche.me", "\n"):
        assert noise not in text
    return text


def refused(server: Server, status: int, content: Any) -> str:
    """The error if the server always sends this response."""
    server.answer = lambda request: server.send(request, status, content)  # type: ignore[method-assign]
    return told(server, token="abcdef")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, ("401 Unauthorized", "check its token or credential")),
        (403, ("403 Forbidden", "may not")),
        (419, ("419", "the token has expired")),
        (503, ("503 Service Unavailable", "try again later")),
        (500, ("the catalog failed",)),
    ],
)
def test_refusals_of_a_rest_catalog_say_what_to_do(
    server: Server, status: int, words: tuple[str, ...]
) -> None:
    refusal = {"error": {"message": "who are you", "type": "Refused", "code": 0}}
    text = refused(server, status, refusal)
    assert all(word in text for word in (*words, "who are you"))


def test_an_html_page_is_told_as_one(server: Server) -> None:
    page = b"<!doctype html><html><title>Sign in</title><body>hello</body></html>"
    text = refused(server, 200, page)
    assert "not JSON (an HTML page)" in text
    assert f"is {server.uri} the address of an Iceberg REST catalog?" in text
    assert "Sign in" in refused(server, 502, page)


def test_a_closed_port_is_unreachable(server: Server) -> None:
    server.close()
    assert told(server).endswith(f"cannot reach {server.uri}: connection refused")


def test_a_wrong_namespace_is_named_with_what_is_there(server: Server) -> None:
    catalog = rest(server)
    with pytest.raises(TableNotFoundError, match='lake has no namespace "nope"; it has: shop'):
        catalog.load(("nope", "orders"))
    with pytest.raises(
        TableNotFoundError, match='no namespace "shhop"; near it is: shop'
    ) as caught:
        catalog.load(("shhop", "orders"))
    assert caught.value.similar == ("shop.orders",)
    with pytest.raises(TableNotFoundError, match=r'did you mean "shop.orders"\?'):
        catalog.load(("shop", "order"))


@rows_of(__file__, "missing_packages.tsv", "properties", "package", "extra")
def test_a_missing_package_is_named_with_its_extra(
    properties: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
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
        open_catalog("lake", properties=json.loads(properties))
    assert caught.value.extra == extra
    assert f"the package {package}" in str(caught.value)
    assert f"pip install '.[{extra}]'" in str(caught.value)


@pytest.mark.parametrize("module", ["s3fs", "gcsfs", "adlfs"])
def test_a_missing_store_package_is_named(module: str) -> None:
    error = ImportError(f"No module named {module!r}", name=module)
    found = translated(error, "catalog lake", {})
    assert isinstance(found, MissingExtraError)
    assert (found.extra, f"the package {module}" in str(found)) == (module, True)


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


def test_a_database_says_which_catalog_names_it_holds(
    tmp_path: Any, warehouse: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyIceberg reads only the rows of its own catalog name, without a hint about others."""
    from pyiceberg.catalog.sql import SqlCatalog

    from icesql.catalog.pyiceberg import open_pyiceberg

    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    uri = f"sqlite:///{warehouse}/catalog.db"
    given = {"py-catalog-impl": "pyiceberg.catalog.sql.SqlCatalog", "uri": uri}
    monkeypatch.setattr(
        "pyiceberg.catalog.load_catalog", lambda name, **more: SqlCatalog(name, uri=more["uri"])
    )
    only = open_pyiceberg("default", given, given, is_named=False)
    assert ("shop", "orders") in only.tables()
    only.close()
    other = open_pyiceberg("other", given, given)
    with pytest.raises(TableNotFoundError, match=r'of a catalog "other", but of .*--catalog '):
        other.load(("shop", "orders"))
    other.close()


def test_sqlalchemys_link_is_left_out() -> None:
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


def test_a_token_that_the_catalog_gave_is_a_secret_too(server: Server) -> None:
    server.answer_all({"error": {"message": "token1 may not list"}}, 403)
    assert "*** may not list" in told(server, credential="id:s3cret!")
