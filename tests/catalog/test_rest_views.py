"""Views of a REST catalog: one request for each, none where the server says that it has none."""

from __future__ import annotations

import json

import pytest

import icesql
from icesql.errors import TableNotFoundError
from tests.catalog.rest_server import Server, rest
from tests.query.views.stored import metadata
from tests.sessions import fetched


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
        (count,) = fetched(connection, "SELECT count(*) FROM shop.orders")[0]
        assert fetched(connection, "SELECT n FROM shop.w") == [(count + 1,)]
        named = fetched(connection, "SHOW VIEWS")
        assert [name for name, _ in named] == ["shop.v", "shop.w"]
        with pytest.raises(TableNotFoundError):
            connection.execute("SELECT * FROM shop.x")
    server.config["endpoints"] = ["GET /v1/{prefix}/namespaces"]
    assert (rest(server).views(), rest(server).load_view(("shop", "v"))) == ([], None)


def test_alter_view_is_what_the_server_is_asked(server: Server) -> None:
    server.views.add(("shop", "v"))
    view = metadata({"duckdb": "SELECT 1 AS n"}, {"n": "long"})
    view["properties"] = {"old": "1"}
    server.view_metadata["shop", "v"] = view
    with icesql.connect(uri=server.uri, read_only=False) as connection:
        connection.execute("ALTER VIEW shop.v SET TBLPROPERTIES ('a' = 'b')")
        connection.execute("ALTER VIEW shop.v UNSET TBLPROPERTIES ('old')")
        connection.execute("ALTER VIEW shop.v RENAME TO w")
    sent = [json.loads(body) for path, body in server.changes if "views" in path]
    assert [each.get("updates") for each in sent] == [
        [{"action": "set-properties", "updates": {"a": "b"}}],
        [{"action": "remove-properties", "removals": ["old"]}],
        None,
    ]
    assert sent[0]["requirements"] == [{"type": "assert-view-uuid", "uuid": view["view-uuid"]}]
    assert sent[2] == {
        "source": {"namespace": ["shop"], "name": "v"},
        "destination": {"namespace": ["shop"], "name": "w"},
    }
