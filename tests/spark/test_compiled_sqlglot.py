"""The SQL for Spark where the classes of sqlglot can have no subclasses, as with ``sqlglot[c]``."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from icesql.sql.parser import open_parser

if sys.argv[1] == "compiled":
    open_parser.is_compiled = lambda: True
else:
    assert not open_parser.is_compiled()

from sqlglot import exp
from icesql.engine.spark.fragments.driver_aggregate import _DuckDBOverPartials
from icesql.engine.spark.sql.dialect import IcesqlSpark, check_functions, qualified, spark_sql
from icesql.engine.spark.sql.kinds import spelled
from icesql.sql.parse import parse

(query,) = parse(
    "SELECT CAST('1_0' AS INT) AS a, 7 // 2 AS b, 'a' || 1 AS c, TIMESTAMP '2020-01-01' AS d,"
    " sum(x) FROM (VALUES (1), (2)) v(x) WHERE x % 2 = 1 AND x / 2 > 0"
    " QUALIFY row_number() OVER (ORDER BY x) = 1"
)
tree = qualified(query.tree, [])
check_functions(tree)
print(spark_sql(tree, {}, "UTC", "MARK"))
added = exp.select(spelled("{0} + 1", exp.column("a")))
print(added.sql(dialect=IcesqlSpark))
print(exp.select(spelled("{0} + 1", exp.column("a"))).sql(dialect=_DuckDBOverPartials))
bases = [each.__module__ for each in IcesqlSpark.Generator.__mro__[1:-1]]
print(all(each.startswith("icesql.sql.opened.") for each in bases), file=sys.stderr)
# Only sqlglot's own classes stand in a tree.
print([each for each in exp.Expression.__subclasses__() if each.__module__.startswith("icesql")])
"""


def run(how: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr.strip()


def test_classes_that_take_no_subclass_write_the_same_sql() -> None:
    plain, opened = run("plain")
    assert opened == "False"
    assert "a + 1" in plain
    assert plain.splitlines()[-1] == "[]"
    assert run("compiled") == (plain, "True")
