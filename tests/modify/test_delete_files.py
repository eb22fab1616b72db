"""DELETE of whole files: metadata shows that every row matches, and no file is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import icesql


def filled(con: icesql.Connection, version: int = 2, **properties: str) -> None:
    """Rows 0 to 29, ten in each of the partitions a, b and c."""
    given = {"format-version": str(version), **properties}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    con.execute(
        f"CREATE TABLE s.t (i INT, p VARCHAR, x DOUBLE) PARTITIONED BY (p) TBLPROPERTIES ({listed})"
    )
    con.execute(
        "INSERT INTO s.t SELECT i, chr(97 + (i // 10)::INT), CASE WHEN i < 29 THEN i END "
        "FROM range(30) r(i)"
    )


def data_files(catalog: dict[str, Any]) -> list[Path]:
    return sorted((Path(catalog["warehouse"]) / "s" / "t" / "data").rglob("*.parquet"))


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("p = 'a'", 10), ("p <> 'a'", 20), ("p IN ('a', 'c') AND i >= 0", 20), ("i < 10", 10),
        ("NOT (i >= 10)", 10), ("i BETWEEN 10 AND 19", 10), ("p = 'a' OR i > 19", 20),
        ("p IS NOT NULL", 30), ("x <= 9", 10), ("p = 'nope'", 0), ("i > 100", 0), ("true", 30),
    ],
)  # fmt: skip
def test_no_data_file_is_opened(
    con: icesql.Connection, catalog: dict[str, Any], mode: str, condition: str, count: int
) -> None:
    filled(con, 3 if mode == "merge-on-read" else 2, **{"write.delete.mode": mode})
    files = {each: each.read_bytes() for each in data_files(catalog)}
    for each in files:
        each.unlink()
    done = con.execute(f"DELETE FROM s.t WHERE {condition}")
    assert done.rowcount == count
    assert data_files(catalog) == []
    for path, data in files.items():
        path.write_bytes(data)
    assert con.execute("SELECT count(*) FROM s.t").fetchone() == (30 - count,)
    assert con.execute(f"SELECT count(*) FROM s.t WHERE {condition}").fetchone() == (0,)
    told = con.execute("SELECT operation FROM s.t.snapshots").fetchall()
    assert told == [("append",), ("delete",)][: 1 + (count > 0)]


def test_a_deletion_of_whole_files_reads_no_mode(tmp_path: Path) -> None:
    """Only rows that are deleted in files that stay have a mode; others' tables may have any."""
    with icesql.connect(warehouse=tmp_path) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t (p INT) PARTITIONED BY (p)")
        con.execute("INSERT INTO s.t VALUES (1), (2)")
        newest = max(tmp_path.rglob("*.metadata.json"))
        document = json.loads(newest.read_text())
        document["properties"]["write.delete.mode"] = "another"
        newest.write_text(json.dumps(document))
    with icesql.connect(warehouse=tmp_path) as con:
        con.execute("DELETE FROM s.t WHERE p = 1")
        assert con.execute("FROM s.t").fetchall() == [(2,)]
