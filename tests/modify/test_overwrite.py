"""INSERT OVERWRITE and REPLACE WHERE with parameters, in branches."""

from __future__ import annotations

import icesql


def test_parameters_and_branches(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (i INT, p VARCHAR, q INT) PARTITIONED BY (p, q)")
    con.execute("INSERT INTO s.t VALUES (1, 'a', 10), (2, 'a', 11), (3, 'b', 10), (4, NULL, 10)")
    start = con.execute("SELECT * FROM s.t ORDER BY i").fetchall()
    con.execute("ALTER TABLE s.t CREATE BRANCH audit")
    con.execute("INSERT INTO s.t@audit REPLACE WHERE i < ? VALUES (?, 'a', 10)", [3, 0])
    con.execute("INSERT OVERWRITE s.t.branch_audit PARTITION (p = ?, q = 10) SELECT ?", ["b", 33])
    con.execute("SET partition_overwrite_mode = dynamic")
    con.execute("INSERT OVERWRITE s.t VERSION AS OF 'audit' VALUES (44, NULL, 10)")
    assert con.execute("SELECT * FROM s.t@audit ORDER BY i").fetchall() == [
        (0, "a", 10), (33, "b", 10), (44, None, 10),
    ]  # fmt: skip
    assert con.execute("SELECT * FROM s.t ORDER BY i").fetchall() == start
