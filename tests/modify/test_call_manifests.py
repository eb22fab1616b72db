"""rewrite_manifests: fewer manifests, with the same entries."""

from __future__ import annotations

from typing import Any

import icesql


def filled(con: icesql.Connection, version: int, **properties: str) -> None:
    given = {"format-version": str(version), "commit.manifest-merge.enabled": "false"}
    told = ", ".join(f"'{key}' = '{value}'" for key, value in (given | properties).items())
    con.execute(f"CREATE TABLE s.t (i INT, p VARCHAR) PARTITIONED BY (p) TBLPROPERTIES ({told})")
    for number in range(4):
        con.execute(
            f"INSERT INTO s.t VALUES ({number}, 'a'), ({number + 10}, 'a'), "
            f"({number + 20}, 'b'), ({number + 30}, NULL)"
        )


def call(con: icesql.Connection, arguments: str = "'s.t'") -> list[Any]:
    return con.execute(f"CALL system.rewrite_manifests({arguments})").fetchall()


def test_what_others_add_meanwhile_is_kept(con: icesql.Connection, monkeypatch) -> None:
    from icesql.commit.manifests import rewrite

    filled(con, 3)
    plain, commits = rewrite._ManifestRewrite.updates, iter(range(2))

    def others_first(self: Any, base: Any, attempt: int, now_ms: int) -> Any:
        made = plain(self, base, attempt, now_ms)
        if next(commits, None) is not None:
            con.execute("INSERT INTO s.t VALUES (77, 'z')")
        return made

    monkeypatch.setattr(rewrite._ManifestRewrite, "updates", others_first)
    assert call(con) == [(6, 1)]
    assert con.execute("SELECT count(*) FROM s.t WHERE i = 77").fetchall() == [(2,)]
    listed = {row[0] for row in con.execute("SELECT path FROM s.t.all_manifests").fetchall()}
    from pathlib import Path

    folder = Path(next(iter(listed))).parent
    assert {str(each) for each in folder.glob("*-m*.avro")} == listed, "lost attempts left nothing"
