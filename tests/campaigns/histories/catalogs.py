"""The three catalogs of the campaign; their contents are read from their files alone."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import icesql
from tests.catalog.writes.gateways import Gateway
from tests.catalog.writes.rest_writes import WritableServer

KINDS = ("folder", "sqlite", "rest")
_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_ENDPOINTS = ("POST /v1/{prefix}/namespaces", f"GET {_NAMESPACE}", f"DELETE {_NAMESPACE}")
_VERSION = re.compile(r"v(\d+)(\.gz)?\.metadata\.json")


class Warehouse:
    """A catalog of one kind in a folder, and a namespace of it for each history."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.warehouse = folder / "wh"
        self.warehouse.mkdir(parents=True, exist_ok=True)
        self.database = folder / "c.db"
        self.front: WritableServer | None = None
        self.gateway: Gateway | None = None
        if kind == "rest":
            self.front, self.gateway = WritableServer(self.warehouse), Gateway(self.warehouse)
            for each in (self.front, self.gateway):
                each.config["endpoints"] = [*self.gateway.config["endpoints"], *_ENDPOINTS]
                each.http.handle_error = lambda *given: None  # type: ignore[method-assign]
            for name in ("tables", "namespaces", "lock"):
                setattr(self.gateway, name, getattr(self.front, name))

    def arguments(self, *, through_gateway: bool = False) -> dict[str, Any]:
        """The arguments of ``icesql.connect`` for a connection that writes."""
        if self.kind == "folder":
            return {"warehouse": str(self.warehouse), "files": True, "read_only": False}
        if self.kind == "sqlite":
            return {
                "catalog": "c", "uri": f"sqlite:///{self.database}",
                "warehouse": str(self.warehouse), "properties": {"init_catalog_tables": "true"},
            }  # fmt: skip
        front = self.gateway if through_gateway else self.front
        assert front is not None
        return {"uri": front.uri}

    def connect(self, *, through_gateway: bool = False) -> icesql.Connection:
        """A new connection that writes."""
        return icesql.connect(**self.arguments(through_gateway=through_gateway))

    def load(self, namespace: str, name: str) -> Any:
        """The catalog and the table as objects of icesql's internal functions."""
        from icesql.catalog.directory import DirectoryCatalog
        from icesql.catalog.open import open_catalog
        from icesql.catalog.sqlite import SqliteCatalog
        from icesql.storage.cache import BoundedCache

        catalog: Any
        if self.kind == "folder":
            catalog = DirectoryCatalog(str(self.warehouse), cache=BoundedCache())
        elif self.kind == "sqlite":
            properties = {"warehouse": str(self.warehouse)}
            catalog = SqliteCatalog(
                str(self.database), "c", properties=properties, cache=BoundedCache()
            )
        else:
            assert self.front is not None
            catalog = open_catalog("lake", uri=self.front.uri, properties={"type": "rest"})
        return catalog, catalog.load((namespace, name))

    def document(self, namespace: str, name: str) -> tuple[str, dict[str, Any]] | None:
        """The path of the current metadata of a table, and the document."""
        if self.kind == "rest":
            assert self.front is not None
            known = self.front.tables.get((namespace, name))
            return None if known is None else (known["metadata-location"], known["metadata"])
        if self.kind == "folder":
            found = [*(self.warehouse / namespace / name / "metadata").glob("v*.metadata.json")]
            versions = {
                int(match[1]): path for path in found if (match := _VERSION.fullmatch(path.name))
            }
            place = versions[max(versions)] if versions else None
        else:
            place = self._row(namespace, name)
        if place is None:
            return None
        data = place.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return str(place), json.loads(data)

    def _row(self, namespace: str, name: str) -> Path | None:
        with closing(sqlite3.connect(self.database)) as database:
            row = database.execute(
                "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? "
                "AND table_name = ?", (namespace, name),
            ).fetchone()  # fmt: skip
        return None if row is None else Path(row[0].removeprefix("file://"))

    def make_old(self, namespace: str, days: int = 10) -> None:
        """Make all files of a namespace ``days`` old."""
        for folder, _, names in os.walk(self.warehouse / namespace):
            for each in names:
                path = os.path.join(folder, each)
                moment = os.stat(path).st_mtime - days * 86_400
                os.utime(path, (moment, moment))

    def forget(self, namespace: str) -> None:
        """Remove a namespace and its files."""
        shutil.rmtree(self.warehouse / namespace, ignore_errors=True)
        if self.front is not None:
            self.front.namespaces.discard((namespace,))
            for each in [each for each in self.front.tables if each[0] == namespace]:
                del self.front.tables[each]
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.database)) as database, database:
                for table, column in (
                    ("iceberg_tables", "table_namespace"),
                    ("iceberg_namespace_properties", "namespace"),
                ):
                    database.execute(f"DELETE FROM {table} WHERE {column} = ?", (namespace,))

    def close(self) -> None:
        """Stop the servers."""
        for each in (self.front, self.gateway):
            if each is not None:
                each.close()
