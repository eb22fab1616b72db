"""CALL system.rewrite_data_files, and EXPLAIN of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql


@pytest.fixture
def small(con: icesql.Connection) -> icesql.Connection:
    """Six files in each of two partitions, one row each; row 3 is deleted."""
    con.execute(
        "CREATE TABLE s.t (i INT, p TEXT) PARTITIONED BY (p) "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    con.execute("INSERT INTO s.t VALUES " + ", ".join(f"({n}, 'b')" for n in range(6)))
    for n in range(5):
        con.execute(f"INSERT INTO s.t VALUES ({n}, 'a'), ({n + 10}, 'b')")
    con.execute("DELETE FROM s.t WHERE i = 3 AND p = 'b'")
    return con


def test_explain_touches_nothing(small: icesql.Connection, tmp_path) -> None:
    def everything() -> set[Path]:
        return {each for each in tmp_path.rglob("*") if each.is_file()}

    before = everything()
    cursor = small.execute("EXPLAIN CALL system.rewrite_data_files('s.t', where => 'p = ''b''')")
    found = cursor.fetchall()
    assert everything() == before
    actions = [(each[0], each[1]) for each in found]
    assert actions.count(("read", "data file")) == 6
    assert actions.count(("read", "deletion vector")) == 1
    assert actions.count(("remove", "data file")) == 6
    assert actions.count(("remove", "deletion vector")) == 1
    (written,) = [each for each in found if each[0] == "write"]
    assert written[2:3] + written[4:] == (
        "(1 file)",
        10,
        "group 1 (p='b'): in the order of the files",
    )
    reason = next(each[5] for each in found if each[0] == "read")
    assert "bytes, less than 402,653,184" in reason
    assert "6 files" in cursor.notes[0]
