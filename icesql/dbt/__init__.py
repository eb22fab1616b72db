"""The dbt adapter ``type: icesql``. In: what dbt-core asks of an adapter; out: SQL on dbapi.

dbt looks for ``dbt.adapters.icesql``: the wheel puts ``plugin`` and ``version`` there. May import
dbapi and what that imports; nothing of icesql imports it.
"""
