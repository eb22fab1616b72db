"""icesql in Superset: the entry point ``superset.db_engine_specs``.

Time grains and literals in DuckDB's dialect, the schema of a query by USE, and cost estimates from
metadata.
"""

from __future__ import annotations

import re
import threading
from collections.abc import MutableMapping
from datetime import datetime
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

from flask import current_app
from flask_babel import lazy_gettext
from sqlalchemy import types
from sqlglot.dialects.dialect import Dialects
from superset.db_engine_specs.base import BaseEngineSpec
from superset.db_engine_specs.duckdb import DuckDBEngineSpec
from superset.errors import SupersetErrorType
from superset.sql.parse import SQLGLOT_DIALECTS
from superset.utils.core import GenericDataType

# Superset's own parser, which finds tables and sets limits, parses SQL as DuckDB's.
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
# Seconds between two checks whether a query has been stopped.
_LOOK_EVERY: Final = 1.0
# The running queries: each cursor with the event that ends the checks.
_running: MutableMapping[Any, threading.Event] = WeakKeyDictionary()


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

    custom_errors: ClassVar[dict[Any, tuple[Any, SupersetErrorType, dict[str, Any]]]] = {
        re.compile(r'column "(?P<column_name>.+?)" not found'): (
            lazy_gettext('We can\'t seem to resolve the column "%(column_name)s"'),
            SupersetErrorType.COLUMN_DOES_NOT_EXIST_ERROR,
            {},
        ),
        re.compile(r'table "(?P<table_name>.+?)" not found'): (
            lazy_gettext('The table "%(table_name)s" does not exist.'),
            SupersetErrorType.TABLE_DOES_NOT_EXIST_ERROR,
            {},
        ),
        re.compile(r"(?P<syntax_error>syntax error.*)"): (
            lazy_gettext("Please check your query: %(syntax_error)s"),
            SupersetErrorType.SYNTAX_ERROR,
            {},
        ),
        re.compile(r"(?P<message>(?:no catalog|warehouse .* is not a folder|catalog .*:).*)"): (
            lazy_gettext("%(message)s"),
            SupersetErrorType.CONNECTION_DATABASE_PERMISSIONS_ERROR,
            {},
        ),
    }

    @classmethod
    def epoch_to_dttm(cls) -> str:
        """SQL that converts seconds since 1970 to a timestamp."""
        return "to_timestamp({col})"

    @classmethod
    def convert_dttm(
        cls, target_type: str, dttm: datetime, db_extra: dict[str, Any] | None = None
    ) -> str | None:
        """A time as a literal of a column's type; None for other types than date and time."""
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
        """The URL with ``schema`` as the namespace in which names are looked up first."""
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
        """Always True: table metadata provides the estimate."""
        return True

    @classmethod
    def estimate_statement_cost(cls, database: Any, statement: str, cursor: Any) -> dict[str, Any]:
        """Estimate the reads of a statement without running it: tables, files and bytes.

        Raises icesql's errors for anything but one query, such as options of EXPLAIN before it.
        """
        from icesql.dbapi.planned import explain_only

        with cursor.connection.cursor() as explaining:
            reports = explain_only(explaining, statement).scan_reports
        return {
            "tables": len(reports),
            "files": sum(report.distinct_data_files for report in reports),
            "bytes": sum(report.projected_bytes for report in reports),
        }

    @classmethod
    def query_cost_formatter(cls, raw_cost: list[dict[str, Any]]) -> list[dict[str, str]]:
        """The estimate as texts."""
        from icesql.scan.report import bytes_text

        return [
            {
                "Tables": str(cost["tables"]),
                "Data files": f"{cost['files']:,}",
                "To read": bytes_text(cost["bytes"]),
            }
            for cost in raw_cost
        ]

    # ------------------------------------------------------------------ stopping

    @classmethod
    def has_implicit_cancel(cls) -> bool:
        """True: the process that runs a query checks in Superset's database if it was stopped."""
        return True

    @classmethod
    def execute_with_cursor(cls, cursor: Any, sql: str, query: Any) -> None:
        """Run a query of SQL Lab; a thread checks for a stop until its rows are fetched."""
        ended = _running[cursor] = threading.Event()
        app = current_app._get_current_object()
        watch = threading.Thread(
            target=_cancel_when_stopped, args=(app, query.id, cursor, ended), daemon=True
        )
        watch.start()
        try:
            super().execute_with_cursor(cursor, sql, query)
        except BaseException:
            ended.set()
            raise

    @classmethod
    def fetch_data(cls, cursor: Any, limit: int | None = None) -> list[tuple[Any, ...]]:
        """Fetch the rows, and end the thread that ``execute_with_cursor`` started."""
        try:
            rows: list[tuple[Any, ...]] = super().fetch_data(cursor, limit)
            return rows
        finally:
            if (ended := _running.pop(cursor, None)) is not None:
                ended.set()


def _cancel_when_stopped(app: Any, query_id: int, cursor: Any, ended: threading.Event) -> None:
    """Check until ``ended`` if a query was stopped or timed out, and cancel its cursor then."""
    from superset import db
    from superset.common.db_query_status import QueryStatus
    from superset.models.sql_lab import Query

    with app.app_context():
        while not ended.wait(_LOOK_EVERY) and not cursor.closed:
            status = db.session.query(Query.status).filter_by(id=query_id).scalar()
            db.session.rollback()
            if status in (QueryStatus.STOPPED, QueryStatus.TIMED_OUT):
                cursor.cancel()
                return
