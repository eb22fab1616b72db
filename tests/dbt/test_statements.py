"""SQL of the adapter, run by icesql itself: dbt need not be installed.

The scripts of the macros are here as dbt renders them; ``suite/run.py`` runs dbt's own tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.dbt import statements
from icesql.dbt.statements import begins_transaction, is_wider
from icesql.quoting import literal, quoted


@dataclass
class Relation:
    """The part of dbt's relations that the adapter uses."""

    schema: str
    identifier: str
    is_view: bool = False
    other_catalog: str | None = None
    database: str = "default"

    def render(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.identifier)}"


@pytest.fixture
def con(tmp_path: Path) -> Iterator[icesql.Connection]:
    new = {"init_catalog_tables": "true"}
    uri = f"sqlite:///{tmp_path}/catalog.db"
    with icesql.connect(uri=uri, warehouse=tmp_path, properties=new) as connection:
        connection.execute("CREATE SCHEMA marts")
        connection.execute("CREATE TABLE marts.orders AS SELECT 1 AS id, 'eu' AS region")
        yield connection


def run(con: icesql.Connection, script: str) -> list[Any]:
    rows: list[Any] = []
    for cursor in con.execute_script(script):
        rows = cursor.fetchall() if cursor.description else []
    return rows


def commits(con: icesql.Connection, table: str) -> int:
    return len(run(con, f"SELECT file FROM {table}.metadata_log_entries"))


ORDERS = Relation("marts", "orders")


def test_relations_of_a_namespace_are_listed_with_their_kinds(con: icesql.Connection) -> None:
    run(con, "CREATE VIEW marts.v AS SELECT * FROM marts.orders; CREATE SCHEMA other")
    run(con, "CREATE TABLE other.t AS SELECT 1 AS id")
    found = statements.tables_and_views(lambda sql: run(con, sql), Relation("marts", ""))
    assert sorted(found) == [("orders", "table"), ("v", "view")]


def test_docs_have_columns_comments_and_counts(con: icesql.Connection) -> None:
    run(con, "COMMENT ON TABLE marts.orders IS 'all'; COMMENT ON COLUMN marts.orders.id IS 'key'")
    rows = statements._rows_of(lambda sql: run(con, sql), ORDERS)
    assert [row["column_name"] for row in rows] == ["id", "region"]
    assert (rows[0]["table_comment"], rows[0]["column_comment"]) == ("all", "key")
    assert (rows[0]["stats:num_rows:value"], rows[0]["stats:num_rows:include"]) == (1, True)
    assert statements._rows_of(lambda sql: run(con, sql), Relation("marts", "gone")) == []


def test_a_table_is_as_fresh_as_its_snapshot(con: icesql.Connection) -> None:
    (committed,) = run(con, "SHOW SNAPSHOTS EXTENDED marts.orders")
    modified, now = statements.last_modified(lambda sql: run(con, sql), ORDERS)
    assert modified == committed[0]
    assert modified < now
    run(con, "CREATE TABLE marts.empty (id BIGINT)")
    empty = Relation("marts", "empty")
    assert statements.last_modified(lambda sql: run(con, sql), empty)[0] is None


def test_comments_are_set_in_one_commit_where_they_differ(con: icesql.Connection) -> None:
    asked = {"ID": {"name": "ID", "description": "the customer's"}, "gone": {"description": "x"}}
    script = statements.changes_sql(lambda sql: run(con, sql), ORDERS, "it's all", asked)
    assert script.count(";") == 3
    run(con, script)
    described = run(con, "DESCRIBE marts.orders")
    assert [row[5] for row in described] == ["the customer's", None]
    assert statements.changes_sql(lambda sql: run(con, sql), ORDERS, "it's all", asked) == ""
    run(con, "CREATE VIEW marts.v AS SELECT 1 AS id")
    view = Relation("marts", "v", is_view=True)
    run(con, statements.changes_sql(lambda sql: run(con, sql), view, "a view", asked))
    assert statements.comment_of(lambda sql: run(con, sql), view) == "a view"


class AgateColumn:
    def __init__(self, *values: object) -> None:
        self._values = values

    def values(self) -> tuple[object, ...]:
        return self._values


class AgateTable:
    """The part of agate's tables that the adapter uses."""

    column_names = ("id", "Name", "at")
    columns = (AgateColumn(1, 2), AgateColumn("O'Hara", None), AgateColumn("2026-01-31", None))


def test_a_seed_is_one_commit_with_its_types(con: icesql.Connection) -> None:
    select = statements.select_of(con, AgateTable(), ("bigint", "varchar", "date"))  # type: ignore[arg-type]
    run(con, f"CREATE OR REPLACE TABLE marts.names AS {select}")
    statements.forget(con)
    cursor = con.execute("SELECT * FROM marts.names ORDER BY id")
    assert cursor.description is not None
    assert [each[0] for each in cursor.description] == ["id", "Name", "at"]
    assert [str(each[1]) for each in cursor.description] == ["bigint", "varchar", "date"]
    assert [row[1] for row in cursor.fetchall()] == ["O'Hara", None]
    assert commits(con, "marts.names") == 1


def test_a_seed_with_a_wrong_value_leaves_what_was_there(con: icesql.Connection) -> None:
    select = statements.select_of(con, AgateTable(), ("bigint", "bigint", "date"))  # type: ignore[arg-type]
    with pytest.raises(icesql.Error, match="O'Hara"):
        run(con, f"CREATE OR REPLACE TABLE marts.orders AS {select}")
    assert run(con, "SELECT * FROM marts.orders") == [(1, "eu")]


NEW = (
    "CREATE OR REPLACE TEMPORARY TABLE orders__dbt_tmp AS ("
    "SELECT * FROM (VALUES (1, 'us'), (2, 'eu')) AS n(id, region));"
)
DELETE_INSERT = """
begin;
delete from "marts"."orders" as DBT_INTERNAL_DEST
where (id) in (select distinct id from "orders__dbt_tmp" as DBT_INTERNAL_SOURCE);
insert into "marts"."orders" ("id", "region") (select "id", "region" from "orders__dbt_tmp");
commit
"""
MERGE = """
merge into "marts"."orders" as DBT_INTERNAL_DEST using "orders__dbt_tmp" as DBT_INTERNAL_SOURCE
on ((DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id))
when matched then update set "id" = DBT_INTERNAL_SOURCE."id", "region" = DBT_INTERNAL_SOURCE."region"
when not matched then insert ("id", "region") values ("id", "region")
"""
OVERWRITE = """
begin;
set partition_overwrite_mode = 'dynamic';
insert overwrite "marts"."orders" ("id", "region") select "id", "region" from "orders__dbt_tmp";
commit;
reset partition_overwrite_mode
"""
REPLACE_WHERE = """
insert into "marts"."orders" by name replace where (id < 3)
select "region", "id" from "orders__dbt_tmp"
"""


@pytest.mark.parametrize("strategy", [DELETE_INSERT, MERGE, OVERWRITE, REPLACE_WHERE])
def test_a_strategy_is_one_commit(strategy: str, con: icesql.Connection) -> None:
    before = commits(con, "marts.orders")
    run(con, NEW + strategy)
    rows = run(con, "SELECT * FROM marts.orders ORDER BY id")
    assert rows == [(1, "us"), (2, "eu")]
    assert commits(con, "marts.orders") == before + 1
    assert con.settings.partition_overwrite_mode == "static"


APPEND_GROWS = """
insert with schema evolution into "marts"."orders" ("id", "region", "note")
select "id", "region", "note" from "orders__dbt_tmp"
"""
MERGE_GROWS = """
merge with schema evolution into "marts"."orders" as DBT_INTERNAL_DEST
using "orders__dbt_tmp" as DBT_INTERNAL_SOURCE
on ((DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id))
when matched then update set "region" = DBT_INTERNAL_SOURCE."region",
"note" = DBT_INTERNAL_SOURCE."note"
when not matched then insert ("id", "region", "note") values ("id", "region", "note")
"""


@pytest.mark.parametrize(
    ("strategy", "wanted"),
    [
        (APPEND_GROWS, [(1, "eu", None), (1, "us", "n"), (2, "eu", "n")]),
        (MERGE_GROWS, [(1, "us", "n"), (2, "eu", "n")]),
    ],
)
def test_appended_columns_are_one_commit_with_their_rows(
    strategy: str, wanted: list[Any], con: icesql.Connection
) -> None:
    before = commits(con, "marts.orders")
    run(con, NEW.replace("SELECT *", "SELECT *, 'n' AS note") + strategy)
    assert run(con, "SELECT * FROM marts.orders ORDER BY id, region") == wanted
    assert commits(con, "marts.orders") == before + 1


@pytest.mark.parametrize(
    ("before", "after", "wider"),
    [
        ("integer", "bigint", True),
        ("bigint", "integer", False),
        ("float", "double", True),
        ("decimal(9,2)", "decimal(12, 2)", True),
        ("decimal(9,2)", "decimal(12,3)", False),
        ("decimal(9,2)", "varchar", False),
        ("varchar", "varchar", False),
    ],
)
def test_what_iceberg_widens(before: str, after: str, wider: bool, con: icesql.Connection) -> None:
    assert is_wider(before, after) is wider
    run(con, f"CREATE TABLE marts.t (a {before}); INSERT INTO marts.t VALUES (NULL)")
    change = f"ALTER TABLE marts.t ALTER COLUMN a TYPE {after}"
    if wider:
        run(con, change)
    elif before != after:
        with pytest.raises(icesql.Error):
            run(con, change)


def test_names_and_texts_are_quoted() -> None:
    assert quoted('a"b') == '"a""b"'
    assert literal("it's") == "'it''s'"


def test_a_script_that_begins_a_transaction_is_one_commit_behind_any_comments() -> None:
    comments = "/* dbt */ -- a model\n" * 200
    assert begins_transaction(f"{comments} BEGIN; DELETE FROM t; COMMIT")
    assert not begins_transaction(f"{comments} INSERT INTO t SELECT 1 -- begin")
    assert not begins_transaction("beginning")
