"""Views of a REST catalog that are made, replaced and dropped: what the server is sent."""

from __future__ import annotations

import json
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from tests.catalog.writes.rest_writes import WritableServer
from tests.sessions import fetched


class ViewServer(WritableServer):
    """Applies the updates of views as the REST specification has them."""

    def catalog(self, request: Any, parts: list[str], query: Any, headers: Any) -> None:
        body = json.loads(request.body) if request.body else None
        match request.command, parts:
            case "POST", ["namespaces", above, "views"]:
                name = (*above.split("\x1f"), body["name"])
                if name in self.views:
                    self.send(request, 409, {"error": {"message": "there"}})
                    return
                self.views.add(name)
                self.view_metadata[name] = {
                    "view-uuid": str(uuid.uuid4()),
                    "format-version": 1,
                    "location": "file:///views/v",
                    "properties": body["properties"],
                    "schemas": [body["schema"]],
                    "current-version-id": body["view-version"]["version-id"],
                    "versions": [body["view-version"]],
                    "version-log": [],
                }
                self.send(request, 200, {"metadata": self.view_metadata[name]})
            case "POST", ["namespaces", above, "views", name]:
                self.changed(request, self.view_metadata[*above.split("\x1f"), name], body)
            case "DELETE", ["namespaces", above, "views", name]:
                found = (*above.split("\x1f"), name) in self.views
                self.views.discard((*above.split("\x1f"), name))
                self.send(request, 204 if found else 404, None)
            case _:
                super().catalog(request, parts, query, headers)

    def changed(self, request: Any, node: dict[str, Any], body: Any) -> None:
        (wanted,) = body["requirements"]
        if wanted != {"type": "assert-view-uuid", "uuid": node["view-uuid"]}:
            self.send(request, 409, {"error": {"message": "another view"}})
            return
        for each in body["updates"]:
            match each["action"]:
                case "add-schema":
                    added = {**each["schema"], "schema-id": len(node["schemas"])}
                    node["schemas"].append(added)
                case "add-view-version":
                    version = dict(each["view-version"])
                    assert version["schema-id"] == -1
                    version["schema-id"] = node["schemas"][-1]["schema-id"]
                    node["versions"].append(version)
                case "set-current-view-version":
                    assert each["view-version-id"] == -1
                    node["current-version-id"] = node["versions"][-1]["version-id"]
                case "set-properties":
                    node["properties"].update(each["updates"])
        self.send(request, 200, {"metadata": node})


def test_views_of_a_rest_catalog(tmp_path: Path) -> None:
    with closing(ViewServer(tmp_path)) as server, icesql.connect(uri=server.uri) as con:
        con.execute("CREATE VIEW ns.v AS SELECT 1 AS one, 'x' AS text")
        assert fetched(con, "SELECT * FROM ns.v") == [(1, "x")]
        with pytest.raises(errors.CatalogError, match="there is a view ns"):
            con.execute("CREATE VIEW ns.v AS SELECT 2 AS one")
        con.execute("CREATE OR REPLACE VIEW ns.v (n) COMMENT 'c' AS SELECT 2.5 AS one")
        assert fetched(con, "SELECT n FROM ns.v")[0][0] == 2.5
        node = server.view_metadata["ns", "v"]
        assert node["properties"]["comment"] == "c"
        assert [each["version-id"] for each in node["versions"]] == [1, 2]
        con.execute("DROP VIEW ns.v")
        with pytest.raises(errors.ProgrammingError, match="no view ns"):
            con.execute("DROP VIEW ns.v")
        server.config["endpoints"] = ["GET /v1/{prefix}/namespaces"]
    with closing(ViewServer(tmp_path)) as server, icesql.connect(uri=server.uri) as con:
        server.config["endpoints"] = ["GET /v1/{prefix}/namespaces"]
        with pytest.raises(errors.NotSupportedError, match="new views in catalog"):
            con.execute("CREATE VIEW ns.v AS SELECT 1 AS one")


def test_a_folder_has_no_views(tmp_path: Path) -> None:
    with icesql.connect(warehouse=tmp_path) as con:
        con.execute("CREATE SCHEMA s")
        with pytest.raises(errors.NotSupportedError, match="of kind directory: REST catalogs"):
            con.execute("CREATE VIEW s.v AS SELECT 1 AS one")
