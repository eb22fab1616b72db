"""Properties of tables: values that statements could not use are refused when they are set."""

from __future__ import annotations

from typing import Any

import icesql
from icesql.catalog.directory import DirectoryCatalog
from icesql.commit.file_changes import change_table
from icesql.iceberg.metadata.changes import updates as u
from tests.rows import rows_of


@rows_of(__file__, "../catalog/writes/spoiled_properties.tsv", "name", "value")
def test_what_others_set_is_mended(
    con: icesql.Connection, catalog: dict[str, Any], name: str, value: str
) -> None:
    con.execute("CREATE TABLE s.t (x INT)")
    folder = DirectoryCatalog(catalog["warehouse"])
    spoil = u.SetProperties({name: value})
    change_table(folder, folder.load(("s", "t")), lambda _: [spoil])
    con.execute(f"ALTER TABLE s.t UNSET TBLPROPERTIES ('{name}')")
    con.execute("INSERT INTO s.t VALUES (1)")
    assert con.execute("SELECT * FROM s.t").fetchall() == [(1,)]
