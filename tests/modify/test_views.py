"""Views of catalogs: created, replaced and dropped; stored as the view spec says."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors

pytestmark = pytest.mark.parametrize("catalog", ["sqlite"], indirect=True)


def stored(tmp_path: Path, name: str) -> dict[str, Any]:
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        (path,) = database.execute(
            "SELECT metadata_location FROM iceberg_tables WHERE table_name = ? "
            "AND iceberg_type = 'VIEW'",
            (name,),
        ).fetchone()
    return json.loads(Path(path.removeprefix("file:")).read_text(encoding="utf-8"))


@pytest.fixture
def table(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (a INT, b VARCHAR, d DECIMAL(9, 2))")
    con.execute("INSERT INTO s.t VALUES (1, 'x', 1.5), (2, 'y', 2.5)")


def test_a_view_is_made_replaced_and_dropped(
    con: icesql.Connection, catalog: dict[str, Any], tmp_path, table: None
) -> None:
    con.execute("CREATE VIEW s.v AS SELECT a, b FROM s.t WHERE a > 1 -- the large ones")
    with icesql.connect(**catalog) as other:
        assert other.execute("SELECT * FROM s.v").fetchall() == [(2, "y")]
        other.execute(
            "CREATE OR REPLACE VIEW s.v (n COMMENT 'a number', t, price) COMMENT 'all' "
            "TBLPROPERTIES ('k' = 'w') AS SELECT a, b AS text, d FROM s.t"
        )
    cursor = con.execute("SELECT * FROM s.v ORDER BY n")
    assert [each[0] for each in cursor.description] == ["n", "t", "price"]
    assert [row[:2] for row in cursor.fetchall()] == [(1, "x"), (2, "y")]
    found = stored(tmp_path, "v")
    assert (found["format-version"], found["current-version-id"]) == (1, 2)
    assert [each["version-id"] for each in found["versions"]] == [1, 2] == [
        each["version-id"] for each in found["version-log"]
    ]  # fmt: skip
    version = found["versions"][1]
    assert version["representations"] == [
        {"type": "sql", "sql": "SELECT a, b AS text, d FROM s.t", "dialect": "duckdb"}
    ]
    assert version["default-namespace"] == []
    assert found["properties"] == {
        "comment": "all", "k": "w", "spark.query-column-names": "a,text,d",
    }  # fmt: skip
    fields = found["schemas"][version["schema-id"]]["fields"]
    assert [(each["id"], each["name"], each["type"], each.get("doc")) for each in fields] == [
        (1, "n", "int", "a number"), (2, "t", "string", None), (3, "price", "decimal(9, 2)", None),
    ]  # fmt: skip
    assert found["versions"][0]["summary"]["engine-name"] == "icesql"
    assert con.execute("CREATE VIEW IF NOT EXISTS s.v AS SELECT 1 AS one").notes
    with pytest.raises(errors.UnsupportedSqlError, match="a parameter in a view"):
        con.execute("CREATE VIEW s.w AS SELECT ? AS a", [1])
    con.execute("DROP VIEW s.v")
    con.execute("DROP VIEW IF EXISTS s.v")
    with pytest.raises(errors.TableNotFoundError):
        con.execute("SELECT * FROM s.v")
    con.execute("CREATE VIEW s.v AS SELECT 3 AS three")  # in the folder of the first view's files
    assert con.execute("SELECT * FROM s.v").fetchall() == [(3,)]
    con.execute("DROP VIEW s.v")
    con.execute("CREATE TEMP VIEW v AS SELECT 1 AS one")
    con.execute("DROP VIEW v")


def test_versions_are_kept_as_the_view_says(con: icesql.Connection, tmp_path, table: None) -> None:
    con.execute(
        "CREATE VIEW s.v TBLPROPERTIES ('version.history.num-entries' = '3') AS SELECT 0 AS n"
    )
    for number in (1, 2, 3, 4, 3):
        con.execute(f"CREATE OR REPLACE VIEW s.v AS SELECT {number} AS n")
    found = stored(tmp_path, "v")
    assert [each["version-id"] for each in found["versions"]] == [3, 4, 5]
    assert found["current-version-id"] == 4, "a version that is there is used again"
    assert found["version-log"][-1]["version-id"] == 4
    assert len(found["schemas"]) == 1
    assert con.execute("SELECT n FROM s.v").fetchall() == [(3,)]


def test_a_view_is_altered(
    con: icesql.Connection, catalog: dict[str, Any], tmp_path, table: None
) -> None:
    con.execute("CREATE VIEW s.v TBLPROPERTIES ('a' = '1', 'b' = '2') AS SELECT 1 AS n")
    con.execute("ALTER VIEW s.v AS SELECT a, b FROM s.t")
    assert con.execute("SELECT * FROM s.v ORDER BY a").fetchall() == [(1, "x"), (2, "y")]
    con.execute("ALTER VIEW s.v SET TBLPROPERTIES ('c' = '3', 'a' = '4')")
    con.execute("ALTER VIEW s.v UNSET TBLPROPERTIES IF EXISTS ('b', 'nothing')")
    con.execute("ALTER VIEW s.v UNSET TBLPROPERTIES IF EXISTS ('nothing')")
    found = stored(tmp_path, "v")
    assert found["properties"] == {"a": "4", "c": "3"}
    assert (found["current-version-id"], len(found["versions"])) == (2, 2)
    con.execute("CREATE SCHEMA other")
    con.execute("ALTER VIEW s.v RENAME TO w")
    con.execute("ALTER VIEW s.w RENAME TO other.v")
    with icesql.connect(**catalog) as other:
        assert other.execute("SELECT count(*) FROM other.v").fetchall() == [(2,)]
        assert other.execute("SHOW VIEWS").fetchall()[0][0] == "other.v"
