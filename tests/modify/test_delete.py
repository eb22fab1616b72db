"""DELETE by delete files: PyIceberg reads the remaining rows."""

from __future__ import annotations

import icesql
from icesql.catalog.targets import table_to_change


def test_merge_on_read_writes_no_data(con: icesql.Connection) -> None:
    from pyiceberg.table import StaticTable

    con.execute(
        "CREATE TABLE s.t PARTITIONED BY (bucket(3, i)) TBLPROPERTIES "
        "('write.delete.mode' = 'merge-on-read') AS SELECT i::INT AS i FROM range(62) r(i)"
    )
    before = con.execute("SELECT count(*) FROM s.t.data_files").fetchall()
    for condition in ("i = 3", "i IN (4, 6)"):
        con.execute(f"DELETE FROM s.t WHERE {condition}")
    assert con.execute("SELECT count(*) FROM s.t.data_files").fetchall() == before
    files = con.execute("SELECT content, record_count FROM s.t.delete_files").fetchall()
    assert {content for content, _ in files} == {1}
    assert sum(count for _, count in files) == 3
    table = table_to_change(con._session.state.names, ("s", "t"))[1]
    found = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
    assert {*found["i"].to_pylist()} == {*range(62)} - {3, 4, 6}
    assert found.num_rows == 59
