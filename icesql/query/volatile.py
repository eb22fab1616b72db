"""Volatile functions: a statement with one must not be evaluated twice."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from icesql.sql.engine_functions import classes
from icesql.sql.trees import exp

if TYPE_CHECKING:
    from collections.abc import Iterator


def volatile_parts(tree: exp.Expr) -> Iterator[str]:
    """The names of calls such as ``random()``, and TABLESAMPLE, in a tree with stopped clock."""
    node: Any
    for node in tree.find_all(exp.Func, exp.TableSample):
        if isinstance(node, exp.TableSample):
            yield "TABLESAMPLE"
            continue
        names = [node.name] if isinstance(node, exp.Anonymous) else type(node).sql_names()
        yield from (f"{each.lower()}()" for each in names if each.lower() in _names())


@functools.cache
def _names() -> frozenset[str]:
    from icesql.sql.spark_text.functions import classes as spark_classes

    own = {name for (_, name), kind in classes().items() if kind == "volatile"}
    return frozenset(own | {name for name, kind in spark_classes().items() if kind == "volatile"})
