"""Batches of times with a zone, on a connection whose own zone is another one."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.incremental import test_incremental_microbatch as microbatch


class TestMicrobatchInAZone(microbatch.BaseMicrobatch):
    """dbt's batches begin and end in UTC, whatever the zone of the connection is."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, object]) -> dict[str, object]:
        return dbt_profile_target | {"timezone": "America/New_York"}

    @pytest.fixture(scope="class")
    def input_model_sql(self) -> str:
        found = microbatch._input_model_sql.replace(":00-0'", ":00+00'")
        return found.replace("TIMESTAMP '", "TIMESTAMPTZ '")

    @pytest.fixture(scope="class")
    def insert_two_rows_sql(self, project: Any) -> str:
        place = project.adapter.Relation.create(
            database=project.database, schema=project.test_schema
        )
        rows = ", ".join(f"({n}, TIMESTAMPTZ '2020-01-0{n} 00:00:00+00')" for n in (4, 5))
        return f"insert into {place}.input_model (id, event_time) values {rows}"
