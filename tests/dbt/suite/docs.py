"""What dbt's docs show of the suite's projects: Iceberg's types, and counts from metadata."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbt.tests.util import AnyInteger
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

from icesql.dbt.statements import _STATS


def _stats(rows: int | None) -> dict[str, Any]:
    """The stats of a table with ``rows`` rows in one file, or of a view (None)."""
    found: dict[str, Any] = {
        "has_stats": {
            "id": "has_stats",
            "label": "Has Stats?",
            "value": rows is not None,
            "description": "Indicates whether there are statistics for this table",
            "include": False,
        }
    }
    if rows is not None:
        values = {"num_rows": rows, "bytes": AnyInteger(), "num_files": 1, "num_delete_files": 0}
        for name, _, label, description in _STATS:
            found[name] = {
                "id": name,
                "label": label,
                "value": values[name],
                "description": description,
                "include": True,
            }
    return found


def expected(base: Callable[..., Any], project: Any) -> Any:
    types = {
        "id_type": "long",
        "text_type": "string",
        "time_type": "timestamp",
        "view_type": "VIEW",
        "table_type": "BASE TABLE",
        "model_stats": _stats(None),
    }
    if base.__name__.startswith("base"):
        found = base(project, role=None, seed_stats=_stats(1), **types)
    else:
        types["bigint_type"] = "long"
        found = base(project, role=None, **types)
    for node in found["nodes"].values():
        node["stats"] = _stats(1 if node["metadata"]["type"] == "BASE TABLE" else None)
    for node in found["sources"].values():
        node["stats"] = _stats(1)
    return found


def _table(project: Any, name: str, type: str, stats: Any) -> CatalogTable:
    types = {
        "id": "long",
        "first_name": "string",
        "email": "string",
        "ip_address": "string",
        "updated_at": "timestamp",
    }
    columns = {
        each: ColumnMetadata(type=kind, index=index, name=each, comment=None)
        for index, (each, kind) in enumerate(types.items(), start=1)
    }
    metadata = TableMetadata(
        type=type,
        schema=project.test_schema,
        name=name,
        database=project.database,
        comment=None,
        owner=None,
    )
    return CatalogTable(metadata=metadata, columns=columns, stats=stats)


def EXPECTED_OF_A_SEED(project: Any) -> CatalogTable:
    stats = {name: StatsItem(**each) for name, each in _stats(1).items() if name != "has_stats"}
    return _table(project, "my_seed", "BASE TABLE", stats)


def EXPECTED_OF_A_VIEW(project: Any) -> CatalogTable:
    return _table(project, "my_view_model", "VIEW", {})
