"""The plugin that dbt loads: installed as ``dbt/adapters/icesql/__init__.py``."""

from pathlib import Path

from dbt.adapters.base import AdapterPlugin

from icesql.dbt import adapter, credentials

Plugin = AdapterPlugin(
    adapter=adapter.IcesqlAdapter,
    credentials=credentials.IcesqlCredentials,
    include_path=str(Path(adapter.__file__).parent / "include"),
    project_name="dbt_icesql",
)
