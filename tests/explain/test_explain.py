"""EXPLAIN of a partitioned table that PyIceberg writes: what is skipped, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import icesql
from icesql.catalog.open import open_table
from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.engine.engines import EngineChoice
from icesql.explain.report import MOST_SKIPPED, Measured, as_text, describe, explain
from icesql.query.bind import bind
from icesql.query.bound import BoundQuery
from icesql.scan.plan import ScanPlan
from icesql.scan.planner import plan
from icesql.sql.parse import parse
from icesql.sql.statement import Explain, Query
from tests.query.tables import session_of


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """30 days in one file each, partitioned by day; amount rises with the day."""
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import DateType, LongType, NestedField, StringType

    folder: Path = tmp_path_factory.mktemp("sales")
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    schema = Schema(
        NestedField(1, "day", DateType(), required=False),
        NestedField(2, "amount", LongType(), required=False),
        NestedField(3, "region", StringType(), required=False),
    )
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    table = catalog.create_table("n.sales", schema, partition_spec=spec)
    days = [date(2020, 1, number) for number in range(1, 31)]
    columns = [
        pa.array(days, pa.date32()),
        pa.array(range(30), pa.int64()),
        pa.array(["eu"] * 30, pa.string()),
    ]
    table.append(pa.table(columns, names=["day", "amount", "region"]))
    location = table.metadata_location
    catalog.close()
    return open_table(location, name="sales")


LOCAL = EngineChoice("local")
MEASURED = Measured(0.125, 0.25, 0.5, 2, ("duckdb", "duckdb", "arrow"))


def described(
    bound: BoundQuery, plans: list[ScanPlan], measured: Measured | None = None
) -> dict[str, Any]:
    return describe(bound, plans, QueryContext(), engine=LOCAL, measured=measured)


Explained = Callable[[str], tuple[BoundQuery, list[ScanPlan]]]


@pytest.fixture
def explained(sales: Table) -> Explained:
    def run(sql: str) -> tuple[BoundQuery, list[ScanPlan]]:
        (query,) = parse(sql)
        assert isinstance(query, Query)
        explained = replace(query, for_explain=True)
        bound = bind(explained, session_of({"sales": sales}), QueryContext())
        plans = [plan(replace(scan, explain=True), QueryContext()) for scan in bound.scans]
        return bound, plans

    return run


def test_partition_conditions_skip_files_with_the_reason(explained: Explained) -> None:
    bound, plans = explained("SELECT amount FROM sales WHERE day >= DATE '2020-01-29'")
    (scan,) = described(bound, plans)["scans"]
    assert scan["data_files"] == {"kept": 2, "skipped": 28}
    assert scan["filter"] == "day >= 2020-01-29"
    assert scan["conditions"][0]["pushed"] == "partition and metrics"
    assert {each["stage"] for each in scan["skipped"]} == {"partition"}
    assert any("2020-01-28" in each["reason"] for each in scan["skipped"])
    assert scan["tasks"] >= 1
    assert scan["columns"] == ["day", "amount"]
    assert 0 < scan["bytes"] < 2_000


def test_metric_conditions_name_the_bound_that_decided(explained: Explained) -> None:
    bound, plans = explained("SELECT amount FROM sales WHERE amount < 3")
    (scan,) = described(bound, plans)["scans"]
    assert scan["data_files"] == {"kept": 3, "skipped": 27}
    assert scan["conditions"][0]["pushed"] == "metrics"
    assert {each["stage"] for each in scan["skipped"]} == {"metrics"}
    assert any("amount < 3" in each["predicate"] and "29" in each["reason"]
               for each in scan["skipped"])  # fmt: skip


def test_lines_tell_every_layer(explained: Explained) -> None:
    sql = "SELECT amount FROM sales WHERE day > DATE '2020-01-25' AND length(region) = 2"
    bound, plans = explained(sql)
    text = "\n".join(as_text(described(bound, plans)))
    assert text.startswith("scan 0: sales\n  snapshot: ")
    assert "(main) committed" in text
    assert "day > CAST('2020-01-25' AS DATE): pushed to partition and metrics as day > " in text
    assert "LENGTH(region) = 2: not pushed: length() is not known" in text
    assert "data files: 5 kept, 25 skipped" in text
    assert f"… and {25 - MOST_SKIPPED} more" in text
    assert "reader: duckdb, pending footer check (5 files)" in text
    assert "manifests: 1 in all, 1 read, 0 skipped" in text


def test_a_manifest_that_cannot_match_is_skipped_whole(explained: Explained) -> None:
    bound, plans = explained("SELECT 1 FROM sales WHERE day = DATE '2021-01-01'")
    (scan,) = described(bound, plans)["scans"]
    assert scan["data_manifests"] == {"total": 1, "kept": 0, "skipped": 1}
    assert scan["skipped"][0]["kind"] == "manifest"


def test_analyze_adds_rows_and_seconds(explained: Explained) -> None:
    bound, plans = explained("SELECT amount FROM sales LIMIT 2")
    lines = as_text(described(bound, plans, MEASURED))
    assert "  limit: 2 rows (planning stopped early)" in lines
    assert lines[-6:] == [
        "rows: 2", "bind: 0.125 s", "plan: 0.250 s", "read: 0.500 s",
        "read by duckdb: 2 files", "read by arrow: 1 file",
    ]  # fmt: skip


def test_a_query_without_tables_says_so() -> None:
    (query,) = parse("SELECT 1")
    assert isinstance(query, Query)

    bound = bind(replace(query, for_explain=True), session_of({}), QueryContext())
    assert as_text(described(bound, [])) == ["no tables are read"]


def test_json_says_the_same_as_an_object(explained: Explained) -> None:
    sql = "SELECT amount FROM sales WHERE amount < 3"
    bound, plans = explained(sql)
    (asked,) = parse(f"EXPLAIN (FORMAT json) {sql}")
    assert isinstance(asked, Explain)
    result = explain(bound, plans, QueryContext(), asked, LOCAL, measured=MEASURED)
    ((text,),) = result.fetch(None)
    found = json.loads(text)
    expected = described(bound, plans, MEASURED)
    expected["measured"]["groups"] = list(expected["measured"]["groups"])
    assert found == expected
    assert found["measured"]["rows"] == 2
    assert found["engine"] == {"name": "local", "reason": None}


def test_the_engine_is_named_with_the_reason_for_it(explained: Explained) -> None:
    bound, plans = explained("SELECT amount FROM sales")
    reason = "engine spark: 2 bytes to read, more than spark_threshold 1"
    for engine, told in ((("spark", reason), reason), (("spark",), "engine spark")):
        found = describe(bound, plans, QueryContext(), engine=EngineChoice(*engine))
        assert as_text(found)[-1] == told


def test_explain_in_json_is_one_value_of_a_connection(sales: Table) -> None:
    with icesql.connect() as connection:
        connection.register_table("sales", sales.metadata_location)
        sql = "EXPLAIN (ANALYZE, FORMAT json) SELECT count(amount) FROM sales WHERE amount < 3"
        ((text,),) = connection.execute(sql).fetchall()
    assert json.loads(text)["measured"]["rows"] == 1


def test_the_engine_tells_its_own_plan(sales: Table) -> None:
    with icesql.connect() as connection:
        connection.register_table("sales", sales.metadata_location)
        sql = "SELECT sum(amount) FROM sales WHERE amount < ?"
        cursor = connection.execute(f"EXPLAIN (ENGINE) {sql}", [3])
        text = "\n".join(line for (line,) in cursor)
        assert [each[0] for each in cursor.description] == ["plan"]
        assert "sum(" in text.lower()
        assert connection.execute(sql, [3]).fetchall()
        for options in ("(ENGINE, ANALYZE)", "(ENGINE, FORMAT json)", "ANALYZE (ENGINE)"):
            with pytest.raises(icesql.UnsupportedSqlError, match="use them apart"):
                connection.execute(f"EXPLAIN {options} SELECT 1")


def test_an_option_that_is_unknown_is_told_with_those_that_are() -> None:
    with icesql.connect() as connection:
        with pytest.raises(icesql.SqlSyntaxError, match=r'unexpected "ENGIN".*ENGINE'):
            connection.execute("EXPLAIN (ENGIN) SELECT 1")
        for query in ("(SELECT 1)", "((SELECT 1))", "(VALUES (1))", "(FROM range(3))"):
            assert connection.execute(f"EXPLAIN {query}").fetchall()
