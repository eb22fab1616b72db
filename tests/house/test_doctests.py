"""The examples in docstrings say what the code does.

Rules that rewrite SQL are shown on SQL: every example may use the functions of ``HELPERS``.
"""

from __future__ import annotations

import doctest
import importlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlglot

import icesql
from icesql.config import Settings
from icesql.context import QueryContext
from icesql.iceberg.expressions.predicate import Predicate
from icesql.iceberg.expressions.projection import inclusive, strict
from icesql.iceberg.expressions.render import render_predicate
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.query.pushdown.computed.expression import expression_of
from icesql.query.pushdown.extremes import complement
from icesql.scan.spec_scan import ResidualEvaluator
from icesql.scan.tasks import FileScanTask
from tests.columns import columns
from tests.query.pushdown.translation import translate

PACKAGE = Path(icesql.__file__).parent
# Shown to readers; the manual's test runs it on a warehouse.
NEED_A_WAREHOUSE = {"__init__.py"}
MODULES = [
    path.relative_to(PACKAGE).as_posix()
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
    and path.relative_to(PACKAGE).as_posix() not in NEED_A_WAREHOUSE
]
COLUMNS = Schema(
    columns(
        "1 i int, 2 l long, 3 x double, 4 price decimal(10, 2), 5 name string, 6 day date, "
        "7 ts timestamp, 8 at timestamptz"
    )
)


def query(zone: str) -> QueryContext:
    return QueryContext(settings=Settings(timezone=zone), now=datetime(2026, 1, 1, tzinfo=UTC))


def predicate(condition: str, zone: str = "UTC") -> Predicate:
    return translate(
        condition, lambda column: COLUMNS.find_column(column.name), query(zone)
    ).predicate


def implied(condition: str, zone: str = "UTC") -> None:
    """Print the predicate that a condition on ``COLUMNS`` is pushed down as."""
    print(render_predicate(predicate(condition, zone), COLUMNS))


def left_out(condition: str) -> None:
    """Print what holds for each row that a condition on ``COLUMNS`` leaves out."""
    tree = expression_of(sqlglot.parse_one(condition, read="duckdb"))
    found = complement(tree, lambda column: COLUMNS.find_column(column.name), query("UTC"))
    print(render_predicate(found, COLUMNS))


def spec_of(transform: str, column: str) -> PartitionSpec:
    source = COLUMNS.find_column(column)
    assert source is not None
    return PartitionSpec(0, (PartitionField((source.field_id,), 1000, transform, "part"),))


def partitions(condition: str, transform: str, column: str) -> None:
    """Print the partitions that may hold a matching row, and those that hold nothing else."""
    spec = spec_of(transform, column)
    print("may: ", inclusive(predicate(condition), spec, COLUMNS))
    print("must:", strict(predicate(condition), spec, COLUMNS))


def task_of(*, bytes: int, offsets: tuple[int, ...] | None = None) -> FileScanTask:
    """The scan task of a Parquet file whose writer recorded ``offsets``."""
    file = DataFile(FileContent.DATA, "f", "PARQUET", 0, (), 10, bytes, split_offsets=offsets)
    return FileScanTask(file, 0, bytes)


def left_over(condition: str, transform: str, column: str, value: object) -> None:
    """Print what is left of a condition in the partition ``value``."""
    found = ResidualEvaluator(predicate(condition), spec_of(transform, column), COLUMNS)
    print(render_predicate(found.residual((value,)), COLUMNS))


HELPERS = {each.__name__: each for each in (implied, left_out, partitions, left_over, task_of)}


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_right(name: str) -> None:
    parts = ["icesql", *Path(name).with_suffix("").parts]
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    results = doctest.testmod(module, extraglobs=HELPERS)
    assert results.attempted > 0
    assert results.failed == 0
