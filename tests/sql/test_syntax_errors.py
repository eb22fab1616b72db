"""Errors for common typing mistakes quote the user's text, its position, and a remedy."""

from __future__ import annotations

import subprocess
import sys

import pytest

from icesql.errors import Error
from icesql.sql.parse import parse
from tests.tables import read_table


@pytest.mark.parametrize(("sql", "message"), read_table(__file__, "mistakes.tsv"))
def test_a_mistake_is_told_in_the_words_of_its_user(sql: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        parse(sql)
    assert str(caught.value).partition("\n")[0] == message


@pytest.mark.parametrize("sql", ["SELECT * FROM t FOR", "SELECT a AS FROM t",
                                 "SELECT * FROM t WHERE a AND", "SELECT a FROM t t t"])  # fmt: skip
def test_no_word_is_offered_in_its_own_place(sql: str) -> None:
    with pytest.raises(Error) as caught:
        parse(sql)
    problem = str(caught.value).partition("\n")[0]
    for word in sql.split():
        assert f"mean {word}?" not in problem


def test_nothing_that_sqlglot_logs_reaches_standard_error() -> None:
    program = (
        "import icesql, logging, sqlglot\n"
        "icesql.connect().execute('SELECT 1')\n"
        "sqlglot.parse_one('SELECT 1').sql('duckdb')\n"
        "logging.getLogger('sqlglot').warning('falling back')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=True
    )
    assert done.stderr == ""
