"""What people type by mistake is told in their words, at its place, with what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from icesql.errors import Error
from icesql.sql.parse import parse


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM t FOR",
         'syntax error at line 1, column 17: "FOR" begins no clause of time travel; '
         "expected FOR VERSION AS OF or FOR TIMESTAMP AS OF"),
        ("SELECT * FROM t FOR SYSTEM TIME '2026-01-01'",
         "syntax error at line 1, column 33: a time-travel clause without AS OF: "
         "FOR SYSTEM TIME '2026-01-01'; expected AS OF"),
        ("SELECT * FROM t STATE AS OF 3",
         'syntax error at line 1, column 17: "STATE AS OF" is no clause of time travel; '
         "expected FOR VERSION AS OF or FOR TIMESTAMP AS OF"),
        ("DESCRIBE demo.trips city",
         'syntax error at line 1, column 21: unexpected "city": DESCRIBE takes one table and no '
         "column or alias; expected the end of the statement"),
        ("SHOW SNAPSHOTS demo.trips x",
         'syntax error at line 1, column 27: unexpected "x": SHOW SNAPSHOTS takes one table and no '
         "column or alias; expected the end of the statement"),
        ("DESCRIBE NAMESPACE demo",
         "not supported: DESCRIBE NAMESPACE (line 1, column 10); "
         "SHOW TABLES FROM demo lists its tables"),
        ("SELECT * FROM t JOIN (SHOW CREATE VIEW) ON true",
         "syntax error at line 1, column 39: nothing follows SHOW CREATE VIEW; expected a table"),
        ("SELECT a FROM FROM t",
         'syntax error at line 1, column 15: unexpected "FROM"; expected a table'),
        ("SELECT * FROM",
         "syntax error at line 1, column 14: unexpected end of the statement; expected a table"),
        ("SELECT * FROM (SHOW TBLES)",
         'syntax error at line 1, column 21: unexpected "TBLES" after SHOW; did you mean TABLES?'),
        ("FROM (SHOW TABLES) VERSION AS OF 1",
         "not supported: time travel on this table (line 1, column 6); put it into the statement"),
        ('WITH "__sh0" AS (SELECT 1) FROM (SHOW TABLES)',
         'not supported: the name "__sh0" (line 1, column 6); it is reserved'),
        ("FROM information_schema.tabels",
         "not supported: information_schema.tabels (line 1, column 6); did you mean tables?"),
        ("SELECT * FORM t",
         'syntax error at line 1, column 10: unexpected "FORM"; did you mean FROM?'),
        ("SELECT a FRM t",
         'syntax error at line 1, column 10: "FRM" is taken for a name; did you mean FROM?'),
        ("SELECT * FRO t",
         'syntax error at line 1, column 10: unexpected "FRO"; did you mean FROM?'),
        ("exit",
         'syntax error at line 1, column 1: "exit" is no SQL statement; '
         "in the shell, \\q or Ctrl-D leaves"),
        ("help", "syntax error at line 1, column 1: \"help\" is no SQL statement; "
         "in the shell, \\? lists its commands"),
        (".tables", 'syntax error at line 1, column 1: "." is no SQL statement; '
         "in the shell, \\? lists its commands and \\d the tables"),
        ("\\d t", 'syntax error at line 1, column 1: "\\" is no SQL statement; commands with a '
         "backslash are of the shell, which opens without -c, -f and a pipe; in SQL there are SHOW "
         "TABLES and DESCRIBE t"),
    ],
)  # fmt: skip
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
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
