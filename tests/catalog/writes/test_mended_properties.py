"""A property that other writers spoiled is mended by SET and UNSET, in every catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icesql.catalog.pyiceberg import PyIcebergCatalog
from icesql.commit.append import commit_append
from icesql.commit.change import change_table
from icesql.iceberg.metadata.changes import updates as u
from tests.catalog.rest_server import rest
from tests.catalog.writes.rest_writes import WritableServer
from tests.commit.tables import CATALOGS, create, fake, live

SPOILED = {
    "commit.retry.num-retries": "abc",
    "commit.retry.min-wait-ms": "",
    "commit.retry.max-wait-ms": "1.5",
    "commit.retry.total-timeout-ms": "-1",
    "commit.manifest.target-size-bytes": "8MB",
    "commit.manifest.min-count-to-merge": "many",
    "write.metadata.compression-codec": "zstd",
    "write.manifest.compression-codec": "lzma",
    "write.update.isolation-level": "none",
    "write.delete.mode": "sometimes",
    "write.parquet.row-group-size-bytes": "0",
    "read.split.target-size": "big",
    "schema.name-mapping.default": "{",
    "history.expire.max-snapshot-age-ms": "soon",
}


@pytest.fixture(params=[*CATALOGS, "pyiceberg", "rest"])
def catalog(request: Any, tmp_path: Path) -> Iterator[Any]:
    match request.param:
        case "rest":
            server = WritableServer(tmp_path / "wh")
            made: Any = rest(server)
            yield made
            made.close()
            server.close()
        case "pyiceberg":
            from pyiceberg.catalog.sql import SqlCatalog

            uri = f"sqlite:///{tmp_path}/c.db"
            made = PyIcebergCatalog(
                SqlCatalog("c", uri=uri, warehouse=str(tmp_path / "wh")), "c", {"type": "sql"}
            )
            made.create_namespace(("ns",))
            yield made
            made.close()
        case name:
            yield CATALOGS[name](tmp_path)


@pytest.mark.parametrize("name", SPOILED)
def test_what_mends_a_property_works(catalog: Any, name: str) -> None:
    table = create(catalog)
    spoil = u.SetProperties({name: SPOILED[name]})
    for mend in (u.RemoveProperties((name,)), u.SetProperties({name: "0"})):
        table = change_table(catalog, table, lambda _: [spoil]).table
        assert table.metadata.properties[name] == SPOILED[name]
        table = change_table(catalog, table, lambda _, made=mend: [made]).table
        assert table.metadata.properties.get(name) in (None, "0")
    table = change_table(catalog, table, lambda _: [u.RemoveProperties((name,))]).table
    assert live(commit_append(catalog, table, [fake("a")]).table) == {"a"}
