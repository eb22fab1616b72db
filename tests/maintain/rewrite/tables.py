"""Tables with every kind of delete, and their rewrites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import icesql
from icesql.catalog.directory import DirectoryCatalog
from icesql.context import QueryContext
from icesql.maintain.rewrite.plan import RewritePlan, RewriteRequest, plan_rewrite, rewrite_options
from icesql.maintain.rewrite.run import rewrite as rewrite_plan
from tests.columns import json_columns
from tests.writer.table import TableWriter

FIELDS = json_columns("1 id long, 2 p string, 3 x double")
BY_P = [{"name": "p", "transform": "identity", "source-id": 2, "field-id": 1000}]


def rows(first: int, count: int, p: str | None = "a") -> list[dict[str, Any]]:
    return [{"id": n, "p": p, "x": n / 4 if n % 5 else None} for n in range(first, first + count)]


def new_table(folder: Path, version: int = 2, *, partitioned: bool = False, **properties: str):
    target = folder / "wh" / "ns" / "t"
    target.mkdir(parents=True)
    return TableWriter(
        str(target), FIELDS, BY_P if partitioned else [], version=version,
        properties={"commit.retry.min-wait-ms": "1", **properties},
    )  # fmt: skip


def catalog_of(table: TableWriter) -> DirectoryCatalog:
    return DirectoryCatalog(str(Path(table.folder).parents[1]))


def planned(
    catalog: Any, strategy: Any = "binpack", order: Any = None, **given: Any
) -> RewritePlan:
    """The plan of a rewrite of ns.t; options by name, with _ for - and __ for a dot."""
    loaded = catalog.load(("ns", "t"))
    asked = {name: given.pop(name) for name in ("row_filter", "branch") if name in given}
    texts = {k.replace("__", ".").replace("_", "-"): str(v).lower() for k, v in given.items()}
    options = rewrite_options(texts, loaded.metadata, strategy)
    return plan_rewrite(loaded, RewriteRequest(options, order, **asked), QueryContext())


def rewrite(
    catalog: Any, plan: RewritePlan, query: QueryContext | None = None, **given: Any
) -> Any:
    """Carry out a plan."""
    return rewrite_plan(catalog, plan, query or QueryContext(), **given)


def asked(catalog: Any, sql: str, **settings: Any) -> list[Any]:
    """The rows of a statement, on a new connection."""
    with icesql.connect(warehouse=catalog.folder, settings=settings) as con:
        return con.execute(sql).fetchall()


def read(catalog: Any, columns: str = "*", **settings: Any) -> list[Any]:
    return sorted(asked(catalog, f"SELECT {columns} FROM ns.t", **settings), key=repr)


def everything(catalog: Any, version: int) -> list[Any]:
    """All rows, with their lineage in version 3."""
    lineage = ", _row_id, _last_updated_sequence_number" if version > 2 else ""
    return read(catalog, f"*{lineage}")


def files_below(table: TableWriter) -> set[str]:
    return {str(each) for each in Path(table.folder).rglob("*.parquet")}
