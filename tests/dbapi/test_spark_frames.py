"""What ``icesql.sql`` refuses before there is a Spark, and that nothing of it stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql


class Session:
    """What no Spark is needed of."""


@pytest.mark.parametrize(
    "statement",
    [
        "SET threads = 1",
        "SET engine = 'local'",
        "RESET ALL",
        "SET SNAPSHOT TIME '2020-01-01'",
        "USE main",
        "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE MACRO twice(x) AS x * 2",
        "PREPARE q AS SELECT 1",
        "BEGIN",
        "COMMIT",
    ],
)
def test_what_would_change_later_queries_is_refused_and_changes_nothing(
    tmp_path: Path, statement: str
) -> None:
    session: Any = Session()
    with pytest.raises(icesql.Error) as caught:
        icesql.sql(session, statement, warehouse=str(tmp_path))
    assert isinstance(caught.value, icesql.ProgrammingError)
    (connection,) = session._icesql["connections"].values()
    inner = connection._session
    assert inner.state.settings == inner.state.defaults
    assert not inner.state.temporary
    assert not inner.state.prepared
    # Another connection is made where one was closed.
    connection.close()
    with pytest.raises(icesql.SqlSyntaxError):
        icesql.sql(session, "SELECT FROM", warehouse=str(tmp_path))
