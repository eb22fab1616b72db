"""The target of every project of the suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="class")
def dbt_profile_target() -> dict[str, object]:
    lake = os.environ["DBT_LAKE_OF_TESTS"]
    return {
        "type": "icesql",
        "threads": 4,
        "uri": f"sqlite:///{lake}/catalog.db",
        "warehouse": lake,
        "properties": {"init_catalog_tables": "true"},
        "purge": True,
    }


@pytest.fixture(scope="class")
def profile_user() -> None:
    """A target has none."""


_HOOK_COLUMNS = ", ".join(
    f"{name} {'integer' if name == 'target_threads' else 'varchar'}"
    for name in (
        "test_state", "target_dbname", "target_host", "target_name", "target_schema",
        "target_type", "target_user", "target_pass", "target_threads", "run_started_at",
        "invocation_id", "thread_id",
    )
)  # fmt: skip


@pytest.fixture(scope="class")
def test_data_dir(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables that hooks write to."""
    place = tmp_path_factory.mktemp("data") / "data"
    if "SpecificFormats" in request.node.name:
        return place  # it makes the folder itself
    place.mkdir()
    for file, table in (("seed_model", "on_model_hook"), ("seed_run", "on_run_hook")):
        sql = f"create or replace table {{schema}}.{table} ({_HOOK_COLUMNS});"
        (place / f"{file}.sql").write_text(sql, encoding="utf-8")
    return place
