"""The dbt adapter ``type: icesql``. In: dbt-core's calls to an adapter; out: SQL on dbapi.

dbt imports ``dbt.adapters.icesql``: the wheel installs ``plugin`` and ``version`` there. May import
dbapi and what that imports; no other part of icesql imports it.
"""
