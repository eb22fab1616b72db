"""icesql does not subclass sqlglot's parsers and generators: ``sqlglot[c]`` does not allow it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil
import icesql
from sqlglot import exp, generator, parser

for module in pkgutil.walk_packages(icesql.__path__, "icesql."):
    # The others are classes of Superset's and dbt's, which are not here.
    name = module.name + "."
    if "__main__" not in name and ".superset." not in name and ".dbt." not in name:
        importlib.import_module(module.name)


def below(made):
    for each in made.__subclasses__():
        yield each
        yield from below(each)


for made in (parser.Parser, generator.Generator, exp.Expression):
    print([each for each in below(made) if each.__module__.startswith("icesql")])
"""


def test_no_class_of_sqlglots_parsers_generators_and_nodes_has_a_subclass() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n") == ["[]", "[]", "[]", ""]
