"""Views of a REST catalog: one request for each, none where the server says that it has none."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from icesql.errors import TableNotFoundError
from tests.catalog.rest_server import Server, rest
from tests.query.views.stored import metadata


def rows(connection: Any, sql: str) -> list[Any]:
    return list(connection.execute(sql).fetchall())


def test_views_of_a_rest_catalog(server: Server) -> None:
    server.views.update({("shop", "v"), ("shop", "w")})
    view = metadata({"duckdb": "SELECT count(*) AS n FROM orders"}, {"n": "long"})
    server.view_metadata["shop", "v"] = view
    server.view_metadata["shop", "w"] = metadata(
        {"spark": "SELECT n + 1 AS n FROM v"}, {"n": "long"}
    )
    catalog = rest(server)
    assert catalog.views(("shop",)) == catalog.views() == [("shop", "v"), ("shop", "w")]
    assert catalog.load_view(("shop", "x")) is None
    with icesql.connect(uri=server.uri) as connection:
        (count,) = rows(connection, "SELECT count(*) FROM shop.orders")[0]
        assert rows(connection, "SELECT n FROM shop.w") == [(count + 1,)]
        named = rows(connection, "SHOW VIEWS")
        assert [name for name, _ in named] == ["shop.v", "shop.w"]
        with pytest.raises(TableNotFoundError):
            connection.execute("SELECT * FROM shop.x")
    server.config["endpoints"] = ["GET /v1/{prefix}/namespaces"]
    assert (rest(server).views(), rest(server).load_view(("shop", "v"))) == ([], None)
