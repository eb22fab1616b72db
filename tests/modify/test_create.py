"""CREATE TABLE and what goes with it, through the catalogs that icesql writes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.catalog.targets import namespace_place, table_to_change

BOTH = pytest.mark.parametrize("catalog", ["directory", "sqlite"], indirect=True)
SQLITE = pytest.mark.parametrize("catalog", ["sqlite"], indirect=True)


def told(con: icesql.Connection, table: str) -> str:
    return str(con.execute(f"SHOW CREATE TABLE {table}").fetchall()[0][0])


def test_types_in_both_spellings(catalog: dict[str, Any]) -> None:
    columns = (
        "a TINYINT, b SMALLINT, c INTEGER, d BIGINT, e REAL, f DOUBLE, g DECIMAL(9, 2), h VARCHAR(10), "
        "i DATE, k TIMESTAMP, l BINARY, m BOOLEAN, n STRUCT<x: INT, y: ARRAY<STRING>>, o MAP<STRING, DATE>"
    )
    common = ["int", "int", "int", "long", "float", "double", "decimal(9, 2)", "string", "date"]
    for dialect, stamp in ((None, "timestamp"), ("spark", "timestamptz")):
        with icesql.connect(**catalog, dialect=dialect) as con:
            con.execute("CREATE SCHEMA IF NOT EXISTS s")
            con.execute(f"CREATE TABLE s.{stamp} ({columns})")
            found = [row[1] for row in con.execute(f"DESCRIBE s.{stamp}").fetchall()]
            assert found[:11] == [*common, stamp, "binary"]
            assert found[12].startswith("struct<")
            assert "list<string>" in found[12]


def test_everything_comes_back(con: icesql.Connection) -> None:
    con.execute(
        "CREATE TABLE s.t (id BIGINT NOT NULL COMMENT 'key', ts TIMESTAMP, name VARCHAR, st STRUCT<d DATE>) "
        "PARTITIONED BY (days(TS), bucket(id, 16), truncate(4, name), st.d) SORTED BY (id DESC, name) "
        "COMMENT 'of things' TBLPROPERTIES ('write.target-file-size-bytes' = '1000')"
    )
    shown = told(con, "s.t")
    for part in ("bucket", "NOT NULL", "'key'", "of things", "1000"):
        assert part in shown
    table = table_to_change(con._session.state.names, ("s", "t"))[1].metadata
    assert [(f.name, f.transform) for f in table.spec.fields] == [
        ("ts_day", "day"), ("id_bucket", "bucket[16]"), ("name_trunc", "truncate[4]"), ("st.d", "identity"),
    ]  # fmt: skip
    order = table.sort_orders[table.default_sort_order_id]
    assert [(f.source_ids, f.direction, f.null_order) for f in order.fields] == [
        ((1,), "desc", "nulls-last"), ((3,), "asc", "nulls-first"),
    ]  # fmt: skip
    assert table.properties["write.parquet.compression-codec"] == "zstd"
    assert table.format_version == 2


def test_or_replace(con: icesql.Connection) -> None:
    con.execute("CREATE OR REPLACE TABLE s.t (a INT, b VARCHAR) PARTITIONED BY (b)")
    con.execute("INSERT INTO s.t VALUES (1, 'x')")
    ((first,),) = con.execute("SELECT snapshot_id FROM s.t.snapshots").fetchall()
    done = con.execute("CREATE OR REPLACE TABLE s.t AS SELECT 'y' AS b, 2.5 AS c")
    assert done.rowcount == 1
    assert [row[0] for row in con.execute("DESCRIBE s.t").fetchall()] == ["b", "c"]
    assert [(b, float(c)) for b, c in con.execute("SELECT * FROM s.t").fetchall()] == [("y", 2.5)]
    assert con.execute(f"SELECT a, b FROM s.t VERSION AS OF {first}").fetchall() == [(1, "x")]
    con.execute("CREATE OR REPLACE TABLE s.t (z DATE)")
    assert con.execute("SELECT * FROM s.t").fetchall() == []


@SQLITE
def test_names(con: icesql.Connection) -> None:
    con.execute("USE s")
    con.execute("CREATE TABLE plain (i INT)")
    con.execute('CREATE TABLE s."odd name" (i INT, "a.b" INT, "é" INT)')
    con.execute('INSERT INTO "odd name" VALUES (1, 2, 3)')
    assert con.execute('SELECT "a.b", "é" FROM "odd name"').fetchall() == [(2, 3)]
    assert con.tables() == ["s.odd name", "s.plain"]
    con.execute("ALTER TABLE plain RENAME TO other")
    con.execute("DROP TABLE other")
    con.execute("DROP TABLE IF EXISTS other")
    with pytest.raises(errors.TableNotFoundError, match="line 1, column 12"):
        con.execute("DROP TABLE other")
    assert con.execute("CREATE SCHEMA IF NOT EXISTS s").notes
    with pytest.raises(errors.CatalogError):
        con.execute("DROP SCHEMA s")
    with pytest.raises(errors.CatalogError):
        con.execute("CREATE TABLE nix.t (i INT)")


@BOTH
@pytest.mark.parametrize("tolerant", [True, False])
def test_a_schema_that_another_makes_in_between(
    catalog: dict[str, Any], tolerant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with icesql.connect(**catalog) as con, icesql.connect(**catalog) as other:
        opened = namespace_place(con._session.state.names, ("between",))[0]
        make = opened.create_namespace

        def late(namespace: Any) -> None:
            monkeypatch.undo()
            other.execute("CREATE SCHEMA between")
            make(namespace)

        monkeypatch.setattr(opened, "create_namespace", late)
        if tolerant:
            assert con.execute("CREATE SCHEMA IF NOT EXISTS between").notes
        else:
            with pytest.raises(errors.CatalogError, match="already exists"):
                con.execute("CREATE SCHEMA between")
        assert ("between",) in opened.namespaces()


def test_temporary_tables_stay_apart(con: icesql.Connection) -> None:
    con.execute("CREATE TEMP TABLE t AS SELECT 1 AS a")
    with pytest.raises(errors.UnsupportedSqlError, match="this session made"):
        con.execute("INSERT INTO t VALUES (2)")
    con.execute("DROP TABLE t")
    with pytest.raises(errors.TableNotFoundError):
        con.execute("DROP TABLE t")


def test_properties(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (i INT) TBLPROPERTIES ('a' = '1')")
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('b' = '2', 'format-version' = '3')")
    con.execute("ALTER TABLE s.t UNSET TBLPROPERTIES ('a')")
    table = table_to_change(con._session.state.names, ("s", "t"))[1].metadata
    assert table.format_version == 3
    assert {k: v for k, v in table.properties.items() if k in "ab"} == {"b": "2"}
    with pytest.raises(errors.ProgrammingError, match="no property a"):
        con.execute("ALTER TABLE s.t UNSET TBLPROPERTIES ('a')")
    con.execute("ALTER TABLE s.t UNSET TBLPROPERTIES IF EXISTS ('a')")


# ------------------------------------------------------------------ who may write

WRITES = [
    "INSERT INTO s.t VALUES (2)", "CREATE TABLE s.u (i INT)", "CREATE TABLE s.u AS SELECT 1 AS i",
    "DROP TABLE s.t", "ALTER TABLE s.t RENAME TO s.u", "CREATE SCHEMA z", "DROP SCHEMA s",
    "ALTER TABLE s.t SET TBLPROPERTIES ('a'='b')", "ALTER TABLE s.t CREATE BRANCH b",
    "ALTER TABLE s.t DROP TAG v", "CREATE BRANCH b IN TABLE s.t", "DROP BRANCH b IN TABLE s.t",
    "ALTER BRANCH main IN TABLE s.t FAST FORWARD TO b", "INSERT INTO s.t@b VALUES (2)",
    "ALTER TABLE s.t ADD PARTITION FIELD i", "ALTER TABLE s.t WRITE ORDERED BY i",
    "ALTER TABLE s.t SET IDENTIFIER FIELDS i", "COMMENT ON TABLE s.t IS 'x'",
    "INSERT OVERWRITE s.t SELECT 2", "INSERT INTO s.t REPLACE WHERE i = 1 SELECT 1",
    "CREATE TABLE s.u LIKE s.t", "CREATE VIEW s.v AS SELECT 1 AS i", "DROP VIEW s.v",
    "ALTER VIEW s.v AS SELECT 2", "ALTER VIEW s.v RENAME TO s.w", "REPLACE TABLE s.t AS SELECT 1 AS i",
    "ANALYZE s.t",
    "DELETE FROM s.t", "TRUNCATE TABLE s.t", "UPDATE s.t SET i = 2",
]  # fmt: skip


@pytest.mark.parametrize(
    "limits",
    [
        {"read_only": True}, {"service": True}, {"confine": True}, {"locked": True},
        {"tables_by_path": False}, {"catalogs": []},
    ],
    ids=str,
)  # fmt: skip
def test_a_limited_connection_only_reads(
    con: icesql.Connection, catalog: dict[str, Any], limits: dict[str, Any]
) -> None:
    con.execute("CREATE TABLE s.t (i INT)")
    con.execute("INSERT INTO s.t VALUES (1)")
    with icesql.connect(**catalog, **limits) as other:
        for sql in WRITES:
            with pytest.raises(errors.AccessDeniedError, match="only reads"):
                other.execute(sql)
        with pytest.raises(errors.AccessDeniedError, match="only reads"):
            other.cursor().executemany("INSERT INTO s.t VALUES (?)", [[1]])
        other.execute("SELECT 1").fetchall()
    with icesql.connect(**catalog, **{**limits, "read_only": False}) as owner:
        assert owner.execute("INSERT INTO s.t VALUES (2)").rowcount == 1
    assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(2,)]
    assert con.tables() == ["s.t"]


def test_writes_stay_inside_the_roots(
    con: icesql.Connection, catalog: dict[str, Any], tmp_path: Path
) -> None:
    con.execute("CREATE TABLE s.t (i INT)")
    outside = tmp_path / "outside"
    con.execute(f"ALTER TABLE s.t SET TBLPROPERTIES ('write.data.path' = '{outside}')")
    limited = icesql.connect(**catalog, confine=catalog["warehouse"], read_only=False)
    with limited, pytest.raises(errors.AccessDeniedError, match="outside the roots"):
        limited.execute("INSERT INTO s.t VALUES (1)")
    assert not outside.exists()


def test_a_registered_table_has_no_catalog(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (i INT)")
    location = table_to_change(con._session.state.names, ("s", "t"))[1].metadata_location
    con.register_table("r", location)
    with pytest.raises(errors.UnsupportedTableError, match="registered by its path"):
        con.execute("INSERT INTO r VALUES (1)")
