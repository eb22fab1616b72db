"""Properties of tables: what no statement could live with is refused where it is set."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from icesql.catalog.directory import DirectoryCatalog
from icesql.commit.change import change_table
from icesql.errors import ProgrammingError
from icesql.iceberg.metadata.changes import updates as u
from tests.catalog.writes.test_mended_properties import SPOILED

WRONG = {
    **SPOILED,
    "commit.manifest.target-size-bytes": "-1",
    "write.summary.partition-limit": "x",
    "write.metadata.previous-versions-max": "x",
    "write.merge.mode": "x",
    "write.delete.isolation-level": "x",
    "write.delete.granularity": "row",
    "write.distribution-mode": "sorted",
    "write.format.default": "csv",
    "write.delete.format.default": "csv",
    "write.parquet.compression-codec": "lzo",
    "write.parquet.compression-level": "best",
    "write.delete.parquet.page-size-bytes": "x",
    "write.target-file-size-bytes": "512MB",
    "write.parquet.bloom-filter-enabled.column.x": "true",
    "write.location-provider.impl": "com.example.Provider",
    "encryption.key-id": "k",
    "read.split.planning-lookback": "0",
    "history.expire.min-snapshots-to-keep": "-2",
}


# What the error names instead: the column's other property, the part that follows a prefix.
NAMED = {
    "write.parquet.bloom-filter-enabled.column.x": "bloom-filter-fpp.column.x",
    "write.parquet.row-group-size-bytes": "row-group-size-bytes",
    "write.delete.parquet.page-size-bytes": "page-size-bytes",
    "write.location-provider.impl": "com.example.Provider",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_no_statement_could_use_is_not_set(con: icesql.Connection, name: str) -> None:
    pair = f"'{name}' = '{WRONG[name]}'"
    if "bloom" in name:
        pair += ", 'write.parquet.bloom-filter-fpp.column.x' = '2'"
    con.execute("CREATE TABLE s.t (x INT)")
    for sql in (
        f"ALTER TABLE s.t SET TBLPROPERTIES ({pair})",
        f"CREATE TABLE s.u (x INT) TBLPROPERTIES ({pair})",
        f"CREATE OR REPLACE TABLE s.t (x INT) TBLPROPERTIES ({pair})",
        f"CREATE TABLE s.u TBLPROPERTIES ({pair}) AS SELECT 1 AS x",
    ):
        with pytest.raises(ProgrammingError, match=NAMED.get(name, name)):
            con.execute(sql)
    con.execute("INSERT INTO s.t VALUES (1)")
    assert con.execute("SELECT * FROM s.t").fetchall() == [(1,)]
    assert con.execute("SHOW TABLES FROM s").fetchall() == [("s.t",)]


@pytest.mark.parametrize("name", SPOILED)
def test_what_others_set_is_mended(
    con: icesql.Connection, catalog: dict[str, Any], name: str
) -> None:
    con.execute("CREATE TABLE s.t (x INT)")
    folder = DirectoryCatalog(catalog["warehouse"])
    spoil = u.SetProperties({name: SPOILED[name]})
    change_table(folder, folder.load(("s", "t")), lambda _: [spoil])
    con.execute(f"ALTER TABLE s.t UNSET TBLPROPERTIES ('{name}')")
    con.execute("INSERT INTO s.t VALUES (1)")
    assert con.execute("SELECT * FROM s.t").fetchall() == [(1,)]
