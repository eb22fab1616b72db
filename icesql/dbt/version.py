"""The version in ``dbt --version``: installed as ``dbt/adapters/icesql/__version__.py``."""

from icesql import __version__ as version

__all__ = ["version"]
