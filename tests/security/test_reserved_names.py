"""SQL cannot use the engine's internal names of rows: neither the first nor the eighth time."""

from __future__ import annotations

import pytest

import icesql
from icesql.errors import UnsupportedSqlError
from icesql.sql.acceptance import RESERVED
from tests.sessions import fetched

# Kept relations and prepared statements come in at the third run and later.
TIMES = 8
FORMS = (
    'WITH "{0}1" AS (SELECT 7 AS a) SELECT * FROM "{0}1"',
    "WITH x AS (WITH {0}1 AS MATERIALIZED (SELECT 7 AS a) SELECT * FROM {0}1) SELECT * FROM x",
    "WITH RECURSIVE {0}1(a) AS (SELECT 7 UNION ALL SELECT a FROM {0}1) SELECT * FROM {0}1 LIMIT 1",
    "SELECT (WITH {0}0 AS (SELECT 7 AS a) SELECT a FROM {0}0) FROM t",
    'SELECT count(*) FROM t AS "{0}1"',
    'SELECT count(*) FROM "{0}0" : t',
    'SELECT * FROM range(3) AS "{0}1"',
    'SELECT * FROM (SELECT a FROM t) AS "{0}0", t',
    "SELECT * FROM (VALUES (7)) AS {0}1(a), t",
)


@pytest.mark.parametrize("prefix", RESERVED)
def test_a_reserved_name_is_refused_each_time(prefix: str) -> None:
    with icesql.connect() as connection:
        connection.execute("CREATE TEMP TABLE t AS SELECT 1 AS a")
        for form in FORMS:
            for word in (prefix, prefix.upper()):
                for _ in range(TIMES):
                    with pytest.raises(UnsupportedSqlError, match="reserved"):
                        fetched(connection, form.format(word))
                    assert fetched(connection, "SELECT a FROM t") == [(1,)]


@pytest.mark.parametrize("prefix", RESERVED)
def test_no_table_of_a_reserved_name_is_found(prefix: str) -> None:
    with icesql.connect() as connection:
        connection.execute("CREATE TEMP TABLE t AS SELECT 1 AS a")
        for _ in range(TIMES):
            assert fetched(connection, "SELECT a FROM t") == [(1,)]
            for number in range(3):
                with pytest.raises(icesql.Error):
                    fetched(connection, f'SELECT * FROM "{prefix}{number}"')
