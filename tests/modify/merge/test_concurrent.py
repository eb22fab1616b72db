"""Concurrent changes of the table during a MERGE, and the files that a MERGE reads."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from icesql import errors


@pytest.fixture
def parts(request, con: icesql.Connection) -> icesql.Connection:
    """A table of four files, divided by key."""
    con.execute(
        "CREATE TABLE s.t (k INT, a INT) TBLPROPERTIES ('format-version' = '3', "
        f"'write.merge.mode' = '{getattr(request, 'param', 'merge-on-read')}')"
    )
    for start in (0, 10, 20, 30):
        con.execute(f"INSERT INTO s.t SELECT i, 0 FROM range({start}, {start + 10}) r(i)")
    return con


SOURCE = "MERGE INTO s.t USING (VALUES (12, 1), (14, 2)) v(k, n) ON t.k = v.k "
UPDATE = "WHEN MATCHED THEN UPDATE SET a = n "


@pytest.mark.parametrize(
    ("source", "files"),
    [
        ("(VALUES (12), (14)) v(k) ON t.k = v.k", 1),
        ("(VALUES (12::BIGINT), (31)) v(k) USING (k)", 2),
        ("(VALUES (12), (NULL), (300)) v(k) ON v.k = t.k AND t.a >= 0", 1),
        ("(SELECT i::INT AS k FROM range(11, 18) r(i) UNION ALL SELECT 1000 + i FROM range(2000) q(i)) v ON t.k = v.k", 3),
        ("(SELECT 3000000000 + i AS k FROM range(2000) r(i)) v ON t.k = v.k", 0),
        ("(VALUES (12.0), (14)) v(k) ON t.k = v.k", 4),
        ("(VALUES (12), (14)) v(k) ON t.k + 1 = v.k + 1", 4),
        ("(VALUES (12)) v(k) ON t.k = v.k OR t.k = 1", 4),
    ],
)  # fmt: skip
def test_keys_of_the_source_choose_the_files(
    parts: icesql.Connection, monkeypatch, source: str, files: int
) -> None:
    """Files are left out if no row can match any key of the source."""
    import icesql.scan.planner as planner

    seen = []
    real = planner.plan

    def planned(scan: Any, query: Any) -> Any:
        found = real(scan, query)
        if scan.table.identifier == ("s", "t"):
            seen.append(len(found.files))
        return found

    monkeypatch.setattr(planner, "plan", planned)
    sql = f"MERGE INTO s.t USING {source} WHEN MATCHED THEN UPDATE SET a = 7"
    wanted = parts.execute(f"SELECT count(*) FROM s.t JOIN {source}").fetchone()
    seen.clear()
    assert parts.execute(sql).rowcount == wanted[0]
    assert seen[0] == files
    found = parts.execute("SELECT count(*) FROM s.t WHERE a = 7").fetchone()
    assert found == wanted


@pytest.mark.parametrize(
    "late",
    [
        ("ALTER TABLE s.t ALTER COLUMN a FIRST",),
        ("ALTER TABLE s.t RENAME COLUMN a TO b", "ALTER TABLE s.t ADD COLUMN a INT"),
    ],
)
def test_columns_that_change_meanwhile(
    parts: icesql.Connection, catalog: dict[str, Any], monkeypatch, late: tuple[str, ...]
) -> None:
    """Values were resolved for columns that have changed since."""
    import icesql.modify.merge.merge as module

    real = module.read_source

    def read(*given: Any) -> Any:
        with icesql.connect(**catalog) as other:
            for each in late:
                other.execute(each)
        return real(*given)

    monkeypatch.setattr(module, "read_source", read)
    with pytest.raises(errors.CommitConflictError, match="changed meanwhile"):
        parts.execute(SOURCE + UPDATE)
    assert parts.execute("SELECT max(a) FROM s.t").fetchall() in ([(0,)], [(None,)])
