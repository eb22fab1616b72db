"""What a run of maintenance imports, so that a process that is forked has it."""

from __future__ import annotations

import duckdb  # noqa: F401
import pyarrow.parquet  # noqa: F401

import icesql.cli
import icesql.dbapi.maintenance
import icesql.maintain.convert
import icesql.maintain.expire
import icesql.maintain.orphans
import icesql.maintain.rewrite.run
import icesql.modify.run
import icesql.session.planning  # noqa: F401
