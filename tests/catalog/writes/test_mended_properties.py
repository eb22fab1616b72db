"""SET and UNSET repair a property that another writer set to an invalid value, in every catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from icesql.commit.file_changes import change_table
from icesql.commit.rows import commit_append
from icesql.iceberg.metadata.changes import updates as u
from tests.catalog.rest_server import rest
from tests.catalog.writes.rest_writes import WritableServer
from tests.catalog.writes.swaps import database
from tests.commit.tables import CATALOGS, create, fake, live
from tests.rows import rows_of


@pytest.fixture(params=[*CATALOGS, "pyiceberg", "rest"])
def catalog(request: Any, tmp_path: Path) -> Iterator[Any]:
    match request.param:
        case "rest":
            with closing(WritableServer(tmp_path / "wh")) as server, closing(rest(server)) as made:
                yield made
        case "pyiceberg":
            with closing(database(tmp_path)) as made:
                yield made
        case name:
            yield CATALOGS[name](tmp_path)


@rows_of(__file__, "spoiled_properties.tsv", "name", "value")
def test_what_mends_a_property_works(catalog: Any, name: str, value: str) -> None:
    table = create(catalog)
    spoil = u.SetProperties({name: value})
    for mend in (u.RemoveProperties((name,)), u.SetProperties({name: "0"})):
        table = change_table(catalog, table, lambda _: [spoil]).table
        assert table.metadata.properties[name] == value
        table = change_table(catalog, table, lambda _, made=mend: [made]).table
        assert table.metadata.properties.get(name) in (None, "0")
    table = change_table(catalog, table, lambda _: [u.RemoveProperties((name,))]).table
    assert live(commit_append(catalog, table, [fake("a")]).table) == {"a"}
