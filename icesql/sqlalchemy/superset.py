"""How Superset speaks with icesql: the entry point ``superset.db_engine_specs``.

Time grains and literals in DuckDB's spelling, the schema of a query by USE, and what a query would
read, from metadata alone.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, ClassVar, Final

from sqlalchemy import types
from sqlglot.dialects.dialect import Dialects
from superset.db_engine_specs.base import BaseEngineSpec
from superset.db_engine_specs.duckdb import DuckDBEngineSpec
from superset.sql.parse import SQLGLOT_DIALECTS
from superset.utils.core import GenericDataType

# Superset's own parser, which finds tables and sets limits, takes the text as DuckDB's.
SQLGLOT_DIALECTS.setdefault("icesql", Dialects.DUCKDB)

_GRAINS: Final = {
    "PT5S": "5 SECONDS",
    "PT30S": "30 SECONDS",
    "PT5M": "5 MINUTES",
    "PT10M": "10 MINUTES",
    "PT15M": "15 MINUTES",
    "PT30M": "30 MINUTES",
    "PT6H": "6 HOURS",
}


class IcesqlEngineSpec(BaseEngineSpec):
    """icesql in Superset, by URLs such as ``icesql:////srv/lake?read_only=true``."""

    engine = "icesql"
    engine_name = "icesql (Apache Iceberg)"
    default_driver = "icesql"
    sqlalchemy_uri_placeholder = "icesql:////folder/of/a/warehouse"
    supports_dynamic_schema = True
    supports_catalog = False
    allows_alias_in_orderby = True

    metadata: ClassVar[dict[str, Any]] = {
        "description": "SQL with time travel on Apache Iceberg tables, without a server.",
        "pypi_packages": ["icesql[sqlalchemy]"],
        "connection_string": "icesql://catalog/namespace",
    }

    column_type_mappings = (
        (re.compile(r"^(hugeint|ubigint|long)", re.I), types.BigInteger(), GenericDataType.NUMERIC),
        (re.compile(r"^timestamp", re.I), types.TIMESTAMP(), GenericDataType.TEMPORAL),
        (re.compile(r"^blob", re.I), types.LargeBinary(), GenericDataType.STRING),
        (re.compile(r"^(struct|map|list|.*\[\])", re.I), types.String(), GenericDataType.STRING),
    )

    _time_grain_expressions: ClassVar[dict[str | None, str]] = {
        **DuckDBEngineSpec._time_grain_expressions,
        **{grain: f"time_bucket(INTERVAL {words}, {{col}})" for grain, words in _GRAINS.items()},
    }

    @classmethod
    def epoch_to_dttm(cls) -> str:
        """Seconds since 1970 as a time."""
        return "to_timestamp({col})"

    @classmethod
    def convert_dttm(
        cls, target_type: str, dttm: datetime, db_extra: dict[str, Any] | None = None
    ) -> str | None:
        """A time as a literal of a column's type, None for types that have none."""
        wanted = cls.get_sqla_column_type(target_type)
        if isinstance(wanted, types.Date):
            return f"DATE '{dttm.date().isoformat()}'"
        if isinstance(wanted, types.DateTime):
            return f"TIMESTAMP '{dttm.isoformat(sep=' ', timespec='microseconds')}'"
        return None

    @classmethod
    def adjust_engine_params(
        cls,
        uri: Any,
        connect_args: dict[str, Any],
        catalog: str | None = None,
        schema: str | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """The URL with ``schema`` as the namespace that names are looked up in first."""
        if schema:
            uri = uri.update_query_dict({"namespace": schema})
        return uri, connect_args

    @classmethod
    def get_schema_from_engine_params(cls, sqlalchemy_uri: Any, connect_args: Any) -> str | None:
        """The namespace of a URL."""
        named: str | None = sqlalchemy_uri.query.get("namespace")
        return named or (sqlalchemy_uri.database if sqlalchemy_uri.host else None)

    @classmethod
    def get_allow_cost_estimate(cls, extra: dict[str, Any]) -> bool:
        """Always: the metadata of the tables knows."""
        return True

    @classmethod
    def estimate_statement_cost(cls, database: Any, statement: str, cursor: Any) -> dict[str, Any]:
        """What a statement would read, which does not run: tables, files, bytes and rows."""
        with cursor.connection.cursor() as asked:
            asked.execute(f"EXPLAIN {statement}")
            reports = asked.scan_reports
        return {
            "tables": len(reports),
            "files": sum(report.distinct_data_files for report in reports),
            "bytes": sum(report.projected_bytes for report in reports),
        }

    @classmethod
    def query_cost_formatter(cls, raw_cost: list[dict[str, Any]]) -> list[dict[str, str]]:
        """The numbers in words."""
        from icesql.scan.report_text import bytes_text

        return [
            {
                "Tables": str(cost["tables"]),
                "Data files": f"{cost['files']:,}",
                "To read": bytes_text(cost["bytes"]),
            }
            for cost in raw_cost
        ]
