"""SQLAlchemy's own pytest plug-in, as a dialect outside of SQLAlchemy starts it."""

from __future__ import annotations

import pytest
from sqlalchemy.dialects import registry

registry.register("icesql", "icesql.sqlalchemy.dialect", "IcesqlDialect")
registry.register("icesql.icesql", "icesql.sqlalchemy.dialect", "IcesqlDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403
